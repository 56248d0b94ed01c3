//! Text from outside inside markup: it stays text, whatever is in it.

use std::borrow::Cow;

/// `text` for SVG and HTML, between tags and inside quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for letter in plain(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(letter),
        }
    }
    out
}

/// `text` without letters that are not seen but change what is: controls and overrides of direction.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unseen) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|letter| if is_unseen(letter) { '\u{fffd}' } else { letter }).collect())
}

/// What XML forbids, or a reader could be fooled with.
fn is_unseen(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\t')
        || matches!(letter, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}')
        || matches!(letter, '\u{feff}' | '\u{fff0}'..='\u{fffb}')
        || u32::from(letter) & 0xfffe == 0xfffe
}

/// A name for files, links and ids: small letters, digits and dashes.
pub(crate) fn slug(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars().map(|letter| letter.to_ascii_lowercase()) {
        match letter {
            'a'..='z' | '0'..='9' => out.push(letter),
            _ if out.is_empty() || out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    let trimmed = out.trim_end_matches('-');
    if trimmed.is_empty() { "figure".to_owned() } else { trimmed.chars().take(80).collect() }
}

/// Slugs of `texts` that differ.
pub(crate) fn slugs<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut taken = std::collections::HashSet::new();
    let distinct = |text| {
        let slug = slug(text);
        let numbered = (2..).map(|number| format!("{slug}-{number}"));
        let mut names = std::iter::once(slug.clone()).chain(numbered);
        names.find(|name| taken.insert(name.clone())).unwrap_or_default()
    };
    texts.map(distinct).collect()
}

/// A JSON text that cannot end the script element it is in.
pub(crate) fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escape("</script><b a='x'>&\""), "&lt;/script&gt;&lt;b a=&#39;x&#39;&gt;&amp;&quot;");
        assert_eq!(
            escape("a\u{202e}b\u{0}c\u{1b}[1m\u{feff}\u{ffff}"),
            "a\u{fffd}b\u{fffd}c\u{fffd}[1m\u{fffd}\u{fffd}"
        );
        assert!(matches!(plain("plain, ü, 漢, שלום"), Cow::Borrowed(_)));
    }

    #[test]
    fn names_of_files_are_harmless_and_differ() {
        let names = ["TTFT over time", "ttft/over/time", "../../etc", "", "ü", "-x-"];
        let slugs = slugs(names.into_iter());
        assert_eq!(slugs, ["ttft-over-time", "ttft-over-time-2", "etc", "figure", "figure-2", "x"]);
    }

    #[test]
    fn a_script_ends_where_we_end_it() {
        assert_eq!(script_json(r#"["</script>&"]"#), r#"["\u003c/script\u003e\u0026"]"#);
    }
}
