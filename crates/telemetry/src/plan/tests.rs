//! Plans of what was typed and of the environment.

use super::*;

fn plan(args: &TraceArgs, variables: &[(&str, &str)]) -> Result<Option<TracePlan>> {
    let environment =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    TracePlan::of(args, &environment, Arc::new(|_: &str| {}))
}

fn error(args: &TraceArgs, variables: &[(&str, &str)]) -> String {
    plan(args, variables).err().expect("refused").to_string()
}

fn on() -> TraceArgs {
    TraceArgs { enable_tracing: true, ..Default::default() }
}

fn to(endpoint: &str) -> TraceArgs {
    TraceArgs { otlp_endpoint: Some(endpoint.to_owned()), ..on() }
}

#[test]
fn spans_need_somewhere_to_go() {
    assert!(plan(&TraceArgs::default(), &[]).unwrap().is_none());
    let refused = "--enable-tracing: spans have nowhere to go\n\
                   hint: add --otlp-endpoint http://HOST:4317, or --otlp-file FILE";
    assert_eq!(error(&on(), &[]), refused);
    let args = TraceArgs { enable_tracing: false, ..to("http://h:1") };
    assert!(error(&args, &[]).starts_with("--otlp-endpoint: has no effect without --enable-tracing"));
    let args = TraceArgs { otlp_headers: vec!["a=b".to_owned()], ..on() };
    assert!(error(&args, &[]).starts_with("--otlp-header: says how to reach a collector, and none is named"));
}

#[test]
fn a_collector_a_file_or_both() {
    let both = TraceArgs { otlp_file: Some("spans.jsonl".into()), ..to("h:4317") };
    let made = plan(&both, &[]).unwrap().unwrap();
    let shown: Vec<String> = made.targets.iter().map(Target::name).collect();
    assert_eq!(shown, ["http://h:4317 (grpc)", "spans.jsonl"]);
    let set = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://h"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
    ];
    let target = plan(&on(), &set).unwrap().unwrap().targets.remove(0);
    assert_eq!((target.name().as_str(), target.certificates), ("https://h (http)", Some("ca.pem".into())));
    let args = TraceArgs { otlp_protocol: Some("udp".to_owned()), ..to("h") };
    assert_eq!(error(&args, &[]), "--otlp-protocol: unknown protocol \"udp\"\nhint: known: grpc, http");
}

/// Broken by: a secret in the command line being the only way, or the environment winning over flags.
#[test]
fn headers_come_from_flags_files_and_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "from file\n").unwrap();
    let headers = ["a=b=c".to_owned(), format!("x-file=@{}", file.display()), "x-env=env:TOKEN".to_owned()];
    let args = TraceArgs { otlp_headers: headers.into(), ..to("h") };
    let set = [("TOKEN", "secret"), ("OTEL_EXPORTER_OTLP_HEADERS", "A=other,kept=1%202")];
    let target = plan(&args, &set).unwrap().unwrap().targets.remove(0);
    let expected = [("kept", "1 2"), ("a", "b=c"), ("x-file", "from file"), ("x-env", "secret")];
    assert_eq!(target.headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for (typed, said) in [
        ("nothing", "--otlp-header: no name=value"),
        ("=x", "--otlp-header: no name=value"),
        ("a=env:NONE", "--otlp-header: no variable NONE in the environment"),
        ("a=@no/such/file", "no/such/file: cannot open: "),
    ] {
        let args = TraceArgs { otlp_headers: vec![typed.to_owned()], ..to("h") };
        assert!(error(&args, &[]).starts_with(said), "{}", error(&args, &[]));
    }
}

#[test]
fn numbers_are_checked() {
    for (args, said) in [
        (TraceArgs { trace_sample_ratio: Some(1.5), ..to("h") }, "--trace-sample-ratio: 1.5 is no share"),
        (TraceArgs { command_sample_ratio: Some(f64::NAN), ..to("h") }, "--command-sample-ratio: NaN is no"),
        (TraceArgs { session_ttl_seconds: Some(0.0), ..to("h") }, "--session-ttl-seconds: must be a time"),
        (TraceArgs { session_ttl_seconds: Some(1e300), ..to("h") }, "--session-ttl-seconds: must be a time"),
        (TraceArgs { event_bus_queue_size: Some(0), ..to("h") }, "--event-bus-queue-size: must be from 1"),
    ] {
        assert!(error(&args, &[]).starts_with(said), "{}", error(&args, &[]));
    }
    let args = TraceArgs {
        trace_sample_ratio: Some(0.25),
        command_sample_ratio: Some(0.0),
        session_ttl_seconds: Some(1.5),
        event_bus_queue_size: Some(10),
        ..to("h")
    };
    let made = plan(&args, &[]).unwrap().unwrap();
    assert_eq!(made.assembly.sampling, Sampling { requests: 0.25, connections: 1.0, commands: 0.0 });
    assert_eq!((made.assembly.orphan_timeout, made.queue_events), (Duration::from_millis(1500), 10));
}

/// Broken by: finding out only when spans are lost.
#[test]
fn what_cannot_work_is_said_before_the_first_span() {
    let tracer = |args: &TraceArgs| match crate::Tracer::start(plan(args, &[]).unwrap().unwrap()) {
        Ok(_) => panic!("started"),
        Err(error) => error.to_string(),
    };
    let http = |endpoint: &str| TraceArgs { otlp_protocol: Some("http".to_owned()), ..to(endpoint) };
    assert!(tracer(&http("ftp://h")).starts_with("ftp://h: no address of a collector: neither"));
    assert!(tracer(&to("http://h h")).starts_with("http://h h: no address of a collector: "));
    let file = TraceArgs { otlp_file: Some("no/such/folder/x".into()), ..on() };
    assert!(tracer(&file).starts_with("no/such/folder/x: cannot open: "));
    let args = TraceArgs { otlp_certificate: Some("no.pem".into()), ..to("https://h") };
    assert!(tracer(&args).starts_with("no.pem: cannot open: "));
    let secret = vec!["bad name=secret".to_owned()];
    for args in [
        TraceArgs { otlp_headers: secret.clone(), ..to("h") },
        TraceArgs { otlp_headers: secret, ..http("h") },
    ] {
        let said = tracer(&args);
        assert!(said.contains("the name of the header \"bad name\" cannot be sent"), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

/// Broken by: an address that is repeated as it was typed, where it fails or where it is shown.
#[test]
fn logins_in_addresses_are_not_shown() {
    let args = |protocol: &str| TraceArgs {
        otlp_protocol: Some(protocol.to_owned()),
        otlp_headers: vec!["authorization=hunter2".to_owned()],
        ..to("http://user:hunter2@h h:1")
    };
    for protocol in ["grpc", "http"] {
        let made = plan(&args(protocol), &[]).unwrap().unwrap();
        let mut shown = format!("{:?}{}", args(protocol), made.targets[0].name());
        shown += &crate::Tracer::start(made).err().unwrap().to_string();
        assert!(shown.contains("http://…@h h:1") && !shown.contains("hunter2"), "{shown}");
    }
}
