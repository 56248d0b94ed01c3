//! What must hold of any bytes that are read as a recording.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use wavetank_model::{KeyId, LayoutId, Recorded, Result};
use wavetank_trace::calls::CallReader;
use wavetank_trace::calls::lct::{Header, Reader, Writer};
use wavetank_trace::{CallSurvey, Input, Output};

use crate::said::{Met, refused, sketch};

/// Frames above it are refused.
const FRAME_LIMIT: usize = 1 << 20;

/// A recording that was read to its end.
struct Story {
    reader: Reader,
    calls: Vec<Recorded>,
}

/// Reads `bytes` whatever they are. What could be read is written, read again, and must be the same.
pub(super) fn check(bytes: &[u8]) -> Met {
    let story = match read(bytes) {
        Ok(story) => story,
        Err(error) => return refused(&error, "<memory>"),
    };
    let survey = story.reader.survey();
    assert!(story.calls.len() as u64 <= survey.records(), "more calls than records");
    let copy = read(&written(&story)).expect("what is written is a recording");
    let CallSurvey { unknown, damaged, cut, stopped, .. } = copy.reader.survey();
    assert_eq!((unknown.count(), damaged.count(), cut, stopped), (0, 0, None, None), "all of it is read");
    let header = copy.reader.header();
    assert_eq!(&Header { schema: header.schema, ..story.reader.header().clone() }, header, "as it was");
    assert!(spelled(&story) == spelled(&copy), "the calls are as they were");
    let reasons = survey.unknown.reasons.iter().chain(&survey.damaged.reasons);
    let reasons: BTreeSet<String> = reasons.map(|reason| sketch(&reason.reason)).collect();
    let (calls, generations) = (story.calls.len().checked_ilog2(), story.reader.generations());
    let ends = (survey.cut.is_some(), survey.stopped.map(|stop| sketch(&stop.reason)));
    Met::Read(format!("{calls:?} {generations} {} {ends:?} {reasons:?}", survey.operations.len()))
}

/// A recording as far as it can be read; an error if it is none.
fn read(bytes: &[u8]) -> Result<Story> {
    let mut reader = Reader::open(&Input::Bytes(Arc::from(bytes)), FRAME_LIMIT)?;
    let mut calls = Vec::new();
    while let Ok(Some(recorded)) = reader.advance() {
        calls.push(recorded);
    }
    assert!(reader.next().is_none(), "nothing follows the end");
    Ok(Story { reader, calls })
}

fn written(story: &Story) -> Vec<u8> {
    let mut bytes = Vec::new();
    let writer = Writer::begin(Output::to(&mut bytes), story.reader.header()).and_then(|mut writer| {
        story.calls.iter().try_for_each(|call| writer.record(call, story.reader.keys()))?;
        writer.finish()
    });
    writer.expect("memory takes every byte");
    bytes
}

/// Calls with keys and layouts numbered as they come, and what these numbers stand for: tables of two
/// readers number them otherwise.
fn spelled(story: &Story) -> (Vec<Recorded>, [Vec<String>; 2]) {
    let table = story.reader.keys();
    let (mut keys, mut layouts) = (Numbers::default(), Numbers::default());
    let calls = story.calls.iter().map(|recorded| {
        let mut recorded = recorded.clone();
        recorded.call.renumber(
            |key| KeyId(keys.number(key, || format!("{:?}", table.key(key)))),
            |layout| LayoutId(layouts.number(layout, || format!("{:?}", table.layout(layout)))),
        );
        recorded
    });
    let calls = calls.collect();
    (calls, [keys.names, layouts.names])
}

/// Numbers in the order of first use.
struct Numbers<T> {
    numbers: HashMap<T, u32>,
    names: Vec<String>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), names: Vec::new() }
    }
}

impl<T: Eq + Hash> Numbers<T> {
    fn number(&mut self, of: T, name: impl FnOnce() -> String) -> u32 {
        let next = self.names.len() as u32;
        *self.numbers.entry(of).or_insert_with(|| {
            self.names.push(name());
            next
        })
    }
}
