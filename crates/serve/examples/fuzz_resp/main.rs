//! Commands that no client sends: seeded changes of real ones. Run by `cargo xtask fuzz`.

#[path = "../../../trace/examples/fuzz_lct/blind.rs"]
mod blind;
mod check;
#[path = "../../../trace/examples/fuzz_lct/driver.rs"]
mod driver;
mod mutate;

use std::process::ExitCode;

use driver::Fuzzer;

fn main() -> ExitCode {
    driver::run(&Fuzzer {
        name: "resp",
        seeds: mutate::seeds,
        changed: mutate::changed,
        check: check::check,
        // What a connection may have, a server with its memory, and the inputs.
        most_memory: 192 << 20,
    })
}
