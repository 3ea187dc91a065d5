//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use node_lifecycle_operator::controller::NodeLifecycleOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, Step, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, object};

const LEASES: &str = "kube-node-lease";

/// A node whose kubelet has said whether it is ready.
fn node(name: &str, ready: &str) -> ObjectBuilder {
    let since = NOW.to_string();
    let condition = json!({
        "type": "Ready", "status": ready, "reason": "Kubelet", "lastHeartbeatTime": since, "lastTransitionTime": since,
    });
    object("v1", "Node", name).namespace("").set(&["status", "conditions"], json!([condition]))
}

fn lease(name: &str) -> ObjectBuilder {
    object("coordination.k8s.io/v1", "Lease", name).namespace(LEASES).uid_of(&format!("lease-{name}"))
}

/// A ready node with a Lease.
fn add(server: &Server, name: &str) {
    server.add(&node(name, "True"));
    server.add(&lease(name));
}

/// The kubelet of this node lives.
fn renew(server: &Server, name: &str) {
    let now = server.clock().now().to_string();
    server.change("leases", &format!("{LEASES}/{name}"), |lease| lease["spec"]["renewTime"] = now.into());
}

/// So much time passes, in which these kubelets live.
async fn live(server: &Server, running: &Running, nodes: &[&str], seconds: u64) {
    for _ in 0..seconds / 10 {
        for name in nodes {
            renew(server, name);
        }
        running.pass(Duration::from_secs(10)).await;
    }
}

async fn start(server: &Server) -> Running {
    let running = Running::start::<NodeLifecycleOperator>(server, &[]);
    running.at_rest().await;
    running
}

fn field(server: &Server, resource: &str, key: &str, pointer: &str) -> Value {
    server.get(resource, key).and_then(|object| object.pointer(pointer).cloned()).unwrap_or_default()
}

/// The status of the condition Ready.
fn ready(server: &Server, name: &str) -> Value {
    field(server, "nodes", name, "/status/conditions/0/status")
}

/// `not-ready:NoExecute`.
fn taints(server: &Server, name: &str) -> Vec<String> {
    let taints = field(server, "nodes", name, "/spec/taints");
    let text = |taint: &Value, field: &str| taint[field].as_str().unwrap_or_default().to_owned();
    let taints = taints.as_array().into_iter().flatten();
    taints.map(|taint| format!("{}:{}", text(taint, "key"), text(taint, "effect"))).collect()
}

fn unreachable() -> Vec<String> {
    ["NoSchedule", "NoExecute"].map(|effect| format!("node.kubernetes.io/unreachable:{effect}")).to_vec()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let mut life: Vec<Step> = vec![Do(|server| {
            add(server, "well");
            server.add(&node("lost", "True").label("kubernetes.io/os", "linux"));
            server.add(&node("bare", "True").set(&["status"], Value::Null));
            server.add(&object("v1", "Pod", "web").set(&["spec", "nodeName"], "lost").ready());
            server.add(&object("v1", "Pod", "elsewhere").set(&["spec", "nodeName"], "well").ready());
        })];
        for _ in 0..30 {
            life.push(Do(|server| renew(server, "well")));
            life.push(Pass(Duration::from_secs(10)));
        }
        let server = survives_kills::<NodeLifecycleOperator>(&[], &life).await;
        assert_eq!([ready(&server, "well"), ready(&server, "lost")], ["True", "Unknown"]);
        assert_eq!((taints(&server, "well"), taints(&server, "lost")), (vec![], unreachable()));
        assert_eq!(field(&server, "nodes", "lost", "/status/conditions/0/reason"), "NodeStatusUnknown");
        assert_eq!(field(&server, "nodes", "bare", "/status/conditions/0/reason"), "NodeStatusNeverUpdated");
        let pod = |name: &str| field(&server, "pods", &format!("default/{name}"), "/status/conditions/0/status");
        assert_eq!([pod("web"), pod("elsewhere")], ["False", "True"]);
        let events = server.events();
        for told in [
            "Normal NodeNotReady: Node lost status is now: NodeNotReady",
            "Normal RegisteredNode: Node well event: Registered Node well in Controller",
            "Warning NodeNotReady: Node is not ready",
        ] {
            assert!(events.iter().any(|event| event == told), "{told}: {events:?}");
        }
    });
}

