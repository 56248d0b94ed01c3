//! `bench serve`: the cache server beside `redis-server`, driven by `redis-benchmark`, in turn; ours with
//! spans beside ours without; and what an entry costs in memory besides its bytes.

mod entry;
mod server;

use super::rate::median;
use super::{FOLDER, Options, Page};
use crate::process::{self, cargo, output_of, text_of};
use server::{Kind, Server, Side, Spent, pinned};

const KIB: u64 = 1024;

/// Short runs that make a run.
const SLICES: usize = 5;

/// Values of one size: how many commands, of how many clients, on how many keys.
struct Load {
    bytes: u64,
    commands: u64,
    clients: u32,
    keys: u32,
}

const LOADS: [Load; 3] = [
    Load { bytes: 4 * KIB, commands: 120_000, clients: 50, keys: 10_000 },
    Load { bytes: 256 * KIB, commands: 12_000, clients: 16, keys: 500 },
    Load { bytes: 4096 * KIB, commands: 800, clients: 8, keys: 50 },
];
const COMMANDS: [&str; 2] = ["SET", "GET"];

/// One run of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    per_s: f64,
    p99_ms: f64,
    spent: Spent,
    gib: f64,
}

const HEAD: &str = "\
| command | KiB | server | commands/s | least to most | P99 ms | CPU s/GiB | of it user |
|---|---:|---|---:|---:|---:|---:|---:|
";
const RATIOS: &str = "\
| ratio of medians | command | KiB | commands/s | P99 | CPU/GiB | user CPU/GiB |
|---|---|---:|---:|---:|---:|---:|
";

/// Every size and command on every server, in turn.
pub(super) fn measure(options: &Options) -> Result<Page, String> {
    process::run(&mut cargo(&["build", "--release"]))?;
    let version = text_of("redis-server", &["--version"])?;
    let (mut rows, mut ratios) = (HEAD.to_owned(), RATIOS.to_owned());
    let mut servers = Kind::ALL.map(Server::start).into_iter().collect::<Result<Vec<_>, _>>()?;
    for load in &LOADS {
        for command in COMMANDS {
            let found = rounds(&mut servers, load, command, options.reps)?;
            for (kind, runs) in Kind::ALL.iter().zip(&found) {
                rows += &row(command, load, kind.name(), runs);
            }
            ratios += &ratio("ours / Redis", command, load, [&found[1], &found[0]]);
            ratios += &ratio("with spans / without", command, load, [&found[2], &found[1]]);
        }
    }
    drop(servers);
    let method = format!(
        "- {version}\n\nMedians of {} runs of `redis-benchmark` (one thread, no pipelining) on each server, \
         each run in {SLICES} parts that took turns with the other servers'. Servers and client share this \
         machine, the client on its first CPU and the servers on the others. P99 is the client's (mean of \
         the parts). CPU is the server process' own (/proc), user and kernel mode, over the bytes of \
         values moved. Redis runs without persistence; ours without tiers behind memory. With spans: \
         `--enable-tracing` into a file, sampled as by default. An entry's cost is the growth of resident \
         memory over {} entries with keys as LMCache makes them, less the bytes of keys and values.\n",
        options.reps,
        entry::COUNT,
    );
    Ok(Page { method, table: format!("{rows}\n{ratios}\n{}", entry::measure()?) })
}

/// Runs by server. Each is put together from several short ones that took turns with the other servers': a
/// machine that is slower for a while is so for all of them.
fn rounds(servers: &mut [Server], load: &Load, command: &str, reps: usize) -> Result<Vec<Vec<Run>>, String> {
    let mut found = vec![Vec::new(); servers.len()];
    for rep in 0..reps {
        eprintln!("measuring {command} of {} KiB, round {}", load.bytes / KIB, rep + 1);
        let mut parts = vec![Vec::new(); servers.len()];
        for slice in 0..SLICES {
            for turn in 0..servers.len() {
                let at = (rep + slice + turn) % servers.len();
                parts[at].push(run(&mut servers[at], load, command)?);
            }
        }
        found.iter_mut().zip(&parts).for_each(|(found, parts)| found.push(Run::of(parts)));
    }
    Ok(found)
}

