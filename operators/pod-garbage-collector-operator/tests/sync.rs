//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use pod_garbage_collector_operator::controller::PodGarbageCollectorOperator;
use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, ago, object, pod};

const FLAGS: [&str; 1] = ["--terminated-pod-gc-threshold=1"];
/// A node is found to be missing within a minute, and then waited for.
const FOUND: Duration = Duration::from_secs(120);

fn node(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).ready()
}

fn add_node(server: &Server) {
    server.add(&node("node"));
}

/// Adds a node that a person has given up.
fn add_lost_node(server: &Server) {
    let taints = json!([{ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute" }]);
    server.add(&object("v1", "Node", "lost").set(&["spec", "taints"], taints));
}

/// A pod that is being deleted on a node, or on none, where nobody ends it.
fn stuck(name: &str, node: &str) -> ObjectBuilder {
    pod(name).node(node).terminating().set(&["metadata", "deletionGracePeriodSeconds"], 30)
}

async fn start(server: &Server, flags: &[&str]) -> Running {
    let running = Running::start::<PodGarbageCollectorOperator>(server, flags);
    running.at_rest().await;
    running
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(add_node),
            Do(add_lost_node),
            Do(|server| {
                server.add(&node("gone"));
                server.add(&pod("runs"));
                let stuck = [stuck("stuck", "").phase("Pending"), stuck("stuck-too", "lost")];
                let orphans = [pod("orphan").node("gone"), pod("never").node("nowhere").phase("Pending")];
                // Older than all that has ended: each has failed once it was marked so, and may then be one too many.
                stuck.into_iter().chain(orphans).for_each(|pod| server.add(&pod.created(ago(120))));
                for (name, seconds) in [("old", 30), ("older", 60), ("oldest", 90)] {
                    server.add(&pod(name).phase("Succeeded").created(ago(seconds)));
                }
            }),
            Do(|server| server.delete("nodes", "gone")),
            Pass(Duration::from_mins(5)),
        ];
        let server = survives_kills::<PodGarbageCollectorOperator>(&FLAGS, &life).await;
        assert_eq!(server.keys("pods"), ["default/old", "default/runs"]);
    });
}

#[test]
fn a_pod_whose_deletion_is_refused_keeps_no_other_waiting() {
    test(async {
        let server = Server::new();
        add_node(&server);
        let running = start(&server, &FLAGS).await;
        server.on("delete", "pods").once().answer(500, "InternalError", "failed calling webhook");
        server.add(&pod("a").node("gone").phase("Pending"));
        server.add(&pod("b").node("gone").phase("Pending"));
        running.pass(FOUND).await;
        assert!(server.keys("pods").is_empty());
        assert_eq!(server.count("delete pods"), 3);
    });
}

#[test]
fn a_node_that_only_the_cache_has_not_seen_keeps_its_pods() {
    test(async {
        let server = Server::new();
        let running = start(&server, &FLAGS).await;
        server.hold_watches("nodes");
        add_node(&server);
        server.add(&pod("a").phase("Pending"));
        running.pass(FOUND).await;
        assert_eq!(server.writes(), [""; 0]);
        assert!(server.count("get nodes node") > 0);
    });
}

#[test]
fn a_node_that_went_before_the_start_is_found_though_its_pods_cannot_be_listed_at_first() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&pod("lost").node("gone"));
        server.add(&pod("runs"));
        let refused = server.on("list", "pods").answer(500, "InternalError", "no").times(10);
        let running = start(&server, &FLAGS).await;
        running.pass(FOUND).await;
        assert_eq!((refused.count(), server.keys("pods")), (10, vec!["default/runs".to_owned()]));
        assert_eq!(server.writes(), ["patch pods/status default/lost", "delete pods default/lost"]);
    });
}

