//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use pod_garbage_collector_operator::controller::PodGarbageCollectorOperator;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ago, object, pod};

const FLAGS: [&str; 1] = ["--terminated-pod-gc-threshold=1"];

fn add_node(server: &Server) {
    server.add(&object("v1", "Node", "node"));
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(add_node),
            Do(|server| {
                // Older than all that has ended: it has failed once it was marked so, and may then be one too many.
                server.add(&pod("lost").node("gone").created(ago(120)));
                server.add(&pod("runs"));
                server.add(&pod("stuck").node("").phase("Pending").terminating());
                for (name, seconds) in [("old", 30), ("older", 60), ("oldest", 90)] {
                    server.add(&pod(name).phase("Succeeded").created(ago(seconds)));
                }
            }),
            Pass(Duration::from_secs(120)),
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
        let running = Running::start::<PodGarbageCollectorOperator>(&server, &FLAGS);
        running.at_rest().await;
        server.on("delete", "pods").once().answer(500, "InternalError", "failed calling webhook");
        server.add(&pod("a").node("gone"));
        server.add(&pod("b").node("gone"));
        running.pass(Duration::from_secs(120)).await;
        assert!(server.keys("pods").is_empty());
        assert_eq!(server.count("delete pods"), 3);
    });
}

#[test]
fn a_node_that_only_the_cache_has_not_seen_keeps_its_pods() {
    test(async {
        let server = Server::new();
        let running = Running::start::<PodGarbageCollectorOperator>(&server, &FLAGS);
        running.at_rest().await;
        server.hold_watches("nodes");
        add_node(&server);
        server.add(&pod("a"));
        running.pass(Duration::from_secs(120)).await;
        assert_eq!(server.writes(), [""; 0]);
        assert!(server.count("get nodes node") > 0);
    });
}
