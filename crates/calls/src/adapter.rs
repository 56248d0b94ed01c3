//! A tier behind memory as users describe it: the JSON object of `--l2-adapter` (spec/storage-trace.md 2.7).

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wavetank_model::{Error, Result};
use wavetank_store::backend::Location;
use wavetank_store::{backends, wrappers};

use crate::plan::{AdapterPlan, EvictionPlan, Medium, QuotaPlan, Wrapping};

const GIB: f64 = (1u64 << 30) as f64;
const PLACE: &str = "--l2-adapter";
const HINT: &str = r#"as {"type": "mock", "max_size_gb": 1} or {"type": "direct", "location": "/mnt/nvme"}"#;

const QUOTED: &str = "inside --against, '…' around it keeps its quotes";

impl AdapterPlan {
    /// Reads a description; what is wrong is named with its field.
    pub fn typed(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| wrong(format!("no JSON: {error}")).hint(format!("{HINT}; {QUOTED}")))?;
        let Value::Object(fields) = value else { return Err(wrong("not a JSON object").hint(HINT)) };
        let mut fields = Fields { fields, path: String::new() };
        let kind = fields.text("type")?.ok_or_else(|| wrong("\"type\" is missing").hint(HINT))?;
        let capacity = fields.size("max_size_gb")?;
        let eviction = fields.object("eviction")?.map(eviction).transpose()?;
        let quotas = fields.object("quotas")?.map(quotas).transpose()?.unwrap_or_default();
        let (medium, rate) = match kind.as_str() {
            "mock" => (Medium::Mock, fields.above_zero("mock_bandwidth_gb")?),
            "fs" => (backend("buffered", fields.needed("base_path")?, &mut fields)?, None),
            "resp" => (resp(&mut fields)?, None),
            other => (row(other, &mut fields)?, None),
        };
        fields.nothing_else(&kind)?;
        let bytes_per_second = rate.map(|rate| rate * GIB);
        Ok(Self { medium, capacity_bytes: capacity, bytes_per_second, eviction, quotas })
    }
}

fn eviction(mut fields: Fields) -> Result<EvictionPlan> {
    let policy = fields.needed("eviction_policy")?;
    let (watermark, ratio) = (fields.number("trigger_watermark")?, fields.number("eviction_ratio")?);
    let places = ["eviction_policy", "trigger_watermark", "eviction_ratio"].map(|name| fields.place(name));
    let plan = EvictionPlan::typed(&policy, watermark, ratio, places.each_ref().map(String::as_str))?;
    fields.nothing_else("eviction")?;
    Ok(plan)
}

/// Quotas of tenants: `{"default_gb": 1, "by_salt": {"a": 2}}`.
fn quotas(mut fields: Fields) -> Result<QuotaPlan> {
    let default_bytes = fields.size("default_gb")?;
    let mut by_salt = BTreeMap::new();
    if let Some(mut salts) = fields.object("by_salt")? {
        for salt in salts.fields.keys().cloned().collect::<Vec<_>>() {
            by_salt.extend(salts.size(&salt)?.map(|bytes| (salt, bytes)));
        }
    }
    fields.nothing_else("quotas")?;
    Ok(QuotaPlan { default_bytes, by_salt })
}

/// A row of the backend table.
fn row(name: &str, fields: &mut Fields) -> Result<Medium> {
    let known = || {
        let rows = backends::ALL.iter().map(|row| row.name);
        ["fs", "mock", "resp"].into_iter().chain(rows).collect::<Vec<_>>().join(", ")
    };
    let unknown = |_| wrong(format!("unknown type \"{name}\"")).hint(format!("known: {}", known()));
    let caps = backends::backend(name).map_err(unknown)?.caps;
    let location = match caps.location {
        Location::Directory | Location::Url => fields.needed("location")?,
        Location::None | Location::Device => fields.text("location")?.unwrap_or_default(),
    };
    backend(name, location, fields)
}

