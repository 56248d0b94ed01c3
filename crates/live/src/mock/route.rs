//! What can be asked for, and by whom.

use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};

use super::fault::Fault;
use super::wanted::Kind;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// An answer.
    Generate(Kind),
    /// The models, or the one of this name.
    Models,
    /// A text in tokens.
    Tokenize,
    /// Tokens as a text.
    Detokenize,
    /// Whether it serves.
    Health,
    /// What version it is.
    Version,
    /// What it did, for Prometheus.
    Metrics,
}

/// A way in: its path, how it is asked and what it leads to.
struct Row(&'static str, Method, Route);

const ROUTES: &[Row] = &[
    Row("/v1/chat/completions", Method::POST, Route::Generate(Kind::Chat)),
    Row("/v1/completions", Method::POST, Route::Generate(Kind::Completion)),
    Row("/v1/models", Method::GET, Route::Models),
    Row("/tokenize", Method::POST, Route::Tokenize),
    Row("/detokenize", Method::POST, Route::Detokenize),
    Row("/health", Method::GET, Route::Health),
    Row("/ping", Method::GET, Route::Health),
    Row("/version", Method::GET, Route::Version),
    Row("/metrics", Method::GET, Route::Metrics),
];
const MODELS: &str = "/v1/models";

impl Route {
    /// What `method` and `path` lead to, and the name that it is counted by.
    pub(super) fn of(method: &Method, path: &str) -> (&'static str, Result<Self, Fault>) {
        let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
        let path = if path.starts_with("/v1/models/") { MODELS } else { path };
        match ROUTES.iter().find(|Row(known, ..)| *known == path) {
            None => {
                let missing = Fault::new(StatusCode::NOT_FOUND, format!("there is nothing at {path}"));
                ("other", Err(missing))
            }
            Some(Row(name, wanted, route)) if wanted == method => (name, Ok(*route)),
            Some(Row(name, wanted, _)) => {
                let wrong = format!("{name} is asked with {wanted}");
                (name, Err(Fault::new(StatusCode::METHOD_NOT_ALLOWED, wrong)))
            }
        }
    }

    /// How the path `name` is asked.
    pub(super) fn method_of(name: &str) -> Option<HeaderValue> {
        let row = ROUTES.iter().find(|Row(known, ..)| *known == name);
        row.and_then(|Row(_, method, _)| HeaderValue::from_str(method.as_str()).ok())
    }

    /// Whether it is open to those who have no key: what says how the server is, and nothing else.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Health | Self::Version | Self::Metrics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a path that leads elsewhere, or a method that does not matter.
    #[test]
    fn paths_lead_where_they_should() {
        let of = |method: Method, path: &str| Route::of(&method, path);
        assert_eq!(of(Method::POST, "/v1/chat/completions").1, Ok(Route::Generate(Kind::Chat)));
        assert_eq!(of(Method::GET, "/v1/models/a/b"), ("/v1/models", Ok(Route::Models)));
        assert_eq!(of(Method::GET, "/health/").1, Ok(Route::Health));
        let status = |method: Method, path: &str| of(method, path).1.unwrap_err().status.as_u16();
        assert_eq!(status(Method::GET, "/v1/completions"), 405);
        assert_eq!(status(Method::GET, "/v1/embeddings"), 404);
        assert_eq!(status(Method::GET, "/"), 404);
        assert!(ROUTES.iter().all(|Row(path, _, route)| !path.starts_with("/v1") || !route.is_open()));
    }
}
