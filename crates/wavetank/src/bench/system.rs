//! The machine that a benchmark ran on, as its package describes it.

use wavetank_model::Result;

use super::plan::BenchPlan;
use super::suite::{Hardware, Place};

impl Hardware {
    /// This machine, with the drive that the entries of `plan` are on.
    pub fn of(plan: &BenchPlan) -> Result<Self> {
        if let Some(directory) = plan.directory() {
            return Self::here(Some(&directory));
        }
        Self::without_place()
    }

    /// This machine, for entries that are not stored in a directory.
    pub(crate) fn without_place() -> Result<Self> {
        let place = Place {
            directory: "".into(),
            reason: "entries are not stored in a directory".to_owned(),
            passed_over: Vec::new(),
            made: Vec::new(),
            file_system: None,
            drives: Vec::new(),
            free_bytes: None,
        };
        Ok(Self { place, ..Self::here(Some(&std::env::temp_dir()))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::args::BenchArgs;
    use crate::bench::testing::without_gpu;

    /// Broken by: describing the folder for temporary files where entries are somewhere else.
    #[test]
    fn the_place_is_where_entries_are() {
        let folder = tempfile::tempdir().unwrap();
        let place = |args: BenchArgs| {
            let args = BenchArgs { gpu_mem_gb: Some(0.0), storage_capacity_gb: Some(1.0), ..args };
            Hardware::of(&BenchPlan::on(&without_gpu(), &args).unwrap()).unwrap().place
        };
        let absent = folder.path().canonicalize().unwrap().join("not/there");
        let found = place(BenchArgs { cache_dir: Some(absent.clone()), ..BenchArgs::default() });
        assert_eq!(found.directory, absent);
        let temporary = std::env::temp_dir().canonicalize().unwrap();
        assert_eq!(place(BenchArgs::default()).directory, temporary);
        let null = BenchArgs { backend: Some("null".to_owned()), ..BenchArgs::default() };
        let nowhere = place(null);
        assert_eq!((nowhere.directory.as_os_str().len(), nowhere.drives.len()), (0, 0));
        assert_eq!(nowhere.reason, "entries are not stored in a directory");
    }
}
