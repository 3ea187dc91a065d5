//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use endpointslice_operator::EndpointSliceOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{object, pod};

const FLAGS: [&str; 1] = ["--max-endpoints-per-slice=2"];
const SECONDS: Duration = Duration::from_secs(3);

fn add_service(server: &Server) {
    let spec = json!({
        "ports": [{ "name": "http", "protocol": "TCP", "targetPort": 80, "port": 80 }],
        "selector": { "app": "web" }, "ipFamilies": ["IPv4"], "clusterIP": "10.0.0.1",
    });
    server.add(&object("v1", "Node", "node"));
    server.add(&object("v1", "Service", "web").set(&["spec"], spec));
}

fn add_pod(server: &Server, n: usize) {
    let ip = format!("10.2.0.{n}");
    let pod = pod(&format!("web-{n}")).label("app", "web").ready().set(&["status", "podIP"], ip.as_str());
    server.add(&pod.set(&["status", "podIPs"], json!([{ "ip": ip }])));
}

fn change_port(server: &Server) {
    server.change("services", "default/web", |service| service["spec"]["ports"][0]["targetPort"] = 81.into());
}

fn endpoints(server: &Server) -> usize {
    let slices = server.list("endpointslices");
    slices.iter().map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).sum()
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
            Do(change_port),
            Pass(SECONDS),
        ];
        let server = survives_kills::<EndpointSliceOperator>(&FLAGS, &life).await;
        assert_eq!(endpoints(&server), 2);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_leaves_each_endpoint_once() {
    test(async {
        let server = Server::new();
        server.on("create", "endpointslices").once().lose();
        add_service(&server);
        add_pod(&server, 1);
        let running = Running::start::<EndpointSliceOperator>(&server, &FLAGS);
        running.at_rest().await;
        running.pass(SECONDS).await;
        assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (1, 1));
    });
}

#[test]
fn a_watch_that_stands_still_makes_no_second_slice() {
    test(async {
        let server = Server::new();
        let running = Running::start::<EndpointSliceOperator>(&server, &FLAGS);
        running.at_rest().await;
        server.hold_watches("endpointslices");
        add_service(&server);
        add_pod(&server, 1);
        running.pass(SECONDS).await;
        add_pod(&server, 2);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (1, 1));
        server.release_watches("endpointslices");
        running.pass(SECONDS).await;
        assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (1, 2));
    });
}

const SERVICE: &str = "default/web";

fn start(server: &Server) -> Running {
    Running::start::<EndpointSliceOperator>(server, &FLAGS)
}

/// Adds objects that need no sync: a Service without a selector, one that is but another name, a pod, a node and a
/// slice.
fn add_what_needs_nothing(server: &Server) {
    server.add(&object("v1", "Service", "kubernetes").set(&["spec"], json!({ "clusterIP": "10.0.0.1" })));
    let name = json!({ "type": "ExternalName", "externalName": "example.org", "selector": { "app": "web" } });
    server.add(&object("v1", "Service", "elsewhere").set(&["spec"], name));
    server.add(&object("v1", "Node", "another"));
    server.add(&pod("other"));
    add_left_slice(server, "elsewhere");
}

/// A slice that an operator made for this Service before.
fn add_left_slice(server: &Server, service: &str) {
    let slice = object("discovery.k8s.io/v1", "EndpointSlice", "left").set(&["addressType"], "IPv4");
    let manager = ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io");
    server.add(&slice.label("kubernetes.io/service-name", service).label(manager.0, manager.1));
}

/// What was listed or watched since `before`, each once: a resource, or that of one namespace.
fn followed_since(server: &Server, before: usize) -> BTreeSet<String> {
    let requests = server.requests().split_off(before);
    let targets = requests.iter().filter_map(|line| line.strip_prefix("list ").or(line.strip_prefix("watch ")));
    targets.map(str::to_owned).collect()
}

const ON_DEMAND: [&str; 3] = ["endpointslices", "nodes", "pods"];

