//! The readers of request traces under libFuzzer: any bytes, compressed or not, by every format to their end.
#![no_main]

#[path = "../../crates/trace/examples/fuzz_requests/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check::check(bytes);
});