#[test]
fn a_lease_that_is_renewed_keeps_a_node_whatever_its_clock_says() {
    test(async {
        let server = Server::new();
        add(&server, "past");
        let running = start(&server).await;
        for beat in 0..60 {
            let time = format!("2001-01-01T00:00:{beat:02}.000000Z");
            server.change("leases", &format!("{LEASES}/past"), |lease| lease["spec"]["renewTime"] = time.into());
            running.pass(Duration::from_secs(40)).await;
        }
        assert_eq!(server.writes(), [""; 0]);
        assert_eq!(server.count("get leases"), 0);
        let why = running.why("/api/v1/nodes/past");
        let [node, pods] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(node.queue.as_str(), "node_lifecycle_controller");
        assert!(node.now[0].text.starts_with("keep (ready, last heard from at 2026-01-01T12:39:20Z"), "{why}");
        assert_eq!(pods.now[0].text, "mark no pods (its kubelet is not lost)");
        assert!(node.last.len() <= 2, "renewals lead to no sync: {why}");
    });
}

#[test]
fn heartbeats_of_the_status_are_signs_of_life_too() {
    test(async {
        let server = Server::new();
        server.add(&node("old", "True"));
        let running = start(&server).await;
        for beat in 0..10 {
            server.change("nodes", "old", |node| {
                node["status"]["conditions"][0]["lastHeartbeatTime"] = format!("2001-01-01T00:00:{beat:02}Z").into();
            });
            running.pass(Duration::from_secs(45)).await;
        }
        assert_eq!(server.writes(), [""; 0]);
        running.pass(Duration::from_secs(15)).await;
        assert_eq!(server.writes()[0], "patch nodes/status old");
    });
}

#[test]
fn a_node_that_is_lost_while_a_watch_of_nodes_breaks_is_found_though_no_node_changes() {
    test(async {
        let server = Server::new();
        add(&server, "well");
        add(&server, "lost");
        let running = start(&server).await;
        let refused = server.on("watch", "nodes").once().answer(500, "InternalError", "no");
        server.cut_watches("nodes");
        live(&server, &running, &["well"], 70).await;
        assert_eq!(refused.count(), 1);
        assert_eq!([ready(&server, "well"), ready(&server, "lost")], ["True", "Unknown"]);
    });
}

#[test]
fn a_start_gives_every_node_its_whole_grace_period() {
    test(async {
        let server = Server::new();
        add(&server, "silent");
        for _ in 0..3 {
            let running = start(&server).await;
            running.pass(Duration::from_secs(49)).await;
            assert_eq!(server.writes(), [""; 0]);
        }
        let running = start(&server).await;
        running.pass(Duration::from_secs(56)).await;
        assert_eq!((ready(&server, "silent"), server.count("get leases")), ("Unknown".into(), 1));
    });
}

#[test]
fn after_an_outage_every_node_gets_its_whole_grace_period_again() {
    test(async {
        let server = Server::new();
        for name in ["a", "b"] {
            add(&server, name);
        }
        let running = start(&server).await;
        live(&server, &running, &["a", "b"], 100).await;
        // Nobody can be followed, and no kubelet can renew its Lease.
        let away = server.on("list", "leases").answer(503, "ServiceUnavailable", "no");
        server.expire_watches("leases");
        running.pass(Duration::from_mins(10)).await;
        assert!(away.count() > 1);
        assert_eq!(server.writes(), [""; 0]);
        away.times(0);
        // The kubelets have not come back yet.
        running.pass(Duration::from_secs(45)).await;
        assert_eq!(server.writes(), [""; 0]);
        live(&server, &running, &["a"], 120).await;
        assert_eq!((ready(&server, "a"), ready(&server, "b")), ("True".into(), "Unknown".into()));
    });
}

