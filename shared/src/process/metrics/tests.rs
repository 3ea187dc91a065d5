use super::*;
use crate::api::object::Key;
use crate::working::queue::{Backoff, Cause, Finish};

/// The lines of one metric, help and type included.
fn lines_of(metrics: &Metrics, name: &str) -> Vec<String> {
    let text = metrics.to_text();
    assert!(text.ends_with("# EOF\n"));
    text.lines()
        .filter(|line| line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ").starts_with(name))
        .map(str::to_owned)
        .collect()
}

fn value_of(metrics: &Metrics, sample: &str) -> f64 {
    let text = metrics.to_text();
    let line = text.lines().find_map(|line| line.strip_prefix(sample));
    line.unwrap_or_else(|| panic!("no {sample} in {text}")).trim().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_queue_shows_upstreams_metrics() {
    let metrics = Metrics::new("test-operator");
    let queue = Queue::new("replicaset", Backoff::default(), Some(Box::new(metrics.queue("replicaset"))));
    metrics.watch_queue(&queue);
    Queue::start(std::slice::from_ref(&queue), || {});
    for name in ["a", "b", "c"] {
        queue.add(&Key::new("ns", name), Cause::Event);
    }
    tokio::time::advance(Duration::from_secs(2)).await;
    let first = queue.next().await.unwrap();
    queue.finish(&first, Finish::Retry);
    queue.next().await.unwrap();
    tokio::time::advance(Duration::from_secs(3)).await;
    queue.next().await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    for (sample, expected) in [
        // The first came back after its back-off, and waits.
        (r#"workqueue_adds_total{name="replicaset"}"#, 4.0),
        (r#"workqueue_retries_total{name="replicaset"}"#, 1.0),
        (r#"workqueue_depth{name="replicaset"}"#, 1.0),
        (r#"workqueue_queue_duration_seconds_sum{name="replicaset"}"#, 2.0 + 2.0 + 5.0),
        (r#"workqueue_queue_duration_seconds_bucket{le="1.0",name="replicaset"}"#, 0.0),
        (r#"workqueue_queue_duration_seconds_bucket{le="10.0",name="replicaset"}"#, 3.0),
        (r#"workqueue_work_duration_seconds_count{name="replicaset"}"#, 1.0),
        (r#"workqueue_unfinished_work_seconds{name="replicaset"}"#, 4.0 + 1.0),
        (r#"workqueue_longest_running_processor_seconds{name="replicaset"}"#, 4.0),
    ] {
        let value = value_of(&metrics, sample);
        assert!((value - expected).abs() < 0.01, "{sample}: {value}, expected {expected}");
    }
}

#[test]
fn controllers_of_one_process_share_what_upstream_counts_and_a_restart_replaces_the_rest() {
    let process = Metrics::new("test");
    let begin = |controller: &'static str, metric: &'static str| {
        let metrics = process.of_controller(controller);
        metrics.client("host").observer()(&Method::GET, Some(StatusCode::OK), Duration::ZERO);
        let own = Counter::<u64>::default();
        own.inc();
        metrics.register(metric, "A metric of its own", own);
        let held = Family::<Label, Gauge>::default();
        held.get_or_create_owned(&[("name", controller)]).set(1);
        metrics.register("held", "A metric that several controllers have", held);
        let deletions = Counter::<u64>::default();
        deletions.inc();
        metrics.register("deletions", "A series that several controllers count", deletions);
        metrics.watch_panics(controller, Arc::new(AtomicU64::new(1)));
        metrics
    };
    let _one = begin("one", "one_syncs");
    let _two = begin("two", "two_syncs");
    let _one_again = begin("one", "one_syncs");
    let text = process.to_text();
    for sample in [
        r#"rest_client_requests_total{code="200",method="GET",host="host"} 3"#,
        "one_syncs_total 1",
        r#"held{name="one"} 1"#,
        r#"held{name="two"} 1"#,
        "deletions_total 2",
        "two_syncs_total 1",
        r#"worker_panics_total{name="one"} 1"#,
        r#"worker_panics_total{name="two"} 1"#,
        r#"operator_build_info{name="test","#,
    ] {
        assert_eq!(text.matches(sample).count(), 1, "{sample} in {text}");
    }
    let mut families: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let count = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), count, "each family comes once: {text}");
}

#[test]
fn controllers_are_shown_as_upstream_shows_them() {
    let metrics = Metrics::new("test");
    metrics.watch_controllers("kube-controller-manager", || {
        vec![ControllerState { name: "ttl-controller", works: true, restarts: 3 }]
    });
    let text = metrics.to_text();
    for sample in [
        "# TYPE running_managed_controllers gauge",
        r#"running_managed_controllers{name="ttl-controller",manager="kube-controller-manager"} 1"#,
        r#"controller_restarts_total{name="ttl-controller"} 3"#,
    ] {
        assert!(text.lines().any(|line| line == sample), "{sample} in {text}");
    }
}

#[test]
fn requests_are_told_apart_by_code_method_and_host() {
    let metrics = Metrics::new("test-operator");
    let observe = metrics.client("10.0.0.1:443").observer();
    observe(&Method::GET, Some(StatusCode::OK), Duration::from_millis(20));
    observe(&Method::GET, Some(StatusCode::OK), Duration::from_millis(200));
    observe(&Method::POST, None, Duration::from_secs(60));
    for (sample, expected) in [
        (r#"rest_client_requests_total{code="200",method="GET",host="10.0.0.1:443"}"#, 2.0),
        (r#"rest_client_requests_total{code="<error>",method="POST",host="10.0.0.1:443"}"#, 1.0),
        (r#"rest_client_request_duration_seconds_bucket{le="0.025",verb="GET",host="10.0.0.1:443"}"#, 1.0),
        (r#"rest_client_request_duration_seconds_count{verb="GET",host="10.0.0.1:443"}"#, 2.0),
    ] {
        assert!((value_of(&metrics, sample) - expected).abs() < f64::EPSILON, "{sample}");
    }
}

#[test]
fn leadership_build_and_panics_are_shown() {
    let metrics = Metrics::new("test-operator");
    let leader = metrics.leader("test-operator");
    leader.leads(false);
    let sample = r#"leader_election_master_status{name="test-operator"}"#;
    assert_eq!(lines_of(&metrics, sample), [format!("{sample} 0")]);
    leader.leads(true);
    leader.slow_path();
    assert_eq!(lines_of(&metrics, sample), [format!("{sample} 1")]);
    assert_eq!(
        lines_of(&metrics, "leader_election_slowpath_total"),
        [r#"leader_election_slowpath_total{name="test-operator"} 1"#]
    );
    assert_eq!(
        lines_of(&metrics, "operator_build_info"),
        [format!(
            r#"operator_build_info{{name="test-operator",version="{VERSION}",kubernetes_version="{KUBERNETES_VERSION}"}} 1"#
        )]
    );
    assert_eq!(lines_of(&metrics, "worker_panics"), [""; 0]);
    metrics.watch_panics("replicaset", Arc::new(AtomicU64::new(3)));
    assert_eq!(
        lines_of(&metrics, "worker_panics"),
        [
            "# HELP worker_panics Number of syncs that panicked.",
            "# TYPE worker_panics counter",
            r#"worker_panics_total{name="replicaset"} 3"#,
        ]
    );
}

#[test]
fn an_operator_adds_metrics_of_its_own() {
    let metrics = Metrics::new("test-operator");
    let sorted = Histogram::new([1.0]);
    metrics.register("replicaset_controller_sorting_deletion_age_ratio", "The ratio", sorted.clone());
    sorted.observe(0.5);
    assert_eq!(
        lines_of(&metrics, "replicaset_controller_sorting_deletion_age_ratio_count"),
        ["replicaset_controller_sorting_deletion_age_ratio_count 1"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_longest_silence_of_a_resources_watches_is_shown() {
    let metrics = Metrics::new("test-operator");
    let [quiet, lively, unheard] = [(); 3].map(|()| crate::following::informer::InformerBuilder::<Pod>::new().build());
    let mut followed = Followed::default();
    for informer in [&quiet, &lively, &unheard] {
        followed.add(informer.collection());
    }
    metrics.watch_informers(followed);
    assert_eq!(lines_of(&metrics, "informer_silence_seconds"), [""; 0], "nothing was ever sent");
    quiet.health().hears();
    lively.health().hears();
    tokio::time::advance(Duration::from_secs(50)).await;
    lively.health().hears();
    tokio::time::advance(Duration::from_secs(20)).await;
    let silence = value_of(&metrics, r#"informer_silence_seconds{resource="pods"}"#);
    assert!((silence - 70.0).abs() < 0.01, "{silence}");
    quiet.health().hears();
    let silence = value_of(&metrics, r#"informer_silence_seconds{resource="pods"}"#);
    assert!((silence - 20.0).abs() < 0.01, "{silence}");
}

#[test]
fn failed_syncs_are_counted_by_queue_and_reason_and_held_keys_by_queue() {
    let metrics = Metrics::new("test-operator");
    let queue = Queue::new("replicaset", Backoff::default(), Some(Box::new(metrics.queue("replicaset"))));
    metrics.watch_queue(&queue);
    for reason in ["Conflict", "Forbidden", "Conflict"] {
        queue.failed(reason);
    }
    assert_eq!(
        lines_of(&metrics, r#"sync_errors_total{name="replicaset",reason="Conflict"}"#),
        [r#"sync_errors_total{name="replicaset",reason="Conflict"} 2"#]
    );
    assert_eq!(
        lines_of(&metrics, r#"sync_errors_total{name="replicaset",reason="Forbidden"}"#),
        [r#"sync_errors_total{name="replicaset",reason="Forbidden"} 1"#]
    );
    let held = queue.hold();
    assert_eq!(lines_of(&metrics, "held_keys{"), [r#"held_keys{name="replicaset"} 1"#]);
    drop(held);
    assert_eq!(lines_of(&metrics, "held_keys{"), [r#"held_keys{name="replicaset"} 0"#]);
}

#[test]
fn an_informer_shows_how_it_fares() {
    let metrics = Metrics::new("test-operator");
    let informer = crate::following::informer::InformerBuilder::<Pod>::new().build();
    let mut followed = Followed::default();
    followed.add(informer.collection());
    metrics.watch_informers(followed);
    assert_eq!(lines_of(&metrics, "informer_synced{"), [r#"informer_synced{resource="pods"} 0"#]);
    assert_eq!(lines_of(&metrics, "informer_relists_total{"), [r#"informer_relists_total{resource="pods"} 0"#]);
    assert_eq!(
        lines_of(&metrics, "informer_decode_errors_total{"),
        [r#"informer_decode_errors_total{resource="pods"} 0"#]
    );
}

#[derive(serde::Deserialize)]
struct Pod {
    metadata: crate::api::object::Meta,
}

impl crate::api::object::Object for Pod {
    type Annotations = crate::api::object::NoAnnotations;
    fn meta(&self) -> &crate::api::object::Meta {
        &self.metadata
    }
}

impl crate::api::object::Kind for Pod {
    const RESOURCE: crate::api::resource::Resource = crate::api::resource::PODS;
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_shows_its_memory_and_start() {
    let metrics = Metrics::new("test-operator");
    assert!(value_of(&metrics, "process_resident_memory_bytes") > 100_000.0);
    assert!(value_of(&metrics, "process_start_time_seconds") > 1_700_000_000.0);
    assert!(value_of(&metrics, "process_cpu_seconds_total") >= 0.0);
    assert!(value_of(&metrics, "process_open_fds") >= 3.0);
    assert!(value_of(&metrics, "process_max_fds") >= 3.0);
}

#[test]
fn syncs_that_wait_for_a_cache_are_counted_by_its_resource() {
    let metrics = Metrics::new("test-operator");
    let skips = StaleSyncSkips::register(&metrics, "test_stale_sync_skips", "Total number of skips");
    skips.count("replicasets.apps");
    skips.count("pods");
    let text = metrics.to_text();
    for labels in [r#"group="apps",resource="replicasets""#, r#"group="",resource="pods""#] {
        assert!(text.contains(&format!("test_stale_sync_skips_total{{{labels}}} 1")), "{labels} in {text}");
    }
}
