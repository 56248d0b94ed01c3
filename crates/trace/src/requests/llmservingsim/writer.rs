//! LLMServingSim's lines, written: lengths and times. Tokens cannot be made up from ids, so there are none.

use std::collections::HashMap;
use std::io::{self, Write};

use wavetank_model::Nanos;

use crate::requests::{WriteOptions, Writer};
use crate::{Moment, Output, Row};

pub(super) fn begin<'w>(output: Output<'w>, _: &WriteOptions) -> io::Result<Box<dyn Writer + 'w>> {
    Ok(Box::new(Lines { output, sessions: Vec::new(), by_name: HashMap::new() }))
}

/// A trace being written. A session is one line, so its requests wait for the last of them.
struct Lines<'w> {
    output: Output<'w>,
    sessions: Vec<Session>,
    by_name: HashMap<String, usize>,
}

struct Session {
    name: String,
    start: Option<Moment>,
    last_start: Option<Moment>,
    turns: Vec<Turn>,
}

struct Turn {
    input_tokens: u32,
    output_tokens: u32,
    /// Between its end and the next one.
    pause: Nanos,
}

impl Writer for Lines<'_> {
    fn write(&mut self, row: &Row) -> io::Result<()> {
        let (input_tokens, output_tokens) = (row.input_tokens.unwrap_or(0), row.output_tokens.unwrap_or(0));
        let turn = Turn { input_tokens, output_tokens, pause: Nanos::ZERO };
        let Some(name) = &row.session else {
            let arrival = Arrival(row.start);
            return writeln!(
                self.output,
                r#"{{"input_toks":{input_tokens},"output_toks":{output_tokens}{arrival}}}"#
            );
        };
        match self.by_name.get(name) {
            Some(&session) => self.sessions[session].add(row, turn),
            None => {
                self.by_name.insert(name.clone(), self.sessions.len());
                let (name, start) = (name.clone(), row.start);
                self.sessions.push(Session { name, start, last_start: start, turns: vec![turn] });
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        for session in &self.sessions {
            session.write(&mut self.output)?;
        }
        self.output.finish()
    }
}

impl Session {
    fn add(&mut self, row: &Row, turn: Turn) {
        let gap = row.start.zip(self.last_start).and_then(|(now, before)| now.since(before));
        let pause = row.pause.or(gap).unwrap_or_default() + row.tool_wait.unwrap_or_default();
        if let Some(last) = self.turns.last_mut() {
            last.pause = pause;
        }
        self.last_start = row.start.or(self.last_start);
        self.turns.push(turn);
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = serde_json::to_string(&self.name)?;
        write!(out, r#"{{"session_id":{name}{},"sub_requests":["#, Arrival(self.start))?;
        for (number, Turn { input_tokens, output_tokens, pause }) in self.turns.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(out, r#"{comma}{{"input_toks":{input_tokens},"output_toks":{output_tokens}"#)?;
            write!(out, r#","tool_duration_ns":{}}}"#, pause.0)?;
        }
        writeln!(out, "]}}")
    }
}

/// The member that says when, where that is known.
struct Arrival(Option<Moment>);

impl std::fmt::Display for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |start| write!(f, r#","arrival_time_ns":{}"#, start.nanos))
    }
}
