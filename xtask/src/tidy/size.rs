//! Size rules: files, functions and lines of Rust stay short.

use super::Violation;
use super::source;
use super::tree::{File, Tree};

const FILE_LINES: usize = 500;
const TEST_FILE_LINES: usize = 900;
const MODEL_FILE_LINES: usize = 200;
const FUNCTION_LINES: usize = 70;
const LINE_CHARS: usize = 110;

/// Files, not counting their unit tests.
pub(super) fn files(tree: &Tree) -> Vec<Violation> {
    let too_long = tree.rust().filter_map(|file| {
        let (lines, limit) = (lines_without_tests(file), file_limit(file));
        let message = format!("{lines} lines without tests, the limit is {limit}");
        (lines > limit).then(|| Violation::at(file, limit + 1, message))
    });
    too_long.collect()
}

fn file_limit(file: &File) -> usize {
    match file.place_in_crate() {
        _ if file.is_test() => TEST_FILE_LINES,
        Some(("model", _)) => MODEL_FILE_LINES,
        _ => FILE_LINES,
    }
}

/// Lines before `#[cfg(test)] mod tests {`, which other attributes may separate.
fn lines_without_tests(file: &File) -> usize {
    let lines: Vec<&str> = file.masks.code.lines().map(str::trim).collect();
    let is_tail = |at: usize| {
        let mut after = lines[at + 1..].iter().filter(|line| !line.is_empty() && !line.starts_with("#["));
        lines[at] == "#[cfg(test)]" && after.next() == Some(&"mod tests {")
    };
    (0..lines.len()).find(|&at| is_tail(at)).unwrap_or(lines.len())
}

/// Function bodies, counted between their braces.
pub(super) fn functions(tree: &Tree) -> Vec<Violation> {
    tree.rust().flat_map(long_functions).collect()
}

fn long_functions(file: &File) -> Vec<Violation> {
    let code = &file.masks.code;
    let functions = source::declarations(code).into_iter().filter(|found| found.keyword == "fn");
    let too_long = functions.filter_map(|function| {
        let (open, close) = source::body(code, function.end)?;
        let lines = (file.line_of(close) - file.line_of(open)).saturating_sub(1);
        let message = format!("`{}` has {lines} lines, the limit is {FUNCTION_LINES}", function.name);
        (lines > FUNCTION_LINES).then(|| Violation::at(file, file.line_of(function.end), message))
    });
    too_long.collect()
}

/// Lines, counted in characters.
pub(super) fn lines(tree: &Tree) -> Vec<Violation> {
    tree.rust().flat_map(long_lines).collect()
}

fn long_lines(file: &File) -> Vec<Violation> {
    let lengths = file.text.lines().map(|line| line.chars().count()).zip(1..);
    let too_long = lengths.filter(|&(chars, _)| chars > LINE_CHARS);
    too_long
        .map(|(chars, at)| Violation::at(file, at, format!("{chars} characters, the limit is {LINE_CHARS}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    fn file(path: &str, lines: usize) -> Vec<String> {
        findings(files, &[(path, &"x();\n".repeat(lines))])
    }

    #[test]
    fn files_have_a_limit_by_place() {
        for (path, limit) in
            [("xtask/src/a.rs", 500), ("crates/model/src/a.rs", 200), ("crates/sim/tests/a.rs", 900)]
        {
            assert_eq!(file(path, limit), [""; 0]);
            let message = format!("{path}:{0}: {0} lines without tests, the limit is {limit}", limit + 1);
            assert_eq!(file(path, limit + 1), [message]);
        }
        assert_eq!(file("README.md", 1000), [""; 0]);
    }

    #[test]
    fn unit_tests_are_not_counted() {
        let tail = format!("#[cfg(test)]\n#[allow(x)]\nmod tests {{\n{}}}\n", "x();\n".repeat(600));
        let text = |lines| "x();\n".repeat(lines) + &tail;
        assert_eq!(findings(files, &[("src/a.rs", &text(500))]), [""; 0]);
        assert_eq!(findings(files, &[("src/a.rs", &text(501))]).len(), 1);
        let quoted = format!("const T: &str = \"\n#[cfg(test)]\nmod tests {{\n\";\n{}", "x();\n".repeat(600));
        assert_eq!(findings(files, &[("src/a.rs", &quoted)]).len(), 1);
    }

    #[test]
    fn functions_have_a_limit() {
        let text = |lines| {
            format!("//! x\nfn f(\n    a: u8,\n) {{\n{}}}\nfn g() {{}}\n", "    \"}\";\n".repeat(lines))
        };
        assert_eq!(findings(functions, &[("a.rs", &text(70))]), [""; 0]);
        assert_eq!(
            findings(functions, &[("a.rs", &text(71))]),
            ["a.rs:2: `f` has 71 lines, the limit is 70"]
        );
    }

    #[test]
    fn lines_have_a_limit() {
        let text = |chars| format!("//! x\n{}\n", "é".repeat(chars));
        assert_eq!(findings(lines, &[("a.rs", &text(110)), ("a.md", &text(111))]), [""; 0]);
        assert_eq!(findings(lines, &[("a.rs", &text(111))]), ["a.rs:2: 111 characters, the limit is 110"]);
    }
}
