//! Who the spans are of, as OpenTelemetry's resource conventions say it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use wavetank_model::{Error, Result};

use crate::span::Value;

/// Attributes that all spans of one process share.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource(pub Vec<(Arc<str>, Value)>);

/// Looks a variable of the environment up.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

const NAME: &str = "service.name";

impl Resource {
    /// A simulation: the same for every run.
    pub fn fixed() -> Self {
        Self(vec![text(NAME, "wavetank"), text("service.version", env!("CARGO_PKG_VERSION"))])
    }

    /// This process, as the environment names it: `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`.
    pub fn of(environment: Environment<'_>) -> Result<Self> {
        let mut all = Self::fixed();
        all.set(text("service.instance.id", &instance()));
        if let Some(given) = environment("OTEL_RESOURCE_ATTRIBUTES") {
            for (name, value) in pairs(&given).map_err(|error| error.at("OTEL_RESOURCE_ATTRIBUTES"))? {
                all.set(text(&name, &value));
            }
        }
        if let Some(name) = environment("OTEL_SERVICE_NAME").filter(|name| !name.is_empty()) {
            all.set(text(NAME, &name));
        }
        Ok(all)
    }

    fn set(&mut self, attribute: (Arc<str>, Value)) {
        match self.0.iter_mut().find(|(name, _)| *name == attribute.0) {
            Some(there) => *there = attribute,
            None => self.0.push(attribute),
        }
    }
}

fn text(name: &str, value: &str) -> (Arc<str>, Value) {
    (name.into(), Value::Text(value.into()))
}

/// Differs between processes; a random UUID's shape.
fn instance() -> String {
    let state = RandomState::new();
    let (high, low) = (state.hash_one(0u8), state.hash_one(1u8));
    let version = high & !0xf000 | 0x4000;
    let variant = low & !(0b11 << 62) | 0b10 << 62;
    let (first, second, third) = (version >> 32, version >> 16 & 0xffff, version & 0xffff);
    format!("{first:08x}-{second:04x}-{third:04x}-{:04x}-{:012x}", variant >> 48, variant & 0xffff_ffff_ffff)
}

/// `a=b,c=d` with percent-encoded values, as OpenTelemetry's variables have them.
pub(crate) fn pairs(text: &str) -> Result<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| match part.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), decoded(value.trim()))),
        _ => Err(Error::usage(format!("{part:?} is no name=value")).hint("write name=value,name=value")),
    };
    parts.map(pair).collect()
}

/// What is not well encoded stays as it is.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = value_of(rest);
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
}

/// The byte that `%41` stands for.
fn value_of(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: &u8| (*byte as char).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(variables: &[(&str, &str)]) -> Vec<(String, String)> {
        let environment =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
        let shown = |(name, value): (Arc<str>, Value)| match value {
            Value::Text(text) => (name.to_string(), text.to_string()),
            other => panic!("{other:?}"),
        };
        Resource::of(&environment).unwrap().0.into_iter().map(shown).collect()
    }

    #[test]
    fn the_environment_names_the_service() {
        let plain = made(&[]);
        assert_eq!(plain[0], ("service.name".into(), "wavetank".into()));
        assert_eq!(plain[2].0, "service.instance.id");
        assert_eq!(plain[2].1.len(), 36);
        assert_ne!(plain[2].1, made(&[])[2].1, "instances differ");
        let given = ("OTEL_RESOURCE_ATTRIBUTES", "zone=a%2Cb, service.name=x,broken=100%,");
        let set = made(&[given]);
        assert_eq!(set[0].1, "x");
        assert_eq!(set[3..], [("zone".into(), "a,b".into()), ("broken".into(), "100%".into())]);
        assert_eq!(made(&[given, ("OTEL_SERVICE_NAME", "y")])[0].1, "y");
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        let error = Resource::of(&|name| (name == "OTEL_RESOURCE_ATTRIBUTES").then(|| "a".to_owned()));
        let text = error.unwrap_err().to_string();
        assert!(text.starts_with("OTEL_RESOURCE_ATTRIBUTES: \"a\" is no name=value"), "{text}");
    }
}