#[test]
fn a_node_that_goes_is_waited_for_and_its_pods_are_listed_until_that_works() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&pod("a"));
        let running = start(&server, &FLAGS).await;
        server.delete("nodes", "node");
        running.pass(Duration::from_secs(39)).await;
        assert_eq!(server.writes(), [""; 0]);
        let refused = server.on("list", "pods").answer(503, "ServiceUnavailable", "no");
        running.pass(Duration::from_secs(15)).await;
        assert_eq!(server.writes(), [""; 0]);
        refused.times(0);
        running.pass(Duration::from_secs(31)).await;
        assert!(server.keys("pods").is_empty());
    });
}

#[test]
fn a_node_that_comes_back_in_time_keeps_its_pods() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&pod("a"));
        let running = start(&server, &FLAGS).await;
        server.delete("nodes", "node");
        running.pass(Duration::from_secs(30)).await;
        add_node(&server);
        running.pass(Duration::from_mins(10)).await;
        assert_eq!(server.writes(), [""; 0]);
        assert_eq!(server.count("get nodes"), 0, "the cache knows");
    });
}

#[test]
fn a_pod_that_is_bound_late_to_a_node_that_is_gone_goes_too() {
    test(async {
        let server = Server::new();
        add_node(&server);
        let running = start(&server, &FLAGS).await;
        server.delete("nodes", "node");
        running.pass(Duration::from_secs(60)).await;
        server.add(&pod("started"));
        running.pass(FOUND).await;
        assert_eq!(server.keys("pods"), ["default/started"]);
        running.pass(Duration::from_mins(3)).await;
        assert!(server.keys("pods").is_empty());
    });
}

/// So many ended pods, each a second younger than the one before it.
fn add_ended(server: &Server, count: u32) {
    for n in 0..count {
        let phase = if n % 2 == 0 { "Failed" } else { "Succeeded" };
        let ended = pod(&format!("pod-{n:04}")).phase(phase).created(ago(i64::from(count - n)));
        // Of three that were evicted one is the youngest of all.
        let is_evicted = [200, 700, count - 2].contains(&n);
        server.add(&if is_evicted { ended.set(&["status", "reason"], "Evicted") } else { ended });
    }
}

#[test]
fn of_many_ended_pods_those_that_were_evicted_go_first_and_then_the_oldest() {
    test(async {
        let server = Server::new();
        add_node(&server);
        add_ended(&server, 1200);
        server.add(&pod("odd").phase("").created(ago(5000)));
        let running = start(&server, &["--terminated-pod-gc-threshold=1195"]).await;
        running.pass(Duration::from_secs(60)).await;
        let deleted = server.writes().into_iter().filter(|write| write.starts_with("delete"));
        // A pod whose phase is not final is marked before it goes; of a pod that has succeeded the metadata is enough.
        let names = ["pod-0200", "pod-0700", "pod-1198", "odd", "pod-0000", "pod-0001"];
        assert_eq!(deleted.collect::<Vec<_>>(), names.map(|name| format!("delete pods default/{name}")));
        assert_eq!(server.count("patch pods"), 1);
        // The ended pods are followed, which is one answer. The unsuccessful ones are listed once, in two pages; each
        // round looks for stuck ones; and the search lists the bound pods.
        assert_eq!(server.count("list pods"), 1 + 2 + 4 + 2);
    });
}

#[test]
fn ended_pods_that_may_all_stay_are_not_followed() {
    test(async {
        let server = Server::new();
        add_node(&server);
        add_ended(&server, 10);
        let running = start(&server, &["--terminated-pod-gc-threshold=0"]).await;
        running.pass(FOUND).await;
        assert_eq!((server.count("watch pods"), server.writes().len()), (0, 0));
    });
}

