//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use endpointslice_mirroring_operator::EndpointSliceMirroringOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

const SECONDS: Duration = Duration::from_secs(3);
const KEY: &str = "default/db";

fn add_service(server: &Server) {
    server.add(&object("v1", "Service", "db").set(&["spec", "clusterIP"], "10.0.0.1"));
}

/// These addresses on one port.
fn subsets(ips: &[&str], port: i32) -> Value {
    let addresses: Vec<Value> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
    json!([{ "addresses": addresses, "ports": [{ "name": "sql", "port": port, "protocol": "TCP" }] }])
}

fn endpoints() -> ObjectBuilder {
    object("v1", "Endpoints", "db").set(&["subsets"], subsets(&["10.1.0.1", "10.1.0.2"], 5432)).label("tier", "data")
}

fn change(server: &Server, ips: &[&str], port: i32) {
    server.change("endpoints", KEY, |endpoints| endpoints["subsets"] = subsets(ips, port));
}

/// All addresses of all slices.
fn addresses(server: &Server) -> Vec<String> {
    let slices = server.list("endpointslices");
    let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
    let mut found: Vec<String> =
        endpoints.map(|endpoint| endpoint["addresses"][0].as_str().unwrap_or_default().to_owned()).collect();
    found.sort();
    found
}

fn start(server: &Server) -> Running {
    Running::start::<EndpointSliceMirroringOperator>(server, &[])
}

/// A Service and its Endpoints, mirrored.
async fn started() -> (Server, Running) {
    let server = Server::new();
    add_service(&server);
    server.add(&endpoints());
    let running = start(&server);
    running.at_rest().await;
    assert_eq!(addresses(&server), ["10.1.0.1", "10.1.0.2"]);
    (server, running)
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                add_service(server);
                server.add(&endpoints());
            }),
            Do(|server| change(server, &["10.1.0.1", "fd00::1"], 5432)),
            // Two lists of ports in place of one.
            Do(|server| {
                let mut both = subsets(&["10.1.0.3"], 5433);
                both.as_array_mut().into_iter().for_each(|both| both.extend([subsets(&["10.1.0.1"], 5432)[0].clone()]));
                server.change("endpoints", KEY, |endpoints| endpoints["subsets"] = both);
            }),
            Do(|server| {
                let label = |endpoints: &mut Value| endpoints["metadata"]["labels"] = json!({ "tier": "other" });
                server.change("endpoints", KEY, label);
            }),
            Do(|server| change(server, &["fd00::2"], 5434)),
            Pass(SECONDS),
            Do(|server| server.delete("endpoints", KEY)),
            Do(|server| server.add(&endpoints())),
            Do(|server| {
                server.change("services", KEY, |service| service["spec"]["selector"] = json!({ "app": "db" }));
            }),
            Pass(SECONDS),
        ];
        let server = survives_kills::<EndpointSliceMirroringOperator>(&[], &life).await;
        assert_eq!(server.keys("endpointslices"), [""; 0]);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_slice() {
    test(async {
        let server = Server::new();
        server.on("create", "endpointslices").once().lose();
        add_service(&server);
        server.add(&endpoints());
        let running = start(&server);
        running.at_rest().await;
        running.pass(SECONDS).await;
        assert_eq!((server.keys("endpointslices").len(), addresses(&server).len()), (1, 2));
    });
}

#[test]
fn a_slice_that_somebody_else_changes_meanwhile_is_decided_anew() {
    test(async {
        let (server, running) = started().await;
        let conflict = server.on("patch", "endpointslices").answer(409, "Conflict", "changed").once();
        change(&server, &["10.1.0.9"], 5432);
        running.pass(SECONDS).await;
        assert_eq!((conflict.count(), addresses(&server)), (1, vec!["10.1.0.9".to_owned()]));
    });
}

#[test]
fn a_watch_that_stands_still_keeps_no_address_that_is_gone() {
    test(async {
        let (server, running) = started().await;
        server.hold_watches("endpointslices");
        change(&server, &["10.1.0.2", "fd00::1"], 5432);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(addresses(&server), ["10.1.0.2", "fd00::1"]);
        // Its own writes are not seen yet: nothing is decided, and no slice is made twice.
        change(&server, &["fd00::2"], 5432);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(addresses(&server), ["10.1.0.2", "fd00::1"]);
        server.release_watches("endpointslices");
        running.pass(SECONDS).await;
        assert_eq!((addresses(&server), server.keys("endpointslices").len()), (vec!["fd00::2".to_owned()], 1));
    });
}

