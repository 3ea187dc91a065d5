//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, object};
use taint_eviction_operator::controller::TaintEvictionOperator;

const TAINT: &str = "example.com/gone";
const NODE: &str = "/api/v1/nodes/tainted";

/// A node with the taint.
fn node() -> ObjectBuilder {
    let taints = json!([{ "key": TAINT, "effect": "NoExecute" }]);
    object("v1", "Node", "tainted").namespace("").set(&["spec", "taints"], taints)
}

fn add_node(server: &Server) {
    server.add(&node());
}

fn set_taints(server: &Server, taints: Value) {
    server.change("nodes", "tainted", |node| node["spec"]["taints"] = taints);
}

/// A pod on that node.
fn pod(name: &str) -> ObjectBuilder {
    shared::testing::pod(name).node("tainted")
}

/// A pod that tolerates the taint, for so many seconds.
fn tolerant(name: &str, seconds: Option<i64>) -> ObjectBuilder {
    let toleration = json!({ "key": TAINT, "operator": "Exists", "tolerationSeconds": seconds });
    pod(name).set(&["spec", "tolerations"], json!([toleration]))
}

async fn start(server: &Server) -> Running {
    let running = Running::start::<TaintEvictionOperator>(server, &[]);
    running.at_rest().await;
    running
}

fn evicts(pods: &[&str]) -> Vec<String> {
    let writes = |pod: &&str| [format!("patch pods/status default/{pod}"), format!("delete pods default/{pod}")];
    pods.iter().flat_map(writes).collect()
}

fn marking(pod: &str) -> String {
    format!("Normal TaintManagerEviction: Marking for deletion Pod default/{pod}")
}

fn cancelling(pod: &str) -> String {
    format!("Normal TaintManagerEviction: Cancelling deletion of Pod default/{pod}")
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                add_node(server);
                server.add(&object("v1", "Node", "well").namespace(""));
                server.add(&pod("elsewhere").node("well"));
                server.add(&pod("goes"));
                server.add(&tolerant("stays", None));
                server.add(&tolerant("waits", Some(60)));
            }),
            Pass(Duration::from_mins(5)),
        ];
        let server = survives_kills::<TaintEvictionOperator>(&[], &life).await;
        assert_eq!(server.writes(), evicts(&["goes", "waits"]));
        let goes = server.list("pods").into_iter().find(|pod| pod["metadata"]["name"] == "goes");
        let condition = json!([{
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint", "observedGeneration": 1,
            "lastTransitionTime": NOW.to_string(),
        }]);
        assert_eq!(goes.map(|pod| pod["status"]["conditions"].clone()), Some(condition));
        assert_eq!(server.events(), [marking("goes"), marking("waits")]);
    });
}

#[test]
fn an_unknown_path_does_not_show_that_a_pod_is_gone() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.on("patch", "pods/status").once().answer(404, "", "404 page not found");
        server.on("delete", "pods").once().answer(404, "", "404 page not found");
        server.add(&pod("goes"));
        let _running = start(&server).await;
        let deletion = server.get("pods", "default/goes").map(|pod| pod["metadata"]["deletionTimestamp"].is_string());
        assert_eq!((server.count("delete pods"), deletion), (2, Some(true)));
    });
}

#[test]
fn a_taint_that_goes_in_time_cancels_a_pending_deletion() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&tolerant("waits", Some(60)));
        let running = start(&server).await;
        running.pass(Duration::from_secs(50)).await;
        set_taints(&server, json!([{ "key": "another", "effect": "NoSchedule" }]));
        running.pass(Duration::from_mins(10)).await;
        assert_eq!(server.writes(), [""; 0]);
        assert_eq!(server.events(), [cancelling("waits")]);

        // The time begins anew with the next taint.
        set_taints(&server, json!([{ "key": TAINT, "effect": "NoExecute" }]));
        running.pass(Duration::from_secs(50)).await;
        assert_eq!(server.writes(), [""; 0]);
        running.pass(Duration::from_secs(11)).await;
        assert_eq!(server.writes(), evicts(&["waits"]));
    });
}