fn backend(name: &str, location: String, fields: &mut Fields) -> Result<Medium> {
    let options = fields.object("options")?.map(Fields::words).transpose()?.unwrap_or_default();
    let wrappers = fields.objects("wrappers")?.into_iter().map(wrapping).collect::<Result<_>>()?;
    Ok(Medium::Backend { name: name.to_owned(), location, options, wrappers })
}

fn wrapping(mut fields: Fields) -> Result<Wrapping> {
    let name = fields.needed("type")?;
    wrappers::wrapper(&name).map_err(|error| error.at(fields.place("type")))?;
    Ok(Wrapping { name, options: fields.words()? })
}

/// A Redis server, as the reference names it.
fn resp(fields: &mut Fields) -> Result<Medium> {
    let (host, port) = (fields.needed("host")?, fields.number("port")?.unwrap_or(6379.0));
    if port.fract() != 0.0 || !(1.0..=65535.0).contains(&port) {
        return Err(Error::usage(format!("no port is {port}")).at(fields.place("port")));
    }
    if fields.text("password")?.is_some_and(|password| !password.is_empty()) {
        return Err(Error::usage("a password on the command line is seen by everyone")
            .at(fields.place("password"))
            .hint("give it in the variable REDIS_PASSWORD, or a file in options.password_file"));
    }
    let user = fields.text("username")?.filter(|user| !user.is_empty()).map(|user| format!("{user}@"));
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let location = format!("redis://{}{host}:{port}", user.unwrap_or_default());
    backend("redis", location, fields)
}

fn wrong(what: impl Into<String>) -> Error {
    Error::usage(what).at(PLACE)
}

/// The fields of an object, taken one by one.
struct Fields {
    fields: Map<String, Value>,
    /// The fields it is in, each with a dot.
    path: String,
}

impl Fields {
    fn place(&self, name: &str) -> String {
        format!("{PLACE} {}{name}", self.path)
    }

    fn not_a(&self, name: &str, what: &str) -> Error {
        Error::usage(format!("not {what}")).at(self.place(name))
    }

