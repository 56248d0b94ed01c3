//! `sanitize`: the tests of the crate with unsafe code, watched by LLVM's sanitizers or by Valgrind.
//! Sanitizers are options of the compiler that it calls unstable; that of threads needs the standard library
//! built anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::process::{self, cargo, target_dir, text_of};

/// Who watches.
struct Watch {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<(), String>,
}

/// Every one, in the order of what it costs.
const ALL: [Watch; 3] = [
    Watch {
        name: "address",
        about: "memory that is not theirs, or not any more",
        run: || sanitized("address", &[], &[]),
    },
    Watch {
        name: "thread",
        about: "threads that race for memory",
        run: || rust_src().and_then(|()| sanitized("thread", &["-Zbuild-std"], &VAST)),
    },
    Watch { name: "memcheck", about: "values that were never set, under Valgrind", run: memcheck },
];

const PACKAGE: &str = "wavetank-store";
/// Tests that start programs again and kill them are watched as well; what needs a server of others is
/// skipped where there is none.
const TESTS: [&str; 5] = ["--lib", "--test=behaviour", "--test=conformance", "--test=crash", "--test=store"];

/// Whose address goes to another thread through epoll, where the sanitizer of threads does not see the order:
/// what was written before looks as if it raced.
const NO_RACES: &str = "race:tokio::runtime::io::scheduled_io\n";

/// What reserves more addresses than the sanitizer of threads, or Valgrind, leaves.
const VAST: [&str; 2] = ["--skip", "the_link_carries_one_piece_at_a_time"];

/// The chore.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let (name, rest) = match args.split_first() {
        Some((name, rest)) => (Some(name.as_str()), rest),
        None => (None, args),
    };
    let wanted: Vec<&Watch> = ALL.iter().filter(|watch| name.is_none_or(|name| watch.name == name)).collect();
    if wanted.is_empty() || !rest.is_empty() {
        let known: Vec<String> =
            ALL.iter().map(|watch| format!("{} ({})", watch.name, watch.about)).collect();
        return Err(Failure::Usage(format!("sanitize takes one of: {}", known.join(", "))));
    }
    wanted.iter().try_for_each(|watch| Ok((watch.run)()?))
}

/// The source of the standard library, of this compiler. It is asked for only where it is not there.
fn rust_src() -> Result<(), String> {
    let sysroot = text_of("rustc", &["--print", "sysroot"])?;
    if Path::new(&sysroot).join("lib/rustlib/src/rust/library/Cargo.lock").exists() {
        return Ok(());
    }
    process::run(Command::new("rustup").args(["component", "add", "rust-src"]))
}

fn sanitized(name: &str, options: &[&str], skipped: &[&str]) -> Result<(), String> {
    let mut tests = cargo(&["test", "-p", PACKAGE, "--no-fail-fast", "--target", &process::host()?]);
    tests.args(options).args(TESTS).arg("--target-dir").arg(target_dir().join("sanitize").join(name));
    tests.arg("--").args(skipped);
    tests.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", format!("-Zsanitizer={name} -Cforce-frame-pointers"));
    // What is kept for as long as the process lives is no leak, and an allocation that cannot be is an error.
    tests.env("ASAN_OPTIONS", "allocator_may_return_null=1");
    tests.env("TSAN_OPTIONS", format!("suppressions={}", no_races()?.display()));
    // C of others stays as it is: GCC's instrumentation does not fit LLVM's runtime, which then finds
    // constants of zstd that are out of scope.
    for flags in ["CFLAGS", "CXXFLAGS"] {
        tests.env(flags, format!("-fno-sanitize={name}"));
    }
    process::run(&mut tests)
}

/// [`NO_RACES`] as a file; tests run in another folder.
fn no_races() -> Result<PathBuf, String> {
    let folder = target_dir().join("sanitize");
    let file = folder.join("no-races");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&file, NO_RACES))
        .and_then(|()| file.canonicalize())
        .map_err(|e| format!("{}: {e}", file.display()))
}

/// The unit tests under Valgrind, one at a time, as `cargo test` builds them.
fn memcheck() -> Result<(), String> {
    let mut tests = cargo(&["test", "-p", PACKAGE, "--lib", "--", "--test-threads=1"]);
    tests.args(VAST);
    let runner = format!("CARGO_TARGET_{}_RUNNER", process::host()?.replace('-', "_").to_uppercase());
    // Valgrind does not know io_uring's rings: what the kernel writes there looks as if it was never set.
    let valgrind = "valgrind --quiet --error-exitcode=9 --leak-check=no --fair-sched=yes";
    process::run(tests.env(runner, valgrind))
}
