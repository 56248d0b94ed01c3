//! Every target of the crate `fuzz` under libFuzzer; the variable `WAVETANK_FUZZ_TARGET` says which.
#![no_main]

use std::sync::LazyLock;

use wavetank_fuzz::targets::{self, Entry};

static TARGET: LazyLock<&'static Entry> = LazyLock::new(|| {
    let name = std::env::var("WAVETANK_FUZZ_TARGET").unwrap_or_default();
    targets::find(&name).unwrap_or_else(|| panic!("WAVETANK_FUZZ_TARGET names no target: {name:?}"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    (TARGET.check)(bytes);
});
