use std::sync::Mutex;

use bytes::Bytes;
use futures::FutureExt;
use http::Request;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::*;
use crate::api::object::{Key, ResourceVersion};
use crate::api::resource::{PODS, Resource};
use crate::process::serving::loopback;
use crate::working::decisions::Trigger;
use crate::working::queue::{Backoff, Queue};
use crate::working::worker::running::in_sync;
use crate::working::worker::trace::{link, trace_of};

const RESOURCE: &Resource = &PODS;

type Written = Arc<Mutex<String>>;

fn options(format: LogFormat, verbosity: u8) -> Options {
    let at: Timestamp = "2026-11-21T11:12:13.456789Z".parse().unwrap();
    Options { operator: "test-operator", format, verbosity, otlp_endpoint: None, clock: Clock::new(move || at) }
}

/// Runs `log` under a subscriber of its own and gives the lines, without the process id and the line numbers.
fn lines_of(options: &Options, log: impl FnOnce(&Telemetry)) -> Vec<String> {
    let written = Written::default();
    let sink = Arc::clone(&written);
    let write = move |line: &[u8]| sink.lock().unwrap().push_str(std::str::from_utf8(line).unwrap());
    let (dispatch, telemetry) = dispatch(options, write).unwrap();
    tracing::dispatcher::with_default(&dispatch, || log(&telemetry));
    let pid = format!("{:>7}", std::process::id());
    let written = written.lock().unwrap();
    written.lines().map(|line| without_line_number(&line.replacen(&pid, "PID", 1))).collect()
}

fn without_line_number(line: &str) -> String {
    let Some((head, tail)) = line.split_once("tests.rs:") else { return line.to_owned() };
    format!("{head}tests.rs:N{}", tail.trim_start_matches(|char: char| char.is_ascii_digit()))
}

fn queue() -> Queue {
    Queue::new("replicaset", Backoff::default(), None)
}

fn log_everything() {
    let syncing = in_sync(&queue(), &Key::new("ns", "a"), 2, None, async {
        tracing::info!(pods = 3, done = true, key = "ns/b", share = 0.5, "Said \"hello\"\nand more");
        let error: Box<dyn std::error::Error> = "no \u{1}".into();
        tracing::warn!(list = ?[1, 2], err = &*error, "Odd");
    });
    syncing.now_or_never().unwrap();
    tracing::error!(nan = f64::NAN, "Bad");
}

#[test]
fn text_lines_are_klogs() {
    assert_eq!(
        lines_of(&options(LogFormat::Text, 0), |_| log_everything()),
        [
            r#"I1121 11:12:13.456789 PID tests.rs:N] "Said \"hello\"\nand more" pods=3 done=true key="ns/b" share=0.5 queue="replicaset" attempt=2"#,
            r#"W1121 11:12:13.456789 PID tests.rs:N] "Odd" list=[1, 2] err="no \u{1}" queue="replicaset" key="ns/a" attempt=2"#,
            r#"E1121 11:12:13.456789 PID tests.rs:N] "Bad" nan="NaN""#,
        ]
    );
}

#[test]
fn lines_of_a_controllers_thread_name_it() {
    let thread = std::thread::spawn(|| {
        in_controller("ttl-controller");
        lines_of(&options(LogFormat::Text, 0), |_| tracing::info!("here"))
    });
    let here = r#"I1121 11:12:13.456789 PID tests.rs:N] "here" controller="ttl-controller""#;
    assert_eq!(thread.join().unwrap(), [here]);
}

#[test]
fn json_lines_are_upstreams_and_always_json() {
    let lines = lines_of(&options(LogFormat::Json, 0), |_| log_everything());
    assert_eq!(
        lines,
        [
            r#"{"ts":1795259533456.789,"level":"info","caller":"tests.rs:N","msg":"Said \"hello\"\nand more","v":0,"pods":3,"done":true,"key":"ns/b","share":0.5,"queue":"replicaset","attempt":2}"#,
            r#"{"ts":1795259533456.789,"level":"warn","caller":"tests.rs:N","msg":"Odd","list":"[1, 2]","err":"no \u0001","queue":"replicaset","key":"ns/a","attempt":2}"#,
            r#"{"ts":1795259533456.789,"level":"error","caller":"tests.rs:N","msg":"Bad","nan":"NaN"}"#,
        ]
    );
    for line in lines {
        serde_json::from_str::<serde_json::Value>(&line).unwrap();
    }
}

