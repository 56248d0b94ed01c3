//! Measured tables of pass times: .npz files, profiles, tables of passes, exported parts.

use serde_json::{Map, Value};
use wavetank::profile::measured;
use wavetank_sim::timing::{Chunk, DecodeBatch, Pass, TimingConfig};

use super::{Entry, inputs};
use crate::said::{Met, refused};
use crate::scratch::Scratch;
use crate::texts;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "timing",
    about: "timing profiles: .npz, JSON, CSV",
    samples: &["crates/fuzz/samples/timing", "profiles"],
    seeds: || inputs(&["{}", "PK\x05\x06", r#"{"na_ms": []}"#]),
    changed: texts::changed,
    check,
    most_memory: 256 << 20,
};

/// Passes that are priced: prompt tokens, context, requests that decode, and their tokens.
const PASSES: [[u32; 4]; 5] =
    [[1, 0, 0, 0], [512, 100_000, 0, 0], [0, 0, 1, 1], [0, 0, 300, 3_000_000], [4096, 7, 64, 1 << 20]];

/// What is a table can be shown; what is a model prices every pass with a finite time.
fn check(bytes: &[u8]) -> Met {
    let is_archive = bytes.starts_with(b"PK");
    let file = Scratch::of(if is_archive { "a.npz" } else { "a.profile" }, bytes);
    let tables = match measured(&file.place()) {
        Ok(tables) => tables,
        Err(error) => return refused(&error, &file.place()),
    };
    assert!(!tables.table().is_empty());
    let written = tables.text().ok();
    if let Some(text) = &written {
        let again = measured(&Scratch::of("b.profile", text.as_bytes()).place());
        let again = again.expect("what is written is a profile").text().expect("and can be written");
        assert!(again == *text, "{again} is not {text}");
    }
    Met::Read(format!("{} {}", tables.model, priced(tables.model, written.as_deref(), &file)))
}

fn priced(model: &str, written: Option<&str>, file: &Scratch) -> String {
    let profile = written.map(|text| Scratch::of("c.json", text.as_bytes()));
    let place = profile.as_ref().map_or_else(|| file.place(), Scratch::place);
    let parameters = Map::from_iter([("path".to_owned(), Value::from(place))]);
    let config = TimingConfig { name: model.to_owned(), parameters };
    let timing = match config.build() {
        Ok(timing) => timing,
        Err(error) => return crate::said::sketch(error.message()),
    };
    for [tokens, context, requests, kv_tokens] in PASSES {
        let chunks: Vec<Chunk> =
            (tokens > 0).then(|| Chunk::of_prompt(tokens, context)).into_iter().collect();
        let decode = DecodeBatch {
            requests,
            kv_tokens: kv_tokens.into(),
            capacity_tokens: 1 << 22,
            longest: kv_tokens / requests.max(1),
        };
        let time = timing.pass_ms(Pass { chunks: &chunks, decode });
        for ms in [time.prompt_ms, time.decode_ms] {
            assert!(ms.is_finite() && ms >= 0.0, "{ms} ms");
        }
    }
    "priced".to_owned()
}
