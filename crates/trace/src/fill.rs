//! What stands in for what a trace does not say: rules that a user may choose and that reports tell.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use wavetank_model::{Error, Result};

/// The rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fill {
    /// For prompts without block ids.
    pub hash: HashFill,
    /// For requests without a number of tokens to generate.
    pub output: Option<u32>,
}

/// What prompts without block ids hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HashFill {
    /// Every prompt is like no other.
    #[default]
    Unique,
    /// A turn begins with all that was said before in its session.
    Session,
    /// Nothing that could be found again; where ids are written, none are.
    None,
}

impl HashFill {
    const ALL: [(&'static str, Self); 3] =
        [("unique", Self::Unique), ("session", Self::Session), ("none", Self::None)];

    /// As users type it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, rule)| *rule == self).expect("every rule has a name").0
    }

    /// The rule in words, for reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unique => "every prompt is like no other",
            Self::Session => "a turn begins with all that was said before in its session",
            Self::None => "no prompt can be found again",
        }
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hash={}", self.hash.name())?;
        self.output.map_or(Ok(()), |tokens| write!(f, ",output={tokens}"))
    }
}

impl FromStr for Fill {
    type Err = Error;

    /// `hash=unique|session|none`, `output=TOKENS`, or both with a comma between them.
    fn from_str(text: &str) -> Result<Self> {
        let mut fill = Self::default();
        for part in text.split(',') {
            let wrong = || {
                Error::usage(format!("\"{part}\" is no rule"))
                    .at("--fill")
                    .hint("hash=unique, hash=session, hash=none, or output=TOKENS")
            };
            match part.split_once('=').ok_or_else(wrong)? {
                ("hash", name) => {
                    let rule = HashFill::ALL.iter().find(|(known, _)| *known == name);
                    fill.hash = rule.ok_or_else(wrong)?.1;
                }
                ("output", tokens) => fill.output = Some(tokens.parse().map_err(|_| wrong())?),
                _ => return Err(wrong()),
            }
        }
        Ok(fill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_told() {
        for text in ["hash=unique", "hash=session", "hash=none,output=12"] {
            assert_eq!(text.parse::<Fill>().unwrap().to_string(), text);
        }
        assert_eq!("output=5".parse::<Fill>().unwrap().hash, HashFill::Unique);
        for text in ["", "hash", "hash=x", "output=-1", "input=1"] {
            let error = text.parse::<Fill>().unwrap_err().to_string();
            assert!(error.starts_with("--fill: ") && error.contains("hint: hash=unique"), "{error}");
        }
    }
}
