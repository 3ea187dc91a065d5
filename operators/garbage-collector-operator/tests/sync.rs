//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use garbage_collector_operator::controller::GarbageCollectorOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, object, uid};
use tokio::time::sleep;

const SECONDS: Duration = Duration::from_secs(10);

fn add_owner(server: &Server) {
    server.add(&object("apps/v1", "ReplicaSet", "owner"));
}

fn owned(kind: &str, name: &str) -> ObjectBuilder {
    let reference = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": uid("owner").to_string(),
        "blockOwnerDeletion": true,
    });
    object("v1", kind, name).set(&["metadata", "ownerReferences"], json!([reference]))
}

fn add_dependents(server: &Server) {
    server.add(&owned("Pod", "p"));
    server.add(&owned("ConfigMap", "c"));
    server.add(&object("v1", "ConfigMap", "free"));
}

/// Deletes the owner as far as the server does: a finalizer waits for the collector.
fn delete_with(server: &Server, finalizer: &str) {
    server.change("replicasets", "default/owner", |owner| {
        owner["metadata"]["finalizers"] = json!([finalizer]);
        owner["metadata"]["deletionTimestamp"] = NOW.to_string().into();
    });
}

#[test]
fn survives_a_kill_before_any_write_in_background_deletion() {
    test(async {
        let life = [
            Do(add_owner),
            Do(add_dependents),
            Pass(SECONDS),
            Do(|server| server.delete("replicasets", "default/owner")),
            Pass(SECONDS),
            Do(Server::run_pods),
            Pass(SECONDS),
        ];
        let server = survives_kills::<GarbageCollectorOperator>(&[], &life).await;
        assert_eq!((server.keys("pods").len(), server.keys("configmaps")), (0, vec!["default/free".to_owned()]));
    });
}

#[test]
fn survives_a_kill_before_any_write_in_foreground_deletion() {
    test(async {
        let life = [
            Do(add_owner),
            Do(add_dependents),
            Pass(SECONDS),
            Do(|server| delete_with(server, "foregroundDeletion")),
            Pass(SECONDS),
            Do(Server::run_pods),
            Pass(SECONDS),
        ];
        let server = survives_kills::<GarbageCollectorOperator>(&[], &life).await;
        assert_eq!((server.keys("pods").len(), server.keys("replicasets").len()), (0, 0));
        assert_eq!(server.writes().last().unwrap(), "patch replicasets default/owner");
    });
}

#[test]
fn survives_a_kill_before_any_write_while_it_orphans() {
    test(async {
        let life = [
            Do(add_owner),
            Do(add_dependents),
            Pass(SECONDS),
            Do(|server| delete_with(server, "orphan")),
            Pass(SECONDS),
        ];
        let server = survives_kills::<GarbageCollectorOperator>(&[], &life).await;
        assert_eq!((server.keys("pods").len(), server.keys("replicasets").len()), (1, 0));
        assert_eq!(server.get("pods", "default/p").unwrap()["metadata"]["ownerReferences"], json!([]));
    });
}

#[test]
fn a_dependent_with_a_uid_that_is_no_uuid_is_orphaned() {
    test(async {
        let server = Server::new();
        add_owner(&server);
        server.add(&owned("Secret", "s").set(&["metadata", "uid"], "Ab-12"));
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        server.on("patch", "secrets").once().answer(409, "Conflict", "UID in precondition");
        delete_with(&server, "orphan");
        running.pass(SECONDS).await;
        assert_eq!(server.keys("replicasets"), [""; 0]);
        assert!(server.get("secrets", "default/s").unwrap()["metadata"]["ownerReferences"].is_null());
    });
}

#[test]
fn a_dependent_that_gets_a_new_owner_at_the_last_moment_stays() {
    test(async {
        let server = Server::new();
        add_owner(&server);
        add_dependents(&server);
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        let held = server.on("delete", "configmaps").hold();
        server.delete("replicasets", "default/owner");
        held.arrived().await;
        server.add(&object("apps/v1", "ReplicaSet", "next"));
        server.change("configmaps", "default/c", |map| {
            map["metadata"]["ownerReferences"][0]["name"] = "next".into();
            map["metadata"]["ownerReferences"][0]["uid"] = uid("next").to_string().into();
        });
        held.release();
        running.pass(SECONDS).await;
        assert_eq!(server.keys("configmaps"), ["default/c", "default/free"]);
    });
}

