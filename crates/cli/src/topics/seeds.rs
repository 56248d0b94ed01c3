//! `wavetank help seeds`.

use super::Topic;

pub(super) const ENTRY: Topic =
    Topic { name: "seeds", about: "what is left to chance, and how a run is repeated", text };

fn text() -> String {
    "\
Seeds

Simulated runs (replay, sweep, bench --simulate) repeat byte for byte: the same plan gives the same report but
for \"wall\". A run is one thread and reads no clock and no environment, and what runs beside it changes
nothing. The plan is in the report: replay --plan report.json is the same run again.

Chance decides, by the seed: generated arrivals and lengths, ties between workers, routers that draw, times of
measured tiers. Each purpose has a stream of its own: drawing more for one changes nothing for another.

  --seed N    of replay, bench, profile tier and trace synth
  --seeds N   of replay: so many seeds from --seed on, in parallel; the report has the mean, extremes and
              deviation of every metric, and compare takes a change within them for noise
  an axis \"seed\" of a sweep: a fleet must be good with every one (docs/sweep.md)

Real runs (bench on devices, serve, mock, --replay-mode online) ask for the same with the same seed, and take
the time they take: bench --trials repeats them and says how much they differ.

What always holds, and which test would notice: ARCHITECTURE.md (\"Invariants\").
"
    .to_owned()
}
