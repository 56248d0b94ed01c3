//! What a format keeps of a request and what it cannot do without, found out by writing one and reading it.

use std::sync::Arc;

use wavetank_model::{Nanos, Priority};

use crate::requests::{Blocks, Entry, ReadOptions, WriteOptions};
use crate::{Input, Moment, Output, Row};

/// What a format does with the parts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ability {
    /// Parts that are kept.
    pub keeps: Parts,
    /// Parts without which it cannot be written so that it means the same.
    pub needs: Parts,
}

/// Parts of a request, each there or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Its name.
    pub name: bool,
    /// Which session it is of.
    pub session: bool,
    /// When it came.
    pub start: bool,
    /// The pause before it.
    pub pause: bool,
    /// What it waits for.
    pub wait_for: bool,
    /// How long tools worked before it.
    pub tool_wait: bool,
    /// The length of its prompt, besides its ids.
    pub input: bool,
    /// How many tokens are generated.
    pub output: bool,
    /// The ids of its blocks.
    pub ids: bool,
    /// How a router may order it.
    pub priority: bool,
    /// The class a router's policy knows it by.
    pub policy_class: bool,
    /// What sort of request it is.
    pub kind: bool,
}

const TOKENS_PER_ID: u32 = 16;

impl Ability {
    /// What `format` does; nothing where it is not written.
    pub fn of(format: &Entry) -> Option<Self> {
        format.write?;
        let keeps = |change: fn(&mut Row), is_kept: fn(&[Row]) -> bool| {
            second(format, change).is_some_and(|rows| is_kept(&rows))
        };
        let keeps = Parts {
            name: keeps(|_| {}, |rows| rows[1].request == probe(1).request),
            session: keeps(in_session, |rows| {
                rows[0].session.is_some() && rows[0].session == rows[1].session
            }),
            start: keeps(
                |_| {},
                |rows| {
                    let apart = |rows: &[Row]| rows[1].start?.since(rows[0].start?);
                    apart(rows) == apart(&[probe(0), probe(1)])
                },
            ),
            pause: keeps(paused, |rows| rows[1].pause == Some(PAUSE)),
            wait_for: keeps(waiting, |rows| {
                rows[0].request.is_some() && rows[1].wait_for.first() == rows[0].request.as_ref()
            }),
            tool_wait: keeps(
                |row| {
                    waiting(row);
                    row.tool_wait = Some(PAUSE);
                },
                |rows| rows[1].tool_wait == Some(PAUSE),
            ),
            input: keeps(|_| {}, |rows| rows[1].input_tokens == probe(1).input_tokens),
            output: keeps(|_| {}, |rows| rows[1].output_tokens == probe(1).output_tokens),
            ids: keeps(
                |_| {},
                |rows| {
                    let [a, b] = [&rows[0].ids, &rows[1].ids];
                    a.len() == 2 && b.len() == 2 && a[0] == b[0] && a[1] != b[1]
                },
            ),
            priority: keeps(|row| row.priority = PRIORITY, |rows| rows[1].priority == PRIORITY),
            policy_class: keeps(|row| row.policy_class = text(), |rows| rows[1].policy_class == text()),
            kind: keeps(|row| row.kind = text(), |rows| rows[1].kind == text()),
        };
        let needs = |without: fn(&mut Row), is_without: fn(&Row) -> bool| {
            second(format, without).is_none_or(|rows| !is_without(&rows[1]))
        };
        let needs = Parts {
            name: needs(|row| row.request = None, |_| true),
            start: keeps.start && needs(|row| row.start = None, |row| row.start.is_none()),
            input: needs(
                |row| row.input_tokens = None,
                |row| row.input_tokens.is_none() || row.input_tokens == Some(2 * TOKENS_PER_ID),
            ),
            output: keeps.output && needs(|row| row.output_tokens = None, |row| row.output_tokens.is_none()),
            ids: needs(|row| row.ids.clear(), |row| row.ids.is_empty()),
            ..Parts::default()
        };
        Some(Self { keeps, needs })
    }
}

const PAUSE: Nanos = Nanos(250_000_000);
const PRIORITY: Priority = Priority { soft: 3, strict: 2 };

fn text() -> Option<String> {
    Some("batch".to_owned())
}

fn in_session(row: &mut Row) {
    row.session = Some("7".to_owned());
}

/// A first turn has no pause.
fn paused(row: &mut Row) {
    in_session(row);
    if *row.ids != probe(0).ids {
        row.pause = Some(PAUSE);
    }
}

fn waiting(row: &mut Row) {
    if *row.ids != probe(0).ids {
        row.wait_for = probe(0).request.into_iter().collect();
    }
}

/// The first or the second request of a small trace; their prompts begin alike.
fn probe(number: u32) -> Row {
    Row {
        request: Some(format!("{}", 11 + number)),
        start: Some(Moment { nanos: i64::from(number + 1) * 1_500_000_000 }),
        input_tokens: Some(20 + number),
        output_tokens: Some(5),
        ids: vec![1, 2 + u64::from(number)],
        ..Row::default()
    }
}

/// Two requests, changed, as they are when they were written and read; nothing where that is refused.
fn second(format: &Entry, change: fn(&mut Row)) -> Option<Vec<Row>> {
    let rows = [0, 1].map(|number| {
        let mut row = probe(number);
        change(&mut row);
        row
    });
    let options = WriteOptions { tokens_per_id: (!rows[0].ids.is_empty()).then_some(TOKENS_PER_ID) };
    let mut bytes = Vec::new();
    let mut writer = format.write?(Output::to(&mut bytes), &options).ok()?;
    rows.iter().try_for_each(|row| writer.write(row)).and_then(|()| writer.finish()).ok()?;
    let is_free = matches!(format.provides.blocks, Blocks::Of(_));
    let options = ReadOptions { tokens_per_id: is_free.then_some(TOKENS_PER_ID), ..ReadOptions::default() };
    let mut reader = (format.read)(&[Input::Bytes(Arc::from(bytes))], &options).ok()?;
    let mut read = Vec::new();
    let mut row = Row::default();
    while read.len() < rows.len() && reader.read(&mut row).ok()? {
        read.push(std::mem::take(&mut row));
    }
    (read.len() == rows.len()).then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests;

    #[test]
    fn mooncake_keeps_sessions_and_needs_ids() {
        let Ability { keeps, needs } = Ability::of(requests::find("mooncake").unwrap()).unwrap();
        let all = Parts {
            name: true,
            session: true,
            start: true,
            pause: true,
            input: true,
            output: true,
            ids: true,
            priority: true,
            policy_class: true,
            ..Parts::default()
        };
        assert_eq!(keeps, all);
        assert_eq!(needs, Parts { output: true, ids: true, ..Parts::default() });
    }

    /// Broken by: a writer whose rows its own reader does not take.
    #[test]
    fn every_written_format_keeps_lengths() {
        for format in requests::ALL {
            let Some(Ability { keeps, .. }) = Ability::of(format) else { continue };
            assert!(keeps.input || keeps.ids, "{}: {keeps:?}", format.name);
            assert_eq!(keeps.start, format.provides.starts, "{}", format.name);
            assert_eq!(keeps.output, format.provides.outputs, "{}", format.name);
            assert_eq!(keeps.wait_for, format.provides.dependencies, "{}", format.name);
            // Ids that are made of tokens do not give the tokens back.
            let is_of_tokens = format.name == "llmservingsim";
            let has_ids = format.provides.blocks != Blocks::Absent && !is_of_tokens;
            assert_eq!(keeps.ids, has_ids, "{}", format.name);
        }
    }
}
