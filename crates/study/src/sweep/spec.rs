//! What a sweep asks for, as its TOML file or a program says it; `docs/sweep.md` describes the format.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use wavetank::ReplayArgs;
use wavetank_model::{Error, Result};
use wavetank_trace::requests;

use super::axis::Axis;
use super::bound::Bound;
use super::cost::CostSpec;
use super::document::{Content, Document, Node, Section, Tree};
use super::metric;
use super::pareto::Objectives;
use crate::search::SearchSpec;

/// A sweep as its file describes it.
#[derive(Debug)]
pub struct Spec {
    /// Its name in messages.
    pub(crate) file: String,
    /// What paths in it are relative to.
    pub(crate) folder: PathBuf,
    /// What all points have in common.
    pub(crate) base: ReplayArgs,
    /// What is varied, the last fastest.
    pub axes: Vec<Axis>,
    pub(crate) mode: Mode,
    /// Whether points that are no plan are left out, instead of being an error.
    pub(crate) skips_invalid: bool,
    pub(crate) objectives: Objectives,
    pub(crate) bounds: Vec<Bound>,
    pub(crate) cost: Option<CostSpec>,
    pub(crate) search: Option<SearchSpec>,
    /// All of the file.
    pub(crate) json: Value,
}

/// Which points are tried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mode {
    /// Every combination of the axes.
    Grid,
    /// The points of the file, as values of the axes; `null` leaves the base as it is.
    List(Vec<Vec<Value>>),
    /// Some combinations, drawn.
    Random { samples: u64, seed: u64 },
}

const SECTIONS: [&str; 8] = ["axes", "base", "cost", "pareto", "points", "search", "sla", "sweep"];

