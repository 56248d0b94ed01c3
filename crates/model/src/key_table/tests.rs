//! The table of keys against plain lists.

use super::*;

fn family<'k>(model_name: &'k str, kv_rank: u64, cache_salt: &'k str) -> KeyFamily<'k> {
    KeyFamily { model_name, kv_rank, object_group_id: 0, cache_salt }
}

/// Broken by: a part of the identity that is not compared.
#[test]
fn every_part_is_identity() {
    let mut table = KeyTable::default();
    let plain = ObjectKey { chunk_hash: b"ab", family: family("m", 1, "") };
    let others = [
        ObjectKey { chunk_hash: b"a", ..plain },
        ObjectKey { chunk_hash: b"", ..plain },
        ObjectKey { family: family("n", 1, ""), ..plain },
        ObjectKey { family: family("m", 2, ""), ..plain },
        ObjectKey { family: KeyFamily { object_group_id: 1, ..plain.family }, ..plain },
        ObjectKey { family: family("m", 1, "t"), ..plain },
    ];
    let keys: Vec<_> = std::iter::once(plain).chain(others).collect();
    for _ in 0..2 {
        for (number, key) in (0..).zip(&keys) {
            assert_eq!(table.key_id(*key), KeyId(number));
            assert_eq!(table.key(KeyId(number)), *key);
        }
    }
    assert_eq!((table.len(), table.families().count()), (7, 5));
}

/// Broken by: an index that is lost when it grows.
#[test]
fn numbers_stay_when_the_table_grows() {
    let mut table = KeyTable::default();
    let hash = |number: u32| number.to_le_bytes();
    for round in 0..2 {
        for number in 0..10_000 {
            let family = table.family_id(family("m", u64::from(number % 3), ""));
            assert_eq!(table.key_of(family, &hash(number)), KeyId(number), "round {round}");
        }
    }
    assert_eq!(table.key(KeyId(9_999)).chunk_hash, hash(9_999));
}

#[test]
fn layouts_are_held_once() {
    let mut table = KeyTable::default();
    let layout = |side| Layout { shapes: Box::new([Box::new([side])]), dtypes: Box::new(["uint8".into()]) };
    assert_eq!([1, 2, 1].map(|side| table.layout_id(layout(side))), [0, 1, 0].map(LayoutId));
    assert_eq!(table.layouts(), [layout(1), layout(2)]);
}
