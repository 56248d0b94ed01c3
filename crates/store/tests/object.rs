//! The `object` backend against a real S3 server, moto; skipped where that is not installed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peers::server::{S3, free_port, moto, moto_command, s3, site};
use peers::{Lane, all, check_life, open, recovered, refusal, seeded};
use tempfile::NamedTempFile;
use wavetank_store::Key;
use wavetank_store::buffer::PIECE;

const MIB: u64 = PIECE as u64;

/// What is in the bucket.
trait Bucket {
    fn keys(&self) -> Vec<String>;
    fn uploads(&self) -> usize;
}

impl Bucket for S3 {
    fn keys(&self) -> Vec<String> {
        let list = self.tell("GET", "/bucket?list-type=2", "");
        let fields = list.split("<Key>").skip(1);
        fields.map(|rest| rest.split('<').next().unwrap().to_owned()).collect()
    }

    fn uploads(&self) -> usize {
        self.tell("GET", "/bucket?uploads", "").matches("<UploadId>").count()
    }
}

#[test]
fn entries_live_and_leave_nothing_behind() {
    let Some(s3) = s3(&[]) else { return };
    let like_ours = format!("{:032x}-{:016x}.kv", 1, 1);
    let foreign = ["a/b/notes.txt".to_owned(), format!("a/b/deeper/{like_ours}"), format!("a/b/{like_ours}")];
    for name in foreign.iter().map(String::as_str).chain(["a/bb/other", "other"]) {
        assert!(s3.tell("PUT", &format!("/bucket/{name}"), &"mine".repeat(2000)).contains(" 200 "));
    }
    check_life("object", &s3.at("s3://bucket/a/b"), 3);
    assert_eq!(s3.keys().len(), 5, "{:?}", s3.keys());
    assert_eq!(s3.uploads(), 0);
}

#[test]
fn an_upload_is_seen_when_it_is_committed_and_ended_when_it_is_not() {
    let Some(s3) = s3(&[]) else { return };
    let backend = open("object", &s3.at("s3://bucket"));
    let mut lane = Lane::new(&backend);
    let payload = seeded(1, 8 * MIB);
    let held = lane.create(&Key::from("key"), payload.bytes()).unwrap();
    assert!(lane.commit(Arc::clone(&held)).is_err(), "nothing is written");
    lane.write(&held, &payload).unwrap();
    assert_eq!((s3.uploads(), s3.keys().len()), (1, 0));
    assert_eq!(recovered(&open("object", &s3.at("s3://bucket"))).0.len(), 0);
    let held = lane.commit(held).unwrap();
    assert_eq!((s3.uploads(), s3.keys().len()), (0, 1));
    let reader = Arc::clone(&held);
    lane.remove(held).unwrap();
    assert!(lane.read(&reader, payload.bytes()).unwrap() == all(&payload), "readers finish");
    drop(reader);
    assert_eq!(s3.keys().len(), 0);
    let stopped = lane.create(&Key::from("stopped"), 9 * MIB).unwrap();
    lane.write(&stopped, &seeded(2, 9 * MIB)).unwrap();
    assert_eq!(s3.uploads(), 1);
    lane.remove(stopped).unwrap();
    assert_eq!((s3.uploads(), s3.keys().len()), (0, 0));
}

#[test]
fn damage_is_counted_and_never_served() {
    let Some(s3) = s3(&[]) else { return };
    let backend = open("object", &s3.at("s3://bucket/p"));
    let mut lane = Lane::new(&backend);
    let whole = lane.put(&Key::from("whole"), &seeded(1, 5000)).unwrap();
    let name = s3.keys().remove(0);
    // The whole entry under another's name, and one that was cut short at its start.
    let other = name.replace(&name[2..34], &"0".repeat(32));
    let copy = |to: &str| {
        let mut stream = TcpStream::connect(s3.peer.address()).unwrap();
        let source = format!("x-amz-copy-source: /bucket/{name}\r\nContent-Length: 0\r\n");
        stream
            .write_all(format!("PUT /bucket/{to} HTTP/1.0\r\nHost: 127.0.0.1\r\n{source}\r\n").as_bytes())
            .unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    };
    copy(&other);
    drop(whole);
    let (found, counts) = recovered(&open("object", &s3.at("s3://bucket/p")));
    assert_eq!((found.len(), counts.torn, counts.foreign), (1, 1, 0));
    assert_eq!(s3.keys().len(), 2, "left alone");
}