#[test]
fn no_step_of_the_clock_moves_the_end_of_a_toleration() {
    for step in [-7200, 7200, 200_000_000] {
        test(async move {
            let server = Server::new();
            add_node(&server);
            server.add(&tolerant("waits", Some(300)));
            let running = start(&server).await;
            running.pass(Duration::from_secs(100)).await;
            server.step_clock(step);
            // A kubelet that comes back changes its node's taints, and all pods of the node are decided about again.
            set_taints(&server, json!([{ "key": TAINT, "effect": "NoExecute", "value": "other" }]));
            running.pass(Duration::from_secs(199)).await;
            assert_eq!(server.writes(), [""; 0], "a step of {step} s");
            running.pass(Duration::from_secs(2)).await;
            assert_eq!(server.writes(), evicts(&["waits"]), "a step of {step} s");
        });
    }
}

#[test]
fn pods_and_tolerations_that_come_late_count() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&tolerant("waits", Some(60)));
        let running = start(&server).await;
        server.add(&pod("bound").node(""));
        server.add(&pod("made"));
        running.at_rest().await;
        assert_eq!(server.writes(), evicts(&["made"]));
        server.change("pods", "default/bound", |pod| pod["spec"]["nodeName"] = "tainted".into());
        running.at_rest().await;
        assert_eq!(server.writes(), evicts(&["made", "bound"]));
        let for_ever = json!([{ "key": TAINT, "operator": "Exists" }]);
        server.change("pods", "default/waits", |pod| pod["spec"]["tolerations"] = for_ever);
        running.pass(Duration::from_mins(5)).await;
        assert_eq!(server.writes(), evicts(&["made", "bound"]));
        assert_eq!(server.events(), [marking("bound"), marking("made"), cancelling("waits")]);
    });
}

#[test]
fn a_deletion_that_fails_is_tried_again_and_told_once() {
    test(async {
        let server = Server::new();
        add_node(&server);
        let refused = server.on("delete", "pods").answer(500, "InternalError", "failed calling webhook").times(7);
        server.add(&pod("goes"));
        let running = start(&server).await;
        assert_eq!((refused.count(), server.count("delete pods")), (7, 8));
        assert_eq!(server.count("patch pods"), 1, "it is marked once");
        assert_eq!(server.events(), [marking("goes")]);

        // Until it may stay.
        let refused = server.on("patch", "pods/status").answer(500, "InternalError", "failed calling webhook");
        server.add(&pod("stays"));
        running.pass(Duration::from_mins(2)).await;
        assert!(refused.count() > 1);
        set_taints(&server, json!([]));
        running.at_rest().await;
        let before = refused.count();
        running.pass(Duration::from_mins(2)).await;
        assert_eq!((refused.count(), server.count("delete pods")), (before, 8));
        assert_eq!(server.events()[1..], [marking("stays"), cancelling("stays")]);
    });
}

#[test]
fn a_deletion_that_is_tried_again_is_due_since_its_toleration_ended() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&tolerant("waits", Some(60)));
        let running = start(&server).await;
        let refused = server.on("delete", "pods").answer(500, "InternalError", "failed calling webhook");
        running.pass(Duration::from_mins(5)).await;
        assert!(refused.count() > 5);
        let why = running.why("/api/v1/namespaces/default/pods/waits");
        let now = &why.keys[0].now[0].text;
        assert_eq!(now, "evict again (tolerated example.com/gone until 2026-01-01T12:01:00Z)", "{why}");
    });
}

#[test]
fn a_deletion_whose_answer_is_lost_is_announced_once_and_not_repeated_where_it_is_seen_under_way() {
    test(async {
        let server = Server::new();
        add_node(&server);
        let lost = server.on("delete", "pods").once().lose();
        server.add(&pod("goes"));
        let running = start(&server).await;
        running.pass(Duration::from_mins(1)).await;
        assert_eq!((lost.count(), server.count("delete pods default/goes")), (1, 1));
        assert_eq!(server.events(), [marking("goes")]);
    });
}

#[test]
fn a_pod_of_the_same_name_is_another_pod() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&tolerant("web-0", Some(60)));
        let running = start(&server).await;
        running.pass(Duration::from_secs(40)).await;
        server.hold_watches("pods");
        server.delete("pods", "default/web-0");
        server.add(&tolerant("web-0", Some(60)).uid_of("another"));
        server.release_watches("pods");
        running.pass(Duration::from_secs(50)).await;
        assert_eq!(server.writes(), [""; 0]);
        assert_eq!(server.events(), [cancelling("web-0")]);
        running.pass(Duration::from_secs(11)).await;
        assert_eq!(server.writes(), evicts(&["web-0"]));
    });
}

