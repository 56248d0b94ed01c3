//! `wavetank help traces`.

use super::{Topic, choices};

pub(super) const ENTRY: Topic = Topic {
    name: "traces",
    about: "formats of requests and of storage calls, and what is done with them",
    text,
};

fn text() -> String {
    format!(
        "\
Traces

Of requests, for replay, sweep, trace and bench --trace: plain, .gz or .zst; several files are one trace. The
format is found out by how the first begins, or FORMAT:FILE names it:

{}
What a trace does not tell is filled by a rule that is said, or refused with the flag that says it: --fill
(docs/traces.md). --trace-block-size says how many tokens one hash id stands for.

Of storage calls, for trace info, trace replay and trace mrc:

{}
  wavetank trace lint FILE                  every problem, with its line
  wavetank trace stats FILE                 lengths, rates, sessions, and what prompts share
  wavetank trace convert IN OUT --to NAME   another format, and what is lost on the way
  wavetank trace anonymize, slice, scale, merge, synth   other traces (docs/reshape.md)
",
        choices("formats"),
        choices("calls")
    )
}