#[test]
fn endpoints_whose_watch_expired_are_listed_anew() {
    test(async {
        let (server, running) = started().await;
        server.hold_watches("endpoints");
        change(&server, &["10.1.0.7"], 5432);
        server.expire_watches("endpoints");
        server.release_watches("endpoints");
        running.pass(Duration::from_mins(1)).await;
        assert_eq!(addresses(&server), ["10.1.0.7"]);
    });
}

#[test]
fn a_selector_takes_the_slices_away_and_gives_them_back() {
    test(async {
        let (server, running) = started().await;
        let select = |selector: Value| server.change("services", KEY, |service| service["spec"]["selector"] = selector);
        for pause in [SECONDS, Duration::from_mins(30)] {
            select(json!({ "app": "db" }));
            running.pass(pause).await;
            assert_eq!(server.keys("endpointslices"), [""; 0]);
            // Nobody follows them after a while.
            change(&server, &["10.1.0.5"], 5432);
            running.pass(SECONDS).await;
            select(Value::Null);
            running.pass(SECONDS).await;
            assert_eq!(addresses(&server), ["10.1.0.5"], "{pause:?}");
        }
    });
}

#[test]
fn endpoints_that_are_to_be_skipped_are_as_good_as_gone() {
    test(async {
        let (server, running) = started().await;
        let skip = |value: &str| {
            let label = |endpoints: &mut Value| {
                endpoints["metadata"]["labels"]["endpointslice.kubernetes.io/skip-mirror"] = value.into();
            };
            server.change("endpoints", KEY, label);
        };
        skip("true");
        running.pass(SECONDS).await;
        assert_eq!(server.keys("endpointslices"), [""; 0]);
        skip("false");
        running.pass(SECONDS).await;
        assert_eq!(addresses(&server).len(), 2);
        // A lock is followed, and no reason to write.
        let lock = object("v1", "Endpoints", "lock").set(&["subsets"], subsets(&["10.1.0.1"], 1));
        let before = server.writes().len();
        server.add(&object("v1", "Service", "lock").set(&["spec", "clusterIP"], "None"));
        server.add(&lock.annotation("control-plane.alpha.kubernetes.io/leader", "{}"));
        running.pass(SECONDS).await;
        assert_eq!(server.writes().len(), before);
    });
}

#[test]
fn what_others_do_to_a_slice_is_put_right_and_own_writes_wake_nobody() {
    test(async {
        let (server, running) = started().await;
        assert_eq!(server.writes().len(), 1);
        let slice = server.keys("endpointslices")[0].clone();
        server.change("endpointslices", &slice, |slice| {
            slice["endpoints"] = json!([{ "addresses": ["6.6.6.6"] }]);
            slice["metadata"]["generation"] = 2.into();
        });
        running.pass(SECONDS).await;
        assert_eq!((addresses(&server).len(), server.count("patch endpointslices")), (2, 1));
        server.delete("endpointslices", &slice);
        running.pass(SECONDS).await;
        assert_eq!((addresses(&server).len(), server.count("create endpointslices")), (2, 2));
        // Given away, it is somebody else's, and there is one in its place.
        let slice = server.keys("endpointslices")[0].clone();
        server.change("endpointslices", &slice, |slice| {
            slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] = "somebody".into();
        });
        running.pass(SECONDS).await;
        assert_eq!((server.keys("endpointslices").len(), server.count("delete endpointslices")), (2, 0));
    });
}

#[test]
fn slices_that_were_left_go_when_work_starts() {
    test(async {
        let server = Server::new();
        let left = object("discovery.k8s.io/v1", "EndpointSlice", "left").set(&["addressType"], "IPv4");
        let manager = ("endpointslice.kubernetes.io/managed-by", "endpointslicemirroring-controller.k8s.io");
        server.add(&left.label("kubernetes.io/service-name", "gone").label(manager.0, manager.1));
        let running = start(&server);
        running.at_rest().await;
        running.pass(SECONDS).await;
        assert_eq!(server.keys("endpointslices"), [""; 0]);
    });
}