#[test]
fn nothing_but_services_is_followed_until_one_selects_pods() {
    test(async {
        let server = Server::new();
        add_what_needs_nothing(&server);
        let running = start(&server);
        running.pass(Duration::from_mins(10)).await;
        let only_services = BTreeSet::from(["services".to_owned()]);
        assert_eq!(followed_since(&server, 0), only_services);
        assert_eq!(server.writes(), [""; 0]);

        for pause in [Duration::from_mins(6), Duration::from_mins(30)] {
            let before = server.requests().len();
            add_service(&server);
            add_pod(&server, 1);
            running.pass(SECONDS).await;
            let mut followed = followed_since(&server, before);
            // A watch ends after 5 to 10 minutes, so that of Services may begin anew just now.
            followed.remove("services");
            assert_eq!(followed, ["endpointslices", "nodes", "pods default/"].map(str::to_owned).into());
            assert_eq!(endpoints(&server), 1);
            server.delete("services", SERVICE);
            server.delete("nodes", "node");
            running.pass(pause).await;
            let before = server.requests().len();
            server.delete("pods", "default/web-1");
            running.pass(Duration::from_mins(30)).await;
            assert_eq!(followed_since(&server, before), only_services, "nobody needs anything more");
        }
        assert_eq!(server.keys("endpointslices").len(), 2, "the one that was left behind is used again");
    });
}

#[test]
fn the_first_one_waits_for_all_it_needs_however_that_comes() {
    let first = |server: &Server| {
        add_left_slice(server, "web");
        add_service(server);
        (1..=2).for_each(|n| add_pod(server, n));
    };
    let then = |server: &Server| {
        assert_eq!((server.keys("endpointslices").len(), endpoints(server)), (1, 2));
    };
    test(async {
        for resource in ON_DEMAND {
            the_first_one_waits::<EndpointSliceOperator>(&FLAGS, resource, first, then).await;
        }
    });
}

/// A cluster in which an operator has listed two pods, and is no more.
async fn with_two_endpoints() -> Server {
    let server = Server::new();
    add_service(&server);
    (1..=2).for_each(|n| add_pod(&server, n));
    let running = start(&server);
    running.at_rest().await;
    running.pass(SECONDS).await;
    assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (1, 2));
    server
}

#[test]
fn a_slow_first_list_and_a_watch_that_breaks_lose_no_endpoint_and_make_no_slice_twice() {
    test(async {
        for resource in ON_DEMAND {
            let server = with_two_endpoints().await;
            let before = server.writes();
            let slow = server.on("list", resource).hold().once();
            let running = start(&server);
            slow.arrived().await;
            add_pod(&server, 3);
            running.pass(Duration::from_secs(30)).await;
            assert_eq!(server.writes(), before, "{resource} are not listed yet");
            slow.release();
            running.pass(SECONDS).await;
            assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (2, 3), "{resource}");
            server.cut_watches(resource);
            server.delete("pods", "default/web-3");
            running.pass(SECONDS).await;
            assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (1, 2), "{resource}");
            server.hold_watches(resource);
            add_pod(&server, 3);
            server.expire_watches(resource);
            server.release_watches(resource);
            running.pass(SECONDS).await;
            assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (2, 3), "{resource}");
        }
    });
}

#[test]
fn one_that_goes_and_comes_again_finds_its_slices() {
    test(async {
        let server = with_two_endpoints().await;
        let running = start(&server);
        running.at_rest().await;
        let meanwhile = |server: &Server| {
            server.delete("pods", "default/web-2");
            add_pod(server, 2);
        };
        let then = |server: &Server, pause| {
            assert_eq!((server.keys("endpointslices").len(), endpoints(server)), (1, 2), "{pause:?}");
        };
        it_goes_and_comes_again((&server, &running), ("services", SERVICE), meanwhile, SECONDS, then).await;
        assert_eq!(server.count("create endpointslices"), 1);
    });
}

