//! `wavetank help exit-codes`.

use super::{Topic, columns};
use crate::exit;

pub(super) const ENTRY: Topic =
    Topic { name: "exit-codes", about: "what the number means that a command ends with", text };

fn text() -> String {
    let rows = exit::ALL.iter().flat_map(|(exit, about)| wrapped(exit.code(), about));
    let rows: Vec<(String, String)> = rows.collect();
    format!(
        "\
Exit codes

{}
A verdict for a script: wavetank compare before.json after.json --fail-if 'p99_ttft_ms > +5%'
",
        columns(rows.iter().map(|(code, about)| (code.as_str(), about.as_str())))
    )
}

/// What a code means, over as many lines as it takes.
fn wrapped(code: u8, about: &str) -> Vec<(String, String)> {
    const WIDTH: usize = 100;
    let mut code = code.to_string();
    let mut lines: Vec<(String, String)> = Vec::new();
    for word in about.split(' ') {
        match lines.last_mut().filter(|(_, line)| line.len() + word.len() < WIDTH) {
            Some((_, line)) => *line += &format!(" {word}"),
            None => lines.push((std::mem::take(&mut code), word.to_owned())),
        }
    }
    lines
}
