//! `wavetank-fuzz list` says what there is; `wavetank-fuzz TARGET SECONDS SEED FOLDER` fuzzes one of them.
//! Run by `cargo xtask fuzz`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool talks to its terminal")]

use std::path::Path;
use std::process::ExitCode;

use wavetank_fuzz::{Limits, run, targets};

const USAGE: &str = "usage: wavetank-fuzz list | wavetank-fuzz TARGET SECONDS SEED FOLDER";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["list"] => list(),
        [name, seconds, seed, folder] => match (targets::find(name), seconds.parse(), seed.parse()) {
            (Some(target), Ok(seconds), Ok(seed)) => {
                return run(target, Limits { seconds, seed }, Path::new(folder));
            }
            (None, ..) => return refused(&format!("there is no target \"{name}\"")),
            _ => return refused("SECONDS and SEED are whole numbers"),
        },
        _ => return refused("that is no command"),
    }
    ExitCode::SUCCESS
}

/// A line for each: name, memory in MiB, folders of samples.
fn list() {
    for target in targets::ALL {
        let words = [target.name.to_owned(), (target.most_memory >> 20).to_string()];
        let folders = target.samples.iter().map(|folder| (*folder).to_owned());
        println!("{}", words.into_iter().chain(folders).collect::<Vec<_>>().join(" "));
    }
}

fn refused(why: &str) -> ExitCode {
    eprintln!("{why}\n{USAGE}");
    ExitCode::from(2)
}