/// A Lease that goes with `node`.
fn lease(name: &str, namespace: &str) -> ObjectBuilder {
    let reference = json!({ "apiVersion": "v1", "kind": "Node", "name": "node", "uid": uid("node").to_string() });
    let lease = object("coordination.k8s.io/v1", "Lease", name).namespace(namespace);
    lease.set(&["metadata", "ownerReferences"], json!([reference]))
}

fn leases(server: &Server) -> Vec<String> {
    server.keys("leases")
}

#[test]
fn the_lease_of_a_node_goes_with_it_although_nobody_watches_it() {
    test(async {
        let server = Server::new();
        server.add(&object("v1", "Node", "node"));
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        server.add(&lease("kubelet", "kube-node-lease"));
        server.add(&lease("other", "elsewhere"));
        running.pass(SECONDS).await;
        let lists = server.count("list leases");
        for time in ["12:00:00.000000Z", "12:00:10.000000Z"] {
            server.change("leases", "kube-node-lease/kubelet", |lease| lease["spec"]["renewTime"] = time.into());
        }
        running.pass(SECONDS).await;
        assert_eq!(server.count("list leases"), lists);
        server.delete("nodes", "node");
        running.pass(SECONDS).await;
        assert_eq!(leases(&server), [""; 0]);
        assert_eq!(server.count("list leases"), lists + 1);
    });
}

#[test]
fn the_lease_of_a_node_that_went_while_nobody_looked_goes_at_the_start() {
    test(async {
        let server = Server::new();
        server.add(&lease("kubelet", "kube-node-lease"));
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        assert_eq!(leases(&server), [""; 0]);
    });
}

#[test]
fn what_is_served_is_asked_for_again_within_seconds() {
    test(async {
        let server = Server::new();
        add_dependents(&server);
        server.fail_discovery(1);
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        assert_eq!(server.keys("configmaps"), ["default/free"]);
    });
}

#[test]
fn four_kinds_are_listed_at_a_time_and_those_that_do_not_answer_hold_up_the_others_for_a_moment() {
    test(async {
        let server = Server::new();
        let kinds = ["secrets", "nodes", "services", "jobs", "deployments", "endpoints", "cronjobs"];
        let held = kinds.map(|kind| server.on("list", kind).hold());
        let asked_for = || held.iter().filter(|rule| rule.count() > 0).count();
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(Duration::from_millis(50)).await;
        assert_eq!(asked_for(), 4);
        running.pass(SECONDS).await;
        assert_eq!(asked_for(), kinds.len());
    });
}

/// The decision about an object now, and its reason; the question changes nothing.
#[track_caller]
fn now(server: &Server, running: &Running, path: &str) -> (String, Value) {
    let requests = server.requests();
    let [first, again] = [(); 2].map(|()| running.why(path));
    assert_eq!((server.requests(), &first), (requests, &again));
    assert_eq!(first.keys[0].queue, "garbage_collector_attempt_to_delete");
    assert_eq!(first.keys[0].now.len(), 1, "{first}");
    let now = &first.keys[0].now[0];
    (now.text.clone(), now.reason.clone())
}

fn named(name: &str) -> Value {
    json!({ "names": [name], "more": 0 })
}

