//! The command as users run it: arguments in; standard output, standard error, exit code and files out.
#![forbid(unsafe_code)]

mod bad_input;
mod bench;
mod browser;
mod clients;
mod compare;
mod flags;
mod formats;
mod golden;
mod inputs;
mod interrupt;
mod outputs;
mod profile;
mod readme;
mod replay_traces;
mod report;
mod report_page;
mod sandbox;
mod serve;
mod serve_client;
mod serve_crash;
mod serve_native;
mod serve_page;
mod serve_spans;
mod serve_tiers;
mod sweep;
mod trace_again;
mod trace_files;
mod trace_info;
mod trace_play;
mod trace_replay;
mod trace_stats;
mod validate;