impl Spec {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::of(&Document::read(path)?, folder, &path.display().to_string())
    }

    /// The spec in `text`, with paths relative to `folder`; `file` is its name in messages.
    pub fn parse(text: &str, folder: &Path, file: &str) -> Result<Self> {
        Self::of(&Document::parse(text, file)?, folder, file)
    }

    /// The spec that a program gave, with paths relative to `folder`; `name` is its name in messages.
    pub fn of_tree(tree: Tree, folder: &Path, name: &str) -> Result<Self> {
        Self::of(&Document::of_tree(tree, name)?, folder, name)
    }

    fn of(document: &Document, folder: &Path, file: &str) -> Result<Self> {
        let root = document.section();
        root.only(&SECTIONS)?;
        let sweep = root.table("sweep")?;
        if let Some(sweep) = &sweep {
            sweep.only(&["invalid", "mode", "samples", "seed"])?;
        }
        let (axes, mode) = what_varies(&root, sweep.as_ref())?;
        let invalid = sweep.as_ref().map(|sweep| sweep.word("invalid", &["refuse", "skip"])).transpose()?;
        let mut spec = Self {
            file: file.to_owned(),
            folder: folder.to_owned(),
            base: ReplayArgs::default(),
            axes,
            mode,
            skips_invalid: invalid.flatten() == Some("skip"),
            objectives: Objectives::read(root.table("pareto")?.as_ref())?,
            bounds: Bound::read_all(root.table("sla")?.as_ref())?,
            cost: CostSpec::read(root.table("cost")?.as_ref(), folder)?,
            search: None,
            json: document.json(),
        };
        spec.search = SearchSpec::read(root.table("search")?.as_ref(), &spec)?;
        spec.check_cost()?;
        spec.enter_shared(root.table("base")?.as_ref())?;
        Ok(spec)
    }

    /// Refuses to want what costs less where nothing has a price.
    fn check_cost(&self) -> Result<()> {
        let bounded = self.bounds.iter().map(|bound| bound.metric);
        let searched = self.search.iter().map(SearchSpec::metric);
        let mut wanted = self.objectives.metrics().chain(bounded).chain(searched);
        match wanted.find(|&at| at >= metric::measured()).filter(|_| self.cost.is_none()) {
            None => Ok(()),
            Some(at) => Err(Error::input(format!("\"{}\" needs [cost]", metric::name(at)))
                .at(self.file.clone())
                .hint("[cost] gpu = \"h200\"")),
        }
    }

    fn enter_shared(&mut self, base: Option<&Section<'_>>) -> Result<()> {
        let Some(base) = base else { return Ok(()) };
        let mut seen: Vec<String> = Vec::new();
        for (name, node) in base.entries() {
            let canonical = ReplayArgs::canonical(name);
            if seen.contains(&canonical) {
                return Err(base.document.wrong(node.line, format!("\"{canonical}\" is given twice")));
            }
            seen.push(canonical);
            let mut args = std::mem::take(&mut self.base);
            let entered = self.enter(&mut args, name, &node.json());
            entered.map_err(|error| Error::input(error.to_string()).at(base.document.place(node.line)))?;
            self.base = args;
        }
        Ok(())
    }

    /// Enters a value; paths in it are relative to the spec's folder.
    pub(crate) fn enter(&self, args: &mut ReplayArgs, name: &str, value: &Value) -> Result<()> {
        let canonical = ReplayArgs::canonical(name);
        match (value, canonical.as_str()) {
            (Value::String(word), "trace") => args.set(name, &json!(self.trace_within(word))),
            (Value::Array(words), "trace") if words.iter().all(Value::is_string) => {
                let words = words.iter().filter_map(Value::as_str).map(|word| self.trace_within(word));
                args.set(name, &words.collect())
            }
            (Value::String(timing), "timing") => args.set(name, &json!(self.timing_within(timing))),
            (Value::String(text), _) if text.starts_with('@') => {
                args.set(name, &json!(format!("@{}", self.within(&text[1..]))))
            }
            _ => {
                let placed = wavetank::relocated_tiers(&canonical, value, &|path| self.within(path));
                args.set(name, &placed)
            }
        }
    }

    fn within(&self, path: &str) -> String {
        self.folder.join(path).display().to_string()
    }

    /// A path, or `FORMAT:PATH`; standard input has no place.
    fn trace_within(&self, word: &str) -> String {
        let named = word.split_once(':').filter(|(format, _)| requests::find(format).is_ok());
        match named {
            _ if word == "-" => word.to_owned(),
            None => self.within(word),
            Some((_, "-")) => word.to_owned(),
            Some((format, path)) => format!("{format}:{}", self.within(path)),
        }
    }

    /// `NAME:ARGUMENT` whose argument may be a file beside the spec.
    fn timing_within(&self, timing: &str) -> String {
        let Some((name, arguments)) = timing.split_once(':') else { return timing.to_owned() };
        let placed = arguments.split(',').map(|part| {
            let (key, value) = part.split_once('=').map_or(("", part), |(key, value)| (key, value));
            let is_beside = !value.is_empty() && self.folder.join(value).exists();
            let value = if is_beside { self.within(value) } else { value.to_owned() };
            if key.is_empty() { value } else { format!("{key}={value}") }
        });
        format!("{name}:{}", placed.collect::<Vec<_>>().join(","))
    }

    /// How many points there are.
    pub fn size(&self) -> u64 {
        match &self.mode {
            Mode::Grid => self.axes.iter().fold(1, |all, axis| all.saturating_mul(axis.values.len() as u64)),
            Mode::List(points) => points.len() as u64,
            Mode::Random { samples, .. } => *samples,
        }
    }
}

/// The axes and which of their points are tried.
fn what_varies(root: &Section<'_>, sweep: Option<&Section<'_>>) -> Result<(Vec<Axis>, Mode)> {
    let document = root.document;
    let word = sweep.map(|sweep| sweep.word("mode", &["grid", "list", "random"])).transpose()?.flatten();
    let number = |key: &str| sweep.map_or(Ok(None), |sweep| sweep.whole(key));
    let (samples, seed) = (number("samples")?, number("seed")?);
    let (listed, axes) = (root.node("points"), root.table("axes")?);
    let mode = word.unwrap_or(if listed.is_some() { "list" } else { "grid" });
    let line = |key: &str| sweep.and_then(|sweep| sweep.node(key)).map_or(1, |node| node.line);
    for (key, given) in [("samples", samples), ("seed", seed)] {
        if given.is_some() && mode != "random" {
            return Err(document.wrong(line(key), format!("\"{key}\" belongs to mode = \"random\"")));
        }
    }
    if mode == "list" {
        if let Some(axes) = axes {
            return Err(document.wrong(axes.line(), "[axes] has no place beside a list of points"));
        }
        let points = listed.ok_or_else(|| document.wrong(line("mode"), "there are no [[points]]"))?;
        return list(document, points);
    }
    if let Some(points) = listed {
        return Err(document.wrong(points.line, format!("[[points]] belong to mode = \"list\", not {mode}")));
    }
    let axes = axes.ok_or_else(|| {
        document.wrong(1, "there is nothing to vary").hint("add [axes] with a flag of `wavetank replay`")
    })?;
    let axes = read_axes(&axes)?;
    if mode == "grid" {
        return match axes.iter().find(|axis| axis.is_continuous()) {
            None => Ok((axes, Mode::Grid)),
            Some(axis) => Err(Error::input(format!("axis \"{}\" has no end of values", axis.name))
                .at(axis.place.clone())
                .hint("give \"steps\" or \"step\", or draw from it with mode = \"random\"")),
        };
    }
    let samples = samples.filter(|samples| *samples > 0);
    let samples = samples.ok_or_else(|| document.wrong(line("mode"), "how many \"samples\"?"))?;
    Ok((axes, Mode::Random { samples, seed: seed.unwrap_or(1) }))
}

