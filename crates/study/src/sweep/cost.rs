//! What runs cost in money and energy: a table of GPUs that users can replace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wavetank::Plan;
use wavetank_model::{Error, Result, accelerator, nearest};

use super::document::{Document, Section, Tree};
use super::metric;
use super::storage_price::{self, StoragePrices};

/// `[cost]` of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CostSpec {
    table: Vec<Price>,
    /// The user's table; what is ours has prices of nobody in particular.
    file: Option<PathBuf>,
    /// Whether the table is ours.
    is_built_in: bool,
    /// The GPU of all workers, where the file names one.
    gpu: Option<String>,
    prefill_gpu: Option<String>,
    decode_gpu: Option<String>,
    /// What memory and tiers cost.
    storage: StoragePrices,
}

/// What one GPU costs and draws.
#[derive(Clone, Debug, PartialEq)]
struct Price {
    gpu: String,
    usd_per_hour: f64,
    busy_watts: f64,
    idle_watts: f64,
    /// Where the numbers of the built-in table come from, and when.
    sources: [String; 3],
}

/// The rows of a fleet, for workers that prefill and for those that decode or do both.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fleet {
    prefill: Price,
    decode: Price,
    /// What its memory and tiers cost an hour.
    storage_usd_per_hour: f64,
}

const BUILT_IN: &str = include_str!("../../../../profiles/gpu_costs.csv");
const COLUMNS: [&str; 4] = ["gpu", "usd_per_hour", "busy_watts", "idle_watts"];
/// Nothing costs more an hour: sums of what does are no numbers any more.
const MOST_USD: f64 = 1e12;
/// The keys of `[cost]`, besides prices of a GiB.
const KEYS: [&str; 5] = ["decode_gpu", "gpu", "gpu_hour", "prefill_gpu", "table"];
/// What a GPU is called that has a price and no name.
const NAMELESS: &str = "gpu";
/// Columns that users' tables need not have.
const SOURCES: [&str; 3] = ["price_date", "price_source", "power_source"];

impl CostSpec {
    pub(crate) fn read(section: Option<&Section<'_>>, folder: &Path) -> Result<Option<Self>> {
        let Some(section) = section else { return Ok(None) };
        let by_gib = section.entries().iter().map(|(key, _)| key.as_str());
        let by_gib = by_gib.filter(|key| key.ends_with(storage_price::SUFFIX));
        section.only(&KEYS.into_iter().chain(by_gib).collect::<Vec<_>>())?;
        let storage = StoragePrices::read(section)?;
        if let Some(usd_per_hour) = section.value("gpu_hour", "a number from 0 to 1e12", amount)? {
            return Self::of_hour(section, usd_per_hour, storage).map(Some);
        }
        let table = match section.text("table")? {
            None => table(BUILT_IN, "the built-in table")?,
            Some(name) => {
                let path: PathBuf = folder.join(name);
                let text = std::fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
                table(&text, &path.display().to_string())?
            }
        };
        let gpu = |key: &str| -> Result<Option<String>> {
            let name = section.text(key)?;
            let line = section.node(key).map_or(0, |node| node.line);
            name.iter()
                .try_for_each(|name| price(&table, name).map(drop))
                .map_err(|error| error.at(section.document.place(line)))?;
            Ok(name)
        };
        let (gpu, prefill_gpu, decode_gpu) = (gpu("gpu")?, gpu("prefill_gpu")?, gpu("decode_gpu")?);
        let file = section.text("table")?.map(|name| folder.join(name));
        let is_built_in = file.is_none();
        Ok(Some(Self { table, file, is_built_in, gpu, prefill_gpu, decode_gpu, storage }))
    }

    /// One price for every GPU, of which nothing else is known.
    fn of_hour(section: &Section<'_>, usd_per_hour: f64, storage: StoragePrices) -> Result<Self> {
        let others = KEYS.into_iter().filter(|key| *key != "gpu_hour");
        if let Some((key, node)) = others.filter_map(|key| Some((key, section.node(key)?))).next() {
            let message = format!("\"gpu_hour\" is the price of every GPU: leave out \"{key}\"");
            return Err(section.document.wrong(node.line, message));
        }
        let (gpu, watts, sources) = (NAMELESS.to_owned(), f64::NAN, <[String; 3]>::default());
        let price = Price { gpu: gpu.clone(), usd_per_hour, busy_watts: watts, idle_watts: watts, sources };
        let (prefill_gpu, decode_gpu) = (None, None);
        Ok(Self {
            table: vec![price],
            file: None,
            is_built_in: false,
            gpu: Some(gpu),
            prefill_gpu,
            decode_gpu,
            storage,
        })
    }

