//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use endpoints_operator::EndpointsOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object, pod};

const SECONDS: Duration = Duration::from_secs(3);
const SERVICE: &str = "default/web";

fn service(name: &str) -> ObjectBuilder {
    let spec = json!({
        "ports": [{ "name": "http", "protocol": "TCP", "targetPort": 80, "port": 80 }],
        "selector": { "app": "web" }, "ipFamilies": ["IPv4"], "clusterIP": "10.0.0.1",
    });
    object("v1", "Service", name).set(&["spec"], spec)
}

fn add_service(server: &Server) {
    server.add(&service("web"));
}

fn add_pod(server: &Server, n: usize) {
    let ip = format!("10.2.0.{n}");
    let pod = pod(&format!("web-{n}")).label("app", "web").ready().set(&["status", "podIP"], ip.as_str());
    server.add(&pod.set(&["status", "podIPs"], json!([{ "ip": ip }])));
}

/// Endpoints of which no controller knows yet.
fn custom(name: &str) -> ObjectBuilder {
    let subsets = json!([{ "addresses": [{ "ip": "6.7.8.9" }], "ports": [{ "port": 1000 }] }]);
    object("v1", "Endpoints", name).set(&["subsets"], subsets)
}

/// How many ready addresses there are, and how many others.
fn addresses(server: &Server) -> [usize; 2] {
    let endpoints = server.get("endpoints", SERVICE).unwrap_or_default();
    let subsets: Vec<Value> = endpoints["subsets"].as_array().cloned().unwrap_or_default();
    ["addresses", "notReadyAddresses"]
        .map(|field| subsets.iter().map(|subset| subset[field].as_array().map_or(0, Vec::len)).sum())
}

fn start(server: &Server) -> Running {
    Running::start::<EndpointsOperator>(server, &[])
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                add_service(server);
                (1..=3).for_each(|n| add_pod(server, n));
            }),
            Pass(SECONDS),
            Do(|server| server.delete("pods", "default/web-2")),
            Pass(SECONDS),
            Do(|server| {
                server.change("services", SERVICE, |service| service["spec"]["ports"][0]["targetPort"] = 81.into());
            }),
            Pass(SECONDS),
            Do(|server| {
                server.add(&service("other"));
                server.delete("services", SERVICE);
            }),
            Pass(SECONDS),
        ];
        let server = survives_kills::<EndpointsOperator>(&[], &life).await;
        assert_eq!(server.keys("endpoints"), ["default/other"]);
    });
}

#[test]
fn endpoints_without_a_service_are_deleted_at_the_start_but_for_locks() {
    test(async {
        let server = Server::new();
        server.add(&custom("gone"));
        server.add(&custom("lock").annotation("control-plane.alpha.kubernetes.io/leader", "{}"));
        server.add(&custom("custom"));
        server.add(&object("v1", "Service", "custom").set(&["spec"], json!({ "clusterIP": "10.0.0.2" })));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!(server.keys("endpoints"), ["default/custom", "default/lock"]);
        // They are as upstream leaves them, until their Service goes.
        server.delete("services", "default/custom");
        running.pass(SECONDS).await;
        assert_eq!(server.keys("endpoints"), ["default/lock"]);
    });
}

#[test]
fn endpoints_that_lack_the_label_are_found_before_anything_is_written() {
    test(async {
        let server = Server::new();
        server.add(&custom("web"));
        add_service(&server);
        add_pod(&server, 1);
        let running = start(&server);
        running.at_rest().await;
        running.pass(SECONDS).await;
        assert_eq!((addresses(&server), server.count("create endpoints")), ([1, 0], 0));
        // Somebody takes the label away.
        server.change("endpoints", SERVICE, |endpoints| endpoints["metadata"]["labels"] = Value::Null);
        running.pass(SECONDS).await;
        let labels = &server.get("endpoints", SERVICE).unwrap()["metadata"]["labels"];
        assert_eq!(labels["endpoints.kubernetes.io/managed-by"], "endpoint-controller");
        server.delete("endpoints", SERVICE);
        running.pass(SECONDS).await;
        assert_eq!((addresses(&server), server.count("create endpoints")), ([1, 0], 1));
    });
}