#[test]
fn what_is_wrong_is_said_without_secrets() {
    let Some(s3) = s3(&[("INITIAL_NO_AUTH_ACTION_COUNT", "1")]) else { return };
    let told = refusal("object", &s3.at("s3://bucket"));
    assert!(told.starts_with("s3://bucket/: access denied (403"), "{told}");
    assert!(!told.contains("hunter2") && !told.contains("somebody"), "{told}");
    let file = s3.credentials.path();
    std::fs::write(file, "[other]\n").unwrap();
    assert!(refusal("object", &s3.at("s3://bucket")).contains("no aws_access_key_id in [default]"));
    let told = refusal("object", &s3.at_endpoint("s3://bucket", "http://user:hunter2@127.0.0.1"));
    assert!(told.starts_with("option endpoint") && !told.contains("hunter2"), "{told}");
}

#[test]
fn a_bucket_that_is_not_there_is_named() {
    let Some(s3) = s3(&[]) else { return };
    let told = refusal("object", &s3.at("s3://absent/a"));
    assert!(told.starts_with("s3://absent/a: not found (404 NoSuchBucket)"), "{told}");
}

#[test]
fn a_server_that_goes_away_is_an_error_and_one_that_comes_back_is_used() {
    let Some(s3) = s3(&[]) else { return };
    let backend = open("object", &s3.at("s3://bucket"));
    let mut lane = Lane::new(&backend);
    let held = lane.put(&Key::from("key"), &seeded(1, 2 * MIB)).unwrap();
    let half = lane.create(&Key::from("half"), 9 * MIB).unwrap();
    lane.write(&half, &seeded(2, 9 * MIB)).unwrap();
    let site = s3.at("s3://bucket");
    s3.peer.signal("-STOP");
    let start = Instant::now();
    let e = lane.read(&held, MIB).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::TimedOut, "{e}");
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    s3.peer.signal("-CONT");
    assert!(lane.read(&held, 2 * MIB).unwrap() == all(&seeded(1, 2 * MIB)));
    let s3 = S3 { peer: s3.peer.restart(moto_command(moto().unwrap(), &[])), ..s3 };
    let e = lane.read(&held, MIB).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::NotFound, "it kept nothing: {e}");
    s3.tell("PUT", "/bucket", "");
    drop(lane.put(&Key::from("again"), &seeded(4, 3 * MIB)).unwrap());
    drop(s3.peer);
    let start = Instant::now();
    let e = lane.read(&held, MIB).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::ConnectionRefused, "{e}");
    assert!(lane.commit(half).is_err());
    assert!(lane.put(&Key::from("other"), &seeded(3, 100)).is_err());
    assert!(lane.remove(held).is_err());
    assert!(refusal("object", &site).contains("is the server running"));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(backend.notes()[0].contains("could not be deleted"), "{:?}", backend.notes());
}

#[test]
fn a_server_that_does_not_answer_is_an_error_in_time() {
    let credentials = NamedTempFile::new().unwrap();
    std::fs::write(credentials.path(), "[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
        .unwrap();
    let credentials = credentials.path().to_str().unwrap();
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let options = [("endpoint", endpoint.as_str()), ("credentials_file", credentials), ("timeout_s", "1")];
    let start = Instant::now();
    let told = refusal("object", &site("s3://bucket/a".to_owned(), &options));
    assert!(told.starts_with("s3://bucket/a: no answer in time"), "{told}");
    let endpoint = format!("http://127.0.0.1:{}", free_port());
    let options = [("endpoint", endpoint.as_str()), ("credentials_file", credentials)];
    let told = refusal("object", &site("s3://bucket/a".to_owned(), &options));
    assert!(told.starts_with("s3://bucket/a: no server answers there"), "{told}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
