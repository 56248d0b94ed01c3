//! `wavetank serve` as operators see it: what is refused, what is checked, how it ends.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;

use crate::sandbox::{Sandbox, WAVETANK};
use crate::serve_client::{Response, Server, frame, head};

const SMALL: &str = "--l1-size-gb 0.05";

/// What is said when `arguments` are refused; nothing is left behind.
fn refused(sandbox: &Sandbox, arguments: &str) -> String {
    let before = sandbox.names_in("");
    let run = sandbox.run(&format!("serve {arguments}"));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}: {}", run.stderr);
    assert_eq!(sandbox.names_in(""), before, "{arguments}: nothing is left behind");
    sandbox.steady(&run.stderr)
}

/// Breaks when a rule of the plan is dropped or is not reached from the command line, or a message loses its
/// place or hint.
#[test]
fn what_cannot_be_served_is_refused() {
    let sandbox = Sandbox::empty();
    sandbox.write("empty.txt", "\n");
    sandbox.write("password.txt", "open sesame\n");
    let rows = [
        "",
        "--l1-size-gb 0",
        "SMALL --eviction-policy best",
        "SMALL --eviction-ratio 2",
        "SMALL --host example.org",
        "SMALL --host 0.0.0.0",
        "SMALL --host ::",
        "SMALL --port 7000 --http-port 7000",
        "SMALL --user alice",
        "SMALL --password-file nowhere.txt",
        "SMALL --password-file empty.txt",
        "SMALL --l2 disk:/a",
        "SMALL --l2 direct",
        "SMALL --l2 buffered:/a:1GiB --l2 direct:/a/:1GiB",
        "SMALL --l2-adapter {\"type\":\"moc\"}",
        "SMALL --l2-store-policy skip_l1",
        "SMALL --l2-timeout-ms 5",
        "SMALL --quota alice=1GiB",
        "SMALL --eviction-policy isolated_lru --quota alice",
        "SMALL --eviction-policy isolated_lru --quota alice=1",
        "SMALL --eviction-policy isolated_lru --quota a/b=1GiB",
        "SMALL --eviction-policy isolated_lru --quota alice=1GiB --quota alice=10GiB",
        "SMALL --resp-threads 1025",
        "SMALL --http-threads 0",
        "SMALL --enable-tracing",
        "SMALL --otlp-endpoint http://localhost:4317",
        "SMALL --trace-level all",
        "SMALL --trace-rotate-mb 5",
        "SMALL --max-value 2GiB",
        "SMALL --max-connections 0",
        "SMALL --session-ttl-seconds -1",
        "SMALL --lease-share 2",
        "SMALL --chunk-size 0",
    ];
    let mut text = String::new();
    for row in rows {
        let message = refused(&sandbox, &row.replace("SMALL", SMALL));
        text += &format!("$ wavetank serve {row}\n{message}\n");
    }
    assert_snapshot!(text);
}

/// Breaks when a key is not looked at, its line is lost, or the nearest name is not said.
#[test]
fn what_a_file_says_wrongly_is_refused_with_its_line() {
    let sandbox = Sandbox::empty();
    let files = [
        "l1_size_gb = 1\nl1_sise_gb = 1\n",
        "l1_size_gb = 1\n\nhttp-port = 1\n",
        "l1_size_gb = \"1\"\n",
        "l1_size_gb = 1\npassword = \"x\"\n",
        "l1_size_gb = \n",
        "l1_size_gb = 1\nl2_prefetch_policy = \"keep\"\n",
        "l1_size_gb = 1\n[[l2_adapter]]\ntype = \"mock\"\nsize = 1\n",
        "l1_size_gb = 1\nhost = \"0.0.0.0\"\n",
    ];
    let mut text = String::new();
    for file in files {
        sandbox.write("kv.toml", file);
        text += &format!("{file}→ {}\n", refused(&sandbox, "--config kv.toml"));
    }
    assert_snapshot!(text);
}

