//! Measured timing tables looked at: what they hold, how sure they are, and as a profile of the `grid` model.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use wavetank_model::{Error, Result};
use wavetank_report::render::table::framed;
use wavetank_sim::survey::{Survey, Whole};
use wavetank_sim::timing::{self, Profile};

/// Measured tables.
pub struct Measured {
    /// The timing model that reads them.
    pub model: &'static str,
    /// One of each table.
    pub tables: Vec<Survey>,
    profile: Option<Profile>,
}

/// Reads a profile, a CSV of passes, exported parts, an .npz file, a folder of kernels or a built-in name.
pub fn measured(what: &str) -> Result<Measured> {
    let path = Path::new(what);
    if let Some(built_in) = timing::profiles().iter().find(|row| row.name == what) {
        return Ok(of_grid(built_in.profile.clone()));
    }
    if path.is_dir() || timing::kernel_profiles().iter().any(|row| row.name == what) {
        let place = if path.is_dir() { format!("{what}/") } else { what.to_owned() };
        return Ok(Measured { model: "kernels", tables: timing::kernel_survey(&place)?, profile: None });
    }
    if path.extension().is_some_and(|extension| extension == "npz") {
        return Ok(Measured { model: "npz", tables: timing::npz_survey(path)?, profile: None });
    }
    let text = fs::read_to_string(path).map_err(|error| {
        Error::io(path, error).hint("give a file, a folder of kernels or a name of `wavetank list profiles`")
    })?;
    let text = of_parts(&text).unwrap_or(text);
    Ok(of_grid(Profile::read(what, &text)?))
}

fn of_grid(profile: Profile) -> Measured {
    Measured { model: "grid", tables: profile.survey(), profile: Some(profile) }
}

/// The profile of AISimulate's exported parts; `None` if `text` is something else.
fn of_parts(text: &str) -> Option<String> {
    let mut parts: Map<String, Value> = serde_json::from_str(text).ok()?;
    parts.contains_key("na_ms").then_some(())?;
    let dtype = |parts: &Map<String, Value>, key: &str| {
        let quant = parts.get("quant").and_then(|quant| quant.get(key)).cloned();
        quant.unwrap_or_else(|| json!("bf16"))
    };
    let (weights, kv) = (dtype(&parts, "gemm_quant_mode"), dtype(&parts, "kvcache_quant_mode"));
    let mut profile = Map::new();
    for (key, value) in [
        ("schema", json!("wavetank-profile/1")),
        ("unit", json!("ms")),
        ("engine", json!("vLLM kernels")),
        ("weight_dtype", weights),
        ("kv_dtype", kv),
        ("source", json!("AISimulate silicon tables, exported through its Python package")),
        ("licence", json!("Apache-2.0")),
        // As in the built-in profiles: what real runs of vLLM 0.19 take per step beside the kernels.
        ("host_ms", json!(0.32)),
    ] {
        profile.insert(key.to_owned(), value);
    }
    for (from, to) in [
        ("model", "model"),
        ("system", "gpu"),
        ("tp", "tp"),
        ("tokens", "tokens"),
        ("na_ms", "token_ms"),
        ("seqs", "seqs"),
        ("logits_ms", "seq_ms"),
        ("new", "new"),
        ("ctx", "ctx"),
        ("ca_ms", "prefill_attn_ms"),
        ("batch", "batch"),
        ("dctx", "dctx"),
        ("da_ms", "decode_attn_ms"),
    ] {
        profile.extend(parts.remove(from).map(|value| (to.to_owned(), value)));
    }
    serde_json::to_string_pretty(&profile).ok()
}

const COLUMNS: &[&str] =
    &["Table", "points", "values", "median %", "P90 %", "max %", "of", "extrapolated", "repaired"];

impl Measured {
    /// For people: a row per table.
    pub fn table(&self) -> String {
        let mut table = framed(COLUMNS);
        for survey in &self.tables {
            table.add_row(cells(survey));
        }
        format!(
            "Timing model: {}\n{table}\n%: leave-one-out error, a value computed from its neighbours, of a \
             step or of the value; repaired: made to rise with the work\n",
            self.model
        )
    }

    /// A `wavetank-profile/1` of the tables as they were measured.
    pub fn text(&self) -> Result<String> {
        self.profile.as_ref().map(Profile::text).ok_or_else(|| {
            Error::usage(format!("tables of \"{}\" cannot be written as a profile of \"grid\"", self.model))
                .hint(format!("use them as they are: --timing {}:…", self.model))
        })
    }
}

fn cells(survey: &Survey) -> Vec<String> {
    let points: Vec<String> = survey.axes.iter().map(|axis| axis.points.len().to_string()).collect();
    let beyond: Vec<String> = survey
        .axes
        .iter()
        .filter_map(|axis| Some(format!("{} > {}", axis.name, axis.points.last()?)))
        .collect();
    let error =
        |part: f64| survey.quantile(part).map_or("N/A".to_owned(), |error| format!("{:.2}", error * 100.0));
    let whole = match survey.whole {
        Whole::Step => "step",
        Whole::Value => "value",
    };
    let repair = match survey.repair {
        Some(repair) if repair.values > 0 => {
            format!("{}, at most {:.2} %", repair.values, repair.most * 100.0)
        }
        Some(_) => "none".to_owned(),
        None => "no".to_owned(),
    };
    vec![
        survey.table.to_owned(),
        points.join(" x "),
        survey.values.to_string(),
        error(0.5),
        error(0.9),
        error(1.0),
        whole.to_owned(),
        beyond.join(", "),
        repair,
    ]
}
