//! The reader of `.lct` recordings under libFuzzer: any bytes, compressed or not, to their end.
#![no_main]

#[path = "../../crates/trace/examples/fuzz_lct/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check::check(bytes);
});
