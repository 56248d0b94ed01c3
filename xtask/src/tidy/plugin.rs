//! Plug-in rule: in a folder whose module file holds `pub const ALL`, every other file is a module and a row.

use super::Violation;
use super::tree::{File, Tree};

const TABLE: &str = "pub const ALL";

/// Every file of a plug-in folder has its `mod x;` and its `x::ENTRY` in the table.
pub(super) fn rows(tree: &Tree) -> Vec<Violation> {
    let tables = tree.rust().filter(|file| file.masks.code.contains(TABLE));
    tables
        .filter_map(|table| Some((table, folder_of(table)?)))
        .flat_map(|(t, f)| missing(tree, t, f))
        .collect()
}

/// `a/links/` for `a/links/mod.rs` and for `a/links.rs`; crate roots hold no plug-ins.
fn folder_of(table: &File) -> Option<&str> {
    let stem = table.path.strip_suffix(".rs")?;
    let (folder, name) = stem.rsplit_once('/')?;
    match name {
        "mod" => Some(folder),
        "lib" | "main" => None,
        _ => Some(stem),
    }
}

fn missing(tree: &Tree, table: &File, folder: &str) -> Vec<Violation> {
    let words: Vec<&str> = tokens(&table.masks.code).collect();
    let declared = |name: &str| words.windows(3).any(|w| w == ["mod", name, ";"]);
    let rows = initialiser(&words);
    let listed = |name: &str| rows.windows(3).any(|w| w == [name, "::", "ENTRY"]);
    let mut found = Vec::new();
    for (file, name) in tree.rust().filter_map(|file| Some((file, plugin_name(&file.path, folder)?))) {
        if !declared(name) {
            found.push(Violation::at(file, 1, format!("no `mod {name};` in {}", table.path)));
        }
        if !listed(name) {
            found.push(Violation::at(file, 1, format!("no `{name}::ENTRY` in `ALL` of {}", table.path)));
        }
    }
    found
}

/// `lru` for `folder/lru.rs` and `folder/lru/mod.rs`.
fn plugin_name<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let inside = path.strip_prefix(folder)?.strip_prefix('/')?;
    let name = inside.strip_suffix("/mod.rs").or_else(|| inside.strip_suffix(".rs"))?;
    (!name.contains('/') && name != "mod" && name != "tests").then_some(name)
}

/// The words of the table after its `=`.
fn initialiser<'a, 'b>(words: &'b [&'a str]) -> &'b [&'a str] {
    let start = words.windows(3).position(|w| w == ["pub", "const", "ALL"]).unwrap_or(words.len());
    let rows = words[start..].split(|&word| word == "=").nth(1).unwrap_or(&[]);
    rows.split(|&word| word == ";").next().unwrap_or(&[])
}

/// Words, `::`, and other characters one by one.
fn tokens(code: &str) -> impl Iterator<Item = &str> {
    let mut rest = code.trim_start();
    std::iter::from_fn(move || {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let one = rest.chars().next()?.len_utf8();
        let length = if rest.starts_with("::") { 2 } else { word.max(one) };
        let (token, after) = rest.split_at(length);
        rest = after.trim_start();
        Some(token)
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    const TEXT: &str =
        "mod arc;\nmod lru;\npub const ALL: &[Entry] = &[\n    arc::ENTRY,\n    lru::ENTRY,\n];\n";

    #[test]
    fn a_file_without_its_row_is_found() {
        let text = TEXT.replace("    lru::ENTRY,\n", "");
        let files = [("a/queues/mod.rs", text.as_str()), ("a/queues/arc.rs", ""), ("a/queues/lru.rs", "")];
        assert_eq!(
            findings(rows, &files),
            ["a/queues/lru.rs:1: no `lru::ENTRY` in `ALL` of a/queues/mod.rs"]
        );
    }

    #[test]
    fn a_file_without_its_module_is_found() {
        let text = TEXT.replace("mod lru;", "// mod lru;");
        let files = [("a/queues.rs", text.as_str()), ("a/queues/arc.rs", ""), ("a/queues/lru/mod.rs", "")];
        assert_eq!(findings(rows, &files), ["a/queues/lru/mod.rs:1: no `mod lru;` in a/queues.rs"]);
    }

    #[test]
    fn a_row_elsewhere_does_not_count() {
        let text = "mod lru;\npub const ALL: [Entry; 0] = [];\nconst OTHER: &[Entry] = &[lru::ENTRY];\n";
        assert_eq!(findings(rows, &[("a/mod.rs", text), ("a/lru.rs", "")]).len(), 1);
    }

    #[test]
    fn complete_tables_and_other_folders_are_fine() {
        let files =
            [("a/mod.rs", TEXT), ("a/arc.rs", ""), ("a/lru/mod.rs", ""), ("a/lru/deep.rs", ""), ("b.rs", "")];
        assert_eq!(findings(rows, &files), [""; 0]);
        assert_eq!(findings(rows, &[("a/mod.rs", "mod lru;"), ("a/lru.rs", ""), ("a/free.rs", "")]), [""; 0]);
        assert_eq!(findings(rows, &[("a/lib.rs", TEXT), ("a/free.rs", ""), ("a/b/tests.rs", "")]), [""; 0]);
    }
}