#[test]
fn a_creation_whose_answer_is_lost_is_found_by_its_name() {
    test(async {
        let server = Server::new();
        server.on("create", "endpoints").once().lose();
        add_service(&server);
        add_pod(&server, 1);
        let running = start(&server);
        running.at_rest().await;
        running.pass(SECONDS).await;
        assert_eq!(addresses(&server), [1, 0]);
    });
}

#[test]
fn a_watch_that_stands_still_loses_no_change() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        running.at_rest().await;
        server.hold_watches("endpoints");
        add_service(&server);
        add_pod(&server, 1);
        running.pass(SECONDS).await;
        add_pod(&server, 2);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(addresses(&server), [1, 0]);
        server.release_watches("endpoints");
        running.pass(SECONDS).await;
        assert_eq!(addresses(&server), [2, 0]);
        // From ready to unready and back, faster than any watch.
        for status in ["False", "True"] {
            server.change("pods", "default/web-1", |pod| pod["status"]["conditions"][0]["status"] = status.into());
        }
        running.pass(SECONDS).await;
        assert_eq!(addresses(&server), [2, 0]);
    });
}

#[test]
fn people_are_told_of_what_fails() {
    test(async {
        let server = Server::new();
        let refused = server.on("create", "endpoints").answer(403, "Forbidden", "exceeded quota: few");
        add_service(&server);
        add_pod(&server, 1);
        let running = start(&server);
        running.pass(SECONDS).await;
        let failed = "Failed to create endpoint for service default/web: exceeded quota: few";
        assert_eq!(server.events(), [format!("Warning FailedToCreateEndpoint: {failed}")]);
        refused.times(0);
        running.pass(Duration::from_mins(1)).await;
        assert_eq!(addresses(&server), [1, 0]);
        let refused = server.on("patch", "endpoints").answer(500, "InternalError", "no").once();
        add_pod(&server, 2);
        running.pass(SECONDS).await;
        assert_eq!((refused.count(), addresses(&server)), (1, [2, 0]));
        let updated = "Warning FailedToUpdateEndpoint: Failed to update endpoint default/web: no";
        assert!(server.events().iter().any(|event| event == updated), "{:?}", server.events());
    });
}

#[test]
fn a_namespace_that_ends_gets_no_endpoints_and_nobody_is_told() {
    test(async {
        let server = Server::new();
        let namespace = object("v1", "Namespace", "default").set(&["metadata", "finalizers"], json!(["a/b"]));
        server.add(&namespace.terminating());
        add_service(&server);
        let running = start(&server);
        running.at_rest().await;
        assert_eq!((server.keys("endpoints").len(), server.events().len()), (0, 0));
        assert_eq!(server.count("create endpoints"), 1);
    });
}

#[test]
fn pods_are_followed_only_while_a_service_selects_some() {
    test(async {
        let server = Server::new();
        server.add(&object("v1", "Service", "kubernetes").set(&["spec"], json!({ "clusterIP": "10.0.0.1" })));
        let remove = |server: &Server| server.delete("services", SERVICE);
        is_followed_only_while_needed::<EndpointsOperator>(&server, "pods default/", add_service, remove).await;
    });
}

#[test]
fn endpoints_are_listed_once_and_followed_only_while_a_service_selects_pods() {
    test(async {
        let server = Server::new();
        server.add(&object("v1", "Service", "kubernetes").set(&["spec"], json!({ "clusterIP": "10.0.0.1" })));
        let running = start(&server);
        running.pass(Duration::from_mins(10)).await;
        let lists = server.count("list endpoints");
        assert_eq!((lists > 0, server.count("watch endpoints")), (true, 0));
        add_service(&server);
        running.pass(SECONDS).await;
        assert_eq!((server.count("list endpoints") > lists, server.count("watch endpoints")), (true, 1));
    });
}

