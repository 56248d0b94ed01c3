//! A small Rust lexer: tells code from comments and literals, and finds declarations and their braces.

use std::iter;

/// The text twice, with everything that is not code (not a comment) blanked; offsets and lines stay the same.
#[derive(Default)]
pub(super) struct Masks {
    pub(super) code: String,
    pub(super) comments: String,
}

/// `struct Name`, `fn name` and the like.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declaration<'a> {
    pub(super) keyword: &'a str,
    pub(super) name: &'a str,
    /// Where the name ends.
    pub(super) end: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

const DECLARING: &[&str] = &["enum", "fn", "mod", "struct", "trait", "type", "union"];

/// Splits a Rust file into code and comments.
pub(super) fn masks(text: &str) -> Masks {
    let mut kinds = Vec::with_capacity(text.len());
    while kinds.len() < text.len() {
        let (kind, length) = token(text, kinds.len());
        kinds.extend(iter::repeat_n(kind, length));
    }
    let keep = |kind| {
        let masked = text.bytes().zip(&kinds).map(|(b, k)| if *k == kind || b == b'\n' { b } else { b' ' });
        String::from_utf8_lossy(&masked.collect::<Vec<_>>()).into_owned()
    };
    Masks { code: keep(Kind::Code), comments: keep(Kind::Comment) }
}

/// Kind and length of what starts at `at`: a whole comment or literal, a word, or one character.
fn token(text: &str, at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if let Some(length) = string(rest).or_else(|| character(rest)) {
        return (Kind::Literal, length);
    }
    (Kind::Code, word(rest).max(rest.chars().next().map_or(1, char::len_utf8)))
}

/// Length of a possibly nested block comment.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while let Some(found) = rest[at..].find(['/', '*']) {
        at += found;
        match rest.get(at..at + 2) {
            Some("/*") => depth += 1,
            Some("*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Length of a string literal, raw or not, with its prefix.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix).unwrap_or("");
        after.trim_start_matches('#').starts_with('"') && (prefix.ends_with('r') || after.starts_with('"'))
    })?;
    let after = &rest[prefix.len()..];
    let hashes = after.find('"')?;
    let body = &after[hashes + 1..];
    let close = if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        body.find(&end).map(|found| found + end.len())
    } else {
        unescaped(body, '"').map(|found| found + 1)
    };
    Some(prefix.len() + hashes + 1 + close.unwrap_or(body.len()))
}

/// Length of a character literal; `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let quote = if rest.starts_with("b'") { 2 } else { 1 };
    let body = rest.strip_prefix("b'").or_else(|| rest.strip_prefix('\''))?;
    let first = body.chars().next()?;
    if first == '\\' {
        return Some(quote + unescaped(body, '\'')? + 1);
    }
    body[first.len_utf8()..].starts_with('\'').then(|| quote + first.len_utf8() + 1)
}

/// Where the first `end` without a backslash before it stands.
fn unescaped(body: &str, end: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        if c == end && !escaped {
            return Some(at);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

/// Length of the identifier at the start, zero when there is none.
fn word(rest: &str) -> usize {
    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
}

/// Every declaration in masked code, in order.
pub(super) fn declarations(code: &str) -> Vec<Declaration<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut before = "";
    while at < code.len() {
        let length = word(&code[at..]);
        if length == 0 {
            let c = code[at..].chars().next().unwrap_or(' ');
            before = if c.is_whitespace() { before } else { "" };
            at += c.len_utf8();
            continue;
        }
        let name = &code[at..at + length];
        at += length;
        found.extend(DECLARING.contains(&before).then_some(Declaration { keyword: before, name, end: at }));
        before = name;
    }
    found
}

/// Offsets of the braces around a function's body, from the end of its name; `None` when it has no body.
pub(super) fn body(code: &str, from: usize) -> Option<(usize, usize)> {
    let mut inner = 0;
    let open = code[from..].char_indices().find(|&(_, c)| {
        inner += i32::from(c == '(' || c == '[') - i32::from(c == ')' || c == ']');
        inner == 0 && (c == '{' || c == ';')
    });
    let open = open.filter(|&(_, c)| c == '{').map(|(at, _)| from + at)?;
    let mut depth = 0;
    let close = code[open..].char_indices().find(|&(_, c)| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    Some((open, open + close?.0))
}

/// The line of a byte offset, from one.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset].iter().filter(|&&b| b == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        masks(text).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(code(r##"a("b\"{", r#"c"{"#, b"d", br"e\", 'f', '\'', b'{') h"##), "a( , , , , , , ) h");
        assert_eq!(code("let s = \"// not\"; x"), "let s = ; x");
        assert_eq!(code("unclosed \"text"), "unclosed");
    }

    #[test]
    fn lifetimes_raw_words_and_wide_letters_are_code() {
        assert_eq!(code("fn a<'b>(c: &'b str, d: &'_ u8)"), "fn a<'b>(c: &'b str, d: &'_ u8)");
        assert_eq!(code("r#type 'é' bar\"x\" née"), "r#type bar née");
    }

    #[test]
    fn comments_alone_keep_their_place() {
        assert_eq!(masks("a // b\n\"// c\"\n/* d */").comments, "  // b\n      \n/* d */");
    }

    #[test]
    fn declarations_are_found() {
        let names =
            |text| declarations(text).iter().map(|d| format!("{} {}", d.keyword, d.name)).collect::<Vec<_>>();
        assert_eq!(names("pub struct A; enum\n B {} fn c(d: fn(E)) -> F"), ["struct A", "enum B", "fn c"]);
        assert_eq!(names("mod a; type B = C; r#fn d; let my_fn = e"), ["mod a", "type B", "fn d"]);
    }

    #[test]
    fn bodies_run_from_brace_to_brace() {
        let text = "fn a(b: [u8; 2]) -> C { d { e } f } g }";
        let (open, close) = body(text, 4).unwrap();
        assert_eq!(&text[open..=close], "{ d { e } f }");
        assert_eq!(body("fn a(&self); fn b() {}", 4), None);
    }

    #[test]
    fn lines_count_from_one() {
        assert_eq!([line_of("a\nb", 0), line_of("a\nb", 1), line_of("a\nb", 2)], [1, 1, 2]);
    }
}