#[test]
fn it_says_of_any_object_why_it_stays() {
    test(async {
        let server = Server::new();
        add_owner(&server);
        add_dependents(&server);
        let elsewhere = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner",
                                 "uid": uid("owner").to_string() }]);
        let stuck = object("v1", "Secret", "elsewhere").namespace("a");
        server.add(&stuck.set(&["metadata", "ownerReferences"], elsewhere));
        let refused = server.on("delete", "secrets").answer(403, "Forbidden", "no");
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        assert!(refused.count() > 0);

        let now = |path: &str| now(&server, &running, path);
        let owner = "ReplicaSet owner";
        let path = "/api/v1/namespaces/default/configmaps";
        let expected = ("ConfigMap default/free: nothing (has no owners)".to_owned(), json!("noOwners"));
        assert_eq!(now(&format!("{path}/free")), expected);
        let text = format!("ConfigMap default/c: nothing (is owned by {owner})");
        assert_eq!(now(&format!("{path}/c")), (text, json!({ "owned": { "owners": named(owner) } })));
        let (text, reason) = now("/api/v1/namespaces/a/secrets/elsewhere");
        let expected = "Secret a/elsewhere: delete Background (all its owners are gone: ReplicaSet owner is in another \
                        namespace), if the apiserver confirms it";
        assert_eq!(text, expected);
        assert_eq!(reason["allOwnersGone"]["elsewhere"], named(owner));
        for (path, expected) in [
            ("/apis/example.com/v1/namespaces/default/gadgets/g", json!("unserved")),
            ("/api/v1/namespaces/default/events/e", json!("notFollowed")),
            ("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n", json!("leaseOfNode")),
            ("/api/v1/namespaces/default/configmaps/none", json!("notSeen")),
        ] {
            assert_eq!(now(path).1, expected, "{path}");
        }
    });
}

#[test]
fn it_says_which_dependents_hold_a_deletion_back_and_what_became_of_it() {
    test(async {
        let server = Server::new();
        add_owner(&server);
        server.add(&owned("Pod", "p").set(&["metadata", "finalizers"], json!(["test"])));
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        delete_with(&server, "foregroundDeletion");
        running.pass(SECONDS).await;

        let path = "/apis/apps/v1/namespaces/default/replicasets/owner";
        let waits = json!({ "waitsForDependents": { "dependents": named("Pod default/p") } });
        let (text, reason) = now(&server, &running, path);
        assert!(text.ends_with("(waits for dependents that block its deletion: Pod default/p)"), "{text}");
        assert_eq!(reason, waits);
        let why = running.why(path);
        assert_eq!(why.keys.len(), 1, "{why}");
        assert_eq!(why.keys[0].last[0].stages[0].reason, waits);

        let pod = "/api/v1/namespaces/default/pods/p";
        assert_eq!(now(&server, &running, pod).1, json!("beingDeleted"));
        let last = &running.why(pod).keys[0].last;
        let wait = json!({ "ownersWait": { "owners": named("ReplicaSet owner") } });
        assert!(last.iter().any(|decision| decision.stages[0].reason == wait), "{last:?}");
    });
}

#[test]
fn it_says_whose_dependents_are_to_be_orphaned() {
    test(async {
        let server = Server::new();
        add_owner(&server);
        add_dependents(&server);
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        server.on("patch", "configmaps").answer(403, "Forbidden", "no");
        delete_with(&server, "orphan");
        running.pass(SECONDS).await;
        let why = running.why("/apis/apps/v1/namespaces/default/replicasets/owner");
        let [delete, orphan] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(delete.now[0].reason, json!("beingDeleted"));
        assert_eq!(orphan.queue, "garbage_collector_attempt_to_orphan");
        assert_eq!(orphan.now[0].reason, json!({ "orphan": { "dependents": 1 } }));
        assert!(orphan.standing.failures > 0 && orphan.last[0].error.is_some(), "{why}");
    });
}

#[test]
fn it_says_which_owner_nobody_can_look_for() {
    test(async {
        let server = Server::new();
        add_dependents(&server);
        server.on("watch", "replicasets").answer(500, "InternalError", "the conversion webhook is down");
        server.on("get", "replicasets").answer(500, "InternalError", "the conversion webhook is down");
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(Duration::from_secs(60)).await;
        let (_, reason) = now(&server, &running, "/api/v1/namespaces/default/configmaps/c");
        assert_eq!(reason["ownerUnseen"]["owner"], "ReplicaSet owner");
        let failing = reason["ownerUnseen"]["failing"].as_str().unwrap();
        assert!(failing.contains("the conversion webhook is down"), "{failing}");
    });
}

