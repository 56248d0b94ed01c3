//! Where and when a tier is measured, as far as that can be found out.

use jiff::Timestamp;
use wavetank_model::{Result, TierOrigin};

use super::target::{Target, Where};
use crate::bench::suite::{Gpu, Hardware};

/// This machine, now.
pub(super) fn find(target: &Target) -> Result<TierOrigin> {
    let hardware = match &target.site {
        Where::Directory(path) => {
            Hardware::here(Some(path)).map_err(|error| error.at(path.display().to_string()))?
        }
        Where::Here | Where::Device(_) | Where::Address(_) => Hardware::without_place()?,
    };
    let device = match (&target.site, &hardware.gpu) {
        (Where::Directory(_), _) if !hardware.place.drives.is_empty() => Some(hardware.place.drive_names()),
        // The one that is described is the first.
        (Where::Device(number), Gpu::Found { .. }) if matches!(number.as_str(), "" | "0") => {
            Some(hardware.gpu.name())
        }
        _ => None,
    };
    Ok(TierOrigin {
        backend: target.backend.to_owned(),
        location: target.shown(),
        date: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        wavetank: env!("CARGO_PKG_VERSION").to_owned(),
        machine: hardware.cpu,
        cores: hardware.cores,
        kernel: hardware.kernel,
        device,
        file_system: hardware.place.file_system,
    })
}