#[test]
fn a_lease_that_the_cache_has_not_seen_is_asked_for_before_a_node_is_judged() {
    test(async {
        let server = Server::new();
        add(&server, "a");
        let running = start(&server).await;
        server.hold_watches("leases");
        for _ in 0..20 {
            renew(&server, "a");
            running.pass(Duration::from_secs(10)).await;
        }
        assert!(server.count("get leases kube-node-lease/a") > 1);
        assert_eq!(server.writes(), [""; 0]);
    });
}

#[test]
fn a_lease_that_cannot_be_read_gives_its_node_another_grace_period() {
    test(async {
        let server = Server::new();
        add(&server, "silent");
        let refused = server.on("get", "leases").answer(500, "InternalError", "no").once();
        let running = start(&server).await;
        running.pass(Duration::from_secs(100)).await;
        assert_eq!((refused.count(), server.writes()), (1, Vec::new()));
        running.pass(Duration::from_secs(20)).await;
        assert_eq!(ready(&server, "silent"), "Unknown");
    });
}

#[test]
fn a_node_that_comes_back_is_untainted_at_once_and_its_pods_are_marked_at_the_next_loss_too() {
    test(async {
        let server = Server::new();
        for name in ["well", "a"] {
            add(&server, name);
        }
        server.add(&object("v1", "Pod", "web").set(&["spec", "nodeName"], "a").ready());
        let running = start(&server).await;
        for losses in 1..=2 {
            live(&server, &running, &["well"], 100).await;
            assert_eq!((ready(&server, "a"), taints(&server, "a")), ("Unknown".into(), unreachable()));
            assert_eq!(server.count("patch pods/status default/web"), losses);
            let now = server.clock().now().to_string();
            server.change("nodes", "a", |node| {
                let condition = &mut node["status"]["conditions"][0];
                condition["status"] = "True".into();
                condition["lastHeartbeatTime"] = now.clone().into();
                condition["lastTransitionTime"] = now.into();
            });
            server.change("pods", "default/web", |pod| pod["status"]["conditions"][0]["status"] = "True".into());
            running.at_rest().await;
            assert_eq!(taints(&server, "a"), [""; 0]);
        }
    });
}

#[test]
fn a_pod_that_cannot_be_marked_is_tried_again_and_keeps_no_other_waiting() {
    test(async {
        let server = Server::new();
        for name in ["well", "a"] {
            add(&server, name);
        }
        for name in ["b", "c"] {
            server.add(&object("v1", "Pod", name).set(&["spec", "nodeName"], "a").ready());
        }
        let refused = server.on("patch", "pods/status").answer(500, "InternalError", "no").times(3);
        let running = start(&server).await;
        live(&server, &running, &["well"], 120).await;
        assert_eq!(refused.count(), 3);
        let status = |name: &str| field(&server, "pods", &format!("default/{name}"), "/status/conditions/0/status");
        assert_eq!([status("b"), status("c")], ["False", "False"]);
        let told = server.events().into_iter().filter(|event| event == "Warning NodeNotReady: Node is not ready");
        assert_eq!(told.count(), 2);
    });
}

#[test]
fn a_node_of_the_same_name_is_another_node() {
    test(async {
        let server = Server::new();
        add(&server, "a");
        server.add(&node("b", "True"));
        let running = start(&server).await;
        running.pass(Duration::from_secs(40)).await;
        server.hold_watches("nodes");
        server.delete("nodes", "a");
        server.add(&node("a", "True").uid_of("another"));
        server.release_watches("nodes");
        server.delete("nodes", "b");
        running.pass(Duration::from_secs(40)).await;
        assert_eq!(server.writes(), [""; 0], "it has a grace period of its own");
        let removed = "Normal RemovingNode: Node b event: Removing Node b from Controller";
        assert!(server.events().iter().any(|event| event == removed), "{:?}", server.events());
        assert_eq!(running.why("/api/v1/nodes/b").keys[0].now, []);
    });
}
