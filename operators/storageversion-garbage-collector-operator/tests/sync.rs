//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::is_followed_only_while_needed;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object};
use storageversion_garbage_collector_operator::controller::StorageVersionGarbageCollectorOperator;
use storageversion_garbage_collector_operator::objects::STORAGE_VERSIONS;

const KIND: &str = "storageversions";
const PATH: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/";
/// By then it has noticed in any case that the kind is served.
const NOTICED: Duration = Duration::from_secs(301);

fn storage_version(name: &str, apiservers: &[&str]) -> ObjectBuilder {
    let entry = |apiserver: &&str| json!({ "apiServerID": apiserver, "encodingVersion": "v1" });
    let entries: Vec<Value> = apiservers.iter().map(entry).collect();
    let object = object("internal.apiserver.k8s.io/v1alpha1", "StorageVersion", name).namespace("");
    object.set(&["status", "storageVersions"], entries).set(&["spec"], json!({}))
}

fn add_lease(server: &Server, name: &str) {
    let lease = object("coordination.k8s.io/v1", "Lease", name).namespace("kube-system");
    server.add(&lease.label("apiserver.kubernetes.io/identity", "kube-apiserver"));
}

/// With these apiservers.
fn serving(apiservers: &[&str]) -> Server {
    let server = Server::new();
    server.serve(STORAGE_VERSIONS);
    for apiserver in apiservers {
        add_lease(&server, apiserver);
    }
    server
}

async fn start(server: &Server) -> Running {
    start_at_rest::<StorageVersionGarbageCollectorOperator>(server, &[]).await
}

/// The apiservers that a StorageVersion names; `gone` where it is.
fn named(server: &Server, name: &str) -> String {
    let Some(object) = server.get(KIND, name) else { return "gone".to_owned() };
    let entries = object["status"]["storageVersions"].as_array().into_iter().flatten();
    let names = entries.filter_map(|entry| entry["apiServerID"].as_str());
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.serve(STORAGE_VERSIONS);
                for name in ["a", "b"] {
                    add_lease(server, name);
                }
            }),
            Pass(NOTICED),
            Do(|server| {
                server.add(&storage_version("both", &["a", "b"]));
                server.add(&storage_version("first", &["a"]));
                server.add(&storage_version("stale", &["b", "never"]));
            }),
            Do(|server| server.delete("leases", "kube-system/a")),
        ];
        let server = survives_kills::<StorageVersionGarbageCollectorOperator>(&[], &life).await;
        assert_eq!(["both", "first", "stale"].map(|name| named(&server, name)), ["b", "gone", "b"]);
        let writes = [
            "update storageversions/status stale",
            "update storageversions/status both",
            "delete storageversions first",
        ];
        assert_eq!(server.writes(), writes);
    });
}

#[test]
fn nothing_is_followed_where_the_kind_is_not_served() {
    test(async {
        let server = Server::new();
        let running = start(&server).await;
        running.pass(NOTICED).await;
        assert_eq!(server.requests(), [""; 0]);
        server.serve(STORAGE_VERSIONS);
        server.add(&storage_version("a", &["dead"]));
        running.pass(NOTICED).await;
        assert_eq!(named(&server, "a"), "gone");
        server.withdraw(KIND);
        running.pass(NOTICED * 3).await;
        let before = server.requests().len();
        running.pass(NOTICED).await;
        assert_eq!(server.requests()[before..], [""; 0]);
    });
}

#[test]
fn leases_are_followed_while_there_is_a_storage_version() {
    test(async {
        let server = serving(&["a"]);
        let add = |server: &Server| server.add(&storage_version("x", &["a"]));
        let remove = |server: &Server| server.delete(KIND, "x");
        let leases = "leases kube-system/";
        is_followed_only_while_needed::<StorageVersionGarbageCollectorOperator>(&server, leases, add, remove).await;
    });
}

#[test]
fn nothing_is_dropped_before_the_leases_are_listed() {
    test(async {
        let server = serving(&["a"]);
        let refused = server.on("list", "leases").answer(500, "InternalError", "etcd is down");
        server.add(&storage_version("x", &["a", "dead"]));
        let running = Running::start::<StorageVersionGarbageCollectorOperator>(&server, &[]);
        running.pass(Duration::from_secs(90)).await;
        assert_eq!((refused.count() > 1, server.writes()), (true, Vec::new()));
        refused.times(0);
        running.pass(Duration::from_secs(90)).await;
        assert_eq!(named(&server, "x"), "a");
    });
}

