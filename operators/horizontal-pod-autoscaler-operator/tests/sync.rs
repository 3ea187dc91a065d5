//! The operator as it is, against an apiserver in the test's process: its informer, its live reads, its writes.

#![expect(clippy::unwrap_used, reason = "an object that is not there is a broken test")]

use std::time::Duration;

use horizontal_pod_autoscaler_operator::controller::HorizontalPodAutoscalerOperator;
use serde_json::{Value, json};
use shared::api::explain::KeyState;
use shared::api::resource::Resource;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, object, pod};

const AUTOSCALERS: &str = "horizontalpodautoscalers";
const KEY: &str = "default/web";
const PATH: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web";
const USAGE: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
/// A period of syncs, and a bit.
const PERIOD: Duration = Duration::from_secs(16);

/// A target of this kind that asks for and has two replicas, `app=web`.
fn target(api_version: &str, kind: &str) -> ObjectBuilder {
    object(api_version, kind, "web")
        .set(&["spec", "replicas"], 2)
        .set(&["status"], json!({ "replicas": 2, "selector": "app=web" }))
}

fn autoscaler(name: &str, metrics: &Value) -> ObjectBuilder {
    object("autoscaling/v2", "HorizontalPodAutoscaler", name).set(
        &["spec"],
        json!({
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": 1, "maxReplicas": 10, "metrics": metrics,
        }),
    )
}

fn cpu_metric() -> Value {
    let target = json!({ "type": "Utilization", "averageUtilization": 50 });
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
}

/// Two ready pods that began long ago, and request one CPU each.
fn add_pods(server: &Server) {
    for name in ["web-0", "web-1"] {
        let pod = pod(name)
            .label("app", "web")
            .set(&["status", "startTime"], "2020-01-01T00:00:00Z")
            .ready_since("2020-01-01T00:01:00Z".parse().unwrap())
            .set(&["spec", "containers"], json!([{ "name": "main", "resources": { "requests": { "cpu": "1" } } }]));
        server.add(&pod);
    }
}

/// What each of the two pods takes from now on, in thousandths of a CPU.
fn set_usage(server: &Server, millis: i64) {
    let item = |name: &str| {
        let usage = json!([{ "name": "main", "usage": { "cpu": format!("{millis}m") } }]);
        json!({ "metadata": { "name": name }, "timestamp": null, "window": "30s", "containers": usage })
    };
    server.serve_document(USAGE, json!({ "items": [item("web-0"), item("web-1")] }));
}

fn add_deployment(server: &Server) {
    server.add(&target("apps/v1", "Deployment"));
    add_pods(server);
}

fn replicas(server: &Server, resource: &str) -> i64 {
    server.get(resource, KEY).unwrap()["spec"]["replicas"].as_i64().unwrap()
}

fn status(server: &Server) -> Value {
    server.get(AUTOSCALERS, KEY).unwrap()["status"].clone()
}

/// `AbleToScale True ReadyForNewScale` of each condition.
fn conditions(server: &Server) -> Vec<String> {
    let status = status(server);
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let each = status["conditions"].as_array().into_iter().flatten();
    each.map(|it| format!("{} {} {}", text(it, "type"), text(it, "status"), text(it, "reason"))).collect()
}

fn message(server: &Server, type_: &str) -> String {
    let status = status(server);
    let found = status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == type_).unwrap();
    found["message"].as_str().unwrap_or_default().to_owned()
}

fn start(server: &Server) -> Running {
    Running::start::<HorizontalPodAutoscalerOperator>(server, &[])
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(add_deployment),
            Do(|server| set_usage(server, 1000)),
            Do(|server| server.add(&autoscaler("web", &json!([cpu_metric()])))),
            Pass(Duration::from_secs(60)),
            Do(|server| assert_eq!(replicas(server, "deployments"), 4)),
            Do(|server| set_usage(server, 250)),
            // A kill begins the window of stabilization anew.
            Pass(Duration::from_secs(900)),
        ];
        let server = survives_kills::<HorizontalPodAutoscalerOperator>(&[], &life).await;
        assert_eq!(replicas(&server, "deployments"), 1);
        assert_eq!(
            conditions(&server),
            [
                "AbleToScale True ReadyForNewScale",
                "ScalingActive True ValidMetricFound",
                "ScalingLimited False DesiredWithinRange",
            ]
        );
        let status = status(&server);
        assert_eq!([&status["currentReplicas"], &status["desiredReplicas"]], [1, 1]);
        assert!(!status["lastScaleTime"].is_null());
    });
}

