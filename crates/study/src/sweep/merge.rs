//! Shards of one sweep as one.

use serde_json::Value;
use wavetank_model::{Error, Result};

use super::pareto::Objectives;
use super::{Head, Row, Shard, Swept, mark_front};

/// The whole of `shards`, each a report and its name. They must be of one spec and leave nothing out.
pub fn merge(shards: &[(String, Value)]) -> Result<Swept> {
    let Some(((first_name, first), others)) = shards.split_first() else {
        return Err(Error::usage("nothing to merge").hint("name the .json outputs of the shards"));
    };
    let mut head = Head::of_json(first).map_err(|error| error.at(first_name.clone()))?;
    for (name, report) in others {
        let other = Head::of_json(report).map_err(|error| error.at(name.clone()))?;
        head.check_alike(&other, first_name).map_err(|error| error.at(name.clone()))?;
    }
    let mut rows: Vec<(Row, &str)> = Vec::new();
    for (name, report) in shards {
        let found = report.get("rows").and_then(Value::as_array).into_iter().flatten();
        for row in found {
            rows.push((Row::of_json(row, &head.axes).map_err(|error| error.at(name.clone()))?, name));
        }
    }
    rows.sort_by_key(|(row, _)| row.point);
    if let Some(pair) = rows.windows(2).find(|pair| pair[0].0.point == pair[1].0.point) {
        let message = format!("point {} is in {} too", pair[1].0.point, pair[0].1);
        return Err(Error::input(message).at(pair[1].1).hint("name every shard once"));
    }
    let points = head.points()?;
    if rows.len() < points {
        let message = format!("{} of {points} points are in none of these files", points - rows.len());
        return Err(
            Error::input(message).hint("name all shards; one that was interrupted goes on when run again")
        );
    }
    head.shard["number"] = Shard::WHOLE.number.into();
    head.shard["of"] = Shard::WHOLE.of.into();
    let mut rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
    mark_front(&head.objectives, &mut rows);
    Ok(Swept {
        head,
        rows,
        search: None,
        warnings: warnings(shards),
        is_partial: false,
        ran: 0,
        wall_seconds: shards.iter().filter_map(|(_, report)| wall_ms(report)).sum::<f64>() / 1e3,
    })
}

fn wall_ms(report: &Value) -> Option<f64> {
    report.get("wall")?.get("wall_time_ms")?.as_f64()
}

/// Those of all shards, each once.
fn warnings(shards: &[(String, Value)]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let texts = shards.iter().filter_map(|(_, report)| report.get("warnings")?.as_array()).flatten();
    for text in texts.filter_map(Value::as_str) {
        if !all.iter().any(|known| known == text) {
            all.push(text.to_owned());
        }
    }
    all
}

impl Head {
    fn of_json(report: &Value) -> Result<Self> {
        let part = |key: &str| report.get(key).cloned();
        let head = (|| {
            (part("kind")?.as_str()? == "sweep").then_some(())?;
            let axes = part("axes")?;
            let axes = axes.as_array()?.iter().map(|axis| axis.as_str().map(str::to_owned));
            Some(Self {
                plan: part("plan")?,
                axes: axes.collect::<Option<_>>()?,
                inputs: part("inputs")?,
                objectives: Objectives::of_json(&part("pareto")?).ok()?,
                sla: part("sla")?,
                shard: part("shard")?,
            })
        })();
        head.ok_or_else(|| {
            Error::input("not the report of a sweep")
                .hint("merge takes what `wavetank sweep -o X.json` wrote")
        })
    }

    fn points(&self) -> Result<usize> {
        let points = self.shard.get("points").and_then(Value::as_u64);
        points.map(|points| points as usize).ok_or_else(|| Error::input("\"shard\" has no \"points\""))
    }

    /// Whether two parts belong together.
    fn check_alike(&self, other: &Self, name: &str) -> Result<()> {
        let parts = [
            ("spec", self.plan == other.plan),
            ("content of the files it names", self.inputs == other.inputs),
            ("number of shards", self.shard.get("of") == other.shard.get("of")),
        ];
        match parts.into_iter().find(|(_, alike)| !alike) {
            None => Ok(()),
            Some((what, _)) => Err(Error::input(format!("another {what} than in {name}"))
                .hint("only shards of one sweep make a whole")),
        }
    }
}
