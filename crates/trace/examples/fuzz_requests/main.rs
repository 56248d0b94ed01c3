//! Reads request traces that never were, by every format: seeded changes of samples. Run by
//! `cargo xtask fuzz`.

#[path = "../fuzz_lct/blind.rs"]
mod blind;
mod check;
#[path = "../fuzz_lct/driver.rs"]
mod driver;
mod mutate;

use std::process::ExitCode;

use driver::Fuzzer;

fn main() -> ExitCode {
    driver::run(&Fuzzer {
        name: "requests",
        seeds: mutate::seeds,
        changed: mutate::changed,
        check: check::check,
        // What an archive of 32 KiB may unpack to line by line, besides the inputs.
        most_memory: 256 << 20,
    })
}