impl Run {
    /// Equal parts as one: rates by their times, P99 as the mean of theirs.
    fn of(parts: &[Self]) -> Self {
        let count = parts.len() as f64;
        let sum = |value: fn(&Self) -> f64| parts.iter().map(value).sum::<f64>();
        Self {
            per_s: count / sum(|part| 1.0 / part.per_s),
            p99_ms: sum(|part| part.p99_ms) / count,
            spent: Spent { user_s: sum(|part| part.spent.user_s), kernel_s: sum(|part| part.spent.kernel_s) },
            gib: sum(|part| part.gib),
        }
    }
}

fn run(server: &mut Server, load: &Load, command: &str) -> Result<Run, String> {
    let words = [
        ("-p", server.port().to_string()),
        ("-t", command.to_lowercase()),
        ("-d", load.bytes.to_string()),
        ("-n", load.commands.to_string()),
        ("-c", load.clients.to_string()),
        ("-r", load.keys.to_string()),
    ];
    let mut args: Vec<&str> = words.iter().flat_map(|(flag, value)| [*flag, value]).collect();
    args.push("--csv");
    let before = server.spent()?;
    let told = output_of(pinned(Side::Client).arg("redis-benchmark").args(&args))?;
    let spent = server.spent()?.since(before);
    let (per_s, p99_ms) = understood(&told).ok_or_else(|| format!("redis-benchmark said {told}"))?;
    Ok(Run { per_s, p99_ms, spent, gib: (load.commands * load.bytes) as f64 / (1u64 << 30) as f64 })
}

/// Commands a second and P99 of the last line: name, rate, then mean, least, P50, P95, P99, most.
fn understood(told: &str) -> Option<(f64, f64)> {
    let fields: Vec<&str> = told.lines().last()?.split(',').map(|field| field.trim_matches('"')).collect();
    Some((fields.get(1)?.parse().ok()?, fields.get(6)?.parse().ok()?))
}

fn medians(runs: &[Run]) -> [f64; 4] {
    let of = |value: fn(&Run) -> f64| median(&runs.iter().map(value).collect::<Vec<_>>());
    [
        of(|run| run.per_s),
        of(|run| run.p99_ms),
        of(|run| run.spent.all() / run.gib),
        of(|run| run.spent.user_s / run.gib),
    ]
}

fn row(command: &str, load: &Load, server: &str, runs: &[Run]) -> String {
    let [per_s, p99, cpu, user] = medians(runs);
    let kib = load.bytes / KIB;
    let (least, most) = runs
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), run| (least.min(run.per_s), most.max(run.per_s)));
    let range = format!("{least:.0} to {most:.0}");
    format!("| {command} | {kib} | {server} | {per_s:.0} | {range} | {p99:.3} | {cpu:.3} | {user:.3} |\n")
}

fn ratio(name: &str, command: &str, load: &Load, runs: [&[Run]; 2]) -> String {
    let [above, below] = runs.map(medians);
    let shares: String =
        above.iter().zip(below).map(|(above, below)| format!(" {:.2} |", above / below)).collect();
    format!("| {name} | {command} | {} |{shares}\n", load.bytes / KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_understood() {
        let told = "\"test\",\"rps\"\n\"SET\",\"96618.36\",\"0.3\",\"0.1\",\"0.3\",\"0.5\",\"0.671\",\"5.0\"";
        assert_eq!(understood(told), Some((96618.36, 0.671)));
        assert_eq!(understood("Could not connect"), None);
    }

    /// Broken by: a mean of rates, which counts the faster parts for more than their time.
    #[test]
    fn parts_make_a_run() {
        let part =
            |per_s, p99_ms| Run { per_s, p99_ms, spent: Spent { user_s: 1.0, kernel_s: 2.0 }, gib: 1.0 };
        let whole = Run::of(&[part(100.0, 1.0), part(300.0, 2.0)]);
        assert!((whole.per_s - 150.0).abs() < 1e-9 && whole.p99_ms == 1.5);
        assert_eq!((whole.spent.all(), whole.gib), (6.0, 2.0));
    }

    #[test]
    fn ratios_are_of_medians() {
        let run =
            |per_s, user_s| Run { per_s, p99_ms: 1.0, spent: Spent { user_s, kernel_s: 1.0 }, gib: 2.0 };
        let (ours, theirs) = ([run(300.0, 1.0), run(100.0, 1.0), run(200.0, 1.0)], [run(100.0, 3.0)]);
        let line = ratio("a", "GET", &LOADS[0], [&ours, &theirs]);
        assert_eq!(line, "| a | GET | 4 | 2.00 | 1.00 | 0.50 | 0.33 |\n");
    }
}
