//! What a stored object holds: tensors with shapes and element types.

use crate::{Error, Result};

/// Tensors of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// One shape per tensor.
    pub shapes: Box<[Box<[u64]>]>,
    /// One element type per tensor, as PyTorch calls it: `torch.bfloat16`.
    pub dtypes: Box<[Box<str>]>,
}

/// Bytes of an element.
const DTYPES: [(&str, u64); 22] = [
    ("bfloat16", 2),
    ("bool", 1),
    ("complex128", 16),
    ("complex64", 8),
    ("double", 8),
    ("float", 4),
    ("float16", 2),
    ("float32", 4),
    ("float64", 8),
    ("float8_e4m3fn", 1),
    ("float8_e4m3fnuz", 1),
    ("float8_e5m2", 1),
    ("float8_e5m2fnuz", 1),
    ("float8_e8m0fnu", 1),
    ("half", 2),
    ("int16", 2),
    ("int32", 4),
    ("int64", 8),
    ("int8", 1),
    ("uint16", 2),
    ("uint32", 4),
    ("uint8", 1),
];

impl Layout {
    /// The bytes of an object; an error names an element type of unknown size, or sizes that cannot be.
    pub fn bytes(&self) -> Result<u64> {
        let mut sum = 0u64;
        for (shape, dtype) in self.shapes.iter().zip(&self.dtypes) {
            let bytes = shape.iter().try_fold(element_bytes(dtype)?, |bytes, &side| bytes.checked_mul(side));
            sum = bytes.and_then(|bytes| sum.checked_add(bytes)).ok_or_else(|| too_large(shape))?;
        }
        Ok(sum)
    }
}

fn element_bytes(dtype: &str) -> Result<u64> {
    let name = dtype.strip_prefix("torch.").unwrap_or(dtype);
    DTYPES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes).ok_or_else(|| {
        Error::input(format!("the size of an element of type \"{dtype}\" is not known"))
            .hint("known are the types of PyTorch, like torch.bfloat16")
    })
}

fn too_large(shape: &[u64]) -> Error {
    Error::input(format!("a tensor of shape {shape:?} has no size"))
        .hint("objects of 2^64 bytes or more cannot be")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(tensors: &[(&[u64], &str)]) -> Layout {
        let (shapes, dtypes) =
            tensors.iter().map(|(shape, dtype)| ((*shape).into(), (*dtype).into())).unzip();
        let (shapes, dtypes): (Vec<_>, Vec<_>) = (shapes, dtypes);
        Layout { shapes: shapes.into(), dtypes: dtypes.into() }
    }

    #[test]
    fn sizes_add_up() {
        let two = layout(&[(&[2, 2, 16, 128], "torch.bfloat16"), (&[1, 16], "torch.float32")]);
        assert_eq!(two.bytes().unwrap(), 8192 * 2 + 64);
        assert_eq!(layout(&[]).bytes().unwrap(), 0);
        assert_eq!(layout(&[(&[], "uint8")]).bytes().unwrap(), 1);
    }

    #[test]
    fn what_has_no_size_is_named() {
        let error = layout(&[(&[2], "torch.qint3")]).bytes().unwrap_err().to_string();
        assert!(error.contains("\"torch.qint3\""), "{error}");
        let error = layout(&[(&[u64::MAX, 2], "torch.uint8")]).bytes().unwrap_err().to_string();
        assert!(error.contains("[18446744073709551615, 2]"), "{error}");
    }
}
