//! What is sent is what was said, however little a client takes at a time.

use proptest::collection::vec;
use proptest::prelude::*;
use wavetank_calls::{
    EvictionPlan, Got, L1Plan, LoadPolicy, Plan, QuotaPlan, SetManner, Storage, StorageOptions, StorePolicy,
};
use wavetank_model::Nanos;

use super::*;

/// Takes so many bytes of each call, and nothing where that is 0.
struct Picky<'a> {
    taken: Vec<u8>,
    takes: std::iter::Cycle<std::slice::Iter<'a, usize>>,
}

impl Write for Picky<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let most = *self.takes.next().unwrap();
        if most == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let before = self.taken.len();
        let offered = slices.iter().flat_map(|slice| slice.iter());
        self.taken.extend(offered.take(most));
        Ok(self.taken.len() - before)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn object(bytes: &[u8]) -> Arc<Object> {
    let eviction = EvictionPlan { policy: "lru".to_owned(), trigger_watermark: 0.8, eviction_ratio: 0.2 };
    let (ttl, quotas) = (Nanos(1 << 40), QuotaPlan::default());
    let l1 = L1Plan { capacity_bytes: None, align_bytes: 1, write_ttl: ttl, read_ttl: ttl, eviction, quotas };
    let (store_policy, load_policy) = (StorePolicy::Default, LoadPolicy::Default);
    let plan = Plan { l1, adapters: Vec::new(), store_delay: Nanos(0), store_policy, load_policy };
    let storage = Storage::open(&plan, &StorageOptions::default(), None).unwrap();
    let mut blank = storage.room(bytes.len() as u64).unwrap();
    blank.bytes_mut().copy_from_slice(bytes);
    storage.set(b"k", blank, SetManner::default());
    match storage.get(b"k") {
        Got::Here(object) => object,
        _ => panic!("it was just written"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Broken by: a part that is sent twice or not at all after a short write, or a wrong count of bytes.
    #[test]
    fn what_is_taken_bit_by_bit_is_all_there_was(
        said in vec(0_usize..9000, 1..150),
        takes in vec(prop_oneof![Just(0_usize), 1_usize..50, 1000_usize..20_000], 1..9),
    ) {
        let content: Vec<u8> = (0..9000_u32).map(|at| (at / 3) as u8).collect();
        let value = object(&content);
        let (mut outbox, mut expected) = (Outbox::default(), Vec::new());
        let takes: Vec<usize> = takes.into_iter().chain([7]).collect();
        let mut client = Picky { taken: Vec::new(), takes: takes.iter().cycle() };
        for (number, len) in said.into_iter().enumerate() {
            if number % 3 == 0 {
                outbox.reply(&Reply::Integer(len as i64));
                expected.extend(format!(":{len}\r\n").bytes());
            } else {
                outbox.value(&value, 9000 - len..9000);
                expected.extend(format!("${len}\r\n").bytes());
                expected.extend(&content[9000 - len..]);
                expected.extend(END);
            }
            if number % 10 == 9 {
                let flushed = outbox.flush(&mut client).unwrap();
                prop_assert_eq!(flushed == Flushed::All, outbox.bytes() == 0);
            }
            prop_assert_eq!(outbox.bytes() as usize, expected.len() - client.taken.len());
        }
        while outbox.flush(&mut client).unwrap() == Flushed::Some {}
        prop_assert!(client.taken == expected);
        drop(outbox);
        prop_assert_eq!(Arc::strong_count(&value), 1, "nothing is held");
    }
}

/// Broken by: text that stays until the last byte is taken.
#[test]
fn a_client_that_is_always_behind_does_not_make_it_grow() {
    let takes = [30_000, 0];
    let mut client = Picky { taken: Vec::new(), takes: takes.iter().cycle() };
    let (mut outbox, text) = (Outbox::default(), vec![b'x'; 15_000]);
    (0..20).for_each(|_| outbox.reply(&Reply::Bulk(&text)));
    for _ in 0..500 {
        (0..2).for_each(|_| outbox.reply(&Reply::Bulk(&text)));
        assert_eq!(outbox.flush(&mut client).unwrap(), Flushed::Some);
    }
    assert!(client.taken.len() > 5_000_000);
    assert!(outbox.own_bytes() < 2 * outbox.bytes(), "{} for {}", outbox.own_bytes(), outbox.bytes());
}
