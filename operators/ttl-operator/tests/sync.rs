//! The operator as it is, against an apiserver in the test's process: its informer, its sync, its writes.

use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};
use ttl_operator::controller::TtlOperator;
use ttl_operator::objects::TTL;

fn node(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).namespace("")
}

fn start(server: &Server) -> Running {
    Running::start::<TtlOperator>(server, &[])
}

/// Nodes that say this already.
fn add(server: &Server, numbers: std::ops::Range<usize>, ttl: &str) {
    numbers.for_each(|number| server.add(&node(&format!("node-{number:03}")).annotation(TTL, ttl)));
}

fn ttl(server: &Server, name: &str) -> Value {
    server.get("nodes", name).map_or(json!("gone"), |node| node["metadata"]["annotations"][TTL].clone())
}

/// A kubelet's write of every few minutes.
fn heartbeat(server: &Server, name: &str) {
    server.change("nodes", name, |node| {
        let beats = node["status"]["beats"].as_u64().unwrap_or_default();
        node["status"]["beats"] = (beats + 1).into();
    });
}

fn heartbeats(server: &Server) {
    server.keys("nodes").iter().for_each(|name| heartbeat(server, name));
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| ["a", "b"].iter().for_each(|name| server.add(&node(name)))),
            Do(|server| server.change("nodes", "a", |node| node["metadata"]["annotations"][TTL] = "soon".into())),
            // Seen at once: the others come with what is right for so many.
            Do(|server| {
                server.hold_watches("nodes");
                add(server, 0..99, "15");
                server.expire_watches("nodes");
                server.release_watches("nodes");
            }),
            Do(heartbeats),
            Do(|server| (0..99).for_each(|number| server.delete("nodes", &format!("node-{number:03}")))),
            Do(heartbeats),
        ];
        let server = survives_kills::<TtlOperator>(&[], &life).await;
        let (a, b) = ("patch nodes a", "patch nodes b");
        assert_eq!(server.writes(), [a, b, a, a, b, a, b]);
        assert_eq!([ttl(&server, "a"), ttl(&server, "b")], ["0", "0"]);
    });
}

#[test]
fn a_start_among_nodes_that_say_what_is_right_writes_nothing_and_neither_do_heartbeats() {
    test(async {
        let server = Server::new();
        add(&server, 0..501, "30");
        let running = start(&server);
        running.at_rest().await;
        heartbeats(&server);
        running.at_rest().await;
        assert_eq!(server.writes(), Vec::<String>::new());
        let why = running.why("/api/v1/nodes/node-000");
        assert!(why.keys.iter().all(|key| key.last.is_empty()), "it was synced: {why}");
    });
}

#[test]
fn nodes_are_told_of_another_size_of_the_cluster_when_they_are_next_heard_of() {
    test(async {
        let server = Server::new();
        add(&server, 0..100, "0");
        let running = start(&server);
        running.at_rest().await;
        server.add(&node("last"));
        running.at_rest().await;
        assert_eq!(server.writes(), ["patch nodes last"]);
        assert_eq!(ttl(&server, "last"), "15");
        heartbeat(&server, "node-007");
        running.at_rest().await;
        assert_eq!(server.writes(), ["patch nodes last", "patch nodes node-007"]);
        assert_eq!([ttl(&server, "node-007"), ttl(&server, "node-008")], ["15", "0"]);

        // Down to where both are right, and then below.
        (0..10).for_each(|number| server.delete("nodes", &format!("node-09{number}")));
        server.delete("nodes", "node-089");
        running.at_rest().await;
        heartbeat(&server, "last");
        running.at_rest().await;
        assert_eq!(ttl(&server, "last"), "15");
        server.delete("nodes", "node-088");
        running.at_rest().await;
        heartbeat(&server, "last");
        running.at_rest().await;
        assert_eq!(ttl(&server, "last"), "0");
    });
}

#[test]
fn a_patch_that_fails_is_tried_again_and_of_a_node_that_has_gone_it_is_not() {
    test(async {
        let server = Server::new();
        server.on("patch", "nodes").times(3).answer(500, "InternalError", "etcd is down");
        server.add(&node("a"));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!((server.count("patch nodes"), ttl(&server, "a")), (4, json!("0")));

        let held = server.on("patch", "nodes").once().hold();
        server.add(&node("b"));
        held.arrived().await;
        server.hold_watches("nodes");
        server.delete("nodes", "b");
        held.release();
        running.at_rest().await;
        assert_eq!(server.count("patch nodes"), 5);
    });
}

#[test]
fn a_node_of_the_same_name_is_another_node() {
    test(async {
        let server = Server::new();
        server.add(&node("a"));
        let held = server.on("patch", "nodes").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.delete("nodes", "a");
        server.add(&node("a").uid_of("another").annotation(TTL, "0"));
        held.release();
        running.at_rest().await;
        // Refused for the uid it was decided on, and then there is nothing to do.
        assert_eq!(server.count("patch nodes"), 1);
        assert_eq!(ttl(&server, "a"), "0");
    });
}

#[test]
fn why_says_what_a_node_has_and_of_how_many() {
    test(async {
        let server = Server::new();
        for name in ["a", "b"] {
            server.add(&node(name));
        }
        let running = start(&server);
        running.at_rest().await;
        let why = running.why("/api/v1/nodes/a");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].text, "keep (has 0, nodes: 2)");
        assert_eq!(key.now[0].reason, json!({ "right": { "ttlSeconds": 0, "nodes": 2 } }));
        assert!(running.why("/api/v1/nodes/gone").keys.iter().all(|key| key.now.is_empty()));
        assert_eq!(server.writes(), ["patch nodes a", "patch nodes b"]);
    });
}
