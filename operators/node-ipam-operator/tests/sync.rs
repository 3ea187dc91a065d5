//! The operator as it is, against an apiserver in the test's process: its informer, its sync, its writes.

use std::time::Duration;

use node_ipam_operator::controller::NodeIpamOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

/// Four blocks.
const FLAGS: [&str; 2] = ["--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/22"];

fn node(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).namespace("")
}

fn with_cidr(name: &str, cidr: &str) -> ObjectBuilder {
    node(name).set(&["spec", "podCIDR"], cidr).set(&["spec", "podCIDRs"], json!([cidr]))
}

fn start(server: &Server) -> Running {
    Running::start::<NodeIpamOperator>(server, &FLAGS)
}

/// `podCIDRs` of a Node.
fn cidrs(server: &Server, name: &str) -> Value {
    server.get("nodes", name).map_or(json!("gone"), |node| node["spec"]["podCIDRs"].clone())
}

/// A kubelet's write of every few minutes.
fn heartbeats(server: &Server) {
    for name in server.keys("nodes") {
        server.change("nodes", &name, |node| {
            let beats = node["status"]["beats"].as_u64().unwrap_or_default();
            node["status"]["beats"] = (beats + 1).into();
        });
    }
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| ["a", "b"].iter().for_each(|name| server.add(&node(name)))),
            Do(heartbeats),
            Do(|server| {
                server.add(&with_cidr("given", "10.0.3.0/24"));
                server.add(&node("c"));
            }),
            // All blocks are taken, until one is free.
            Do(|server| {
                server.add(&node("d"));
                server.delete("nodes", "b");
            }),
            Do(|server| {
                server.expire_watches("nodes");
                server.delete("nodes", "a");
                server.add(&node("a").uid_of("another"));
            }),
            Do(heartbeats),
        ];
        let server = survives_kills::<NodeIpamOperator>(&FLAGS, &life).await;
        let writes = ["patch nodes a", "patch nodes b", "patch nodes c", "patch nodes d", "patch nodes a"];
        assert_eq!(server.writes(), writes);
        for (name, cidr) in [("a", "10.0.0.0/24"), ("c", "10.0.2.0/24"), ("d", "10.0.1.0/24")] {
            assert_eq!(cidrs(&server, name), json!([cidr]), "{name}");
            assert_eq!(server.get("nodes", name).unwrap()["spec"]["podCIDR"], json!(cidr));
        }
    });
}

#[test]
fn a_start_among_nodes_with_cidrs_writes_nothing_and_neither_do_heartbeats() {
    test(async {
        let server = Server::new();
        server.add(&with_cidr("a", "10.0.0.0/24"));
        server.add(&with_cidr("b", "10.0.1.0/24"));
        let running = start(&server);
        running.at_rest().await;
        heartbeats(&server);
        running.at_rest().await;
        assert_eq!(server.writes(), Vec::<String>::new());
        let why = running.why("/api/v1/nodes/a");
        assert!(why.keys.iter().all(|key| key.last.is_empty()), "it was synced: {why}");
        server.add(&node("c"));
        running.at_rest().await;
        assert_eq!((cidrs(&server, "c"), server.writes().len()), (json!(["10.0.2.0/24"]), 1));
    });
}

#[test]
fn two_ranges_give_two_cidrs_and_none_of_services() {
    test(async {
        let server = Server::new();
        let flags = [
            "--allocate-node-cidrs",
            "--cluster-cidr=10.0.0.0/16,fd00::/48",
            "--service-cluster-ip-range=10.0.0.0/20",
            "--node-cidr-mask-size-ipv6=60",
        ];
        let running = Running::start::<NodeIpamOperator>(&server, &flags);
        server.add(&node("a"));
        server.add(&node("b"));
        running.at_rest().await;
        assert_eq!(cidrs(&server, "a"), json!(["10.0.16.0/24", "fd00::/60"]));
        assert_eq!(cidrs(&server, "b"), json!(["10.0.17.0/24", "fd00:0:0:10::/60"]));
        assert_eq!(server.get("nodes", "b").unwrap()["spec"]["podCIDR"], "10.0.17.0/24");
    });
}

