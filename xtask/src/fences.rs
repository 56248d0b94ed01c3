//! Fenced blocks of a Markdown page, and the commands that `console` blocks show. The tests of `cli` are
//! built with this file too: they compare what such a block shows with what its commands print.

/// One fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fence<'a> {
    /// What stands behind the opening fence.
    pub(crate) language: &'a str,
    /// The line of the opening fence, from one.
    pub(crate) line: usize,
    /// The line before it, without spaces around it.
    pub(crate) before: &'a str,
    /// What is between the fences, whole lines.
    pub(crate) text: &'a str,
}

const PROMPT: &str = "$ ";

/// Every fenced block of a page, in order.
pub(crate) fn fences(page: &str) -> Vec<Fence<'_>> {
    let mut found = Vec::new();
    let mut open = None;
    let (mut at, mut before) = (0, "");
    for (line, number) in page.split_inclusive('\n').zip(1..) {
        let ticks = ticks(line);
        let rest = line.trim().trim_start_matches('`').trim();
        open = match open {
            None if ticks >= 3 => {
                Some((ticks, at + line.len(), Fence { language: rest, line: number, before, text: "" }))
            }
            Some((length, start, fence)) if ticks >= length && rest.is_empty() => {
                found.push(Fence { text: &page[start..at], ..fence });
                None
            }
            other => other,
        };
        at += line.len();
        before = line.trim();
    }
    found
}

/// How many backquotes a line begins with.
fn ticks(line: &str) -> usize {
    let line = line.trim_start();
    line.len() - line.trim_start_matches('`').len()
}

/// The commands of a `console` block, each with the whole lines that it prints there. A command that ends in
/// a backslash goes on in the next line.
pub(crate) fn shown(block: &str) -> Vec<(String, &str)> {
    let mut found: Vec<(String, &str)> = Vec::new();
    let (mut at, mut start, mut continues) = (0, 0, false);
    for line in block.split_inclusive('\n') {
        at += line.len();
        let typed = if continues { Some(line) } else { line.strip_prefix(PROMPT) };
        if let Some(typed) = typed {
            if !continues {
                found.push((String::new(), ""));
            }
            found.last_mut().into_iter().for_each(|(command, _)| command.push_str(typed));
            continues = typed.trim_end().ends_with('\\');
            start = at;
        }
        found.last_mut().into_iter().for_each(|(_, output)| *output = &block[start..at]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_between_their_fences() {
        let page = "# A\n<!-- x -->\n```console\n$ a\nb\n```\nc ```d```\n````text\n```\n````\n```\nopen\n";
        let fence = |language, line, before, text| Fence { language, line, before, text };
        let expected =
            [fence("console", 3, "<!-- x -->", "$ a\nb\n"), fence("text", 8, "c ```d```", "```\n")];
        assert_eq!(fences(page), expected);
    }

    #[test]
    fn commands_end_where_their_output_begins() {
        let found = shown("$ a \\\n  b\none\ntwo\n$ c\n$ d\nthree\n");
        let expected = [("a \\\n  b\n", "one\ntwo\n"), ("c\n", ""), ("d\n", "three\n")];
        assert_eq!(found, expected.map(|(command, output)| (command.to_owned(), output)));
        assert_eq!(shown("no prompt\n"), []);
    }
}