    /// The same keys as a flag has them: `gpu_hour=2.5,ram_gib_hour=0.004`. Errors name the flag.
    pub(crate) fn of_flag(text: &str, flag: &str) -> Result<Self> {
        let mut entries: Vec<(String, Tree)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (key, value) = part
                .split_once('=')
                .filter(|(key, value)| !key.is_empty() && !value.is_empty())
                .ok_or_else(|| {
                    Error::usage(format!("\"{part}\" is no NAME=VALUE"))
                        .at(flag)
                        .hint("such as gpu_hour=2.5,ram_gib_hour=0.004,disk_gib_hour=0.0001")
                })?;
            if entries.iter().any(|(known, _)| known == key) {
                return Err(Error::usage(format!("\"{key}\" is given twice")).at(flag));
            }
            let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
            let value = number.map_or_else(|| Value::from(value), Value::from);
            entries.push((key.to_owned(), Tree::Plain(value)));
        }
        let document = Document::of_tree(Tree::Table(entries), flag)?;
        let spec = Self::read(Some(&document.section()), Path::new(""))?;
        Ok(spec.expect("there is a section"))
    }

    /// The file of prices, where there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Tiers without a price, and prices of nothing.
    pub(crate) fn gaps(&self, plan: &Plan) -> Vec<String> {
        self.storage.gaps(plan)
    }

    /// What a reader must know of costs that are not from a user's own table, for each GPU.
    pub(crate) fn caveats(&self, gpus: &BTreeSet<String>) -> Vec<String> {
        let caveat = |gpu: &String| {
            let price = price(&self.table, gpu).ok()?;
            let [date, from, power] = &price.sources;
            let Price { usd_per_hour, busy_watts, idle_watts, .. } = price;
            Some(format!(
                "{gpu} is taken to cost {usd_per_hour} USD an hour ({from}; {date}) and to draw \
                 {busy_watts} W busy, {idle_watts} W idle ({power}); [cost] table = \"FILE\" takes your own"
            ))
        };
        gpus.iter().filter(|_| self.is_built_in).filter_map(caveat).collect()
    }

    /// The prices of a plan's GPUs, where they are known: from the file, else from the timing model.
    pub(crate) fn fleet(&self, plan: &Plan) -> Result<Option<Fleet>> {
        let timed = |engine: &wavetank_sim::EngineConfig| {
            engine.timing.parameters.get("gpu").and_then(|gpu| gpu.as_str()).map(str::to_owned)
        };
        let simulation = &plan.simulation;
        let decoding = simulation.decode.as_ref().map_or(&simulation.engine, |pool| &pool.engine);
        let named =
            |own: &Option<String>, engine| own.clone().or_else(|| self.gpu.clone()).or_else(|| timed(engine));
        let (prefill, decode) =
            (named(&self.prefill_gpu, &simulation.engine), named(&self.decode_gpu, decoding));
        let (Some(prefill), Some(decode)) = (prefill, decode) else { return Ok(None) };
        let price = |name: &str| price(&self.table, name).cloned();
        let storage_usd_per_hour = self.storage.usd_per_hour(plan);
        Ok(Some(Fleet { prefill: price(&prefill)?, decode: price(&decode)?, storage_usd_per_hour }))
    }
}

impl Fleet {
    /// The GPUs it is made of.
    pub(crate) fn gpus(&self) -> [String; 2] {
        [&self.prefill, &self.decode].map(|price| price.gpu.clone())
    }