#[test]
fn it_scales_up_at_once_and_down_after_five_minutes() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        set_usage(&server, 1000);
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        let running = start(&server);
        running.pass(Duration::from_secs(10)).await;
        assert_eq!(server.count("get deployments/scale"), 0, "the first look comes after a period");
        running.pass(PERIOD).await;
        assert_eq!(replicas(&server, "deployments"), 4);
        let told = "Normal SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) \
                    above target";
        assert_eq!(server.events(), [told]);
        assert_eq!(
            conditions(&server),
            [
                "AbleToScale True SucceededRescale",
                "ScalingActive True ValidMetricFound",
                "ScalingLimited False DesiredWithinRange",
            ]
        );
        assert_eq!(message(&server, "AbleToScale"), "the HPA controller was able to update the target scale to 4");
        assert_eq!(status(&server)["currentReplicas"], 2, "the number that there was");

        set_usage(&server, 250);
        running.pass(Duration::from_secs(270)).await;
        assert_eq!(replicas(&server, "deployments"), 4);
        assert_eq!(conditions(&server)[0], "AbleToScale True ScaleDownStabilized");
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(replicas(&server, "deployments"), 1);
        assert_eq!(
            server.events().last().unwrap(),
            "Normal SuccessfulRescale: New size: 1; reason: All metrics below target"
        );
    });
}

#[test]
fn at_rest_it_asks_once_in_a_period_and_writes_nothing() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        set_usage(&server, 500);
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        let running = start(&server);
        running.pass(PERIOD * 2).await;
        let (asked, wrote) = (server.requests().len(), server.writes().len());
        running.pass(Duration::from_secs(15)).await;
        let mut requests = server.requests().split_off(asked);
        requests.sort();
        let usage = format!("get {USAGE}?labelSelector=app%3Dweb");
        assert_eq!(requests, [usage.as_str(), "get deployments/scale default/web", "list pods default/"]);
        running.pass(Duration::from_secs(600)).await;
        assert_eq!(server.writes().len(), wrote);
        // One that is gone is asked about no more.
        server.delete(AUTOSCALERS, KEY);
        running.pass(PERIOD).await;
        // A watch ends now and then, and is begun again.
        let asked = || server.requests().into_iter().filter(|request| !request.starts_with("watch ")).count();
        let before = asked();
        running.pass(Duration::from_secs(100)).await;
        assert_eq!(asked(), before, "{:?}", server.requests().split_off(before));
    });
}

#[test]
fn a_new_process_scales_nothing_down_before_it_has_seen_a_window() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        set_usage(&server, 100);
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        drop(start(&server));
        let running = start(&server);
        running.pass(Duration::from_secs(300)).await;
        assert_eq!(replicas(&server, "deployments"), 2);
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(replicas(&server, "deployments"), 1);
    });
}

/// A Flock is of no kind that anybody knows.
#[test]
fn whatever_has_a_scale_is_scaled() {
    test(async {
        for (api_version, kind, resource) in [
            ("apps/v1", "StatefulSet", "statefulsets"),
            ("v1", "ReplicationController", "replicationcontrollers"),
            ("birds.example/v1", "Flock", "flocks"),
        ] {
            let server = Server::new();
            server.serve_scalable(Resource::namespaced("birds.example", "v1", "Flock", "flocks"));
            server.add(&target(api_version, kind));
            add_pods(&server);
            set_usage(&server, 1000);
            let reference = json!({ "apiVersion": api_version, "kind": kind, "name": "web" });
            server.add(&autoscaler("web", &json!([cpu_metric()])).set(&["spec", "scaleTargetRef"], reference));
            let running = start(&server);
            running.pass(PERIOD).await;
            assert_eq!(replicas(&server, resource), 4, "{kind}");
            let documents = server.count("get /api");
            running.pass(PERIOD).await;
            assert_eq!(server.count("get /api"), documents + 1, "where the kind is served is known by now");
        }
    });
}