#[test]
fn an_object_with_thousands_of_owners_that_never_were_is_collected_little_by_little_and_holds_up_no_other() {
    test(async {
        const OWNERS: usize = 1000;
        let server = Server::new();
        let never = |at: usize| {
            let name = format!("never-{at}");
            json!({ "apiVersion": "v1", "kind": "Node", "name": name, "uid": uid(&name).to_string() })
        };
        let owners: Vec<Value> = (0..OWNERS).map(never).collect();
        server.add(&object("v1", "Secret", "hostile").set(&["metadata", "ownerReferences"], json!(owners)));
        server.add(&owned("ConfigMap", "c"));
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(Duration::from_secs(1)).await;
        let reads = server.count("get nodes");
        assert!((100..=350).contains(&reads), "{reads}");
        assert_eq!((server.keys("configmaps"), server.keys("secrets").len()), (vec![], 1));
        running.pass(Duration::from_secs(1)).await;
        let more = server.count("get nodes") - reads;
        assert!((50..=110).contains(&more), "{more}");
        running.pass(Duration::from_mins(1)).await;
        assert_eq!(server.keys("secrets"), [""; 0]);
        assert!(server.count("get nodes") <= 2 * OWNERS, "each is read once for itself, and once for the object");
        assert!(server.count("get secrets") <= OWNERS / 20, "{}", server.count("get secrets"));
    });
}

/// Turns the brake on.
const BRAKE: &str = "--mass-deletion-share=0.03";

/// This many ConfigMaps with an existing owner.
async fn with_dependents(flags: &[&str], count: usize) -> (Server, Running) {
    let server = Server::new();
    add_owner(&server);
    (0..count).for_each(|at| server.add(&owned("ConfigMap", &format!("map-{at}"))));
    let running = Running::start::<GarbageCollectorOperator>(&server, flags);
    running.pass(SECONDS).await;
    assert_eq!(server.keys("configmaps").len(), count);
    (server, running)
}

/// Changes every reference to an owner that never existed; nothing is deleted.
fn change_owners(server: &Server, count: usize) {
    for at in 0..count {
        server.change("configmaps", &format!("default/map-{at}"), |map| {
            map["metadata"]["ownerReferences"][0]["uid"] = uid("never").to_string().into();
        });
    }
}

#[test]
fn with_a_brake_objects_whose_references_were_changed_go_up_to_a_share_and_then_slowly() {
    test(async {
        let (server, running) = with_dependents(&[BRAKE], 200).await;
        change_owners(&server, 200);
        running.pass(Duration::from_mins(1)).await;
        let left = server.keys("configmaps").len();
        assert!((183..=185).contains(&left), "10 may go at once, and six each minute: {left} are left");
        let slowed: Vec<String> =
            server.events().into_iter().filter(|event| event.contains("MassDeletionSlowed")).collect();
        assert_eq!(slowed.len(), 1, "{slowed:?}");
        // The references are as they were again.
        for key in server.keys("configmaps") {
            server.change("configmaps", &key, |map| {
                map["metadata"]["ownerReferences"][0]["uid"] = uid("owner").to_string().into();
            });
        }
        running.pass(Duration::from_hours(1)).await;
        assert_eq!(server.keys("configmaps").len(), left);
    });
}

#[test]
fn objects_whose_owner_was_deleted_and_a_brake_that_is_off_wait_for_nothing() {
    test(async {
        let (server, running) = with_dependents(&[BRAKE], 200).await;
        server.delete("replicasets", "default/owner");
        running.pass(SECONDS).await;
        assert_eq!(server.keys("configmaps"), [""; 0]);

        let (server, running) = with_dependents(&["--mass-deletion-share=0"], 200).await;
        change_owners(&server, 200);
        running.pass(SECONDS).await;
        assert_eq!(server.keys("configmaps"), [""; 0]);
    });
}

#[test]
fn a_thousand_children_of_owners_that_were_deleted_while_no_collector_ran_go_at_full_speed_by_default() {
    test(async {
        let (server, running) = with_dependents(&[], 1000).await;
        drop(running);
        server.delete("replicasets", "default/owner");
        sleep(Duration::from_mins(1)).await;
        assert_eq!(server.keys("configmaps").len(), 1000);
        let running = Running::start::<GarbageCollectorOperator>(&server, &[]);
        running.pass(SECONDS).await;
        assert_eq!(server.keys("configmaps"), [""; 0]);
        assert!(!server.events().iter().any(|event| event.contains("MassDeletionSlowed")));
    });
}
