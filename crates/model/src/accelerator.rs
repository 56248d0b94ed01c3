//! What accelerators can do: `profiles/gpus.csv` is the built-in table. Rates are dense and decimal, links
//! count one direction.

use std::sync::OnceLock;

use crate::{Error, Result};

/// An accelerator, as its maker describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Accelerator {
    /// The name users type.
    pub name: String,
    /// Another name; empty if there is none.
    pub alias: String,
    /// Operations per second in bf16.
    pub bf16_flops: f64,
    /// Operations per second in fp8; those of bf16 where it has no fp8.
    pub fp8_flops: f64,
    /// Memory that a process can use.
    pub memory_bytes: f64,
    /// Bytes per second from memory.
    pub memory_rate: f64,
    /// Bytes per second to its neighbours.
    pub link_rate: f64,
    about: String,
}

impl Accelerator {
    /// One line for `wavetank list`.
    pub fn about(&self) -> &str {
        &self.about
    }

    fn of_row(row: &str) -> Self {
        let cells: Vec<&str> = row.split(',').collect();
        let number = |column: usize| cells[column].parse::<f64>().expect("a number");
        let [bf16, fp8, gib, gbps, link] = [3, 4, 5, 6, 7].map(number);
        let rates = if fp8 > 0.0 { format!("{bf16} / {fp8}") } else { format!("{bf16} / no") };
        Self {
            name: cells[0].to_owned(),
            alias: cells[1].to_owned(),
            bf16_flops: bf16 * 1e12,
            fp8_flops: fp8.max(bf16) * 1e12,
            memory_bytes: gib * f64::from(1 << 30),
            memory_rate: gbps * 1e9,
            link_rate: link * 1e9,
            about: format!("{}: {rates} fp8 TFLOPS, {gib} GiB at {gbps} GB/s, link {link} GB/s", cells[2]),
        }
    }
}

const TABLE: &str = include_str!("../../../profiles/gpus.csv");

/// Every accelerator of the built-in table, alphabetical.
pub fn accelerators() -> &'static [Accelerator] {
    static ACCELERATORS: OnceLock<Vec<Accelerator>> = OnceLock::new();
    ACCELERATORS.get_or_init(|| TABLE.lines().skip(1).map(Accelerator::of_row).collect())
}

/// The accelerator called `name`.
pub fn accelerator(name: &str) -> Result<&'static Accelerator> {
    let asked = name.to_lowercase().replace(['-', ' '], "_");
    let found =
        accelerators().iter().find(|row| row.name == asked || (row.alias == asked && !asked.is_empty()));
    found.ok_or_else(|| {
        let known: Vec<_> = accelerators().iter().map(|row| row.name.as_str()).collect();
        Error::usage(format!("unknown GPU \"{name}\"")).hint(format!("known: {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sound_and_found_by_both_names() {
        assert!(accelerators().is_sorted_by_key(|row| &row.name));
        for row in accelerators() {
            let numbers = [row.bf16_flops, row.memory_bytes, row.memory_rate, row.link_rate];
            assert!(numbers.iter().all(|&number| number > 1e9), "{}", row.name);
            assert!(row.fp8_flops >= row.bf16_flops, "{}", row.name);
            assert_eq!(accelerator(&row.name).unwrap(), row);
        }
        let h200 = accelerator("H200").unwrap();
        assert_eq!((h200.name.as_str(), h200.memory_rate), ("h200_sxm", 4.8e12));
        assert_eq!(accelerator("").unwrap_err().to_string().lines().next(), Some("unknown GPU \"\""));
        assert!(accelerator("h900").unwrap_err().to_string().contains("h100_sxm"));
    }
}