#[test]
fn a_target_with_a_uid_that_is_no_uuid_is_scaled() {
    test(async {
        let server = Server::new();
        server.add(&target("apps/v1", "Deployment").set(&["metadata", "uid"], "Ab-12"));
        add_pods(&server);
        set_usage(&server, 1000);
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        let running = start(&server);
        running.pass(PERIOD).await;
        assert_eq!(replicas(&server, "deployments"), 4);
    });
}

#[test]
fn a_target_that_is_not_there_is_told_in_upstreams_words() {
    test(async {
        for (api_version, kind, name, expected) in [
            ("apps/v1", "Deployment", "gone", r#"deployments.apps "gone" not found"#),
            ("apps/v1", "Swarm", "web", r#"no matches for kind "Swarm" in group "apps""#),
            ("bees.example/v1", "Swarm", "web", r#"no matches for kind "Swarm" in group "bees.example""#),
            ("a/b/c", "Deployment", "web", "unexpected GroupVersion string: a/b/c"),
        ] {
            let server = Server::new();
            add_deployment(&server);
            let reference = json!({ "apiVersion": api_version, "kind": kind, "name": name });
            server.add(&autoscaler("web", &json!([cpu_metric()])).set(&["spec", "scaleTargetRef"], reference));
            let running = start(&server);
            running.pass(PERIOD).await;
            assert_eq!(conditions(&server), ["AbleToScale False FailedGetScale"]);
            assert_eq!(
                message(&server, "AbleToScale"),
                format!("the HPA controller was unable to get the target's current scale: {expected}")
            );
            assert_eq!(server.events(), [format!("Warning FailedGetScale: {expected}")]);
            // It is written once, and told at each look.
            let wrote = server.writes().len();
            running.pass(PERIOD).await;
            assert_eq!(server.writes().len(), wrote);
        }
    });
}

#[test]
fn metrics_of_all_three_apis_decide_together() {
    const CUSTOM: &str = "/apis/custom.metrics.k8s.io";
    test(async {
        let server = Server::new();
        add_deployment(&server);
        let average = json!({ "type": "AverageValue", "averageValue": "10" });
        let described = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "gate" });
        let of_object = |object: &Value, name: &str| {
            json!({ "type": "Object", "object": {
                "describedObject": object, "metric": { "name": name }, "target": { "type": "Value", "value": "10" },
            } })
        };
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "name": "whatever" });
        let selector = json!({ "matchLabels": { "queue": "jobs" } });
        let external = json!({ "name": "length", "selector": selector });
        let metrics = json!([
            { "type": "Pods", "pods": { "metric": { "name": "qps" }, "target": average } },
            of_object(&described, "hits"),
            of_object(&namespace, "errors"),
            { "type": "External", "external": { "metric": external, "target": average } },
        ]);
        server.add(&autoscaler("web", &metrics));
        let values = |name: &str, value: &str| json!({ "items": [{ "describedObject": { "name": name }, "timestamp": null, "value": value }] });
        // Of the two versions the one that the server prefers.
        let versions = json!([{ "version": "v1beta1" }, { "version": "v1beta2" }]);
        server.serve_document(CUSTOM, json!({ "versions": versions, "preferredVersion": { "version": "v1beta2" } }));
        let below = format!("{CUSTOM}/v1beta2/namespaces/default");
        server.serve_document(&format!("{below}/pods/*/qps"), values("web-0", "10"));
        server.serve_document(&format!("{below}/deployments.apps/gate/hits"), values("gate", "10"));
        server.serve_document(&format!("{below}/metrics/errors"), values("default", "10"));
        let outside = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/length";
        server.serve_document(outside, json!({ "items": [{ "value": "20" }, { "value": "29" }] }));
        let running = start(&server);
        running.pass(PERIOD).await;
        assert_eq!(replicas(&server, "deployments"), 4, "{:?} {:?}", conditions(&server), server.events());
        let current = &status(&server)["currentMetrics"];
        assert_eq!(current[0]["pods"], json!({ "metric": { "name": "qps" }, "current": { "averageValue": "10" } }));
        assert_eq!(current[1]["object"]["describedObject"], described);
        assert_eq!(current[2]["object"]["current"], json!({ "value": "10" }));
        assert_eq!(current[3]["external"], json!({ "metric": external, "current": { "averageValue": "24500m" } }));
        let asked = |path: String| assert!(server.count(&path) > 0, "{path}: {:?}", server.requests());
        asked(format!("get {below}/pods/*/qps?labelSelector=app%3Dweb"));
        asked(format!("get {outside}?labelSelector=queue%3Djobs"));
    });
}

