//! The reference's profiler results (spec/engine.md 3.2): prefill time by new tokens, decode time by tokens
//! in the cache and mean length, both linear between the points and beyond them.

mod array;

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use serde::Deserialize;
use wavetank_model::{Error, Result};

use crate::survey::{Axis, Survey};
use array::{Archive, Array};

use super::{DecodeBatch, Entry, Pass, PassTime, PrefillBatch, Pricing, Timing, configure, decode_part_ms};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "npz",
    about: "the reference's profiler results, arrays in an .npz file (path)",
    pricing: Pricing::Parts,
    argument: Some("path"),
    reads: |_| Some("path"),
    build: |parameters| {
        Ok(Rc::new(Npz::read(Path::new(&configure::<Config>(ENTRY.name, parameters)?.path))?))
    },
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    path: String,
}

const A_DAY_MS: f64 = 86_400_000.0;

struct Npz {
    isl: Vec<f64>,
    ttft_ms: Vec<f64>,
    kv_tokens: Vec<f64>,
    lengths: Vec<f64>,
    /// By tokens in the cache, then length.
    itl_ms: Vec<f64>,
}

impl Npz {
    fn read(path: &Path) -> Result<Self> {
        let wrong = |message: String| {
            Error::input(message).at(path.display().to_string()).hint(
                "it must hold prefill_isl[n], prefill_ttft_ms[n], decode_active_kv_tokens[a], \
                 decode_context_length[c] and decode_itl[a,c]; raw files of the profiler \
                 (prefill_ttft, z_itl) must be converted first",
            )
        };
        let file = File::open(path).map_err(|error| Error::io(path, error))?;
        let mut archive = Archive::open(file).map_err(wrong)?;
        let mut line = |name: &str| line(archive.array(name)?, name);
        let isl = line("prefill_isl").map_err(wrong)?;
        let ttft_ms = line("prefill_ttft_ms").map_err(wrong)?;
        let kv_tokens = line("decode_active_kv_tokens").map_err(wrong)?;
        let lengths = line("decode_context_length").map_err(wrong)?;
        let Array { shape, values: itl_ms } = archive.array("decode_itl").map_err(wrong)?;
        let axes = [kv_tokens.len(), lengths.len()];
        if shape != axes {
            return Err(wrong(format!("\"decode_itl\" is {shape:?}, its axes are {axes:?}")));
        }
        let read = Self { isl, ttft_ms, kv_tokens, lengths, itl_ms };
        read.check().map_err(wrong)?;
        Ok(read)
    }

    fn check(&self) -> Result<(), String> {
        for (name, points) in [
            ("prefill_isl", &self.isl),
            ("decode_active_kv_tokens", &self.kv_tokens),
            ("decode_context_length", &self.lengths),
        ] {
            let sound = points.iter().all(|point| point.is_finite() && *point >= 0.0);
            if points.len() < 2 || !sound || !points.is_sorted_by(|a, b| a < b) {
                return Err(format!("\"{name}\" must be two or more ascending numbers, 0 or more"));
            }
        }
        if self.ttft_ms.len() != self.isl.len() {
            return Err("\"prefill_ttft_ms\" must be as long as \"prefill_isl\"".to_owned());
        }
        for (name, value) in self
            .ttft_ms
            .iter()
            .map(|ms| ("prefill_ttft_ms", ms))
            .chain(self.itl_ms.iter().map(|ms| ("decode_itl", ms)))
        {
            if !(0.0..=A_DAY_MS).contains(value) {
                return Err(format!("\"{name}\" holds {value}: times are milliseconds from 0 to a day"));
            }
        }
        Ok(())
    }

    fn decode_ms(&self, kv_tokens: f64, length: f64) -> f64 {
        let (row, share) = interval(&self.kv_tokens, kv_tokens);
        let (column, along) = interval(&self.lengths, length);
        let cell = |row: usize, column: usize| self.itl_ms[row * self.lengths.len() + column];
        let at = |row: usize| blend(cell(row, column), cell(row, column + 1), along);
        blend(at(row), at(row + 1), share).clamp(1.0, A_DAY_MS)
    }
}

/// The tables of an .npz file. Errors are fractions of the value itself.
pub fn npz_survey(path: &Path) -> Result<Vec<Survey>> {
    let Npz { isl, ttft_ms, kv_tokens, lengths, itl_ms } = Npz::read(path)?;
    let [prefill, decode] = [ttft_ms, itl_ms].map(|values| values.into_iter().map(Some).collect::<Vec<_>>());
    let axes = vec![Axis::of("KV tokens", &kv_tokens), Axis::of("length", &lengths)];
    Ok(vec![
        Survey::of("prefill", vec![Axis::of("new tokens", &isl)], &prefill),
        Survey::of("decode", axes, &decode),
    ])
}

