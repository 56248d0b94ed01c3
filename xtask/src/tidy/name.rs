//! Naming rule: words that say nothing, versions, and `new_` or `get_` in front of a function.

use super::Violation;
use super::source::{self, Declaration};
use super::tree::{File, Tree};

/// Not the first or last word of a name.
const EMPTY_WORDS: &[&str] =
    &["base", "common", "handler", "helper", "helpers", "impl", "manager", "util", "utils"];

/// Not the first word of a function's name when another follows.
const EMPTY_PREFIXES: &[&str] = &["get", "new"];

/// Names of types, functions and modules.
pub(super) fn banned(tree: &Tree) -> Vec<Violation> {
    tree.rust().flat_map(banned_in).collect()
}

fn banned_in(file: &File) -> Vec<Violation> {
    let declarations = source::declarations(&file.masks.code).into_iter();
    let found = declarations.filter_map(|declaration| {
        let message = format!("`{}`: {}", declaration.name, problem(&declaration)?);
        Some(Violation::at(file, file.line_of(declaration.end), message))
    });
    found.collect()
}

fn problem(declaration: &Declaration<'_>) -> Option<String> {
    let words = words(declaration.name);
    let (first, last) = (words.first()?, words.last()?);
    if let Some(word) = [first, last].into_iter().find(|word| EMPTY_WORDS.contains(&word.as_str())) {
        return Some(format!("`{word}` says nothing, name what it does"));
    }
    if last == "v2" {
        return Some("no versions in names, replace the first one".into());
    }
    let prefixed = declaration.keyword == "fn" && words.len() > 1 && EMPTY_PREFIXES.contains(&first.as_str());
    prefixed.then(|| format!("no `{first}_` in front of a function's name"))
}

/// `TierBase` and `tier_base` are both `tier`, `base`; `V2` is one word.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && !before.is_uppercase()) {
            words.push(String::new());
        }
        words.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase().filter(|&c| c != '_')));
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn banned_names_are_found() {
        let names = [
            "struct CacheManager;",
            "enum HandlerKind {}",
            "trait BaseTier {}",
            "type TierImpl = u8;",
            "mod common;",
            "fn common_part() {}",
            "fn parse_helper() {}",
            "struct StringUtil;",
            "fn get_block() {}",
            "fn new_block() {}",
            "struct PolicyV2;",
            "fn admit_v2() {}",
            "mod utils;",
        ];
        for name in names {
            assert_eq!(findings(banned, &[("a.rs", &format!("//! x\n{name}"))]).len(), 1, "{name}");
        }
        let message = "a.rs:2: `get_block`: no `get_` in front of a function's name";
        assert_eq!(findings(banned, &[("a.rs", "//! x\nfn get_block() {}")]), [message]);
    }

    #[test]
    fn other_names_are_not() {
        let names = [
            "struct Baseline;",
            "fn longest_common_prefix() {}",
            "fn get() {}",
            "fn new() -> Self {}",
            "struct GetCall;",
            "fn newest() {}",
            "struct NewBlock;",
            "// struct CacheManager",
            "impl Utility for A {}",
            "let s = \"struct CacheManager\";",
            "struct Ipv4;",
            "enum Call { StorageManager }",
        ];
        for name in names {
            assert_eq!(findings(banned, &[("a.rs", name)]), [""; 0], "{name}");
        }
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(words("KVCacheBase"), ["kvcache", "base"]);
        assert_eq!(words("PolicyV2"), ["policy", "v2"]);
        assert_eq!(words("__a_b"), ["a", "b"]);
    }
}