#[test]
fn verbosity_chooses_ours_and_the_libraries_apart_and_may_change() {
    let log = |telemetry: &Telemetry| {
        for level in [0, 2, 6, 8] {
            telemetry.verbosity().set(level);
            tracing::info!("info {level}");
            tracing::debug!("debug {level}");
            tracing::trace!("trace {level}");
            tracing::warn!(target: "hyper::proto", "library warn {level}");
            tracing::debug!(target: "hyper::proto", "library debug {level}");
            tracing::trace!(target: "hyper::proto", "library trace {level}");
            tracing::debug!(target: "replicaset_operator::plan", "operator debug {level}");
        }
    };
    let lines = lines_of(&options(LogFormat::Text, 0), log);
    let messages: Vec<&str> = lines.iter().filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(
        messages,
        [
            "info 0",
            "library warn 0",
            "info 2",
            "debug 2",
            "library warn 2",
            "operator debug 2",
            "info 6",
            "debug 6",
            "trace 6",
            "library warn 6",
            "library debug 6",
            "operator debug 6",
            "info 8",
            "debug 8",
            "trace 8",
            "library warn 8",
            "library debug 8",
            "library trace 8",
            "operator debug 8",
        ]
    );
}

/// Telemetry that sends traces, and what its collector receives.
async fn traced() -> (Dispatch, Telemetry, mpsc::UnboundedReceiver<Request<Bytes>>) {
    let (requests, received) = mpsc::unbounded_channel();
    let collector = loopback::serve(move |request| {
        requests.send(request).unwrap();
        loopback::answer(200, "")
    })
    .await;
    let mut options = options(LogFormat::Text, 0);
    options.otlp_endpoint = Some(format!("http://{collector}"));
    let (dispatch, telemetry) = dispatch(&options, |_| ()).unwrap();
    (dispatch, telemetry, received)
}

#[tokio::test]
async fn a_span_reaches_the_collector_over_the_wire() {
    let (dispatch, telemetry, mut received) = traced().await;
    tracing::dispatcher::with_default(&dispatch, || {
        let syncing = in_sync(&queue(), &Key::new("ns", "a"), 1, None, async { tracing::info!("Created pods") });
        syncing.now_or_never().unwrap();
        tracing::debug_span!("too fine").in_scope(|| ());
    });

    telemetry.flush(Duration::from_secs(20)).await;

    let request = received.try_recv().expect("flush has waited for the export");
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    let text = String::from_utf8_lossy(request.body());
    for part in ["test-operator", "service.version", "sync", "ns/a", "Created pods"] {
        assert!(text.contains(part), "{part} is not in {text:?}");
    }
    assert!(!text.contains("too fine"), "{text:?}");
    assert!(received.try_recv().is_err());
}

#[tokio::test]
async fn a_sync_joins_the_trace_of_its_cause_and_links_to_those_of_its_writes() {
    let (dispatch, telemetry, mut received) = traced().await;
    let (cause, written) = (Key::new("ns", "cause"), Key::new("ns", "written"));
    let trigger = Trigger {
        resource: RESOURCE,
        object: cause.clone(),
        version: ResourceVersion(7),
        seen: tokio::time::Instant::now(),
    };
    tracing::dispatcher::with_default(&dispatch, || {
        let syncing = async { link(RESOURCE, &written, ResourceVersion(8)) };
        in_sync(&queue(), &Key::new("ns", "a"), 1, Some(&trigger), syncing).now_or_never().unwrap();
    });

    telemetry.flush(Duration::from_secs(20)).await;

    let request = received.try_recv().expect("flush has waited for the export");
    let has = |trace: opentelemetry::TraceId| request.body().windows(16).any(|bytes| bytes == trace.to_bytes());
    assert!(has(trace_of(RESOURCE, &cause, ResourceVersion(7))));
    assert!(has(trace_of(RESOURCE, &written, ResourceVersion(8))));
    assert!(!has(trace_of(RESOURCE, &written, ResourceVersion(9))));
}

#[tokio::test]
async fn a_collector_that_is_away_stops_nobody() {
    let mut options = options(LogFormat::Text, 0);
    // The discard port: nothing listens there.
    options.otlp_endpoint = Some("http://127.0.0.1:9".to_owned());
    let (dispatch, telemetry) = dispatch(&options, |_| ()).unwrap();
    tracing::dispatcher::with_default(&dispatch, || {
        for _ in 0..5_000 {
            tracing::info_span!("sync").in_scope(|| ());
        }
    });
    let flush = telemetry.flush(Duration::from_millis(100));
    tokio::time::timeout(Duration::from_secs(20), flush).await.expect("flush keeps its limit");
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_used_is_an_error_at_the_start() {
    for endpoint in ["https://collector:4318", "collector:4318", "http://bad host"] {
        let mut options = options(LogFormat::Text, 0);
        options.otlp_endpoint = Some(endpoint.to_owned());
        let error = dispatch(&options, |_| ()).err().unwrap().to_string();
        assert!(error.contains(endpoint), "{error}");
    }
}
