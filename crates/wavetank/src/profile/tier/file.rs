//! Profiles of tiers in files: TOML, or JSON where the name ends so.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wavetank_model::{Error, Result, TierFlaw, TierProfile};

const HINT: &str = "`wavetank profile tier … -o FILE` writes profiles of tiers";

/// A profile as the text of a file called `path`.
pub fn text(profile: &TierProfile, path: &Path) -> Result<String> {
    let unwritten = |error: String| Error::usage(format!("cannot be written: {error}"));
    if is_json(path) {
        let text = serde_json::to_string_pretty(profile).map_err(|error| unwritten(error.to_string()))?;
        return Ok(text + "\n");
    }
    toml::to_string(profile).map_err(|error| unwritten(error.to_string()))
}

/// The profile in a file; what is wrong with it is told with the file and the line.
pub fn read(path: &Path) -> Result<TierProfile> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error).hint(HINT))?;
    let file = path.display().to_string();
    if is_json(path) { of_json(&text, &file) } else { of_toml(&text, &file) }
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

fn of_json(text: &str, file: &str) -> Result<TierProfile> {
    let broken = |error: serde_json::Error| {
        let at = format!("{file}:{}", error.line());
        Error::input(format!("not a profile of a tier: {error}")).at(at).hint(HINT)
    };
    let profile: TierProfile = serde_json::from_str(text).map_err(broken)?;
    match profile.flaw() {
        Some(flaw) => Err(Error::input(flaw.to_string()).at(file).hint(HINT)),
        None => Ok(profile),
    }
}

fn of_toml(text: &str, file: &str) -> Result<TierProfile> {
    let place = |offset: usize| format!("{file}:{}", line_of(text, offset));
    let broken = |error: toml::de::Error| {
        let at = place(error.span().map_or(0, |span| span.start));
        Error::input(format!("not a profile of a tier: {}", error.message())).at(at).hint(HINT)
    };
    let profile: TierProfile = toml::from_str(text).map_err(broken)?;
    let Some(flaw) = profile.flaw() else { return Ok(profile) };
    let at = offset_of(text, &flaw).map_or_else(|| file.to_owned(), place);
    Err(Error::input(flaw.to_string()).at(at).hint(HINT))
}

/// Where a field is; where one of a latency is wrong, the point that has it.
fn offset_of(text: &str, flaw: &TierFlaw) -> Option<usize> {
    let whole = DeTable::parse(text).ok()?;
    let own = whole.get_ref();
    let Some((list, number)) = flaw.place else {
        let tables = own.values().filter_map(table);
        return std::iter::once(own).chain(tables).find_map(|table| key(table, flaw.field));
    };
    let point = own.get(list)?.get_ref().get(number)?;
    key(table(point)?, flaw.field).or(Some(point.span().start))
}

fn table<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Option<&'a DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// Where the name of a field of a table is.
fn key(table: &DeTable<'_>, field: &str) -> Option<usize> {
    table.keys().find(|name| name.get_ref() == field).map(|name| name.span().start)
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tier::testing::profile;

    /// Broken by: a field that is not written, or a number that loses digits.
    #[test]
    fn what_is_written_is_read() {
        let profile = profile();
        for name in ["nvme.toml", "nvme.json", "nvme"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            std::fs::write(&path, text(&profile, &path).unwrap()).unwrap();
            assert_eq!(read(&path).unwrap(), profile, "{name}");
        }
    }

    /// Broken by: damage that is told without its line or field.
    #[test]
    fn damage_is_told_with_its_line_and_field() {
        let whole = text(&profile(), Path::new("t.toml")).unwrap();
        let line = |mark: &str, number: usize| {
            let lines = whole.lines().enumerate().filter(|(_, line)| line.starts_with(mark));
            lines.map(|(line, _)| line + 1).nth(number).unwrap()
        };
        let told = |from: &str, to: &str| {
            let damaged = whole.replacen(from, to, 1);
            assert_ne!(damaged, whole, "{from}");
            of_toml(&damaged, "t.toml").unwrap_err().to_string()
        };
        let unknown = told("cores =", "kores =");
        assert!(unknown.starts_with(&format!("t.toml:{}: not a profile", line("cores", 0))), "{unknown}");
        assert!(unknown.contains("kores"), "{unknown}");
        let missing = told("operations = 2000\n", "");
        assert!(missing.contains("operations"), "{missing}");
        let text = told("depth = 4", "depth = \"four\"");
        assert!(text.starts_with(&format!("t.toml:{}: ", line("depth = 4", 0))), "{text}");
        let unsound = told("operations = 2000\nreads = 1000", "operations = 2000\nreads = 3000");
        let reads = line("reads =", 1);
        assert!(unsound.starts_with(&format!("t.toml:{reads}: \"reads\" must be some")), "{unsound}");
        let nested = told("mean_us = 17.2", "mean_us = 99.0");
        let point = line("[[points]]", 1);
        assert!(nested.starts_with(&format!("t.toml:{point}: \"mean_us\" must not be above")), "{nested}");
        let again = told("mean_us = 2.5", "mean_us = -1.0");
        let mean = line("mean_us = 2.5", 0);
        assert!(again.starts_with(&format!("t.toml:{mean}: \"mean_us\" must be above 0")), "{again}");
        let setting = told("passes = 3", "passes = 0");
        assert!(setting.starts_with(&format!("t.toml:{}: \"passes\"", line("passes", 0))), "{setting}");
        let absent = told("[points.read]", "[points.unread]");
        assert!(absent.contains("unread"), "{absent}");
        let other = told("wavetank-tier/1", "wavetank-tier/9");
        assert!(other.starts_with("t.toml:1: \"layout\" is not one"), "{other}");
        let json = of_json("{\n\"layout\": 1}", "t.json").unwrap_err().to_string();
        assert!(json.starts_with("t.json:2: not a profile of a tier: "), "{json}");
    }
}