#[test]
fn pods_that_cannot_be_listed_hurt_no_others() {
    test(async {
        let server = Server::new();
        add_node(&server);
        add_lost_node(&server);
        let running = start(&server, &FLAGS).await;
        // Two have ended where one may stay; one is stuck on a node that is out of service, one on none.
        let all = ["default/evicted", "default/nowhere", "default/stays", "default/stuck"];
        server.add(&pod("stays").phase("Failed").created(ago(60)));
        server.add(&pod("evicted").phase("Failed").set(&["status", "reason"], "Evicted"));
        server.add(&stuck("stuck", "lost"));
        server.add(&stuck("nowhere", "").phase("Pending"));
        assert_eq!(server.keys("pods"), all);
        // Of a round the ended ones are listed first.
        let refused = server.on("list", "pods").once().answer(500, "InternalError", "no");
        running.pass(Duration::from_secs(20)).await;
        assert_eq!((refused.count(), server.keys("pods")), (1, vec![all[0].to_owned(), all[2].to_owned()]));
        running.pass(Duration::from_secs(20)).await;
        assert_eq!(server.keys("pods"), ["default/stays"]);
    });
}

#[test]
fn a_node_that_is_back_in_service_keeps_its_pods_whatever_the_cache_says() {
    test(async {
        let server = Server::new();
        add_lost_node(&server);
        let running = start(&server, &FLAGS).await;
        server.hold_watches("nodes");
        server.change("nodes", "lost", |node| node["spec"]["taints"] = json!([]));
        server.add(&stuck("kept", "lost"));
        running.pass(Duration::from_mins(2)).await;
        assert_eq!(server.writes(), [""; 0]);
        assert!(server.count("get nodes lost") > 1);
    });
}

#[test]
fn pods_that_come_and_run_cost_nothing() {
    test(async {
        let server = Server::new();
        add_node(&server);
        let running = start(&server, &FLAGS).await;
        let before = server.requests().len();
        for n in 0..100 {
            server.add(&pod(&format!("pod-{n}")));
        }
        running.pass(Duration::from_secs(59)).await;
        assert_eq!(server.requests()[before..], ["list pods"; 2], "whether anything is stuck");
        running.pass(Duration::from_secs(2)).await;
        assert_eq!(server.requests().len() - before, 4, "and whether a binding is to nowhere");
    });
}

#[test]
fn it_says_why_a_pod_stays_or_went_and_what_a_node_is_waited_for() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&node("gone"));
        server.add(&pod("orphan").node("gone"));
        server.add(&pod("old").phase("Succeeded"));
        let running = start(&server, &FLAGS).await;
        server.delete("nodes", "gone");
        running.pass(Duration::from_secs(10)).await;

        let pod = |name: &str| running.why(&format!("/api/v1/namespaces/default/pods/{name}"));
        let requests = server.requests();
        let [first, again] = [(); 2].map(|()| pod("old"));
        let gone = running.why("/api/v1/nodes/gone");
        assert_eq!((server.requests(), &first), (requests, &again), "who asks changes nothing");
        assert_eq!(first.keys[0].now[0].reason, json!({ "stays": { "ended": 1, "threshold": 1 } }));
        assert_eq!(first.keys[0].last, []);
        let [key] = &gone.keys[..] else { panic!("{gone}") };
        assert_eq!((key.queue.as_str(), &key.now[0].reason), ("orphaned_pods_nodes", &json!("notSeen")));
        assert_eq!(key.standing.timer.as_ref().unwrap().purpose, "the end of its quarantine");
        assert_eq!(running.why("/api/v1/nodes/node").keys[0].now[0].reason, json!("exists"));

        running.pass(FOUND).await;
        let orphan = pod("orphan");
        assert_eq!(orphan.keys[0].last[0].stages[0].reason, json!("orphaned"), "{orphan}");
        let gone = running.why("/api/v1/nodes/gone");
        let last = &gone.keys[0].last[0];
        assert_eq!((&last.stages[0].reason, last.wrote.len()), (&json!({ "gone": { "pods": 1 } }), 2), "{gone}");
    });
}

/// So many nodes, each with a pod.
fn add_nodes(server: &Server, count: usize) {
    for at in 0..count {
        let name = format!("node-{at}");
        server.add(&node(&name));
        server.add(&pod(&format!("pod-{at}")).node(&name));
    }
}