#[test]
fn a_node_that_gets_nothing_is_told_and_gets_what_is_free_first() {
    test(async {
        let server = Server::new();
        server.add(&with_cidr("all", "10.0.0.0/22"));
        server.add(&node("a"));
        let running = start(&server);
        running.pass(Duration::from_secs(60)).await;
        assert_eq!((cidrs(&server, "a"), server.writes()), (json!(null), Vec::new()));
        assert_eq!(server.events(), ["Normal CIDRNotAvailable: Node a status is now: CIDRNotAvailable"]);
        let why = running.why("/api/v1/nodes/a");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].text, "wait (has none, and 10.0.0.0/22 is full)");
        let error = "failed to allocate cidr from cluster cidr at idx:0: CIDR allocation failed; there are no \
                     remaining CIDRs left to allocate in the accepted range";
        assert_eq!(key.last[0].error.as_deref(), Some(error));

        server.delete("nodes", "all");
        running.pass(Duration::from_secs(2)).await;
        assert_eq!(cidrs(&server, "a"), json!(["10.0.0.0/24"]));
        running.at_rest().await;
        assert_eq!(server.writes(), ["patch nodes a"]);
    });
}

#[test]
fn a_lost_answer_and_one_that_says_nothing_cost_no_cidr() {
    test(async {
        let server = Server::new();
        server.on("patch", "nodes").once().lose();
        server.add(&node("a"));
        let running = start(&server);
        server.add(&node("b"));
        running.at_rest().await;
        assert_eq!([cidrs(&server, "a"), cidrs(&server, "b")], [json!(["10.0.0.0/24"]), json!(["10.0.1.0/24"])]);
        server.on("patch", "nodes").times(3).answer(500, "InternalError", "etcdserver: request timed out");
        server.add(&node("c"));
        running.at_rest().await;
        assert_eq!(cidrs(&server, "c"), json!(["10.0.2.0/24"]));
        let failed = ["a", "c"]
            .map(|name| format!("Normal CIDRAssignmentFailed: Node {name} status is now: CIDRAssignmentFailed"));
        assert_eq!(server.events(), failed);
    });
}

#[test]
fn a_patch_that_is_refused_gives_its_cidrs_back_and_the_next_try_is_another_block() {
    test(async {
        let server = Server::new();
        let denied = r#"admission webhook "strict.example.com" denied the request: not today"#;
        server.on("patch", "nodes").times(2).answer(403, "Forbidden", denied);
        server.add(&node("a"));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!((cidrs(&server, "a"), server.count("patch nodes")), (json!(["10.0.2.0/24"]), 3));
        for name in ["b", "c", "d"] {
            server.add(&node(name));
        }
        running.at_rest().await;
        assert_eq!(cidrs(&server, "d"), json!(["10.0.1.0/24"]));
    });
}

