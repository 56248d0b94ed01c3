//! Arrays of 64-bit numbers in an `.npz` archive, as NumPy writes them (`numpy.lib.format`, versions 1 to 3).
//! What a header claims is believed only as far as there are bytes for it.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;

use zip::ZipArchive;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes of a number.
const NUMBER: usize = 8;
/// More than any profiler measures: an archive may claim to unpack to anything.
const MOST_BYTES: u64 = 64 << 20;

/// An archive that is being read.
pub(super) struct Archive {
    zip: ZipArchive<File>,
    names: Vec<String>,
}

/// An array, the last index fastest.
#[derive(Debug, PartialEq)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f64>,
}

impl Archive {
    pub(super) fn open(file: File) -> Result<Self, String> {
        let zip = ZipArchive::new(file).map_err(|error| format!("not an .npz file: {error}"))?;
        let mut names: Vec<String> = zip.file_names().filter_map(Result::ok).map(Cow::into_owned).collect();
        names.sort();
        Ok(Self { zip, names })
    }

    /// The array called `name`.
    pub(super) fn array(&mut self, name: &str) -> Result<Array, String> {
        let full = format!("{name}.npy");
        let Some(stored) = self.names.iter().find(|stored| **stored == full || *stored == name) else {
            return Err(format!("there is no array \"{name}\", only {}", self.names.join(", ")));
        };
        let wrong = |what: String| format!("\"{name}\" is no array of 64-bit numbers: {what}");
        let mut bytes = Vec::new();
        let entry = self.zip.by_name(stored).map_err(|error| wrong(error.to_string()))?;
        entry.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(wrong(format!("it is larger than {} MiB", MOST_BYTES >> 20)));
        }
        parsed(&bytes).map_err(|what| wrong(what.to_owned()))
    }
}

/// Header and numbers.
fn parsed(bytes: &[u8]) -> Result<Array, &'static str> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as one")?;
    let ([major, _], rest) = rest.split_first_chunk().ok_or("it ends in its header")?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk().map(|(length, rest)| (u16::from_le_bytes(*length).into(), rest)),
        2 | 3 => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest)),
        _ => return Err("its version is not known"),
    }
    .ok_or("it ends in its header")?;
    let (header, numbers) = rest.split_at_checked(length).ok_or("it ends in its header")?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text")?;
    let shape = shape(header).ok_or("its header has no shape")?;
    let values = values(header, numbers).ok_or("they are of another type")?;
    let count = shape.iter().try_fold(1usize, |count, side| count.checked_mul(*side));
    if count != Some(values.len()) || numbers.len() % NUMBER != 0 {
        return Err("there are more or fewer numbers than its shape says");
    }
    let is_transposed = field(header, "fortran_order").is_some_and(|order| order.starts_with("True"));
    Ok(if is_transposed { transposed(&shape, &values) } else { Array { shape, values } })
}

/// What stands behind a name.
fn field<'h>(header: &'h str, name: &str) -> Option<&'h str> {
    let (_, after) = header.split_once(&format!("'{name}':"))?;
    Some(after.trim_start())
}

fn shape(header: &str) -> Option<Vec<usize>> {
    let (inside, _) = field(header, "shape")?.strip_prefix('(')?.split_once(')')?;
    let sides = inside.split(',').map(str::trim).filter(|side| !side.is_empty());
    sides.map(|side| side.parse().ok()).collect()
}

fn values(header: &str, numbers: &[u8]) -> Option<Vec<f64>> {
    let kind = field(header, "descr")?.strip_prefix('\'')?.split('\'').next()?;
    let number: fn([u8; NUMBER]) -> f64 = match kind {
        "<f8" => f64::from_le_bytes,
        ">f8" => f64::from_be_bytes,
        "<i8" => |bytes| i64::from_le_bytes(bytes) as f64,
        ">i8" => |bytes| i64::from_be_bytes(bytes) as f64,
        _ => return None,
    };
    Some(numbers.as_chunks().0.iter().map(|bytes| number(*bytes)).collect())
}

/// The same, of an array whose first index is fastest.
fn transposed(shape: &[usize], values: &[f64]) -> Array {
    let [rows, columns] = shape else { return Array { shape: shape.to_vec(), values: values.to_vec() } };
    let value = |at: usize| values[at % columns * rows + at / columns];
    Array { shape: shape.to_vec(), values: (0..rows * columns).map(value).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, numbers: &[f64]) -> Vec<u8> {
        let mut bytes = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    fn header(descr: &str, order: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n")
    }

    /// Broken by: the order of the other language taken for ours.
    #[test]
    fn arrays_are_read_in_either_order() {
        let numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let read = |order, shape| parsed(&npy(&header("<f8", order, shape), &numbers)).unwrap();
        assert_eq!(read("False", "(2, 3)").values, numbers);
        assert_eq!(read("True", "(2, 3)").values, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        assert_eq!(read("True", "(6,)"), Array { shape: vec![6], values: numbers.to_vec() });
        let whole = parsed(&npy(&header("<i8", "False", "(1,)"), &[f64::from_bits(7)])).unwrap();
        assert_eq!(whole.values, [7.0]);
        assert_eq!(parsed(&npy(&header(">f8", "False", "()"), &[0.0])).unwrap().shape, [0; 0]);
    }

    /// Broken by: memory for what a header claims, before there are bytes for it.
    #[test]
    fn what_a_header_claims_is_not_believed() {
        for shape in ["(1000000000000,)", "(4294967296, 4294967296)", "(18446744073709551615, 2)", "(1,)"] {
            let told = parsed(&npy(&header("<f8", "False", shape), &[1.0, 2.0])).unwrap_err();
            assert_eq!(told, "there are more or fewer numbers than its shape says", "{shape}");
        }
        let good = npy(&header("<f8", "False", "(2,)"), &[1.0, 2.0]);
        for end in 0..good.len() {
            assert!(parsed(&good[..end]).is_err(), "{end} bytes");
        }
        assert!(parsed(&good).is_ok() && parsed(&npy(&header("<f4", "False", "(2,)"), &[1.0])).is_err());
        assert!(parsed(&npy(&header("<f8", "False", "(-1,)"), &[])).is_err());
    }
}
