//! `measured.csv`: when each request of a measured run was queued, scheduled, and got its tokens.

use std::path::Path;

use wavetank_model::{Error, Result};
use wavetank_trace::Input;

use super::metrics::Latency;
use super::schedule::Schedule;

/// The columns that must be there, in any order; others are ignored.
const COLUMNS: [&str; 7] =
    ["index", "input_tokens", "output_tokens", "queued_s", "scheduled_s", "first_token_s", "last_token_s"];
/// A century: later is a mistake of unit.
const LATEST_S: f64 = 3.2e9;

/// Reads one row per request of `schedule`, and gives them in its order.
pub(super) fn read(path: &Path, schedule: &Schedule) -> Result<Vec<Latency>> {
    let mut lines = Input::File(path.to_owned()).lines()?;
    let empty = || {
        Error::input("there is nothing in it")
            .at(path.display().to_string())
            .hint(format!("the first line names the columns: {}", COLUMNS.join(",")))
    };
    let positions = match lines.advance()? {
        true => positions(lines.current()).map_err(|error| error.at(lines.place()))?,
        false => return Err(empty()),
    };
    let mut rows: Vec<Option<Latency>> = vec![None; schedule.len()];
    while lines.advance()? {
        let (index, latency) =
            row(lines.current(), &positions, schedule).map_err(|error| error.at(lines.place()))?;
        if rows[index].replace(latency).is_some() {
            return Err(Error::input(format!("request {index} is there a second time")).at(lines.place()));
        }
    }
    let missing = rows.iter().position(Option::is_none);
    if let Some(index) = missing {
        let found = rows.iter().flatten().count();
        let message =
            format!("{found} requests, but the workload has {}: {index} is missing", schedule.len());
        return Err(Error::input(message)
            .at(path.display().to_string())
            .hint(format!("\"index\" is the row of {}, from 0", schedule.path.display())));
    }
    Ok(rows.into_iter().flatten().collect())
}

/// Where each of [`COLUMNS`] is.
fn positions(header: &[u8]) -> Result<[usize; 7]> {
    let names = fields(header)?;
    let mut positions = [0; 7];
    for (position, column) in positions.iter_mut().zip(COLUMNS) {
        *position = names.iter().position(|name| *name == column).ok_or_else(|| {
            Error::input(format!("there is no column \"{column}\""))
                .hint(format!("the first line names the columns: {}", COLUMNS.join(",")))
        })?;
    }
    Ok(positions)
}

fn row(line: &[u8], positions: &[usize; 7], schedule: &Schedule) -> Result<(usize, Latency)> {
    let fields = fields(line)?;
    let field = |column: usize| {
        let text = fields.get(positions[column]).copied();
        text.ok_or_else(|| Error::input(format!("\"{}\" is missing", COLUMNS[column])))
    };
    let count = |column: usize| {
        let text = field(column)?;
        text.parse::<u32>().map_err(|_| wrong(column, text, "a whole number"))
    };
    let seconds = |column: usize| {
        let text = field(column)?;
        let value = text.parse::<f64>().ok().filter(|seconds| seconds.abs() < LATEST_S);
        value.ok_or_else(|| wrong(column, text, "seconds"))
    };
    let index = count(0)? as usize;
    if index >= schedule.len() {
        let message = format!("\"index\" is {index}, but the workload has {} requests", schedule.len());
        return Err(Error::input(message).hint("\"index\" is the row of the workload, from 0"));
    }
    let (input, output) = (count(1)?, count(2)?);
    for (column, measured, expected) in
        [(1, input, schedule.tokens(index).0), (2, output, schedule.tokens(index).1)]
    {
        if measured != expected {
            let name = COLUMNS[column];
            return Err(Error::input(format!("\"{name}\" of request {index} is {measured}, not {expected}"))
                .hint(format!("{expected} is what {} says", schedule.path.display())));
        }
    }
    if output == 0 {
        return Err(Error::input(format!("request {index} has no output")).hint("nothing can be measured"));
    }
    let [queued, scheduled, first, last] = [seconds(3)?, seconds(4)?, seconds(5)?, seconds(6)?];
    if !(queued <= scheduled && scheduled <= first && first <= last) {
        return Err(Error::input(format!("the times of request {index} are not in order"))
            .hint("queued_s, scheduled_s, first_token_s, last_token_s: none is before the one before it"));
    }
    Ok((index, Latency::of([queued, scheduled, first, last], output)))
}

fn fields(line: &[u8]) -> Result<Vec<&str>> {
    let text = std::str::from_utf8(line).map_err(|_| Error::input("not text in UTF-8"))?;
    Ok(text.split(',').map(|field| field.trim().trim_matches('"')).collect())
}

fn wrong(column: usize, text: &str, expected: &str) -> Error {
    let name = COLUMNS[column];
    let brief: String = text.chars().take(40).collect();
    Error::input(format!("\"{name}\" is {brief:?}")).hint(format!("\"{name}\" must be {expected}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::super::metrics::Comparison;
    use super::super::schedule;
    use super::*;

    /// The runs with published summaries, where they lie beside the checkout.
    fn published() -> Vec<PathBuf> {
        let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/vllm-runs");
        let entries = fs::read_dir(runs).into_iter().flatten();
        let folders = entries.map(|entry| entry.unwrap().path());
        folders.filter(|folder| folder.join("llmservingsim_summary.txt").exists()).collect()
    }

    /// Lines such as `TTFT P99  93347.1  94211.5  +0.9%`; the first number is the measured one.
    #[test]
    fn statistics_are_the_published_ones() {
        for folder in published() {
            let schedule = Schedule::read(schedule::find(&folder, "workload.jsonl").unwrap(), 16).unwrap();
            let measured = read(&folder.join("measured.csv"), &schedule).unwrap();
            let comparison = Comparison::of(Some(&measured), &[]);
            let summary = fs::read_to_string(folder.join("llmservingsim_summary.txt")).unwrap();
            let mut checked = 0;
            for line in summary.lines() {
                let [metric, statistic, value, ..] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                    continue;
                };
                let key = match metric {
                    "TTFT" => "ttft_ms",
                    "TPOT" => "tpot_ms",
                    "Latency" => "e2e_ms",
                    _ => continue,
                };
                let statistic = statistic.to_lowercase().replace("median", "p50");
                let found = comparison.cell(key, &statistic).unwrap().measured.unwrap();
                assert_eq!(format!("{found:.1}"), value, "{}: {line}", folder.display());
                checked += 1;
            }
            assert_eq!(checked, 15, "{}", folder.display());
        }
    }
}