    /// Fills in what follows from prices and power; see METHODOLOGY.md for the formulas.
    pub(crate) fn derive(&self, metrics: &mut [f64]) {
        let of = |name: &str| metrics[metric::number(name)];
        let pool = |side: &str, price: &Price| {
            let gpus = of(&format!("{side}_gpus_per_worker"));
            let hours = of(&format!("{side}_worker_seconds")) / 3600.0 * gpus;
            let busy = (of(&format!("{side}_busy_seconds")) / 3600.0 * gpus).min(hours);
            let energy = busy * price.busy_watts + (hours - busy) * price.idle_watts;
            (hours * price.usd_per_hour, energy)
        };
        let (prefill, decode) = (pool("prefill", &self.prefill), pool("decode", &self.decode));
        let storage = self.storage_usd_per_hour * of("duration_ms") / 3.6e6;
        let (usd, watt_hours) = (prefill.0 + decode.0 + storage, prefill.1 + decode.1);
        let (output, all) = (of("total_output_tokens") / 1e6, of("processed_tokens") / 1e6);
        let per = |amount: f64, millions: f64| if millions > 0.0 { amount / millions } else { f64::NAN };
        for (name, value) in
            metric::DERIVED.into_iter().zip([per(usd, output), per(usd, all), per(watt_hours, all)])
        {
            metrics[metric::number(name)] = value;
        }
    }
}

/// An amount of money.
pub(super) fn amount(value: &Value) -> Option<f64> {
    value.as_f64().filter(|amount| (0.0..=MOST_USD).contains(amount))
}

/// The row of a GPU, by its name in the table or by another name of it.
fn price<'t>(table: &'t [Price], name: &str) -> Result<&'t Price> {
    let plain = |name: &str| name.to_lowercase().replace(['-', ' '], "_");
    let known = accelerator(name).map_or_else(|_| plain(name), |gpu| gpu.name.clone());
    table.iter().find(|row| plain(&row.gpu) == plain(name) || row.gpu == known).ok_or_else(|| {
        let names = table.iter().map(|row| row.gpu.as_str());
        let hint = match nearest(name, names.clone()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!(
                "known: {}; [cost] table = \"FILE.csv\" has others",
                names.collect::<Vec<_>>().join(", ")
            ),
        };
        Error::input(format!("GPU \"{name}\" has no price")).hint(hint)
    })
}

