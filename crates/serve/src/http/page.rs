//! The page for people: one file that asks nobody but this server.

use super::answer::{self, Answer};

const PAGE: &str = include_str!("page.html");
/// Its own words only: nothing is loaded from elsewhere, and no one may frame it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

pub(super) fn page() -> Answer {
    let page = answer::text("text/html; charset=utf-8", PAGE);
    let page = answer::with(page, "content-security-policy", POLICY);
    answer::with(page, "x-content-type-options", "nosniff")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the server knows reaches the page as text: names of models and tenants are those of clients.
    #[test]
    fn nothing_is_read_as_markup() {
        let ways =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"];
        let found: Vec<&&str> = ways.iter().filter(|way| PAGE.contains(**way)).collect();
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(PAGE.matches("<script").count(), 1);
    }
}