/// The numbers of an array that has one side.
fn line(array: Array, name: &str) -> Result<Vec<f64>, String> {
    match array.shape[..] {
        [_] => Ok(array.values),
        _ => Err(format!("\"{name}\" is {:?}, not a line of numbers", array.shape)),
    }
}

/// The interval of `at`, and how far into it in widths of it.
fn interval(points: &[f64], at: f64) -> (usize, f64) {
    let start = points.partition_point(|point| *point <= at).saturating_sub(1).min(points.len() - 2);
    (start, (at - points[start]) / (points[start + 1] - points[start]))
}

fn blend(from: f64, to: f64, share: f64) -> f64 {
    from + (to - from) * share
}

impl Timing for Npz {
    fn pass_ms(&self, pass: Pass<'_>) -> PassTime {
        let fresh = PrefillBatch::of(pass.chunks).map_or(0, |batch| batch.fresh_tokens());
        let prompt_ms = if fresh == 0 {
            0.0
        } else {
            let (start, share) = interval(&self.isl, fresh as f64);
            blend(self.ttft_ms[start], self.ttft_ms[start + 1], share).clamp(0.0, A_DAY_MS)
        };
        PassTime { prompt_ms, decode_ms: decode_part_ms(self, pass.decode) }
    }

    fn decode_run_ms(&self, first: DecodeBatch, out: &mut [f64]) {
        for (pass, ms) in out.iter_mut().enumerate() {
            let batch = first.after(pass as u32);
            let length = batch.kv_tokens / u64::from(batch.requests);
            *ms = self.decode_ms(batch.kv_tokens as f64, length as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Chunk;
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    /// An array as NumPy stores it.
    fn npy(shape: &str, numbers: &[f64]) -> Vec<u8> {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    fn written(name: &str, isl: &[f64], itl_ms: [&[f64]; 2]) -> Result<Npz> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut file = ZipWriter::new(File::create(&path).unwrap());
        let line = |numbers: &[f64]| npy(&format!("{},", numbers.len()), numbers);
        let rows = itl_ms.iter().filter(|row| !row.is_empty()).count();
        for (name, bytes) in [
            ("prefill_isl.npy", line(isl)),
            ("prefill_ttft_ms.npy", line(&[10.0, 20.0, 60.0])),
            ("decode_active_kv_tokens.npy", line(&[0.0, 1000.0])),
            ("decode_context_length", line(&[100.0, 200.0])),
            ("decode_itl.npy", npy(&format!("{rows}, 2"), &itl_ms.concat())),
        ] {
            file.start_file(name, SimpleFileOptions::default()).unwrap();
            file.write_all(&bytes).unwrap();
        }
        file.finish().unwrap();
        Npz::read(&path)
    }

    #[test]
    fn times_are_linear_between_points_and_beyond() {
        let model = written("a.npz", &[100.0, 200.0, 400.0], [&[2.0, 4.0], &[6.0, 12.0]]).unwrap();
        let prefill = |tokens: u32| {
            let chunks = &[Chunk::of_prompt(tokens, 7)];
            model.pass_ms(Pass { chunks, decode: DecodeBatch::default() }).prompt_ms
        };
        assert_eq!([prefill(100), prefill(150), prefill(500)], [10.0, 15.0, 80.0]);
        assert_eq!(model.decode_ms(500.0, 150.0), 6.0);
        assert_eq!(model.decode_ms(2000.0, 100.0), 10.0);
        let mut run = [0.0; 2];
        let first = DecodeBatch { requests: 4, kv_tokens: 500, capacity_tokens: 1 << 20, longest: 125 };
        model.decode_run_ms(first, &mut run);
        assert_eq!(run[1], model.decode_ms(504.0, 126.0));
    }

    #[test]
    fn bad_files_are_refused_by_name() {
        let good: [&[f64]; 2] = [&[2.0, 4.0], &[6.0, 12.0]];
        let message = |isl: &[f64], itl: [&[f64]; 2]| written("bad.npz", isl, itl).err().unwrap().to_string();
        assert!(
            message(&[100.0, 400.0, 200.0], good).contains("\"prefill_isl\" must be two or more ascending")
        );
        assert!(message(&[100.0, 200.0], good).contains("\"prefill_ttft_ms\" must be as long"));
        let axis = [100.0, 200.0, 400.0];
        assert!(message(&axis, [&[2.0, -4.0], &[6.0, 12.0]]).contains("\"decode_itl\" holds -4"));
        assert!(message(&axis, [&[2.0, f64::NAN], &[6.0, 12.0]]).contains("\"decode_itl\" holds NaN"));
        assert!(message(&axis, [&[2.0, 4.0], &[]]).contains("its axes are [2, 2]"));
        let raw = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/timing");
        if raw.is_dir() {
            let error = Npz::read(&raw.join("prefill_raw_data.npz")).err().unwrap().to_string();
            assert!(
                error.contains("there is no array \"prefill_ttft_ms\"") && error.contains("converted"),
                "{error}"
            );
        }
    }
}
