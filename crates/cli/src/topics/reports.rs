//! `wavetank help reports`.

use super::{Topic, choices};

pub(super) const ENTRY: Topic =
    Topic { name: "reports", about: "what runs write, and what reads it again", text };

fn text() -> String {
    format!(
        "\
Reports

A run prints a table and writes JSON: to --report-json of replay, --output of bench, or a name with the time.

  plan       everything the run depended on; replay --plan report.json is the same run again
  counts     what was rejected, cut or preempted, and why
  warnings   flags without effect, and what to know before the numbers are used
  course     the run over time, for plots
  partial    whether it was interrupted
  wall       what depends on the machine that simulated; nothing else does

  wavetank report a.json b.json -o page.html   one page that opens without a network; --plots for pictures
  wavetank compare a.json b.json               side by side; --fail-if and --within make a verdict of it

compare reads, on either side, or directories of them:

{}
A line per request: --per-request-jsonl. Spans, and slices for trace viewers: --otlp-file, --perfetto. Rows of
many plans: wavetank sweep (docs/sweep.md). From Python: docs/python.md.
",
        choices("results")
    )
}