#[test]
fn patches_that_are_under_way_have_different_cidrs() {
    test(async {
        let server = Server::new();
        let held = server.on("patch", "nodes").hold();
        let running = start(&server);
        for name in ["a", "b", "c"] {
            server.add(&node(name));
        }
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(held.count(), 3);
        heartbeats(&server);
        running.pass(Duration::from_secs(1)).await;
        held.release();
        running.at_rest().await;
        let mut given: Vec<String> = ["a", "b", "c"].iter().map(|name| cidrs(&server, name).to_string()).collect();
        given.sort();
        assert_eq!(given, [r#"["10.0.0.0/24"]"#, r#"["10.0.1.0/24"]"#, r#"["10.0.2.0/24"]"#]);
        assert_eq!(server.count("patch nodes"), 3);
    });
}

#[test]
fn somebody_else_may_be_first() {
    test(async {
        let server = Server::new();
        server.add(&node("a"));
        let message = r#"node updates may not change podCIDR except from "" to valid"#;
        let refused = server.on("patch", "nodes").once().answer(422, "Invalid", message);
        let running = start(&server);
        refused.arrived().await;
        server.change("nodes", "a", |node| node["spec"] = json!({ "podCIDRs": ["10.0.1.0/24"] }));
        running.at_rest().await;
        assert_eq!((cidrs(&server, "a"), server.count("patch nodes")), (json!(["10.0.1.0/24"]), 1));
        for name in ["b", "c", "d"] {
            server.add(&node(name));
        }
        running.at_rest().await;
        let mut others: Vec<String> = ["b", "c", "d"].iter().map(|name| cidrs(&server, name).to_string()).collect();
        others.sort();
        assert_eq!(others, [r#"["10.0.0.0/24"]"#, r#"["10.0.2.0/24"]"#, r#"["10.0.3.0/24"]"#]);
    });
}

#[test]
fn a_node_that_has_gone_at_the_patch_is_done_with() {
    test(async {
        let server = Server::new();
        server.add(&node("a"));
        let held = server.on("patch", "nodes").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.hold_watches("nodes");
        server.delete("nodes", "a");
        held.release();
        running.at_rest().await;
        assert_eq!((server.count("patch nodes"), server.events()), (1, Vec::<String>::new()));
        server.release_watches("nodes");
        for name in ["b", "c", "d", "e"] {
            server.add(&node(name));
        }
        running.at_rest().await;
        assert_eq!(cidrs(&server, "e"), json!(["10.0.0.0/24"]));
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
        server.add(&node("a").uid_of("another"));
        held.release();
        running.at_rest().await;
        // Refused for the uid that it was decided on.
        assert_eq!((cidrs(&server, "a"), server.count("patch nodes")), (json!(["10.0.1.0/24"]), 2));
    });
}

#[test]
fn a_watch_that_stands_still_gives_no_cidr_twice() {
    test(async {
        let server = Server::new();
        let held = server.on("patch", "nodes").hold();
        for name in ["a", "b"] {
            server.add(&node(name));
        }
        let running = start(&server);
        running.pass(Duration::from_secs(1)).await;
        // The watch does not show the states that are stored from now on.
        server.hold_watches("nodes");
        held.release();
        running.pass(Duration::from_secs(60)).await;
        assert_eq!([cidrs(&server, "a"), cidrs(&server, "b")], [json!(["10.0.0.0/24"]), json!(["10.0.1.0/24"])]);
        server.expire_watches("nodes");
        server.release_watches("nodes");
        server.add(&node("c"));
        running.at_rest().await;
        assert_eq!((cidrs(&server, "c"), server.count("patch nodes")), (json!(["10.0.2.0/24"]), 3));
    });
}

#[test]
fn a_restored_node_gets_the_cidrs_that_its_kubelet_still_uses() {
    test(async {
        let server = Server::new();
        server.add(&with_cidr("a", "10.0.2.0/24"));
        let running = start(&server);
        running.at_rest().await;
        server.change("nodes", "a", |node| node["spec"] = json!({}));
        server.add(&node("b"));
        running.at_rest().await;
        assert_eq!([cidrs(&server, "a"), cidrs(&server, "b")], [json!(["10.0.2.0/24"]), json!(["10.0.0.0/24"])]);
    });
}

#[test]
fn without_the_flag_nothing_is_read() {
    test(async {
        let server = Server::new();
        server.add(&node("a"));
        let running = Running::start::<NodeIpamOperator>(&server, &["--cluster-cidr=10.0.0.0/16"]);
        running.at_rest().await;
        assert_eq!((cidrs(&server, "a"), server.requests()), (json!(null), Vec::new()));
        let why = running.why("/api/v1/nodes/a");
        assert_eq!(why.keys[0].now[0].text, "keep (--allocate-node-cidrs is false)");
        assert_eq!(why.keys[0].now[0].reason, json!("off"));
    });
}

#[test]
fn why_says_what_a_node_has_and_what_it_was_given() {
    test(async {
        let server = Server::new();
        server.add(&node("a"));
        server.add(&with_cidr("b", "192.168.0.0/24"));
        let running = start(&server);
        running.at_rest().await;
        let why = running.why("/api/v1/nodes/a");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].text, "keep (has 10.0.0.0/24)");
        assert_eq!(key.now[0].reason, json!({ "has": { "cidrs": ["10.0.0.0/24"] } }));
        assert_eq!(key.last[0].stages[0].text, "assign 10.0.0.0/24 (has none, free: 4)");
        assert_eq!(key.last[0].stages[0].reason, json!({ "missing": { "free": 4 } }));
        let why = running.why("/api/v1/nodes/b");
        assert_eq!(why.keys[0].now[0].text, "keep (has 192.168.0.0/24, which is not in --cluster-cidr)");
        assert!(running.why("/api/v1/nodes/gone").keys[0].now.is_empty());
        assert_eq!(server.writes(), ["patch nodes a"]);
    });
}
