//! Dependency rule: the crates depend on each other only as the `arrows` block of ARCHITECTURE.md allows.
//! A line `sim: model cache` lets the crate in `crates/sim` depend on those in `crates/model` and
//! `crates/cache`.

use std::collections::BTreeMap;

use super::Violation;
use super::tree::{File, Tree};

const MAP: &str = "ARCHITECTURE.md";
const FENCE: &str = "```";

type Arrows<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// Every crate is in the table, and depends on nothing else of ours than its line says.
pub(super) fn dependencies(tree: &Tree) -> Vec<Violation> {
    let map = tree.files.iter().find(|file| file.path == MAP);
    let arrows = map.map_or_else(Arrows::new, arrows_of);
    let crates = tree.files.iter().filter_map(|file| match file.place_in_crate() {
        Some((name, "Cargo.toml")) => Some((file, name)),
        _ => None,
    });
    crates.flat_map(|(manifest, name)| undeclared(manifest, name, &arrows)).collect()
}

fn undeclared(manifest: &File, name: &str, arrows: &Arrows<'_>) -> Vec<Violation> {
    let Some(allowed) = arrows.get(name) else {
        return vec![Violation::at(
            manifest,
            1,
            format!("`{name}` has no line in the `arrows` block of {MAP}"),
        )];
    };
    let used = own_dependencies(&manifest.text).into_iter();
    let outside = used.filter(|(dependency, _)| !allowed.contains(&dependency.as_str()));
    let message = |dependency| format!("`{name}` may not depend on `{dependency}`, says {MAP}");
    outside.map(|(dependency, line)| Violation::at(manifest, line, message(dependency))).collect()
}

/// The lines of the fenced block, split at the colon.
fn arrows_of(map: &File) -> Arrows<'_> {
    let opening = format!("{FENCE}arrows");
    let block = map.text.lines().skip_while(|line| line.trim() != opening).skip(1);
    let rows = block.take_while(|line| line.trim() != FENCE).filter_map(|line| line.split_once(':'));
    rows.map(|(name, allowed)| (name.trim(), allowed.split_whitespace().collect())).collect()
}

/// Folder and line of each of our crates under `[dependencies]`, also for one target only.
fn own_dependencies(manifest: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut section = "";
    for (line, at) in manifest.lines().map(str::trim).zip(1..) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.split(']').next().unwrap_or("");
            let single = section.rsplit_once("dependencies.").filter(|(before, _)| is_runtime(before));
            found.extend(single.and_then(|(_, name)| folder_of(name)).map(|folder| (folder, at)));
        } else if section.ends_with("dependencies") && is_runtime(&section[..section.len() - 12]) {
            found.extend(dependency(line).map(|folder| (folder, at)));
        }
    }
    found
}

/// Whether the part of a section's name before `dependencies` is not that of tests or build scripts.
fn is_runtime(before: &str) -> bool {
    before.is_empty() || before.ends_with('.')
}

/// The folder of `wavetank-x.workspace = true`, or of one renamed with `package = "wavetank-x"`.
fn dependency(line: &str) -> Option<String> {
    let line = line.split('#').next()?;
    let key = line.split(['.', '=', ' ']).next()?;
    let renamed = line.split("package").nth(1).and_then(|rest| rest.split('"').nth(1));
    folder_of(renamed.unwrap_or(key))
}

/// `x` for the package `wavetank-x`, and `wavetank` for the facade.
fn folder_of(package: &str) -> Option<String> {
    let package = package.trim_matches('"');
    let facade = (package == "wavetank").then_some(package);
    package.strip_prefix("wavetank-").or(facade).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    const TABLE: &str =
        "# Map\n```text\nsim: store\n```\n```arrows\nmodel:\nsim: model cache\n```\nsim: report\n";

    fn check(manifest: &str) -> Vec<String> {
        findings(dependencies, &[(MAP, TABLE), ("crates/sim/Cargo.toml", manifest)])
    }

    #[test]
    fn undeclared_dependencies_are_found() {
        let manifest =
            "[package]\nname = \"wavetank-sim\"\n\n[dependencies]\nwavetank-store.workspace = true\n";
        let message = "crates/sim/Cargo.toml:5: `sim` may not depend on `store`, says ARCHITECTURE.md";
        assert_eq!(check(manifest), [message]);
        let others = [
            "[dependencies]\nwavetank = { path = \"../wavetank\" }",
            "[dependencies]\nnumbers = { package = \"wavetank-report\", workspace = true }",
            "[dependencies.wavetank-report]\nworkspace = true",
            "[target.'cfg(unix)'.dependencies]\nwavetank-report.workspace = true",
        ];
        for manifest in others {
            assert_eq!(check(manifest).len(), 1, "{manifest}");
        }
    }

    #[test]
    fn declared_and_foreign_dependencies_are_fine() {
        let manifest = "[dependencies]\n\
            serde = \"1\" # for wavetank-report\n\
            wavetank-cache.workspace = true\n\n\
            wavetank-model = { workspace = true }\n\
            [dev-dependencies]\nwavetank-store.workspace = true\n\
            [build-dependencies]\nwavetank-store.workspace = true\n\
            [dev-dependencies.wavetank-report]\nworkspace = true";
        assert_eq!(check(manifest), [""; 0]);
    }

    #[test]
    fn a_crate_without_a_line_is_found() {
        let files = [(MAP, TABLE), ("crates/live/Cargo.toml", ""), ("crates/model/Cargo.toml", "")];
        let message = "crates/live/Cargo.toml:1: `live` has no line in the `arrows` block of ARCHITECTURE.md";
        assert_eq!(findings(dependencies, &files), [message]);
        assert_eq!(findings(dependencies, &[("crates/model/Cargo.toml", "")]).len(), 1);
    }
}
