//! Which address means what.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde_json::json;
use wavetank_http::Inflow;
use wavetank_model::TraceParent;
use wavetank_telemetry::prometheus::CONTENT_TYPE;
use wavetank_telemetry::traceparent;

use super::answer::{self, Answer, Refusal};
use super::desk::{Desk, duration};
use super::inflow::whole;
use super::{api, config, metrics, origin, page, status};
use crate::phase::Phase;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Page,
    Health,
    Ready,
    Metrics,
    Status,
    Config,
    Lookup,
    Retrieve,
    Store,
    End,
}

/// Every address.
const ROUTES: &[(&str, Route)] = &[
    ("/", Route::Page),
    ("/healthz", Route::Health),
    ("/readyz", Route::Ready),
    ("/metrics", Route::Metrics),
    ("/status", Route::Status),
    ("/config", Route::Config),
    ("/v1/lookup", Route::Lookup),
    ("/v1/retrieve", Route::Retrieve),
    ("/v1/store", Route::Store),
    ("/v1/end", Route::End),
];

impl Route {
    fn methods(self) -> &'static [Method] {
        match self {
            Self::Page | Self::Health | Self::Ready | Self::Metrics | Self::Status | Self::Config => {
                &[Method::GET, Method::HEAD]
            }
            Self::Lookup | Self::Retrieve | Self::End => &[Method::POST],
            Self::Store => &[Method::PUT, Method::POST],
        }
    }

    fn is_public(self) -> bool {
        matches!(self, Self::Health | Self::Ready)
    }
}

/// Answers a request.
pub(super) async fn serve(desk: Arc<Desk>, request: Request<Incoming>) -> Answer {
    let answer = answered(&desk, request).await.unwrap_or_else(|refusal| refusal.answer());
    desk.counts.http_requests.add(1);
    if answer.status().is_client_error() || answer.status().is_server_error() {
        desk.counts.http_errors.add(1);
    }
    answer
}

async fn answered(desk: &Arc<Desk>, request: Request<Incoming>) -> Result<Answer, Refusal> {
    let (parts, body) = request.into_parts();
    let route = find(parts.uri.path(), &parts.method)?;
    let is_known = || desk.plan.login.as_ref().is_none_or(|login| login.allows(&parts.headers));
    if !route.is_public() && !is_known() {
        let hint = "Authorization: Bearer PASSWORD, or Basic with user and password";
        return Err(Refusal::of(StatusCode::UNAUTHORIZED, "the password is missing or wrong", hint));
    }
    if !route.is_public() {
        origin::check(&desk.plan, &parts)?;
    }
    let query = parts.uri.query().unwrap_or_default();
    let mut inflow = Inflow::of(body, duration(desk.plan.limits.client_timeout));
    match route {
        Route::Page => Ok(page::page()),
        Route::Health => Ok(answer::text("text/plain; charset=utf-8", "ok\n")),
        Route::Ready => Ok(ready(desk)),
        Route::Metrics => Ok(answer::text(CONTENT_TYPE, metrics::metrics(desk))),
        Route::Status => Ok(answer::json(&status::status(desk, history(query)?))),
        Route::Config => Ok(answer::json(&config::config(desk))),
        Route::Lookup => {
            let (body, _share) = whole(&mut inflow, desk).await?;
            desk.apart(body.len(), || api::lookup(desk, &body, parent(&parts.headers))).await
        }
        Route::Retrieve => {
            let (body, _share) = whole(&mut inflow, desk).await?;
            api::retrieve(desk, &body).await
        }
        Route::Store => api::store(desk, query, inflow, parent(&parts.headers)).await,
        Route::End => api::end(desk, &whole(&mut inflow, desk).await?.0),
    }
}

fn find(path: &str, method: &Method) -> Result<Route, Refusal> {
    let Some((_, route)) = ROUTES.iter().find(|(known, _)| *known == path) else {
        let known: Vec<&str> = ROUTES.iter().map(|(known, _)| *known).collect();
        let hint = format!("there is {}", known.join(", "));
        return Err(Refusal::of(StatusCode::NOT_FOUND, "there is nothing at this address", hint));
    };
    if route.methods().contains(method) {
        return Ok(*route);
    }
    let known: Vec<&str> = route.methods().iter().map(Method::as_str).collect();
    let error = format!("{method} is not served here");
    let refusal = Refusal::of(StatusCode::METHOD_NOT_ALLOWED, error, format!("use {}", known.join(" or ")));
    Err(refusal.allowing(known.join(", ")))
}

fn ready(desk: &Desk) -> Answer {
    let (phase, problem) = (desk.phase.now(), desk.health.problem());
    let is_ready = phase == Phase::Serving && problem.is_none();
    let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer::with_status(code, &json!({ "ready": is_ready, "phase": phase, "problem": problem }))
}

/// How much of the past is asked for.
fn history(query: &str) -> Result<usize, Refusal> {
    let mut count = 0;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let wrong = || Refusal::bad(format!("unknown parameter {name}={value}"), "history=SAMPLES");
        count = (name == "history").then(|| value.parse().ok()).flatten().ok_or_else(wrong)?;
    }
    Ok(count)
}

/// The span that a request belongs to.
fn parent(headers: &HeaderMap) -> Option<TraceParent> {
    traceparent(headers.get("traceparent")?.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_methods_are_checked() {
        assert_eq!(find("/v1/store", &Method::PUT).unwrap(), Route::Store);
        let refusal = find("/v1/store", &Method::GET).unwrap_err();
        assert!(refusal.error().contains("GET is not served"));
        assert_eq!(refusal.answer().headers()["allow"], "PUT, POST");
        assert!(find("/v1/Store", &Method::PUT).is_err());
    }
}