#[test]
fn people_are_told_what_is_left_out_once_for_each_change() {
    test(async {
        let server = Server::new();
        add_service(&server);
        let ips: Vec<String> = (0..4).map(|n| format!("10.1.0.{n}")).collect();
        let ips: Vec<&str> = ips.iter().map(String::as_str).chain(["nothing"]).collect();
        server.add(&endpoints().set(&["subsets"], subsets(&ips, 5432)));
        let flags = ["--mirroring-max-endpoints-per-subset=3"];
        let running = Running::start::<EndpointSliceMirroringOperator>(&server, &flags);
        running.at_rest().await;
        running.pass(SECONDS).await;
        let told = "Warning TooManyAddressesToMirror: A max of 3 addresses can be mirrored to EndpointSlices per Endpoints \
                    subset. 2 addresses were skipped";
        assert_eq!((server.events(), addresses(&server).len()), (vec![told.to_owned()], 3));
    });
}

#[test]
fn a_namespace_that_ends_gets_no_slices_and_nobody_is_told() {
    test(async {
        let server = Server::new();
        let namespace = object("v1", "Namespace", "default").set(&["metadata", "finalizers"], json!(["a/b"]));
        server.add(&namespace.terminating());
        add_service(&server);
        server.add(&endpoints());
        let running = start(&server);
        running.at_rest().await;
        let seen = (server.keys("endpointslices").len(), server.events().len(), server.count("create endpointslices"));
        assert_eq!(seen, (0, 0, 1));
    });
}

#[test]
fn endpoints_are_followed_only_beside_a_service_without_a_selector() {
    test(async {
        let server = Server::new();
        let selecting = object("v1", "Service", "web").set(&["spec", "selector"], json!({ "app": "web" }));
        server.add(&selecting);
        server.add(&endpoints());
        let remove = |server: &Server| server.delete("services", KEY);
        let of_namespace = "endpoints default/";
        is_followed_only_while_needed::<EndpointSliceMirroringOperator>(&server, of_namespace, add_service, remove)
            .await;
    });
}

#[test]
fn the_first_one_waits_for_the_endpoints() {
    let first = |server: &Server| {
        server.add(&endpoints());
        add_service(server);
    };
    let then = |server: &Server| assert_eq!(addresses(server).len(), 2);
    test(the_first_one_waits::<EndpointSliceMirroringOperator>(&[], "endpoints", first, then));
}

#[test]
fn one_that_goes_and_comes_again_finds_its_endpoints() {
    test(async {
        let (server, running) = started().await;
        let meanwhile = |server: &Server| change(server, &["10.1.0.8"], 5432);
        let then = |server: &Server, pause| assert_eq!(addresses(server), ["10.1.0.8"], "{pause:?}");
        it_goes_and_comes_again((&server, &running), ("services", KEY), meanwhile, SECONDS, then).await;
    });
}

#[test]
fn it_says_why_slices_are_what_they_are() {
    test(async {
        let (server, running) = started().await;
        server.add(&object("v1", "Service", "web").set(&["spec", "selector"], json!({ "app": "web" })));
        change(&server, &["10.1.0.1", "10.1.0.3"], 5432);
        running.pass(SECONDS).await;

        let path = |kind: &str, name: &str| format!("/api/v1/namespaces/default/{kind}/{name}");
        let requests = server.requests();
        let [first, again] = [(); 2].map(|()| running.why(&path("endpoints", "db")));
        assert_eq!((server.requests(), &first), (requests, &again), "who asks changes nothing");
        let key = &first.keys[0];
        let counts = json!({ "endpoints": 2, "slices": 1, "invalid": 0, "tooMany": 0, "withheld": 0 });
        assert_eq!(key.now[0].text, "nothing (2 endpoints in 1 slice)");
        assert_eq!(key.now[0].reason, json!({ "mirrored": counts }));
        let last = &key.last[0];
        assert!(last.stages[0].text.ends_with(" to 2 (1 added, 1 removed)"), "{first}");
        assert_eq!(last.wrote[0].object, server.keys("endpointslices")[0]);
        assert_eq!(last.cause.as_ref().map(|cause| cause.object.as_str()), Some(KEY));
        let selecting = running.why(&path("services", "web"));
        assert_eq!(selecting.keys[0].now[0].reason, json!({ "notMirrored": "hasSelector" }));
        assert_eq!(running.why(&path("pods", "db")).keys, []);
    });
}
