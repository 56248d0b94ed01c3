//! Timing models as users write them: a name or an object in JSON, `NAME[:argument]` on the command line.

use serde_json::{Map, Value};
use wavetank_model::{Error, Result, find};
use wavetank_sim::timing::{self, TimingConfig};

/// The model of a JSON value.
pub(crate) fn of_json(value: &Value) -> Result<TimingConfig, String> {
    let config = match value {
        Value::String(name) => TimingConfig { name: name.clone(), parameters: Map::new() },
        Value::Object(object) => {
            let mut parameters = object.clone();
            let Some(Value::String(name)) = parameters.remove("name") else {
                return Err("an object needs a \"name\"; known: see `wavetank list timing`".to_owned());
            };
            TimingConfig { name, parameters }
        }
        _ => return Err("must be a name or an object with a \"name\"".to_owned()),
    };
    checked(config).map_err(|error| error.to_string().replace('\n', "; "))
}

/// The model of a flag: `NAME`, then `:` and parameters as `key=value` with commas between; the first may be
/// a value alone, such as the name of a profile.
pub(crate) fn of_flag(flag: &str, typed: &str) -> Result<TimingConfig> {
    let (name, argument) = typed.split_once(':').unwrap_or((typed, ""));
    let entry = find("timing model", timing::ALL, name).map_err(|error| error.at(flag))?;
    let mut parameters = Map::new();
    for (position, part) in argument.split(',').filter(|part| !part.is_empty()).enumerate() {
        let (key, value) = match (part.split_once('='), entry.argument) {
            (Some(pair), _) => pair,
            (None, Some(key)) if position == 0 => (key, part),
            (None, _) => {
                return Err(Error::usage(format!("\"{part}\" needs a name: KEY={part}")).at(flag));
            }
        };
        parameters.insert(key.to_owned(), literal(value));
    }
    checked(TimingConfig { name: name.to_owned(), parameters })
        .map_err(|error| Error::usage(error.to_string()).at(flag))
}

/// A number or a truth value where it reads as one, else text.
pub(crate) fn literal(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_number() || value.is_boolean() => value,
        _ => Value::from(text),
    }
}

fn checked(config: TimingConfig) -> Result<TimingConfig> {
    config.build()?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(typed: &str) -> Result<TimingConfig> {
        of_flag("--timing", typed)
    }

    #[test]
    fn flags_say_what_objects_say() {
        for (typed, json) in [
            ("polynomial", r#""polynomial""#),
            ("fixed:prefill_ms=2.5,decode_ms=1", r#"{"name":"fixed","prefill_ms":2.5,"decode_ms":1}"#),
            (
                "grid:llama31-8b-h200-tp1-bf16,host_ms=0.5",
                r#"{"name":"grid","profile":"llama31-8b-h200-tp1-bf16","host_ms":0.5}"#,
            ),
            (
                "kernels:rtx4090-llama-3.1-8b,max_num_seqs=64",
                r#"{"name":"kernels","profile":"rtx4090-llama-3.1-8b","max_num_seqs":64}"#,
            ),
            (
                "roofline:llama-3.1-8b,gpu=h100,tp=2,weight_dtype=fp8",
                r#"{"name":"roofline","model":"llama-3.1-8b","gpu":"h100","tp":2,"weight_dtype":"fp8"}"#,
            ),
        ] {
            assert_eq!(
                flag(typed).unwrap(),
                of_json(&serde_json::from_str(json).unwrap()).unwrap(),
                "{typed}"
            );
        }
    }

    #[test]
    fn wrong_flags_are_refused_by_name() {
        for (typed, part) in [
            ("guess", "--timing: unknown timing model \"guess\""),
            ("grid:llama9", "unknown profile \"llama9\""),
            ("grid:llama31-8b-h200-tp1-bf16,3", "\"3\" needs a name"),
            ("fixed:3", "\"3\" needs a name"),
            ("grid", "give \"profile\" or \"path\""),
            ("npz:none.npz", "none.npz: cannot open"),
        ] {
            let message = flag(typed).expect_err(typed).to_string();
            assert!(message.starts_with("--timing: ") && message.contains(part), "{typed}: {message}");
        }
    }
}