#[test]
fn a_decision_about_one_pod_does_nothing_to_another_of_its_name() {
    test(async {
        let server = Server::new();
        add_node(&server);
        let held = server.on("patch", "pods/status").once().hold();
        server.add(&pod("web-0"));
        let running = Running::start::<TaintEvictionOperator>(&server, &[]);
        held.arrived().await;
        server.delete("pods", "default/web-0");
        server.add(&tolerant("web-0", None).uid_of("another"));
        held.release();
        running.at_rest().await;
        assert_eq!(server.count("delete pods"), 0);
        let conditions = server.get("pods", "default/web-0").map(|pod| pod["status"]["conditions"].clone());
        assert_eq!(conditions, Some(Value::Null));
    });
}

#[test]
fn heartbeats_and_the_lives_of_pods_cost_nothing() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&tolerant("waits", Some(3600)));
        let running = start(&server).await;
        let decided = || {
            let whys = [NODE, "/api/v1/namespaces/default/pods/waits"].map(|path| running.why(path));
            whys.map(|why| why.keys.iter().flat_map(|key| key.last.clone()).collect::<Vec<_>>())
        };
        let (requests, before) = (server.requests().len(), decided());
        assert!(before.iter().all(|decisions| !decisions.is_empty()), "{before:?}");
        for beat in 0..100 {
            server.change("nodes", "tainted", |node| node["status"]["beats"] = beat.into());
            server.change("pods", "default/waits", |pod| pod["status"]["restarts"] = beat.into());
            running.at_rest().await;
        }
        assert_eq!(decided(), before);
        assert_eq!(server.requests().len(), requests);
    });
}

#[test]
fn a_deletion_stays_pending_when_the_node_is_gone() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&tolerant("waits", Some(1200)));
        let running = start(&server).await;
        server.delete("nodes", "tainted");
        server.add(&pod("late"));
        running.pass(Duration::from_mins(19)).await;
        assert_eq!(server.writes(), [""; 0]);
        running.pass(Duration::from_mins(2)).await;
        assert_eq!(server.writes(), evicts(&["waits"]));
        assert_eq!(server.count("list pods"), 1, "it was followed all the time");
    });
}

#[test]
fn pods_are_followed_only_while_a_node_ends_pods() {
    test(async {
        let server = Server::new();
        server.add(&object("v1", "Node", "well").namespace(""));
        server.add(&shared::testing::pod("a").node("well"));
        let remove = |server: &Server| server.delete("nodes", "tainted");
        is_followed_only_while_needed::<TaintEvictionOperator>(&server, "pods", add_node, remove).await;
        assert_eq!(server.writes(), [""; 0]);
    });
}

#[test]
fn nothing_is_decided_before_the_first_list_of_a_nodes_pods() {
    test(async {
        let add = |server: &Server| {
            add_node(server);
            server.add(&pod("goes"));
        };
        let then = |server: &Server| assert_eq!(server.writes(), evicts(&["goes"]));
        the_first_one_waits::<TaintEvictionOperator>(&[], "pods", add, then).await;
    });
}

#[test]
fn a_node_that_goes_and_comes_again_ends_the_pods_that_came_meanwhile() {
    test(async {
        let server = Server::new();
        add_node(&server);
        let running = start(&server).await;
        let late = |server: &Server| server.add(&pod(&format!("late-{}", server.keys("pods").len())));
        let then = |server: &Server, pause| {
            assert_eq!(server.count("delete pods"), server.keys("pods").len(), "{pause:?}");
        };
        let settling = Duration::from_secs(5);
        it_goes_and_comes_again((&server, &running), ("nodes", "tainted"), late, settling, then).await;
        assert_eq!(server.count("delete pods"), 3);
    });
}