/// Broken by: a check that opens a port, a directory or a file; a flag that does not win; a shown password.
#[test]
fn a_check_opens_nothing_and_prints_the_plan() {
    let sandbox = Sandbox::empty();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    sandbox.write("password.txt", "open sesame\n");
    sandbox.write(
        "kv.toml",
        "l1_size_gb = 2\nport = 1\npassword_file = \"password.txt\"\nl2 = [\"buffered:kv\"]\n",
    );
    let before = sandbox.names_in("");
    let line = format!("serve --config kv.toml --check --l1-size-gb 1 --http-port {port} --host 0.0.0.0");
    let run = sandbox.run(&line);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(sandbox.names_in(""), before);
    let plan: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(plan["storage"]["l1"]["capacity_bytes"], 1u64 << 30);
    assert_eq!((&plan["resp"], &plan["http"]), (&json!("0.0.0.0:1"), &json!(format!("0.0.0.0:{port}"))));
    assert_eq!(plan["storage"]["load_policy"], "retain");
    assert_eq!(plan["login"]["password"], "set");
    assert!(!run.stdout.contains("sesame"));
}

/// Broken by: a signal that cuts off what is under way, or that is not answered with 0 and a summary.
#[test]
fn what_is_under_way_is_finished_when_the_server_ends() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, SMALL);
    let body = frame(0, &[7; 1000]);
    let path = "/v1/store?request_id=a&model=m&chunk_hashes=ab";
    let mut slow = server.connect();
    slow.write_all(head("PUT", path, &[], body.len()).as_bytes()).unwrap();
    slow.write_all(&body[..500]).unwrap();
    // The server has it when it counts the connection's request as open.
    while server.status()["requests"]["open"] != 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let http = server.http;
    server.signal("-TERM");
    while std::net::TcpStream::connect(http).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    slow.write_all(&body[500..]).unwrap();
    let answer = Response::read(slow);
    assert_eq!((answer.status, &answer.json()["stored"]), (200, &json!(1)));
    let run = server.finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_snapshot!(sandbox.steady(&run.stderr), @"ending: clients have 10 s to finish; again ends at once");
    assert!(run.stdout.contains("Objects asked for: 0, found: 0\n"), "{}", run.stdout);
}

/// Broken by: a second signal that waits for clients too.
#[test]
fn a_second_signal_does_not_wait() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, SMALL);
    let mut slow = server.connect();
    slow.write_all(head("PUT", "/v1/store?request_id=a&model=m&chunk_hashes=ab", &[], 99).as_bytes())
        .unwrap();
    slow.write_all(&frame(0, &[7; 87])[..20]).unwrap();
    while server.status()["requests"]["open"] != 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let http = server.http;
    server.signal("-INT");
    while std::net::TcpStream::connect(http).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    server.signal("-INT");
    let run = server.finish();
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(
        run.stderr.ends_with("ended at once: what was not written behind memory is lost\n"),
        "{}",
        run.stderr
    );
}

/// Broken by: a port in use that is not said, or an address that is bound twice.
#[test]
fn a_port_in_use_is_said() {
    let sandbox = Sandbox::empty();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let run = sandbox.run(&format!("serve {SMALL} --port 0 --http-port {port}"));
    assert_eq!(run.code, Some(2));
    let said = run.stderr.replace(&port.to_string(), "PORT");
    assert_snapshot!(said, @"error: --http-port PORT: cannot listen: Address already in use (os error 98)");
}

/// Broken by: a recording that was begun and stays when the doors cannot be opened.
#[test]
fn a_start_without_threads_leaves_no_recording() {
    let sandbox = Sandbox::empty();
    let mut limited = Command::new("sh");
    // Every thread of the front door needs two descriptors.
    limited.args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\"", WAVETANK]);
    let line = format!("serve {SMALL} --port 0 --http-port 0 --resp-threads 64 --trace-output calls.lct");
    let run = sandbox.spawn(limited, &line, Stdio::null()).finish(Duration::from_secs(20));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{}", run.stderr);
    assert!(run.stderr.contains("Too many open files"), "{}", run.stderr);
    assert_eq!(sandbox.names_in(""), Vec::<String>::new());
}
