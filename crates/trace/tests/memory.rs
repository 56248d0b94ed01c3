//! A recording made to use memory: frames of as many tiny values as fit. A process of its own, so that its
//! peak is that of the reader.

use std::sync::Arc;

use wavetank_trace::calls::CallReader;
use wavetank_trace::calls::lct::{Header, Reader, Writer};
use wavetank_trace::{Input, Output};

const LIMIT: usize = 4 << 20;
const STORAGE: &str = "lmcache.v1.distributed.storage_manager.StorageManager";

/// The most memory this process has had, in bytes.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? * 1024)
}

fn text(out: &mut Vec<u8>, text: &str) {
    rmp::encode::write_str(out, text).expect("memory takes every byte");
}

/// A list that fills the frame with `item`.
fn full(item: u8) -> Vec<u8> {
    let items = LIMIT - 4096;
    let mut list = Vec::with_capacity(LIMIT);
    rmp::encode::write_array_len(&mut list, items as u32).expect("memory takes every byte");
    list.resize(list.len() + items, item);
    list
}

/// Wraps `value` as the payload of a tag.
fn tagged(tag: &str, value: &[u8]) -> Vec<u8> {
    let mut out = vec![0x82];
    text(&mut out, "__t__");
    text(&mut out, tag);
    text(&mut out, "v");
    out.extend_from_slice(value);
    out
}

fn map(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = vec![0x81];
    text(&mut out, name);
    out.extend_from_slice(value);
    out
}

/// A frame of a record: `more` stands before the arguments.
fn frame(operation: &str, more: Option<(&str, &[u8])>, args: &[u8]) -> Vec<u8> {
    let mut body = vec![0x85 + u8::from(more.is_some())];
    text(&mut body, "type");
    text(&mut body, "record");
    text(&mut body, "t_mono");
    body.push(1);
    text(&mut body, "t_wall");
    body.push(1);
    text(&mut body, "qualname");
    text(&mut body, &format!("{STORAGE}.{operation}"));
    if let Some((name, value)) = more {
        text(&mut body, name);
        body.extend_from_slice(value);
    }
    text(&mut body, "args");
    body.extend_from_slice(args);
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

/// Broken by: room made for as many values as a list claims, or for values many times larger than their
/// bytes.
#[test]
fn memory_is_bounded_by_the_frame_limit() {
    let mut bytes = Vec::new();
    Writer::begin(Output::to(&mut bytes), &Header::storage(0.0, String::new()))
        .and_then(Writer::finish)
        .expect("memory takes every byte");
    let layout =
        |field: &str, list: &[u8]| map("layout_desc", &tagged("MemoryLayoutDesc", &map(field, list)));
    let frames = [
        frame("finish_write", None, &map("keys", &full(0x00))),
        frame("finish_write", None, &map("keys", &full(0x80))),
        frame("reserve_write", None, &layout("shapes", &full(0x90))),
        frame("reserve_write", None, &layout("dtypes", &full(0xa0))),
        frame("finish_write", Some(("wt_salt", &full(0xa0))), &map("keys", &[0x90])),
        frame("submit_prefetch_task", None, &map("attn_desc", &tagged("AttnWindowDesc", &full(1)))),
        frame(
            "submit_prefetch_task",
            None,
            &map("spec", &tagged("PrefetchTaskSpec", &map("key_groups", &full(0x80)))),
        ),
        frame("unheard_of", None, &full(0x90)),
    ];
    let count = frames.len() as u64;
    let whole: Arc<[u8]> = [bytes, frames.concat(), vec![0, 0x3f, 0xff, 0xff, 1]].concat().into();
    drop(frames);
    let before = peak();
    let mut reader = Reader::open(&Input::Bytes(whole), LIMIT).expect("a header");
    let calls = std::iter::from_fn(|| reader.advance().expect("nothing above the limit")).count() as u64;
    let survey = reader.survey();
    assert_eq!((calls, survey.damaged.count() + survey.unknown.count()), (0, count), "{survey:?}");
    assert!(survey.cut.is_some());
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after - before < 2 * LIMIT, "{} MiB more", (after - before) >> 20);
    }
}
