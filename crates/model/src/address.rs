//! Addresses as messages show them.

/// An address without who logs in there.
pub fn without_login(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let host = rest.split('/').next().unwrap_or_default();
    match host.rsplit_once('@') {
        Some((login, _)) => format!("{scheme}://…{}", &rest[login.len()..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a login that is cut at its first `@`, or a path that is taken for a login.
    #[test]
    fn logins_are_not_shown() {
        assert_eq!(without_login("redis://u:p@2@h:6379/0"), "redis://…@h:6379/0");
        assert_eq!(without_login("http://:p@h"), "http://…@h");
        for plain in ["s3://bucket/a@b", "http://h:4317", "/a@b", ""] {
            assert_eq!(without_login(plain), plain);
        }
    }
}
