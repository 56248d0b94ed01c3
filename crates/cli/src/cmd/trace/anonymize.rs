//! `wavetank trace anonymize`.

use std::path::PathBuf;

use clap::Args;
use wavetank::{Error, ErrorKind, Result, Scrub, anonymize_trace};
use wavetank_model::Nanos;

use super::files::{self, InFlags, OutFlags};
use crate::exit::Exit;

#[derive(Args)]
pub(super) struct AnonymizeFlags {
    /// The trace, and then the file to write.
    #[arg(value_name = "IN... OUT", required = true, num_args = 2..)]
    files: Vec<String>,
    /// A file whose content, 16 bytes or more, is the key of names and ids; it is never written.
    #[arg(long, value_name = "FILE", conflicts_with = "key_env")]
    key_file: Option<PathBuf>,
    /// An environment variable that holds the key.
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    /// Move times by up to so many milliseconds; their order stays.
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    jitter_ms: f64,
    /// Round lengths up to multiples of so many tokens; a prompt never beyond its blocks [default: as
    /// they are].
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    round_lengths: Option<u32>,
    /// Keep kinds and policy classes.
    #[arg(long)]
    keep_classes: bool,
    /// Make ids small numbers in the order they are met: memory grows with them.
    #[arg(long)]
    dense_ids: bool,
    #[command(flatten)]
    input: InFlags,
    #[command(flatten)]
    output: OutFlags,
}

pub(super) fn run(flags: AnonymizeFlags) -> Result<Exit> {
    let key = key(&flags)?;
    if !(0.0..=1e12).contains(&flags.jitter_ms) {
        return Err(Error::usage("must be milliseconds, not negative").at("--jitter-ms"));
    }
    let scrub = Scrub {
        jitter: Nanos::from_ms(flags.jitter_ms),
        round_tokens: flags.round_lengths.unwrap_or(0),
        keep_classes: flags.keep_classes,
        dense_ids: flags.dense_ids,
    };
    let (inputs, file) = files::split(flags.files)?;
    let (input, output) = (flags.input.input(inputs), flags.output.output(file));
    files::write(|meter| anonymize_trace(&input, &output, (&key, scrub), meter))
}

fn key(flags: &AnonymizeFlags) -> Result<Vec<u8>> {
    match (&flags.key_file, &flags.key_env) {
        (Some(path), _) => std::fs::read(path).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot read the key: {error}")).at(path.display().to_string())
        }),
        (None, Some(name)) => {
            let value = std::env::var_os(name).ok_or_else(|| {
                Error::usage(format!("there is no variable {name}")).at("--key-env").hint("export it first")
            })?;
            Ok(value.into_encoded_bytes())
        }
        (None, None) => Err(Error::usage("a key is needed")
            .hint("--key-file FILE or --key-env NAME; head -c 32 /dev/urandom | base64 > FILE makes one")),
    }
}