fn read_axes(section: &Section<'_>) -> Result<Vec<Axis>> {
    let document = section.document;
    let mut axes: Vec<Axis> = Vec::new();
    let mut named = Vec::new();
    section.entries().iter().for_each(|(name, node)| flatten(name, node, is_axis, &mut named));
    for (name, node) in named {
        check_name(&name).map_err(|error| Error::input(error.to_string()).at(document.place(node.line)))?;
        if let Some(other) = axes.iter().find(|other| overlap(&other.name, &name)) {
            let message = format!("axis \"{name}\" and axis \"{}\" set the same", other.name);
            return Err(document.wrong(node.line, message).hint("keep one of the two"));
        }
        axes.push(Axis::read(document, name, node)?);
    }
    match axes.is_empty() {
        false => Ok(axes),
        true => {
            Err(document.wrong(section.line(), "[axes] is empty").hint("name a flag of `wavetank replay`"))
        }
    }
}

fn list(document: &Document, points: &Node) -> Result<(Vec<Axis>, Mode)> {
    let Content::List(points) = &points.content else {
        return Err(document.wrong(points.line, "points are written as [[points]]"));
    };
    let mut axes: Vec<Axis> = Vec::new();
    let mut rows: Vec<Map<String, Value>> = Vec::new();
    for point in points {
        let mut named = Vec::new();
        let section = Section::of(document, "points", point);
        section.entries().iter().for_each(|(name, node)| flatten(name, node, |_| false, &mut named));
        for (name, node) in &named {
            check_name(name)
                .map_err(|error| Error::input(error.to_string()).at(document.place(node.line)))?;
            if !axes.iter().any(|axis| axis.name == *name) {
                axes.push(Axis::column(name.clone(), document.place(node.line)));
            }
        }
        rows.push(named.into_iter().map(|(name, node)| (name, node.json())).collect());
    }
    if rows.is_empty() || axes.is_empty() {
        return Err(document.wrong(1, "there are no [[points]]"));
    }
    let value = |row: &Map<String, Value>, axis: &Axis| row.get(&axis.name).cloned().unwrap_or(Value::Null);
    let rows = rows.iter().map(|row| axes.iter().map(|axis| value(row, axis)).collect()).collect();
    Ok((axes, Mode::List(rows)))
}

/// Whether a table is a value of its own.
type Ends = fn(&[(String, Node)]) -> bool;

/// Tables inside flags that take JSON are paths; `ends` says where a table is a value of its own.
fn flatten<'n>(name: &str, node: &'n Node, ends: Ends, found: &mut Vec<(String, &'n Node)>) {
    match &node.content {
        Content::Table(entries) if takes_json(name) && !ends(entries) => {
            for (key, node) in entries {
                flatten(&format!("{name}.{key}"), node, ends, found);
            }
        }
        _ => found.push((ReplayArgs::canonical(name), node)),
    }
}

/// A table that says from where to where.
fn is_axis(entries: &[(String, Node)]) -> bool {
    entries.iter().any(|(key, _)| key == "from")
}

fn takes_json(name: &str) -> bool {
    let canonical = ReplayArgs::canonical(name);
    let flag = canonical.split('.').next().unwrap_or_default();
    ReplayArgs::default().set(flag, &json!({})).is_ok()
}

/// Refuses what is no flag; the value is looked at later.
fn check_name(name: &str) -> Result<()> {
    match ReplayArgs::default().set(name, &Value::Null) {
        Err(error) if error.to_string().starts_with("unknown field") => Err(error),
        Err(error) if error.to_string().contains("there is nothing inside it") => Err(error),
        _ => Ok(()),
    }
}

/// Whether one is the other or inside it.
fn overlap(one: &str, other: &str) -> bool {
    let inside =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    one == other || inside(one, other) || inside(other, one)
}
