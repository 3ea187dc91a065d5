//! Caches that are behind, answers that are lost, and pods that come while their volume leaves.

use std::time::Duration;

use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::running::test;

use crate::world::{
    ATTACHMENTS, CREATE, DELETE, MINUTE, add_many, attached, attached_to, attachment, pod, reported, run_attacher,
    set_ready, settle, start, uses, volume,
};

const NODES: [&str; 2] = ["worker-0", "worker-1"];

#[test]
fn a_live_read_keeps_a_volume_that_the_cache_does_not_show_as_used() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &NODES, &[]).await;
        let read = server.on("get", "nodes").once().hold();
        server.delete("pods", "default/web");
        read.arrived().await;
        server.hold_watches("nodes");
        uses(&server, "worker-0", &["data"]);
        read.release();
        running.pass(MINUTE).await;
        assert_eq!(server.count(DELETE), 0);
        server.release_watches("nodes");
        running.at_rest().await;
        uses(&server, "worker-0", &[]);
        settle(&server, &running).await;
        assert_eq!(server.count(DELETE), 1);
    });
}

#[test]
fn an_unknown_path_does_not_show_that_a_node_uses_nothing() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &NODES, &[]).await;
        let unknown = server.on("get", "nodes").answer(404, "", "404 page not found");
        server.delete("pods", "default/web");
        running.pass(MINUTE).await;
        assert_eq!((unknown.count() > 1, server.count(DELETE)), (true, 0));
        unknown.times(0);
        running.pass(MINUTE).await;
        assert_eq!(server.count(DELETE), 1);
    });
}

#[test]
fn a_live_read_keeps_a_volume_that_its_node_reports_again() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &NODES, &[]).await;
        let read = server.on("get", "nodes").once().hold();
        server.delete("pods", "default/web");
        read.arrived().await;
        assert_eq!(reported(&server, "worker-0"), Vec::<String>::new());
        server.hold_watches("nodes");
        let entries = json!([{ "name": volume("data").as_str(), "devicePath": "" }]);
        server.change("nodes", "worker-0", |node| node["status"]["volumesAttached"] = entries);
        read.release();
        running.pass(MINUTE).await;
        assert_eq!(server.count(DELETE), 0);
        server.release_watches("nodes");
        settle(&server, &running).await;
        assert_eq!((server.count(DELETE), reported(&server, "worker-0")), (1, vec![]));
    });
}

#[test]
fn a_live_read_is_made_again_where_the_cache_never_shows_what_it_showed() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &NODES, &[]).await;
        let read = server.on("get", "nodes").once().hold();
        server.delete("pods", "default/web");
        read.arrived().await;
        server.hold_watches("nodes");
        uses(&server, "worker-0", &["data"]);
        read.release();
        running.pass(Duration::from_millis(100)).await;
        uses(&server, "worker-0", &[]);
        server.expire_watches("nodes");
        server.release_watches("nodes");
        settle(&server, &running).await;
        running.pass(MINUTE).await;
        assert_eq!(server.count(DELETE), 1);
    });
}

#[test]
fn a_pod_that_comes_before_the_detach_keeps_its_volume() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &NODES, &[]).await;
        let read = server.on("get", "nodes").once().hold();
        server.delete("pods", "default/web");
        read.arrived().await;
        assert_eq!(reported(&server, "worker-0"), Vec::<String>::new());
        server.add(&pod("again", "data", "worker-0"));
        running.pass(Duration::from_secs(1)).await;
        read.release();
        running.at_rest().await;
        assert_eq!((server.count(DELETE), reported(&server, "worker-0")), (0, vec!["data".to_owned()]));
    });
}

#[test]
fn a_pod_that_comes_after_the_detach_gets_its_volume_again() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &NODES, &[]).await;
        server.delete("pods", "default/web");
        running.at_rest().await;
        assert_eq!(server.count(DELETE), 1);
        server.add(&pod("again", "data", "worker-0"));
        running.at_rest().await;
        assert_eq!(reported(&server, "worker-0"), Vec::<String>::new());
        settle(&server, &running).await;
        assert_eq!((server.count(CREATE), reported(&server, "worker-0")), (2, vec!["data".to_owned()]));
    });
}

#[test]
fn a_lost_answer_makes_no_second_attachment_and_no_second_detach() {
    test(async {
        let server = Server::new();
        for verb in ["create", "delete"] {
            server.on(verb, ATTACHMENTS).once().lose();
        }
        server.on("patch", "nodes/status").times(2).lose();
        let running = attached(&server, &NODES, &[]).await;
        running.pass(MINUTE).await;
        settle(&server, &running).await;
        assert_eq!((reported(&server, "worker-0"), server.keys(ATTACHMENTS).len()), (vec!["data".to_owned()], 1));
        server.delete("pods", "default/web");
        running.pass(MINUTE).await;
        settle(&server, &running).await;
        assert_eq!((reported(&server, "worker-0"), server.keys(ATTACHMENTS)), (vec![], vec![]));
    });
}

