//! Whom a request was meant for. A web page can make a browser send requests to a server on the same machine:
//! those of another site's pages are refused, and those to a name that somebody else gave this address.

use std::net::IpAddr;

use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;

/// Why a request is not for this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// A page of another site asks.
    Page,
    /// It is for this host, which is another.
    Host(String),
}

/// Refuses what a page of another site sent, and, where `served` is an address that is served without a
/// password, what was meant for another host.
pub fn check_origin(request: &Parts, served: Option<IpAddr>) -> Result<(), Foreign> {
    let named = request.headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
    let host = request.uri.authority().map(|authority| authority.as_str()).or(named);
    if let Some(origin) = request.headers.get(ORIGIN) {
        let site = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, site)| site);
        if !site.zip(host).is_some_and(|(site, host)| site.eq_ignore_ascii_case(host)) {
            return Err(Foreign::Page);
        }
    }
    match (host, served) {
        (Some(host), Some(bound)) if !is_here(host, bound) => Err(Foreign::Host(host.to_owned())),
        _ => Ok(()),
    }
}

/// Whether `host`, with or without a port, is this machine by a name that nobody else can give.
fn is_here(host: &str, bound: IpAddr) -> bool {
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && !name.is_empty() => name,
        _ => host,
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address == bound,
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a name that only begins or ends as this machine's, or a port taken for a part of it.
    #[test]
    fn only_this_machine_is_here() {
        let bound: IpAddr = "192.0.2.7".parse().unwrap();
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:7380", "127.9.9.9", "[::1]:7380", "192.0.2.7:1"]
        {
            assert!(is_here(host, bound), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example:7380", "192.0.2.8", "127.0.0.1.evil.example"]
        {
            assert!(!is_here(host, bound), "{host}");
        }
    }
}