#[test]
fn a_service_that_loses_its_selector_keeps_its_slices_and_gets_them_right_when_it_has_one_again() {
    test(async {
        let server = with_two_endpoints().await;
        let running = start(&server);
        running.at_rest().await;
        let writes = server.writes();
        server.change("services", SERVICE, |service| service["spec"]["selector"] = json!({}));
        running.pass(Duration::from_mins(30)).await;
        server.delete("pods", "default/web-1");
        let slice = &server.keys("endpointslices")[0];
        server.change("endpointslices", slice, |slice| slice["endpoints"][0]["conditions"]["ready"] = false.into());
        running.pass(Duration::from_mins(1)).await;
        assert_eq!(server.writes(), writes, "somebody else writes them now");
        server.change("services", SERVICE, |service| service["spec"]["selector"] = json!({ "app": "web" }));
        running.pass(SECONDS).await;
        assert_eq!((server.keys("endpointslices"), endpoints(&server)), (vec![slice.clone()], 1));
        assert_eq!(server.list("endpointslices")[0]["endpoints"][0]["conditions"]["ready"], true);
    });
}

#[test]
fn a_pod_without_an_ip_or_that_has_ended_leaves_and_one_on_its_way_out_stays() {
    test(async {
        let server = with_two_endpoints().await;
        let running = start(&server);
        running.at_rest().await;
        let serving = |server: &Server| {
            let slices = server.list("endpointslices");
            let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
            let ready = endpoints.filter_map(|endpoint| {
                let name = endpoint["targetRef"]["name"].as_str().unwrap_or_default().to_owned();
                Some((name, endpoint["conditions"]["ready"].as_bool()?))
            });
            ready.collect::<BTreeMap<String, bool>>()
        };
        let both = |second: bool| BTreeMap::from([("web-1".to_owned(), true), ("web-2".to_owned(), second)]);
        let only_first = BTreeMap::from([("web-1".to_owned(), true)]);
        let status = |server: &Server, status: &str| {
            let status: Value = serde_json::from_str(status).unwrap();
            server.change("pods", "default/web-2", |pod| {
                for (field, value) in status.as_object().unwrap() {
                    pod["status"][field] = value.clone();
                }
            });
        };

        status(&server, r#"{ "podIP": "", "podIPs": [] }"#);
        running.pass(SECONDS).await;
        assert_eq!(serving(&server), only_first);
        status(&server, r#"{ "podIP": "10.2.0.9", "podIPs": [{ "ip": "10.2.0.9" }] }"#);
        running.pass(SECONDS).await;
        assert_eq!(serving(&server), both(true));
        server.change("pods", "default/web-2", |pod| {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        });
        running.pass(SECONDS).await;
        assert_eq!(serving(&server), both(false));
        status(&server, r#"{ "phase": "Failed" }"#);
        running.pass(SECONDS).await;
        assert_eq!(serving(&server), only_first);
    });
}

/// The zones for which endpoints are meant.
fn hints(server: &Server) -> BTreeSet<String> {
    let slices = server.list("endpointslices");
    let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
    endpoints.map(|endpoint| endpoint["hints"]["forZones"][0]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn hints_are_for_the_zones_of_the_nodes_that_are_there_when_a_service_comes_again() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        for zones in [["a", "b"], ["c", "d"]] {
            for (n, zone) in (1..).zip(zones) {
                let node = object("v1", "Node", &format!("node-{zone}")).label("topology.kubernetes.io/zone", zone);
                let ready = json!([{ "type": "Ready", "status": "True" }]);
                server.add(&node.set(&["status"], json!({ "conditions": ready, "allocatable": { "cpu": "1" } })));
                add_pod(&server, n);
                server.change("pods", &format!("default/web-{n}"), |pod| {
                    pod["spec"]["nodeName"] = format!("node-{zone}").into();
                });
            }
            add_service(&server);
            server.change("services", SERVICE, |service| {
                service["metadata"]["annotations"] = json!({ "service.kubernetes.io/topology-mode": "Auto" });
            });
            server.delete("nodes", "node");
            running.pass(SECONDS).await;
            assert_eq!(hints(&server), zones.map(str::to_owned).into());
            server.delete("services", SERVICE);
            running.pass(Duration::from_mins(7)).await;
            for (n, zone) in (1..).zip(zones) {
                server.delete("nodes", &format!("node-{zone}"));
                server.delete("pods", &format!("default/web-{n}"));
            }
        }
    });
}

/// As upstream's, which makes a new slice for the endpoints of the one that it does not manage any more.
#[test]
fn a_slice_that_loses_its_label_is_left_alone_and_replaced() {
    test(async {
        let server = with_two_endpoints().await;
        let running = start(&server);
        running.at_rest().await;
        let slice = server.keys("endpointslices").remove(0);
        let manager = "endpointslice.kubernetes.io/managed-by";
        server.change("endpointslices", &slice, |slice| slice["metadata"]["labels"][manager] = "somebody".into());
        running.pass(SECONDS).await;
        assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (2, 4));
        assert_eq!(server.count(&format!("patch endpointslices {slice}")), 0);
        assert_eq!(server.count(&format!("delete endpointslices {slice}")), 0);
    });
}

#[test]
fn survives_a_kill_while_the_last_service_goes_and_the_next_comes() {
    test(async {
        let life = [
            Do(|server| {
                add_service(server);
                (1..=3).for_each(|n| add_pod(server, n));
            }),
            Pass(SECONDS),
            Do(|server| server.delete("services", SERVICE)),
            Pass(Duration::from_mins(10)),
            Do(|server| {
                server.delete("nodes", "node");
                add_service(server);
                add_pod(server, 4);
                server.change("pods", "default/web-2", |pod| {
                    pod["status"]["podIP"] = "".into();
                    pod["status"]["podIPs"] = json!([]);
                });
            }),
            Pass(SECONDS),
        ];
        let server = survives_kills::<EndpointSliceOperator>(&FLAGS, &life).await;
        assert_eq!(endpoints(&server), 3);
    });
}

#[test]
fn it_says_why_a_services_slices_are_what_they_are() {
    test(async {
        let server = Server::new();
        add_service(&server);
        add_pod(&server, 1);
        let other = object("v1", "Service", "other").set(&["spec"], json!({ "clusterIP": "10.0.0.2" }));
        server.add(&other);
        let running = Running::start::<EndpointSliceOperator>(&server, &FLAGS);
        running.pass(SECONDS).await;
        add_pod(&server, 2);
        running.pass(SECONDS).await;

        let path = |name: &str| format!("/api/v1/namespaces/default/services/{name}");
        let requests = server.requests();
        let [first, again] = [(); 2].map(|()| running.why(&path("web")));
        assert_eq!((server.requests(), &first), (requests, &again), "who asks changes nothing");
        assert_eq!(first.keys.len(), 1, "{first}");
        let key = &first.keys[0];
        let selected = |added: usize| {
            let family = json!({ "endpoints": 2, "slices": 1, "added": added, "removed": 0, "withheld": 0 });
            json!({ "selected": { "pods": 2, "families": { "IPv4": family }, "missingNodes": 0, "unsupported": 0 } })
        };
        assert_eq!(key.now.len(), 1, "{first}");
        assert_eq!((key.now[0].text.as_str(), &key.now[0].reason), ("IPv4: nothing (2 in 1)", &selected(0)));
        let last = &key.last[0];
        assert_eq!(last.stages[0].reason, selected(1), "{first}");
        assert_eq!(last.wrote[0].object, server.keys("endpointslices")[0]);
        assert_eq!(last.cause.as_ref().map(|cause| cause.object.as_str()), Some("default/web-2"));
        let ignored = running.why(&path("other"));
        assert_eq!(ignored.keys[0].now[0].reason, json!("noSelector"));
        assert_eq!(running.why("/api/v1/nodes/node").keys, []);
    });
}
