//! The kernel profiles that come with the program: `profiles/kernels` of the repository, which `cargo xtask
//! profiles` writes. Each is a JSON object, zipped: who measured what, the parameters, and the tables as CSV.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use serde::Deserialize;
use wavetank_model::{Error, Result};

use super::table::Table;
use crate::timing::Parameters;

/// Measured kernels of one model on one machine.
pub struct KernelProfile {
    /// As typed.
    pub name: &'static str,
    /// One line for `wavetank list`.
    pub about: String,
    /// What was measured.
    pub content: KernelContent,
}

/// The content of a file of kernels.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelContent {
    schema: String,
    /// The model, as on Hugging Face.
    pub model: String,
    /// The GPU.
    pub hardware: String,
    /// The engine.
    pub engine: String,
    /// Who measured.
    pub source: String,
    /// Under which terms the numbers may be used.
    pub licence: String,
    /// What the row takes where the user says nothing else.
    pub parameters: Parameters,
    tables: BTreeMap<String, String>,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../../../../profiles/kernels/", $name, ".json.gz")))),*]
    };
}

const FILES: &[(&str, &[u8])] = built_in![
    "rtx4090-llama-3.1-8b",
    "rtxpro6000-llama-3.1-8b",
    "rtxpro6000-qwen3-30b-a3b-dp2-ep2",
    "rtxpro6000-qwen3-32b-tp2",
];

/// Every profile of kernels that comes with the program, alphabetical.
pub fn kernel_profiles() -> &'static [KernelProfile] {
    static PROFILES: OnceLock<Vec<KernelProfile>> = OnceLock::new();
    PROFILES.get_or_init(|| FILES.iter().map(|&(name, bytes)| KernelProfile::read(name, bytes)).collect())
}

/// Their names, for messages.
pub(super) fn names() -> String {
    kernel_profiles().iter().map(|profile| profile.name).collect::<Vec<_>>().join(", ")
}

impl KernelProfile {
    fn read(name: &'static str, bytes: &[u8]) -> Self {
        let mut text = String::new();
        GzDecoder::new(bytes).read_to_string(&mut text).expect("a built-in profile is sound");
        let content: KernelContent = serde_json::from_str(&text).expect("a built-in profile is sound");
        assert_eq!(content.schema, "wavetank-kernels/1", "{name}");
        let number = |key: &str| content.parameters.get(key).and_then(serde_json::Value::as_u64).unwrap_or(1);
        let gpus = number("tp").max(number("ranks"));
        let KernelContent { model, hardware, engine, .. } = &content;
        let about = format!("{model} on {gpus} x {hardware}, kernels of {engine}");
        Self { name, about, content }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.content.tables.contains_key(name)
    }

    /// The table `name`, if the profile has it.
    pub(super) fn table(&self, name: &str) -> Result<Table> {
        let place = format!("{} {name}", self.name);
        let Some(text) = self.content.tables.get(name) else {
            return Err(Error::input(format!("the profile has no table \"{name}\"")).at(self.name));
        };
        Table::parse(place, text.clone())
    }
}