/// A table as CSV with a heading; columns beyond those that are needed say where numbers come from.
fn table(text: &str, file: &str) -> Result<Vec<Price>> {
    let mut reader =
        csv::ReaderBuilder::new().comment(Some(b'#')).flexible(true).from_reader(text.as_bytes());
    let broken = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        Error::input(error.to_string()).at(format!("{file}:{line}"))
    };
    let heading = reader.headers().map_err(|error| broken(&error))?.clone();
    let column = |name: &str| {
        heading.iter().position(|title| title.trim() == name).ok_or_else(|| {
            Error::input(format!("column \"{name}\" is missing"))
                .at(format!("{file}:1"))
                .hint(format!("a table of GPUs has the columns {}", COLUMNS.join(", ")))
        })
    };
    let [gpu, usd, busy, idle] = COLUMNS.map(column);
    let (gpu, numbers) = (gpu?, [usd?, busy?, idle?]);
    let sources = SOURCES.map(|name| heading.iter().position(|title| title.trim() == name));
    let mut rows: Vec<Price> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| broken(&error))?;
        let line = record.position().map_or(1, csv::Position::line);
        let number = |column: usize| {
            let text = record.get(column).unwrap_or_default().trim();
            let number = text.parse::<f64>().ok().filter(|number| (0.0..=MOST_USD).contains(number));
            number.ok_or_else(|| {
                Error::input(format!("\"{text}\" is no number from 0 to 1e12")).at(format!("{file}:{line}"))
            })
        };
        let [usd_per_hour, busy_watts, idle_watts] =
            [number(numbers[0])?, number(numbers[1])?, number(numbers[2])?];
        let gpu = record.get(gpu).unwrap_or_default().trim().to_owned();
        if gpu.is_empty() || rows.iter().any(|row| row.gpu == gpu) {
            return Err(
                Error::input(format!("\"{gpu}\" is no name, or there twice")).at(format!("{file}:{line}"))
            );
        }
        let sources =
            sources.map(|column| column.and_then(|at| record.get(at)).unwrap_or_default().trim().to_owned());
        rows.push(Price { gpu, usd_per_hour, busy_watts, idle_watts, sources });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_sound() {
        let rows = table(BUILT_IN, "built-in").unwrap();
        for row in &rows {
            assert_eq!(accelerator(&row.gpu).map(|gpu| gpu.name.clone()).ok(), Some(row.gpu.clone()));
            assert!(row.idle_watts < row.busy_watts && row.usd_per_hour > 0.0, "{}", row.gpu);
            assert!(row.sources.iter().all(|source| !source.is_empty()), "{}", row.gpu);
        }
        assert_eq!(price(&rows, "H200").unwrap().gpu, "h200_sxm");
        assert!(price(&rows, "h200_sxn").unwrap_err().to_string().contains("did you mean"));
    }

    /// One hour of two workers of four GPUs, a quarter of it busy, for two million tokens, half of them
    /// output: 8 GPU hours at 3 $ are 24 $, an hour of tiers at 6 $; 2 busy hours at 700 W and 6 idle ones at
    /// 100 W are 2000 Wh.
    #[test]
    fn money_and_energy_are_those_of_the_whole_fleet() {
        let price = Price {
            gpu: "x".into(),
            usd_per_hour: 3.0,
            busy_watts: 700.0,
            idle_watts: 100.0,
            sources: <[String; 3]>::default(),
        };
        let fleet = Fleet { prefill: price.clone(), decode: price, storage_usd_per_hour: 6.0 };
        let mut metrics = vec![f64::NAN; metric::all().len()];
        for (name, value) in [
            ("prefill_gpus_per_worker", 0.0),
            ("decode_gpus_per_worker", 4.0),
            ("prefill_worker_seconds", 0.0),
            ("decode_worker_seconds", 7200.0),
            ("duration_ms", 3.6e6),
            ("prefill_busy_seconds", 0.0),
            ("decode_busy_seconds", 1800.0),
            ("total_output_tokens", 1e6),
            ("processed_tokens", 2e6),
        ] {
            metrics[metric::number(name)] = value;
        }
        fleet.derive(&mut metrics);
        let derived: Vec<f64> = metric::DERIVED.iter().map(|name| metrics[metric::number(name)]).collect();
        assert_eq!(derived, [30.0, 15.0, 1000.0]);
    }

    #[test]
    fn a_flag_has_the_keys_of_a_file() {
        let spec = CostSpec::of_flag("gpu_hour=2.5,ram_gib_hour=0.004", "--price").unwrap();
        assert_eq!(price(&spec.table, "gpu").unwrap().usd_per_hour, 2.5);
        assert!(!spec.is_built_in);
        let spec = CostSpec::of_flag("gpu=h200", "--price").unwrap();
        assert!(spec.is_built_in && spec.gpu.as_deref() == Some("h200"));
        for (text, expected) in [
            ("", "--price: \"\" is no NAME=VALUE\nhint: such as gpu_hour=2.5"),
            ("gpu_hour", "--price: \"gpu_hour\" is no NAME=VALUE"),
            ("gpu_hour=-1", "--price: \"gpu_hour\" must be a number from 0 to 1e12, not -1.0"),
            ("gpu_hour=nan", "--price: \"gpu_hour\" must be a number from 0 to 1e12, not \"nan\""),
            ("gpu_hour=2,gpu_hour=3", "--price: \"gpu_hour\" is given twice"),
            ("gpu_hour=2,gpu=h200", "--price: \"gpu_hour\" is the price of every GPU: leave out \"gpu\""),
            ("gpu_hours=2", "--price: unknown field \"gpu_hours\"\nhint: did you mean gpu_hour?"),
            (
                "ram_gib_hour=cheap",
                "--price: \"ram_gib_hour\" must be a number from 0 to 1e12, not \"cheap\"",
            ),
            ("gpu=h2000", "--price: GPU \"h2000\" has no price\nhint: "),
        ] {
            let message = CostSpec::of_flag(text, "--price").unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    /// Broken by: a price that has no end, of which a sum is no number any more.
    #[test]
    fn a_table_that_is_wrong_is_named() {
        for (text, expected) in [
            (
                "gpu,usd_per_hour,busy_watts,idle_watts\nx,1e12,2,1\ny,1e308,2,1\n",
                "t.csv:3: \"1e308\" is no number from 0 to 1e12",
            ),
            ("gpu,usd_per_hour,busy_watts\nx,1,2\n", "t.csv:1: column \"idle_watts\" is missing\nhint: "),
            ("gpu,usd_per_hour,busy_watts,idle_watts\nx,1,a,2\n", "t.csv:2: \"a\" is no number"),
            (
                "gpu,usd_per_hour,busy_watts,idle_watts\nx,1,2,1\nx,1,2,1\n",
                "t.csv:3: \"x\" is no name, or there",
            ),
        ] {
            let message = table(text, "t.csv").unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
