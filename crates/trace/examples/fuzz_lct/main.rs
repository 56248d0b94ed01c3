//! Reads recordings that never were: seeded changes of samples. Run by `cargo xtask fuzz`.

mod blind;
mod check;
mod driver;
mod mutate;
mod seeds;

use std::process::ExitCode;

use driver::Fuzzer;

fn main() -> ExitCode {
    driver::run(&Fuzzer {
        name: "lct",
        seeds: seeds::all,
        changed: mutate::changed,
        check: check::check,
        // A few times the limit of a frame, besides the inputs.
        most_memory: 192 << 20,
    })
}
