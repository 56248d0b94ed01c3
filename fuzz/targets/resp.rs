//! The front door for Redis clients under libFuzzer: any bytes as commands, parsed and answered.
#![no_main]

#[path = "../../crates/serve/examples/fuzz_resp/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check::check(bytes);
});