    fn text(&mut self, name: &str) -> Result<Option<String>> {
        match self.fields.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.not_a(name, "a string")),
        }
    }

    fn needed(&mut self, name: &str) -> Result<String> {
        let missing = |place: String| Error::usage("is missing").at(place).hint(HINT);
        self.text(name)?.filter(|text| !text.is_empty()).ok_or_else(|| missing(self.place(name)))
    }

    /// A number from 0 on.
    fn number(&mut self, name: &str) -> Result<Option<f64>> {
        match self.fields.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64().filter(|number| (0.0..=1e9).contains(number)) {
                Some(number) => Ok(Some(number)),
                None => Err(self.not_a(name, "a number from 0 to 1000000000")),
            },
        }
    }

    fn above_zero(&mut self, name: &str) -> Result<Option<f64>> {
        match self.number(name)? {
            Some(0.0) => Err(self.not_a(name, "a number above 0")),
            number => Ok(number),
        }
    }

    /// GiB, in whole bytes; a number that was written from bytes is read as those.
    fn size(&mut self, name: &str) -> Result<Option<u64>> {
        Ok(self.number(name)?.map(|gib| (gib * GIB + 1e-3) as u64))
    }

    fn object(&mut self, name: &str) -> Result<Option<Self>> {
        match self.fields.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(Self { fields, path: format!("{}{name}.", self.path) })),
            Some(_) => Err(self.not_a(name, "an object")),
        }
    }

    fn objects(&mut self, name: &str) -> Result<Vec<Self>> {
        let not_a = self.not_a(name, "a list of objects");
        let list = match self.fields.remove(name) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(not_a),
        };
        let mut objects = Vec::new();
        for (number, value) in list.into_iter().enumerate() {
            let Value::Object(fields) = value else { return Err(not_a) };
            objects.push(Self { fields, path: format!("{}{name}.{number}.", self.path) });
        }
        Ok(objects)
    }

    /// What is left, as words.
    fn words(self) -> Result<BTreeMap<String, String>> {
        let word = |(name, value): (&String, &Value)| match value {
            Value::String(text) => Ok((name.clone(), text.clone())),
            Value::Number(number) => Ok((name.clone(), number.to_string())),
            Value::Bool(truth) => Ok((name.clone(), truth.to_string())),
            _ => Err(self.not_a(name, "a word, a number, true or false")),
        };
        self.fields.iter().map(word).collect()
    }

    fn nothing_else(&self, kind: &str) -> Result<()> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::usage(format!("{kind} has no such field")).at(self.place(name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_reference_and_every_backend_are_taken() {
        let mock = r#"{"type": "mock", "max_size_gb": 0.5, "mock_bandwidth_gb": 2, "eviction":
            {"eviction_policy": "LRU", "trigger_watermark": 0.9}}"#;
        let mock = AdapterPlan::typed(mock).unwrap();
        assert_eq!((mock.capacity_bytes, mock.bytes_per_second), (Some(1 << 29), Some(2.0 * GIB)));
        let eviction = mock.eviction.unwrap();
        assert_eq!(
            (eviction.policy.as_str(), eviction.trigger_watermark, eviction.eviction_ratio),
            ("lru", 0.9, 0.2)
        );
        let place = |text: &str| match AdapterPlan::typed(text).unwrap().medium {
            Medium::Mock => String::new(),
            Medium::Backend { name, location, .. } => format!("{name} {location}"),
        };
        assert_eq!(place(r#"{"type": "fs", "base_path": "/a"}"#), "buffered /a");
        assert_eq!(place(r#"{"type": "resp", "host": "::1", "port": 7379}"#), "redis redis://[::1]:7379");
        assert_eq!(place(r#"{"type": "resp", "host": "h", "username": "u"}"#), "redis redis://u@h:6379");
        for row in backends::ALL {
            let text = format!(r#"{{"type": "{}", "location": "there", "options": {{}}}}"#, row.name);
            assert_eq!(place(&text), format!("{} there", row.name));
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        let told = |text: &str| AdapterPlan::typed(text).unwrap_err().to_string();
        let cases = [
            (r#"{"max_size_gb": 1}"#, "--l2-adapter: \"type\" is missing"),
            (
                r#"{"type": "moc"}"#,
                "--l2-adapter: unknown type \"moc\"\nhint: known: fs, mock, resp, buffered",
            ),
            (r#"{"type": "mock", "size": 1}"#, "--l2-adapter size: mock has no such field"),
            (r#"{"type": "mock", "max_size_gb": "1"}"#, "--l2-adapter max_size_gb: not a number"),
            (r#"{"type": "direct"}"#, "--l2-adapter location: is missing"),
            (r#"{"type": "fs", "base_path": ""}"#, "--l2-adapter base_path: is missing"),
            (r#"{"type": "resp", "host": "h", "port": 1.5}"#, "--l2-adapter port: no port is 1.5"),
            (r#"{"type": "resp", "host": "h", "password": "p"}"#, "--l2-adapter password: a password on"),
            (
                r#"{"type": "mock", "eviction": {"eviction_policy": "lru", "eviction_ratio": 2}}"#,
                "--l2-adapter eviction.eviction_ratio: must be from 0 to 1, not 2",
            ),
            (
                r#"{"type": "mock", "eviction": {"eviction_policy": "lru", "x": 2}}"#,
                "--l2-adapter eviction.x: eviction has no such field",
            ),
            (r#"{"type": "memory", "options": {"block": []}}"#, "--l2-adapter options.block: not a word"),
            (
                r#"{"type": "memory", "wrappers": [{"type": "f"}]}"#,
                "--l2-adapter wrappers.0.type: unknown wrapper",
            ),
            ("[]", "--l2-adapter: not a JSON object"),
            ("{", "--l2-adapter: no JSON: EOF"),
        ];
        for (text, expected) in cases {
            assert!(told(text).starts_with(expected), "{text}: {}", told(text));
        }
    }
}
