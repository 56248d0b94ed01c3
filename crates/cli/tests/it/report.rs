//! A report as text and as JSON.

use serde_json::Value;

pub(crate) struct Report {
    text: String,
}

impl Report {
    pub(crate) fn of(text: String) -> Self {
        Self { text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("a report is JSON")
    }

    /// The number at a JSON pointer.
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        let json = self.json();
        let value = json.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing in {json:#}"));
        value.as_u64().unwrap_or_else(|| panic!("{pointer} is {value}"))
    }

    /// The bytes of the report without `wall`.
    pub(crate) fn without_wall(&self) -> String {
        let mut kept = String::new();
        let mut in_wall = false;
        for line in self.text.split_inclusive('\n') {
            in_wall |= line.starts_with("  \"wall\":");
            if !in_wall {
                kept.push_str(line);
            }
            in_wall &= !line.starts_with("  }");
        }
        assert!(kept.len() < self.text.len(), "there is no wall in {}", self.text);
        kept
    }

    /// The bytes of the report without `wall` and the name of the trace.
    pub(crate) fn without_wall_and_path(&self) -> String {
        let lines = self.without_wall();
        let (before, paths) = lines.split_once("\"paths\": [").expect("a report names its trace");
        let (_, after) = paths.split_once(']').expect("lists end");
        format!("{before}{after}")
    }
}

#[test]
fn only_the_wall_and_the_path_are_left_out() {
    let text =
        "{\n  \"a\": {\n    \"paths\": [\"x\"]\n  },\n  \"wall\": {\n    \"b\": 1\n  },\n  \"z\": 2\n}\n";
    let report = Report::of(text.to_owned());
    assert_eq!(report.without_wall(), "{\n  \"a\": {\n    \"paths\": [\"x\"]\n  },\n  \"z\": 2\n}\n");
    assert_eq!(report.without_wall_and_path(), "{\n  \"a\": {\n    \n  },\n  \"z\": 2\n}\n");
}
