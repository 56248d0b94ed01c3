//! Who may ask.

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use serde::Serialize;

use crate::secret::Secret;

/// Who may ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Login {
    /// As whom; whoever knows the password when absent.
    pub user: Option<String>,
    /// With what.
    pub password: Secret,
}

impl Login {
    /// Whether a request comes from someone who knows the password: `Bearer PASSWORD`, or `Basic` with the
    /// user's name, if it matters.
    pub fn allows(&self, headers: &HeaderMap) -> bool {
        let Some((scheme, given)) = headers.get(AUTHORIZATION).and_then(|value| parts(value.as_bytes()))
        else {
            return false;
        };
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return self.password.is(given);
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return false;
        }
        let Some(pair) = base64(given) else { return false };
        let Some(colon) = pair.iter().position(|byte| *byte == b':') else { return false };
        // Both are looked at, so that the time says nothing about the name.
        let is_user = self.user.as_ref().is_none_or(|user| pair[..colon] == *user.as_bytes());
        is_user & self.password.is(&pair[colon + 1..])
    }
}

fn parts(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = value.iter().position(|byte| *byte == b' ')?;
    Some((&value[..space], value[space..].trim_ascii()))
}

/// Bytes of a text in base 64.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    /// Broken by: a scheme that lets everybody in, a user whose name does not matter, an empty password.
    #[test]
    fn the_password_opens_and_nothing_else() {
        let login = Login { user: Some("u".to_owned()), password: Secret::of("open: sesame") };
        let opens = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(text));
            login.allows(&headers)
        };
        assert!(opens("Bearer open: sesame") && opens("bearer  open: sesame"));
        // u:open: sesame, then x:open: sesame and u:open.
        assert!(opens("Basic dTpvcGVuOiBzZXNhbWU="));
        assert!(!opens("Basic eDpvcGVuOiBzZXNhbWU=") && !opens("Basic dTpvcGVu"));
        assert!(!opens("Bearer") && !opens("Bearer ") && !opens("Digest open: sesame") && !opens("Basic !"));
        assert!(!login.allows(&HeaderMap::new()));
    }
}