/// The events that report slowed deletions: the kinds of their objects.
fn slowed(server: &Server) -> Vec<String> {
    let events = server.list("events").into_iter().filter(|event| event["reason"] == "MassDeletionSlowed");
    events.map(|event| event["involvedObject"]["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn pods_of_nodes_that_are_gone_go_up_to_a_share_of_the_nodes_and_then_slowly() {
    test(async {
        let server = Server::new();
        add_nodes(&server, 40);
        let running = start(&server, &FLAGS).await;
        (0..12).for_each(|at| server.delete("nodes", &format!("node-{at}")));
        running.pass(FOUND).await;
        assert_eq!(server.keys("pods").len(), 28, "a few nodes are no reason to wait");
        (12..40).for_each(|at| server.delete("nodes", &format!("node-{at}")));
        running.pass(FOUND).await;
        let left = server.keys("pods").len();
        assert!((12..=16).contains(&left), "{left} are left");
        let told = slowed(&server);
        let of_nodes = told.iter().filter(|kind| *kind == "Node").count();
        assert!(told.len() == of_nodes + 1 && of_nodes >= left, "{told:?}");
        let waits = server.keys("pods").last().cloned().unwrap_or_default().replace("default/pod", "node");
        let why = running.why(&format!("/api/v1/nodes/{waits}"));
        let last = why.keys[0].last.last().and_then(|decision| decision.stages.last());
        assert!(last.is_some_and(|stage| stage.text.starts_with("wait until 2026-01-01T12:")), "{why}");
        running.pass(Duration::from_hours(1)).await;
        assert_eq!(server.keys("pods"), [""; 0], "all go in the end");
    });
}

#[test]
fn one_of_two_zones_goes_at_once_though_its_nodes_go_one_after_the_other() {
    test(async {
        let server = Server::new();
        add_nodes(&server, 60);
        let running = start(&server, &FLAGS).await;
        for at in 0..30 {
            server.delete("nodes", &format!("node-{at}"));
            running.pass(Duration::from_millis(50)).await;
        }
        running.pass(Duration::from_secs(45)).await;
        assert_eq!((server.keys("pods").len(), slowed(&server)), (30, vec![]));
    });
}

#[test]
fn one_of_two_zones_that_went_before_the_start_goes_at_once() {
    test(async {
        let server = Server::new();
        add_nodes(&server, 60);
        (0..30).for_each(|at| server.delete("nodes", &format!("node-{at}")));
        let running = start(&server, &FLAGS).await;
        running.pass(Duration::from_secs(45)).await;
        assert_eq!((server.keys("pods").len(), slowed(&server)), (30, vec![]));
    });
}

#[test]
fn pods_on_nodes_that_never_existed_hold_no_others_up() {
    test(async {
        let server = Server::new();
        add_nodes(&server, 20);
        for at in 0..50 {
            server.add(&pod(&format!("never-{at}")).node(&format!("invented-{at}")).phase("Pending"));
        }
        let running = start(&server, &FLAGS).await;
        running.pass(FOUND).await;
        assert_eq!(server.keys("pods").len(), 20);
        (0..20).for_each(|at| server.delete("nodes", &format!("node-{at}")));
        running.pass(Duration::from_secs(45)).await;
        assert_eq!(server.keys("pods").len(), 9, "11 of 20, as if nobody had invented any");
    });
}

#[test]
fn a_node_that_a_restored_etcd_lacks_keeps_its_pods_for_the_whole_quarantine() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&pod("a"));
        let running = start(&server, &FLAGS).await;
        server.delete("nodes", "node");
        running.at_rest().await;
        running.start_over().await;
        running.pass(Duration::from_secs(35)).await;
        assert_eq!(server.keys("pods"), ["default/a"], "its kubelet has time to register again");
        running.pass(FOUND).await;
        assert_eq!(server.keys("pods"), [""; 0]);
    });
}