#[test]
fn metrics_that_nobody_serves_are_told_in_client_gos_words() {
    test(async {
        let average = json!({ "type": "AverageValue", "averageValue": "10" });
        let of_pods = json!({ "type": "Pods", "pods": { "metric": { "name": "qps" }, "target": average } });
        let external = json!({ "type": "External", "external": { "metric": { "name": "q" }, "target": average } });
        for (metric, expected) in [
            (
                cpu_metric(),
                "FailedGetResourceMetric: failed to get cpu utilization: unable to get metrics for resource cpu: unable \
                 to fetch metrics from resource metrics API: the server could not find the requested resource (get \
                 pods.metrics.k8s.io)",
            ),
            (
                of_pods,
                "FailedGetPodsMetric: unable to get metric qps: unable to fetch metrics from custom metrics API: no \
                 custom metrics API (custom.metrics.k8s.io) registered",
            ),
            (
                external,
                "FailedGetExternalMetric: unable to get external metric default/q/nil: unable to fetch metrics from \
                 external metrics API: the server could not find the requested resource (get \
                 q.external.metrics.k8s.io)",
            ),
        ] {
            let server = Server::new();
            add_deployment(&server);
            server.add(&autoscaler("web", &json!([metric])));
            let running = start(&server);
            running.pass(PERIOD).await;
            let (reason, fault) = expected.split_once(": ").unwrap();
            let active = format!("ScalingActive False {reason}");
            assert_eq!(conditions(&server), ["AbleToScale True SucceededGetScale", &active]);
            let told = format!("the HPA was unable to compute the replica count: {fault}");
            assert_eq!(message(&server, "ScalingActive"), told);
            // Of several events of one instant a server keeps the first: they have the same name.
            assert_eq!(server.events().first(), Some(&format!("Warning {expected}")));
            assert_eq!(status(&server)["currentMetrics"], json!([{ "type": "" }]));
            assert_eq!(server.count("update"), 0);
        }
    });
}

#[test]
fn two_autoscalers_with_the_same_pods_scale_nothing() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        set_usage(&server, 500);
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        server.add(&autoscaler("also", &json!([cpu_metric()])));
        let running = start(&server);
        running.pass(PERIOD * 2).await;
        set_usage(&server, 1000);
        running.pass(PERIOD * 2).await;
        assert_eq!(replicas(&server, "deployments"), 2);
        assert_eq!(conditions(&server)[1], "ScalingActive False AmbiguousSelector");
        assert_eq!(
            message(&server, "ScalingActive"),
            "pods by selector app=web are controlled by multiple HPAs: [default/also default/web]"
        );
        server.delete(AUTOSCALERS, "default/also");
        running.pass(PERIOD * 2).await;
        assert_eq!(replicas(&server, "deployments"), 4);
    });
}

#[test]
fn an_autoscaler_deleted_while_its_scale_is_read_does_not_block_its_successor() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        set_usage(&server, 1000);
        server.add(&autoscaler("old", &json!([cpu_metric()])));
        let held = server.on("get", "deployments/scale").once().hold();
        let running = start(&server);
        running.pass(PERIOD).await;
        held.arrived().await;
        server.delete(AUTOSCALERS, "default/old");
        running.pass(Duration::from_secs(1)).await;
        held.release();
        running.pass(PERIOD).await;
        server.change("deployments", KEY, |deployment| deployment["spec"]["replicas"] = json!(2));
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        running.pass(PERIOD * 2).await;
        assert_eq!(conditions(&server)[1], "ScalingActive True ValidMetricFound");
    });
}

