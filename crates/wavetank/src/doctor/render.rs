//! An examination as text, and as JSON.

use serde_json::{Value, json};

use super::{ALL, Examination, Verdict};

const WORDS: usize = "problem".len();

impl Examination {
    /// A row for each check, with what to do below it; then how many are not well.
    pub fn table(&self) -> String {
        let kernel = self.kernel.as_deref().map(|version| format!(" on Linux {version}")).unwrap_or_default();
        let mut text = format!("wavetank doctor: {}{kernel}\n\n", self.directory.display());
        let width = ALL.iter().map(|check| check.name.len()).max().unwrap_or(0);
        for (check, finding) in &self.findings {
            text += &format!("{:WORDS$}  {:width$}  {}\n", finding.verdict.name(), check.name, finding.found);
            if let Some(remedy) = &finding.remedy {
                text += &format!("{:WORDS$}  {:width$}  do: {remedy}\n", "", "");
            }
        }
        text + &format!("\n{}\n", self.summary())
    }

    fn summary(&self) -> String {
        let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let count = |verdict| self.findings.iter().filter(|(_, finding)| finding.verdict == verdict).count();
        format!(
            "{}: {}, {}",
            many(self.findings.len(), "check"),
            many(count(Verdict::Problem), "problem"),
            many(count(Verdict::Note), "note")
        )
    }

    /// For programs: the same, with the numbers by name.
    pub fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .findings
            .iter()
            .map(|(check, finding)| {
                json!({
                    "name": check.name,
                    "about": check.about,
                    "verdict": finding.verdict,
                    "found": finding.found,
                    "remedy": finding.remedy,
                    "facts": finding.facts,
                })
            })
            .collect();
        json!({
            "schema_version": 1,
            "wavetank_version": env!("CARGO_PKG_VERSION"),
            "directory": self.directory.display().to_string(),
            "kernel": self.kernel,
            "verdict": self.verdict(),
            "checks": checks,
        })
    }
}