#[test]
fn a_cache_that_does_not_show_the_first_attachment_does_not_lead_to_a_second() {
    for is_answer_lost in [false, true] {
        test(async {
            let server = Server::new();
            add_many(&server, &NODES, &["data"]);
            let running = start(&server).await;
            server.hold_watches(ATTACHMENTS);
            if is_answer_lost {
                server.on("create", ATTACHMENTS).once().lose();
            }
            server.add(&pod("a", "data", "worker-0"));
            running.pass(Duration::from_secs(2)).await;
            server.add(&pod("b", "data", "worker-1"));
            server.delete("pods", "default/a");
            running.pass(Duration::from_secs(2)).await;
            assert!(!attached_to(&server, "data", &NODES).contains(&"worker-1".to_owned()), "{:?}", server.writes());
            server.release_watches(ATTACHMENTS);
            settle(&server, &running).await;
            assert_eq!(attached_to(&server, "data", &NODES), ["worker-1"]);
            assert_eq!((server.count(CREATE), server.count(DELETE)), (2, 1));
        });
    }
}

#[test]
fn a_request_that_stored_nothing_keeps_the_volume_from_no_other_node() {
    for (code, reason, live_reads) in [(504, "Timeout", 1), (422, "Invalid", 0)] {
        test(async {
            let server = Server::new();
            add_many(&server, &NODES, &["data"]);
            let running = start(&server).await;
            let lists = server.count("list volumeattachments");
            let failure = server.on("create", ATTACHMENTS).once().answer(code, reason, "no");
            server.add(&pod("a", "data", "worker-0"));
            failure.arrived().await;
            server.add(&pod("b", "data", "worker-1"));
            server.delete("pods", "default/a");
            settle(&server, &running).await;
            assert_eq!(attached_to(&server, "data", &NODES), ["worker-1"], "{:?}", server.writes());
            assert_eq!(server.count("list volumeattachments"), lists + live_reads);
        });
    }
}

#[test]
fn a_deletion_that_the_cache_does_not_show_is_no_attachment() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &NODES, &[]).await;
        server.hold_watches(ATTACHMENTS);
        server.change(ATTACHMENTS, &attachment("data", "worker-0"), |found| {
            found["metadata"]["finalizers"] = serde_json::Value::Null;
        });
        server.delete("pods", "default/web");
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(server.keys(ATTACHMENTS), Vec::<String>::new());
        server.add(&pod("again", "data", "worker-0"));
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(reported(&server, "worker-0"), Vec::<String>::new());
        server.release_watches(ATTACHMENTS);
        settle(&server, &running).await;
        assert_eq!(reported(&server, "worker-0"), ["data"]);
    });
}

#[test]
fn after_a_restore_of_etcd_a_node_has_its_whole_time_again() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &NODES, &[]).await;
        uses(&server, "worker-0", &["data"]);
        set_ready(&server, "worker-0", "Unknown");
        server.delete("pods", "default/web");
        running.pass(MINUTE * 5).await;
        server.restore(server.back_up());
        running.start_over().await;
        running.pass(MINUTE * 5).await;
        assert_eq!(server.count(DELETE), 0);
        running.pass(MINUTE * 2).await;
        assert_eq!(server.count(DELETE), 1);
    });
}

#[test]
fn a_restored_attachment_that_a_pod_wants_is_not_deleted_again() {
    test(async {
        let server = Server::new();
        let running = attached(&server, &NODES, &[]).await;
        let backup = server.back_up();
        server.delete("pods", "default/web");
        running.at_rest().await;
        assert_eq!(server.count(DELETE), 1);
        server.restore(backup);
        running.pass(Duration::from_secs(1)).await;
        // The nodes are listed last, so that all other caches are new while the memory is old.
        let late = server.on("watch", "nodes").times(2).answer(500, "InternalError", "etcd is not ready");
        running.start_over().await;
        assert_eq!(late.count(), 2);
        settle(&server, &running).await;
        assert_eq!((server.count(DELETE), attached_to(&server, "data", &NODES)), (1, vec!["worker-0".to_owned()]));
        assert_eq!(reported(&server, "worker-0"), ["data"]);
    });
}

/// Without an election nothing keeps the request of one process from coming late, after the other has moved the volume.
#[test]
fn a_late_request_of_a_second_process_attaches_nothing_for_long() {
    test(async {
        let server = Server::new();
        add_many(&server, &NODES, &["data"]);
        let (first, second) = (start(&server).await, start(&server).await);
        let late = server.on("create", ATTACHMENTS).once().hold();
        server.add(&pod("a", "data", "worker-0"));
        late.arrived().await;
        first.pass(Duration::from_secs(1)).await;
        run_attacher(&server);
        first.pass(Duration::from_secs(1)).await;
        assert_eq!(reported(&server, "worker-0"), ["data"]);
        server.add(&pod("b", "data", "worker-1"));
        server.delete("pods", "default/a");
        for _ in 0..4 {
            first.pass(Duration::from_secs(1)).await;
            run_attacher(&server);
        }
        assert_eq!(attached_to(&server, "data", &NODES), ["worker-1"]);
        uses(&server, "worker-1", &["data"]);
        late.release();
        first.pass(Duration::from_secs(1)).await;
        for _ in 0..2 {
            settle(&server, &first).await;
            settle(&server, &second).await;
            assert_eq!(reported(&server, "worker-0"), Vec::<String>::new());
        }
        assert_eq!(attached_to(&server, "data", &NODES), ["worker-1"]);
        assert_eq!(reported(&server, "worker-1"), ["data"]);
    });
}
