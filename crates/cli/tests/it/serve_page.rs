//! The page for people, in a real browser where there is one; `WAVETANK_REQUIRE_PEERS=1` says that there has
//! to be.

use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::browser::{Browser, chromium};
use crate::sandbox::Sandbox;
use crate::serve_client::{Server, frame};

/// Whether it is a place in a picture.
fn is_point(text: &str) -> bool {
    let numbers = text.split(',').map(|number| number.parse::<f64>().is_ok_and(f64::is_finite));
    numbers.clone().count() == 2 && numbers.into_iter().all(|is_number| is_number)
}

/// Broken by: a script that throws, a line without points, a figure that is not filled in, something loaded
/// from elsewhere (the page's policy forbids it, and the console says so), or a history that is not there
/// after a reload.
#[test]
fn a_browser_shows_live_figures_and_has_nothing_to_complain_about() {
    let Some(browser) = chromium() else { return };
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, "--l1-size-gb 0.001");
    for request in 0..8 {
        let id = format!("r{request}");
        let ask =
            json!({ "request_id": id, "model": "<b>m</b>", "chunk_hashes": [format!("a{}", request / 2)] });
        server.post("/v1/lookup", &ask);
        server.request("PUT", &format!("/v1/store?request_id={id}"), &frame(0, &[1; 50_000]));
        server.post("/v1/retrieve", &json!({ "request_id": id }));
        server.post("/v1/end", &json!({ "request_id": id }));
    }
    // Two samples make a rate.
    while server.status()["history"]["samples"].as_array().is_none_or(|samples| samples.len() < 3) {
        thread::sleep(Duration::from_millis(50));
    }
    let mut command = Command::new(browser);
    command
        .args("--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run".split(' '));
    command.args("--enable-logging=stderr --v=0 --virtual-time-budget=3000 --window-size=390,900".split(' '));
    command.arg(format!("--user-data-dir={}", sandbox.path("browser").display()));
    let shown = command.arg("--dump-dom").arg(format!("http://{}/", server.http)).output().expect("it runs");
    let (dom, log) = (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:#?}");
    let text = |id: &str| {
        let mark = format!("id=\"{id}\"");
        let from = dom.find(&mark).unwrap_or_else(|| panic!("no {id}: {dom}\n{log}"));
        let open = dom[from..].find('>').expect("a tag ends") + from + 1;
        dom[open..].split('<').next().unwrap_or_default().to_owned()
    };
    assert_eq!((text("state"), text("hit_rate")), ("serving".to_owned(), "50.0 %".to_owned()));
    assert_eq!(text("hits"), "4 from memory, 0 from behind, 4 missed");
    assert_eq!(text("entries"), "4 entries");
    assert!(dom.contains("L1 · memory") && dom.contains("role=\"meter\""), "{dom}");
    let lines =
        dom.split("<polyline points=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default());
    let drawn = lines.filter(|line| line.split(' ').filter(|point| is_point(point)).count() >= 2).count();
    assert!(drawn >= 4, "{drawn} lines are drawn: {dom}");
    let page = server.get("/");
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    let outside = ["http://", "https://"]
        .iter()
        .any(|mark| page.text().replace("http://www.w3.org/2000/svg", "").contains(mark));
    assert!(!outside, "the page names nobody else");
}

/// Names that would like to be more: of a tenant, a model, and a directory behind memory.
const TENANT: &str = "<script>window.hacked=1<!--\"><img src=x onerror=window.hacked=1>\u{202e}";
const FOLDER: &str = "<svg/onload=window.hacked=1>";

/// Broken by: a name from outside that the page takes for markup, a request to anybody else, or a name that
/// is not shown.
#[test]
fn a_hostile_name_stays_a_name() {
    let sandbox = Sandbox::empty();
    let Some(mut browser) = Browser::start(&sandbox) else { return };
    let server = Server::start(&sandbox, &format!("--l1-size-gb 0.001 --l2 buffered:{FOLDER}:1GiB"));
    let ask = json!({ "request_id": "r", "model": TENANT, "chunk_hashes": ["0a"], "cache_salt": TENANT });
    server.post("/v1/lookup", &ask);
    let stored = server.request("PUT", "/v1/store?request_id=r", &frame(0, &[1; 5000]));
    assert!(stored.head.starts_with("http/1.1 200"), "{} {}", stored.head, stored.text());
    assert_eq!(server.status()["tenants"][TENANT], 5000, "{}", server.status());
    browser.visit(&format!("http://{}/", server.http));
    // Filled in by what it asks the server for.
    while browser.text("document.getElementById('state').textContent") != "serving" {
        thread::sleep(Duration::from_millis(20));
    }
    let shown = browser.text("document.getElementById('tiers').textContent");
    assert!(shown.contains(FOLDER), "{shown}");
    assert_eq!(browser.value("typeof window.hacked"), "undefined");
    let strange = "document.querySelectorAll('img, iframe, #tiers svg, script:not(:last-of-type)').length";
    assert_eq!(browser.number(strange), 0.0);
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let own = format!("http://{}/", server.http);
    assert!(browser.requested().iter().all(|url| url.starts_with(&own)), "{:?}", browser.requested());
}
