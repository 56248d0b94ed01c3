//! A line of flags as words, as a shell splits it: spaces between, quotes around, a backslash before.

/// The words of `line`.
pub(super) fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let escaped = characters.next().ok_or("it ends with a backslash")?;
                word.get_or_insert_default().push(escaped);
            }
            (None, space) if space.is_whitespace() => words.extend(word.take()),
            (_, other) => word.get_or_insert_default().push(other),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: quotes that stay, spaces in quotes that split, an empty word that is lost.
    #[test]
    fn quotes_and_backslashes_keep_words_together() {
        let adapter = r#"--l2-adapter '{"type": "mock"}'  --x="a 'b' \" c" d\ e '' "#;
        let words = ["--l2-adapter", r#"{"type": "mock"}"#, r#"--x=a 'b' " c"#, "d e", ""];
        assert_eq!(split(adapter).unwrap(), words);
        assert_eq!(split("  ").unwrap(), [""; 0]);
        assert!(split("'a").is_err() && split("a\\").is_err());
    }
}
