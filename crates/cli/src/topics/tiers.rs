//! `wavetank help tiers`.

use super::{Topic, choices};

pub(super) const ENTRY: Topic =
    Topic { name: "tiers", about: "memory and storage behind GPU memory, simulated and real", text };

fn text() -> String {
    format!(
        "\
Tiers

Simulated ones are behind the GPU memory of every worker of a replay, the fastest first (docs/tiers.md):

  --tier cpu=64GiB:32GB/s             a capacity and a speed
  --tier disk=2TiB:nvme.toml,shared   a device that was measured, one for all workers
  --tier @tiers.toml                  the same as tables

How long a simulated tier takes is a medium:

{}
Measured: wavetank profile tier /mnt/nvme -o nvme.toml; --against tells what changed since
(docs/tier-profiles.md). wavetank loop plays the simulated I/O on the device and says how far apart they are
(docs/loop.md). What more of a tier would be worth: replay --advise (docs/advice.md).

Tiers of replay give up what was used longest ago. Tiers of bench, serve and trace replay are backends
(wavetank list backends -v), or media in their place (bench --simulate); who leaves a full one is a policy:

{}",
        choices("media"),
        choices("eviction")
    )
}
