//! A real browser, driven over its debugging pipe: pages as people see them, pointers and keys as people use
//! them. `WAVETANK_REQUIRE_PEERS=1` says that there has to be one.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// A browser that says nothing for so long hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// What it is called here, if it is here.
#[allow(clippy::print_stderr, reason = "what is skipped is said")]
pub(crate) fn chromium() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success()));
    let is_required = std::env::var_os("WAVETANK_REQUIRE_PEERS").is_some_and(|value| value == "1");
    assert!(found.is_some() || !is_required, "chromium is not installed, and WAVETANK_REQUIRE_PEERS is 1");
    if found.is_none() {
        eprintln!("skipped: chromium is not installed");
    }
    found
}

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    requests: File,
    answers: Receiver<Value>,
    /// The page that is talked to.
    session: Option<String>,
    asked: u64,
    /// All that it told without being asked.
    events: Vec<Value>,
}

impl Browser {
    /// With its files in `sandbox`, if there is one on this machine.
    pub(crate) fn start(sandbox: &Sandbox) -> Option<Self> {
        let program = chromium()?;
        let pipes = ["to_browser", "from_browser"].map(|name| sandbox.path(name));
        assert!(Command::new("mkfifo").args(&pipes).status().expect("mkfifo runs").success());
        // The browser reads what is asked as file 3 and answers as file 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 3<\"$TO\" 4>\"$FROM\"", "sh", program]);
        command.env("TO", &pipes[0]).env("FROM", &pipes[1]);
        command.args("--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage".split(' '));
        command.args("--no-first-run --hide-scrollbars --remote-debugging-pipe".split(' '));
        command.arg(format!("--user-data-dir={}", sandbox.path("browser").display()));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shell");
        // Opened both ways, because opening waits for the other side otherwise.
        let open = |path: &PathBuf| File::options().read(true).write(true).open(path).expect("a pipe");
        let (requests, answers) = (open(&pipes[0]), listen(open(&pipes[1])));
        let mut browser = Self { child, requests, answers, session: None, asked: 0, events: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Asks, and waits for the answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.requests.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let mut told = self.next(method);
            if told["id"] == self.asked {
                assert!(told["error"].is_null(), "{method}: {}", told["error"]);
                return told["result"].take();
            }
            self.events.push(told);
        }
    }

    fn next(&mut self, waiting_for: &str) -> Value {
        self.answers.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no answer to {waiting_for} in {LIMIT:?}"))
    }

    /// Opens a file, and waits until it is shown.
    pub(crate) fn open(&mut self, path: &Path) {
        self.visit(&format!("file://{}", path.display()));
    }

    /// Opens an address, and waits until it is shown.
    pub(crate) fn visit(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({ "url": url }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.next("Page.loadEventFired");
            self.events.push(event);
        }
    }

    /// How large the screen is.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", screen);
    }

    /// What the system prefers: `light` or `dark`.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// The value of an expression of the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut told = self.call("Runtime.evaluate", asked);
        assert!(told["exceptionDetails"].is_null(), "{expression}: {}", told["exceptionDetails"]);
        told["result"]["value"].take()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap_or(f64::NAN)
    }

    /// The pointer: `mouseMoved`, `mousePressed` or `mouseReleased`.
    pub(crate) fn pointer(&mut self, kind: &str, (x, y): (f64, f64)) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", event);
    }

    pub(crate) fn click(&mut self, at: (f64, f64)) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.pointer(kind, at);
        }
    }

    /// Presses a key by its name.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            _ => 0,
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// What the console says, and scripts that failed.
    pub(crate) fn complaints(&self) -> Vec<&Value> {
        let is_one = |event: &&Value| {
            let method = event["method"].as_str().unwrap_or_default();
            ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"].contains(&method)
        };
        self.events.iter().filter(is_one).collect()
    }

    /// What was asked of anyone: the page itself is the first.
    pub(crate) fn requested(&self) -> Vec<&str> {
        let requests = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        requests.filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }

    /// A PNG of what is seen.
    pub(crate) fn screenshot(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        bytes_of(shot["data"].as_str().expect("a picture"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Messages end with a zero.
fn listen(pipe: File) -> Receiver<Value> {
    let (tell, answers) = mpsc::channel();
    thread::spawn(move || {
        for message in BufReader::new(pipe).split(0) {
            let Ok(told) = serde_json::from_slice(&message.expect("the pipe is read")) else { return };
            if tell.send(told).is_err() {
                return;
            }
        }
    });
    answers
}

/// What base64 stands for.
fn bytes_of(text: &str) -> Vec<u8> {
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for value in text.chars().filter_map(|letter| digits.find(letter)) {
        held = (held << 6 | value as u32) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
        }
    }
    out
}