#[test]
fn a_lease_that_cannot_be_read_keeps_its_entry() {
    test(async {
        let server = serving(&["a"]);
        let refused = server.on("get", "leases").answer(500, "InternalError", "etcd is down");
        let running = start(&server).await;
        server.add(&storage_version("x", &["a", "dead"]));
        running.pass(Duration::from_secs(10)).await;
        assert_eq!((refused.count() > 1, named(&server, "x")), (true, "a dead".to_owned()));
        refused.times(0);
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(named(&server, "x"), "a");
    });
}

#[test]
fn an_apiserver_whose_lease_is_not_in_the_cache_keeps_its_entry() {
    test(async {
        let server = serving(&["a"]);
        server.add(&storage_version("x", &["a"]));
        let running = start(&server).await;
        server.hold_watches("leases");
        add_lease(&server, "b");
        server.change(KIND, "x", |object| {
            object["status"]["storageVersions"] = json!([{ "apiServerID": "a" }, { "apiServerID": "b" }]);
        });
        running.pass(Duration::from_secs(5)).await;
        assert_eq!((named(&server, "x"), server.writes()), ("a b".to_owned(), Vec::new()));
    });
}

#[test]
fn a_lease_without_the_label_is_no_apiservers() {
    test(async {
        let server = serving(&["a"]);
        server.add(&object("coordination.k8s.io/v1", "Lease", "other").namespace("kube-system"));
        server.add(&storage_version("x", &["a", "other", ""]));
        let _running = start(&server).await;
        assert_eq!(named(&server, "x"), "a");
    });
}

#[test]
fn an_apiserver_that_comes_back_meanwhile_keeps_its_entry() {
    test(async {
        for (alone, verb, target) in [(true, "delete", KIND), (false, "update", "storageversions/status")] {
            let server = serving(&["a", "b"]);
            let apiservers: &[&str] = if alone { &["a"] } else { &["a", "b"] };
            server.add(&storage_version("x", apiservers));
            let running = start(&server).await;
            let held = server.on(verb, target).once().hold();
            server.delete("leases", "kube-system/a");
            held.arrived().await;
            add_lease(&server, "a");
            server.change(KIND, "x", |object| object["status"]["storageVersions"][0]["encodingVersion"] = "v2".into());
            held.release();
            running.at_rest().await;
            assert_eq!(named(&server, "x"), apiservers.join(" "));
        }
    });
}

#[test]
fn storage_versions_share_the_read_of_a_lease() {
    test(async {
        let server = serving(&["a", "b"]);
        for number in 0..20 {
            server.add(&storage_version(&format!("x{number}"), &["a", "b"]));
        }
        let running = start(&server).await;
        server.delete("leases", "kube-system/a");
        running.at_rest().await;
        assert_eq!(server.count("update storageversions/status"), 20);
        assert_eq!(server.count("get leases kube-system/a"), 1);
    });
}

#[test]
fn why_says_which_apiservers_are_dead() {
    test(async {
        let server = serving(&["a"]);
        let refused = server.on("update", "storageversions/status").answer(403, "Forbidden", "no");
        server.add(&storage_version("x", &["a", "dead"]));
        let running = Running::start::<StorageVersionGarbageCollectorOperator>(&server, &[]);
        running.pass(Duration::from_secs(1)).await;
        let path = format!("{PATH}x");
        let reading = "reread it and the Leases of its apiservers (no Lease in the cache: dead)";
        assert_eq!(running.now(&path), [reading]);
        assert_eq!(running.last(&path), [reading, "drop 1 of 2 entries (apiservers without a Lease: dead)"]);
        refused.times(0);
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(running.now(&path), ["keep (apiservers with a Lease: 1)"]);
    });
}

#[test]
fn the_answer_of_a_deletion_may_be_lost() {
    test(async {
        let server = serving(&["a"]);
        server.add(&storage_version("x", &["a"]));
        server.on("delete", KIND).once().lose();
        let running = start(&server).await;
        server.delete("leases", "kube-system/a");
        running.at_rest().await;
        assert_eq!((named(&server, "x"), server.writes().len()), ("gone".to_owned(), 1));
    });
}
