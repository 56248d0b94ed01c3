//! `wavetank help bench`.

use super::{Topic, choices};

pub(super) const ENTRY: Topic =
    Topic { name: "bench", about: "the storage benchmark: what it measures, and how to trust it", text };

fn text() -> String {
    format!(
        "\
The storage benchmark

  wavetank doctor /mnt/nvme                    is this machine fit to measure on?
  wavetank bench suite --cache-dir /mnt/nvme   what can it do? Ten scenarios, one table
  wavetank bench --num-users 200 --gpu-mem-gb 0 --cpu-mem-gb 0 --cache-dir /mnt/nvme

Simulated users ask for KV entries of a model (--model), and real bytes move through up to three tiers: GPU
memory (--gpu-mem-gb; --gpu-tier sim models one), RAM (--cpu-mem-gb) and storage (--backend, --cache-dir).
Backends:

{}
Scenarios of the suite (--workloads):

{}
Measure on an idle machine and repeat (--trials); --verify checks every byte that is read. --simulate takes
measured tiers in the place of devices. Flags, YAML and report keys are those of MLPerf Storage's
kv-cache.py; METHODOLOGY.md (\"The storage benchmark\") says what differs. Flags: wavetank bench --help.
",
        choices("backends"),
        choices("scenarios")
    )
}
