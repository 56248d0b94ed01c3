//! `INFO`: how the server is, in the fields that clients and monitors of Redis read.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use super::{COMPATIBLE, Call, Outcome, config};
use crate::resp::shared::Shared;

/// A section: its name, and what it says.
type Section = (&'static str, fn(&Shared, &mut String));

/// Every section, in the order in which they are told.
const ALL: &[Section] =
    &[("Server", server), ("Clients", clients), ("Memory", memory), ("Stats", stats), ("Keyspace", keyspace)];

/// `INFO [section …]`.
pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    // What other clients counted in this turn is told too.
    call.desk.tally.settle(&call.desk.shared.cache.counters);
    let is_all = |name: &[u8]| {
        ["all", "default", "everything"].iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
    };
    let mut text = String::new();
    for (name, tell) in ALL {
        let is_named = |asked: &[u8]| is_all(asked) || asked.eq_ignore_ascii_case(name.as_bytes());
        if call.args.len() == 1 || call.args.iter(1).any(is_named) {
            if !text.is_empty() {
                text += "\r\n";
            }
            text += &format!("# {name}\r\n");
            tell(&call.desk.shared, &mut text);
        }
    }
    call.out.text(b"txt", &text);
    Ok(())
}

macro_rules! fields {
    ($text:expr, $($name:expr => $value:expr;)+) => {
        // Writing to memory does not fail.
        $(let _ = write!($text, "{}:{}\r\n", $name, $value);)+
    };
}

fn server(shared: &Shared, text: &mut String) {
    let up = shared.begun.elapsed().as_secs();
    fields! { text,
        "redis_version" => COMPATIBLE;
        "redis_mode" => "standalone";
        "server_name" => "wavetank";
        "wavetank_version" => env!("CARGO_PKG_VERSION");
        "os" => std::env::consts::OS;
        "arch_bits" => usize::BITS;
        "multiplexing_api" => "epoll";
        "process_id" => std::process::id();
        "run_id" => format_args!("{:040x}", shared.run);
        "tcp_port" => shared.port;
        "uptime_in_seconds" => up;
        "uptime_in_days" => up / 86_400;
        "io_threads_active" => shared.settings.threads;
    }
}

fn clients(shared: &Shared, text: &mut String) {
    fields! { text,
        "connected_clients" => shared.connected.load(Ordering::Relaxed);
        "maxclients" => shared.settings.connections;
    }
}

fn memory(shared: &Shared, text: &mut String) {
    let (used, behind) = shared.cache.storage.used();
    let most = shared.settings.l1_bytes.unwrap_or(0);
    fields! { text,
        "used_memory" => used;
        "used_memory_human" => human(used);
        "wavetank_behind_bytes" => behind.iter().sum::<u64>();
        "wavetank_leased_bytes" => shared.leased.value();
        "maxmemory" => most;
        "maxmemory_human" => human(most);
        "maxmemory_policy" => config::policy(&shared.settings);
        "mem_clients_normal" => shared.memory.value() + shared.sending.value();
    }
}

fn stats(shared: &Shared, text: &mut String) {
    let counters = &shared.cache.counters;
    fields! { text,
        "total_connections_received" => counters.connections_opened.total();
        "total_commands_processed" => counters.commands.total();
        "total_error_replies" => counters.command_errors.total();
        "rejected_connections" => counters.connections_refused.total();
        "evicted_keys" => shared.cache.storage.background().l1.evicted;
        "keyspace_hits" => counters.l1_hits.total() + counters.l2_hits.total();
        "keyspace_misses" => counters.misses.total();
    }
    for (name, _, total) in counters.rows() {
        fields! { text, format_args!("wavetank_{name}") => total; }
    }
}

fn keyspace(shared: &Shared, text: &mut String) {
    let status = shared.cache.storage.status();
    if status.names > 0 {
        let (keys, expires) = (status.names, status.expiring);
        // Redis samples keys for the last one, and says 0 until it has.
        fields! { text, "db0" => format_args!("keys={keys},expires={expires},avg_ttl=0"); }
    }
}

/// A number of bytes as a person reads it.
fn human(bytes: u64) -> String {
    let units = ["K", "M", "G", "T", "P"];
    let power = (bytes.max(1).ilog2() / 10).min(5) as usize;
    match power {
        0 => format!("{bytes}B"),
        _ => format!("{:.2}{}", bytes as f64 / (1_u64 << (10 * power)) as f64, units[power - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_by_people() {
        let read = [0, 1023, 1024, 5 << 30, u64::MAX].map(human);
        assert_eq!(read, ["0B", "1023B", "1.00K", "5.00G", "16384.00P"]);
    }
}
