//! Every flag that takes a value, as the help has it, with values that it should not have.

use super::mutation::HOSTILE;
use crate::torture::draw::Draw;
use crate::torture::round::{Round, words};

/// A command that ends soon, and its flags.
pub(super) struct Verb {
    line: &'static str,
    flags: Vec<Flag>,
}

/// A flag and what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Flag {
    name: String,
    takes: Taken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Number,
    Text,
}

/// What the help calls numbers.
const NUMBERS: [&str; 17] = [
    "<N>",
    "<SEED>",
    "<MS>",
    "<US>",
    "<TOKENS>",
    "<PER_S>",
    "<PER_SECOND>",
    "<RATIO>",
    "<SECONDS>",
    "<S>",
    "<GIB>",
    "<MIB>",
    "<MB>",
    "<FACTOR>",
    "<GB_PER_S>",
    "<BYTES>",
    "<PERCENT>",
];

/// Commands that run, to which flags are added.
const LINES: [(&str, &str); 12] = [
    ("replay", "replay trace.jsonl --report-json out.json"),
    ("replay", "replay --input-tokens 100 --output-tokens 5 --request-count 10 --report-json out.json"),
    (
        "bench",
        "bench --model tiny-1b --gpu-mem-gb 0 --cpu-mem-gb 0.1 --backend null --storage-capacity-gb 0.5 \
         --generation-mode deterministic --num-users 2 --duration 1 --max-requests 5 --quiet \
         --output out.json",
    ),
    ("serve", "serve --check --l1-size-gb 1"),
    ("mock", "mock --check"),
    ("sweep", "sweep tiny.toml --fresh -o out.json"),
    ("compare", "compare result.json result.json"),
    ("report", "report result.json -o out.html"),
    ("trace replay", "trace replay calls.lct --output out.json"),
    ("trace scale", "trace scale trace.jsonl out.jsonl"),
    ("trace slice", "trace slice trace.jsonl out.jsonl"),
    ("trace synth", "trace synth out.jsonl"),
];
/// What is no business of a test: caches of the whole machine, places outside of its folder, terminals.
const LEFT_OUT: [&str; 6] =
    ["--cache-dir", "--storage-location", "--aic-backend", "--live", "--http-threads", "--help"];
/// Values besides those of files.
const VALUES: [&str; 17] = [
    "@spare.jsonl",
    "@nothing",
    "spare.jsonl",
    "nothing.json",
    ".",
    "-",
    "/dev/null",
    "{\"a\":1}",
    "a=b,c=d",
    "cpu=1GiB:32GB/s",
    "kv_router",
    "1,2,3",
    "5%",
    "1GiB",
    "100us+1GB/s",
    "--seed",
    "x:y:z",
];

/// The flags of every command.
pub(super) fn collect(round: &mut Round) -> Result<Vec<Verb>, String> {
    let mut verbs = Vec::new();
    for (verb, line) in LINES {
        let help = round.done(&words(&format!("{verb} --help")))?.stdout;
        verbs.push(Verb { line, flags: flags_of(&help) });
    }
    Ok(verbs)
}

/// Flags that stand at the beginning of a line and take something.
fn flags_of(help: &str) -> Vec<Flag> {
    let heads = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let flags = heads.filter_map(|line| {
        let name = line.split_whitespace().find(|word| word.starts_with("--"))?;
        let is_taking = line.contains(" <") || name.contains("[=");
        let is_number = NUMBERS.iter().any(|number| line.contains(number));
        let takes = if is_number { Taken::Number } else { Taken::Text };
        let name = name.split(['[', ',']).next().unwrap_or(name).to_owned();
        is_taking.then_some(Flag { name, takes })
    });
    flags.filter(|flag| !LEFT_OUT.contains(&flag.name.as_str())).collect()
}

/// A command with some of them.
pub(super) fn wrong(draw: &mut Draw, verbs: &[Verb]) -> Vec<String> {
    let verb = &verbs[draw.place(verbs.len())];
    let mut line = words(verb.line);
    for _ in 0..draw.within(1, 3) {
        let flag = &verb.flags[draw.place(verb.flags.len())];
        let is_there = line.iter().any(|word| word.split('=').next() == Some(&flag.name));
        if !is_there {
            line.push(format!("{}={}", flag.name, value(draw, flag.takes)));
        }
    }
    line
}

fn value(draw: &mut Draw, takes: Taken) -> String {
    match (takes, draw.below(4)) {
        (Taken::Number, 0 | 1) => {
            let bits = draw.one(&[3, 10, 20, 31, 40, 62]);
            draw.magnitude(1 << bits).to_string()
        }
        (Taken::Number, 2) | (Taken::Text, 0) => {
            // A zero byte cannot be in an argument.
            draw.pick(&HOSTILE).replace('\0', "")
        }
        _ => draw.pick(&VALUES).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_in_a_help_text() {
        let lines = [
            "Options:",
            "      --seed <SEED>",
            "          Seed [default: --x]",
            "  -o, --output <FILE>  Where",
            "      --check          Nothing",
            "      --advise[=<METRIC>]",
        ];
        let help = lines.join("\n");
        let flag = |name: &str, takes| Flag { name: name.to_owned(), takes };
        let (number, text) = (Taken::Number, Taken::Text);
        assert_eq!(flags_of(&help), [flag("--seed", number), flag("--output", text), flag("--advise", text)]);
    }
}