/// Upstream: `TestHPARescaleWithSuccessfulConflictRetry`.
#[test]
fn a_conflict_is_tried_again_unless_somebody_else_has_scaled() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        set_usage(&server, 1000);
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        let running = start(&server);
        let held = server.on("update", "deployments/scale").once().hold();
        held.arrived().await;
        server.change("deployments", KEY, |deployment| deployment["metadata"]["annotations"] = json!({ "a": "b" }));
        held.release();
        running.pass(Duration::from_secs(1)).await;
        assert_eq!((replicas(&server, "deployments"), server.count("update deployments/scale")), (4, 2));
        assert_eq!(conditions(&server)[0], "AbleToScale True SucceededRescale");

        // By the same metrics, but from another number of replicas.
        server.change("deployments", KEY, |deployment| deployment["spec"]["replicas"] = 2.into());
        let held = server.on("update", "deployments/scale").once().hold();
        held.arrived().await;
        server.change("deployments", KEY, |deployment| deployment["spec"]["replicas"] = 3.into());
        held.release();
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(replicas(&server, "deployments"), 3);
        assert_eq!(conditions(&server)[0], "AbleToScale False FailedUpdateScale");
        let told = server.events();
        assert!(
            told.iter().any(|event| event.starts_with("Warning FailedRescale: New size: 4; reason: ")),
            "{told:#?}"
        );
        running.pass(PERIOD).await;
        assert_eq!(replicas(&server, "deployments"), 4, "decided anew");
    });
}

#[test]
fn a_status_that_cannot_be_written_is_told() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        set_usage(&server, 500);
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        let refused = server.on("patch", "horizontalpodautoscalers/status").once().answer(500, "InternalError", "no");
        let running = start(&server);
        refused.arrived().await;
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(server.events(), ["Warning FailedUpdateStatus: no"]);
        running.pass(PERIOD).await;
        assert_eq!(conditions(&server).len(), 3);
    });
}

#[test]
fn with_a_maximum_age_nothing_is_scaled_by_values_that_are_too_old() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        let item = |name: &str| {
            let usage = json!([{ "name": "main", "usage": { "cpu": "500m" } }]);
            json!({ "metadata": { "name": name }, "timestamp": NOW.to_string(), "window": "30s", "containers": usage })
        };
        server.serve_document(USAGE, json!({ "items": [item("web-0"), item("web-1")] }));
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        let max_age = ["--horizontal-pod-autoscaler-metrics-max-age=5m"];
        let running = Running::start::<HorizontalPodAutoscalerOperator>(&server, &max_age);
        running.pass(Duration::from_secs(290)).await;
        assert_eq!(conditions(&server)[1], "ScalingActive True ValidMetricFound");
        // Whoever measures has stopped.
        running.pass(Duration::from_secs(30)).await;
        assert_eq!(conditions(&server)[1], "ScalingActive False FailedGetResourceMetric");
    });
}

#[test]
fn it_says_what_it_asks_and_what_it_has_decided() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        set_usage(&server, 1000);
        server.add(&autoscaler("web", &json!([cpu_metric()])));
        let running = start(&server);
        running.pass(PERIOD).await;
        let why = running.why(PATH);
        let [KeyState { queue, key, standing, now, last, .. }] = &why.keys[..] else { panic!("{why}") };
        assert_eq!((queue.as_str(), key.as_str()), ("horizontalpodautoscaler", KEY));
        assert_eq!(standing.timer.as_ref().unwrap().purpose, "the next sync period");
        assert_eq!(now[0].text, "read the scale (the scale of Deployment web is not cached)");
        let texts: Vec<&str> = last[0].stages.iter().map(|stage| stage.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "read the scale (the scale of Deployment web is not cached)",
                "read the metrics and the pods (2 is within bounds; 1 metric to evaluate)",
                "scale 2 to 4 (4 by cpu resource utilization (percentage of request); ReadyForNewScale, \
                 DesiredWithinRange)",
            ]
        );
        assert_eq!(
            last[0].stages[2].reason,
            json!({ "computed": {
                "recommended": 4, "metric": "cpu resource utilization (percentage of request)",
                "able": "ReadyForNewScale", "limited": "DesiredWithinRange", "error": null,
            } })
        );
    });
}