#[test]
fn why_says_when_a_pod_goes_and_which_taint_ends_it() {
    test(async {
        let server = Server::new();
        add_node(&server);
        server.add(&tolerant("waits", Some(60)));
        server.add(&pod("goes"));
        let running = start(&server).await;
        let why = running.why("/api/v1/namespaces/default/pods/waits");
        let [key] = &why.keys[..] else { panic!("{why}") };
        let tolerates = json!({ "taint": TAINT, "until": "2026-01-01T12:01:00Z" });
        assert_eq!((key.queue.as_str(), &key.now[0].reason), ("noexec_taint_pod", &json!({ "tolerates": tolerates })));
        assert!(key.standing.timer.as_ref().is_some_and(|timer| timer.purpose == "the end of its toleration"), "{why}");
        assert!(why.caches.iter().any(|cache| cache.of == "fields spec.nodeName=tainted"), "{why}");

        let why = running.why("/api/v1/namespaces/default/pods/goes");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].reason, json!("beingDeleted"));
        let evicted = key.last.iter().find(|decision| !decision.wrote.is_empty());
        let evicted = evicted.map(|decision| decision.stages[0].text.as_str());
        assert_eq!(evicted, Some("evict (does not tolerate example.com/gone)"), "{why}");

        let why = running.why(NODE);
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].text, "nothing (pods: 2, taints: example.com/gone)");
        assert_eq!(running.why("/api/v1/namespaces/default/pods/unknown").keys[0].now, []);
    });
}

/// So many nodes with a taint, and a pod on each; the names of the pods that are left after a minute.
async fn left_after_a_minute(nodes: usize, taint: &str) -> (Server, usize) {
    let server = Server::new();
    for at in 0..nodes {
        let name = format!("node-{at}");
        let taints = json!([{ "key": taint, "effect": "NoExecute" }]);
        server.add(&object("v1", "Node", &name).namespace("").set(&["spec", "taints"], taints));
        server.add(&shared::testing::pod(&format!("pod-{at}")).node(&name));
    }
    let running = start(&server).await;
    running.pass(Duration::from_mins(1)).await;
    let left = server.keys("pods").len() - server.count("delete pods");
    (server, left)
}

#[test]
fn pods_of_nodes_that_seem_not_to_be_ready_go_up_to_a_share_of_the_nodes_and_then_slowly() {
    test(async {
        let (server, left) = left_after_a_minute(40, "node.kubernetes.io/unreachable").await;
        assert!((16..=18).contains(&left), "of 40 nodes 22 lose theirs, and then one each minute: {left} are left");
        let slowed: Vec<Value> =
            server.list("events").into_iter().filter(|event| event["reason"] == "MassDeletionSlowed").collect();
        let of_nodes = slowed.iter().filter(|event| event["involvedObject"]["kind"] == "Node").count();
        assert_eq!((of_nodes, slowed.len()), (18, 19), "one for each node that waits, and one for the operator");
        let slowed = slowed[0]["message"].as_str().unwrap_or_default();
        assert!(slowed.starts_with("Slowed down deletions: 22 of 40 nodes"), "{slowed}");
    });
}

#[test]
fn a_node_whose_taint_is_gone_keeps_its_pods_though_a_watch_stands_still() {
    test(async {
        let server = Server::new();
        let unreachable = "node.kubernetes.io/unreachable";
        add_node(&server);
        set_taints(&server, json!([{ "key": unreachable, "effect": "NoExecute" }]));
        for name in ["a", "b", "c"] {
            let toleration = json!({ "key": unreachable, "operator": "Exists", "tolerationSeconds": 60 });
            server.add(&pod(name).set(&["spec", "tolerations"], json!([toleration])));
        }
        let running = start(&server).await;
        server.hold_watches("nodes");
        set_taints(&server, json!([]));
        running.pass(Duration::from_mins(2)).await;
        assert_eq!(server.writes(), [""; 0]);
        assert_eq!(server.count("get nodes tainted"), 1, "one read for all pods of the node");
        assert_eq!(server.events(), ["a", "b", "c"].map(cancelling));
    });
}

#[test]
fn a_zone_that_is_lost_and_taints_of_users_hold_nothing_up() {
    test(async {
        assert_eq!(left_after_a_minute(10, "node.kubernetes.io/not-ready").await.1, 0);
        assert_eq!(left_after_a_minute(40, "example.com/gone").await.1, 0);
    });
}