#[test]
fn the_first_one_waits_for_all_it_needs() {
    let first = |server: &Server| {
        add_service(server);
        (1..=2).for_each(|n| add_pod(server, n));
    };
    let then = |server: &Server| assert_eq!(addresses(server), [2, 0]);
    test(async {
        for resource in ["pods", "endpoints"] {
            the_first_one_waits::<EndpointsOperator>(&[], resource, first, then).await;
        }
    });
}

#[test]
fn one_that_goes_and_comes_again_finds_its_endpoints() {
    test(async {
        let server = Server::new();
        add_service(&server);
        (1..=2).for_each(|n| add_pod(&server, n));
        let running = start(&server);
        running.at_rest().await;
        let meanwhile = |server: &Server| {
            server.delete("pods", "default/web-2");
            add_pod(server, 2);
        };
        let then = |server: &Server, pause| assert_eq!(addresses(server), [2, 0], "{pause:?}");
        it_goes_and_comes_again((&server, &running), ("services", SERVICE), meanwhile, SECONDS, then).await;
    });
}

#[test]
fn a_pod_without_an_ip_or_on_its_way_out_leaves() {
    test(async {
        let server = Server::new();
        add_service(&server);
        (1..=3).for_each(|n| add_pod(&server, n));
        let running = start(&server);
        running.at_rest().await;
        running.pass(SECONDS).await;
        assert_eq!(addresses(&server), [3, 0]);
        server.change("pods", "default/web-1", |pod| pod["status"]["conditions"][0]["status"] = "False".into());
        running.pass(SECONDS).await;
        assert_eq!(addresses(&server), [2, 1]);
        server.change("pods", "default/web-2", |pod| {
            pod["status"]["podIP"] = "".into();
            pod["status"]["podIPs"] = json!([]);
        });
        running.pass(SECONDS).await;
        assert_eq!(addresses(&server), [1, 1]);
        server.change("pods", "default/web-3", |pod| {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        });
        running.pass(SECONDS).await;
        assert_eq!(addresses(&server), [0, 1]);
    });
}

#[test]
fn it_says_why_a_services_endpoints_are_what_they_are() {
    test(async {
        let server = Server::new();
        add_service(&server);
        add_pod(&server, 1);
        server.add(&object("v1", "Service", "other").set(&["spec"], json!({ "clusterIP": "10.0.0.2" })));
        let running = start(&server);
        running.pass(SECONDS).await;
        add_pod(&server, 2);
        running.pass(SECONDS).await;

        let path = |kind: &str, name: &str| format!("/api/v1/namespaces/default/{kind}/{name}");
        let requests = server.requests();
        let [first, again] = [(); 2].map(|()| running.why(&path("services", "web")));
        assert_eq!((server.requests(), &first), (requests, &again), "who asks changes nothing");
        assert_eq!(first.keys.len(), 1, "{first}");
        let key = &first.keys[0];
        let counts = json!({ "pods": 2, "ready": 2, "notReady": 0, "subsets": 1, "leftOut": 0 });
        let selected = json!({ "selected": counts });
        assert_eq!(key.now[0].text, "nothing (2 ready and 0 not ready in 1 subset)");
        assert_eq!(key.now[0].reason, selected);
        let last = &key.last[0];
        assert_eq!(last.stages[0].reason, selected, "{first}");
        assert_eq!(last.wrote[0].object, SERVICE);
        assert_eq!(last.cause.as_ref().map(|cause| cause.object.as_str()), Some("default/web-2"));
        assert_eq!(running.why(&path("endpoints", "web")).keys.len(), 1);
        let ignored = running.why(&path("services", "other"));
        assert_eq!(ignored.keys[0].now[0].reason, json!("noSelector"));
        assert_eq!(running.why(&path("pods", "web-1")).keys, []);
    });
}
