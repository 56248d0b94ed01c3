//! Whom a request was meant for, as clients are told.

use hyper::StatusCode;
use hyper::http::request::Parts;
use wavetank_http::{Foreign, check_origin};

use super::answer::Refusal;
use crate::plan::Plan;

/// Refuses what a page of another site sent, and what was meant for another host where there is no password.
pub(super) fn check(plan: &Plan, request: &Parts) -> Result<(), Refusal> {
    let served = plan.login.is_none().then_some(plan.http.ip());
    check_origin(request, served).map_err(|foreign| {
        let (error, hint) = match foreign {
            Foreign::Page => {
                ("a page of another site asks".to_owned(), "Origin has to name the host of Host")
            }
            Foreign::Host(host) => (
                format!("the request is for another host, {}", host.escape_debug()),
                "without a password it is localhost or the address that is served",
            ),
        };
        Refusal::of(StatusCode::FORBIDDEN, error, hint)
    })
}
