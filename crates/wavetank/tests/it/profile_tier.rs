//! A bucket of a real S3 server, moto, measured as a tier; skipped where that is not installed.

use std::sync::atomic::AtomicBool;

use wavetank::profile::tier::{TierArgs, TierProbe, file_text, measure, read};

#[path = "../../../store/tests/peers/server.rs"]
mod server;

fn args(s3: &server::S3) -> TierArgs {
    let credentials = s3.credentials.path().display();
    TierArgs {
        target: "s3://bucket/kv".to_owned(),
        backend_options: vec![
            format!("credentials_file={credentials}"),
            format!("endpoint=http://127.0.0.1:{}", s3.peer.port),
        ],
        sizes: Some(vec!["16KiB".to_owned(), "1MiB".to_owned()]),
        depths: Some(vec![1, 3]),
        threads: Some(2),
        passes: Some(2),
        seconds_per_point: Some(0.05),
        sustained_seconds: Some(0.2),
        size_gb: Some(0.02),
        ..TierArgs::default()
    }
}

/// Broken by: an address that is not used, objects that stay, or a login that is written.
#[test]
fn a_bucket_is_measured_and_left_as_it_was() {
    let Some(s3) = server::s3(&[]) else { return };
    assert!(s3.tell("PUT", "/bucket/kv/mine", "stays").contains(" 200 "));
    let plan = TierProbe::new(&args(&s3)).unwrap();
    let measured = measure(&plan, &AtomicBool::new(false), &mut || {}).unwrap();
    let profile = measured.profile;
    assert_eq!(
        (profile.origin.backend.as_str(), profile.origin.location.as_str()),
        ("object", "s3://bucket/kv")
    );
    assert_eq!((profile.points.len(), profile.partial), (20, false));
    assert!(profile.sustained.is_some());
    let listed = s3.tell("GET", "/bucket?list-type=2", "");
    assert!(listed.contains("<Key>kv/mine</Key>") && listed.matches("<Key>").count() == 1, "{listed}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s3.toml");
    let text = file_text(&profile, &path).unwrap();
    assert!(!text.contains(server::SECRET), "{text}");
    std::fs::write(&path, text).unwrap();
    assert_eq!(read(&path).unwrap(), profile);
}

/// Broken by: a stop that leaves objects, or waits for all that was planned.
#[test]
fn a_stop_leaves_no_object() {
    let Some(s3) = server::s3(&[]) else { return };
    let plan = TierProbe::new(&args(&s3)).unwrap();
    let stop = AtomicBool::new(false);
    let measured =
        measure(&plan, &stop, &mut || stop.store(true, std::sync::atomic::Ordering::Relaxed)).unwrap();
    assert_eq!((measured.profile.points.len(), measured.profile.partial), (1, true));
    let listed = s3.tell("GET", "/bucket?list-type=2", "");
    assert!(listed.contains(" 200 ") && !listed.contains("<Key>"), "{listed}");
}
