//! The lives that every kind which keeps a number of pods must survive, its operator run as it is.

use std::time::Duration;

use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, it_goes_and_comes_again, the_first_one_waits};
use shared::testing::pod;
use shared::testing::replicas::{KEY, reject_for};
use shared::testing::running::{A_STATUS, Running, start_at_rest, test};

use crate::{KIND, Operator};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn pods_are_followed_only_while_an_object_needs_them() {
    test(async {
        let server = Server::new();
        server.add(&pod("other").namespace("elsewhere"));
        let remove = |server: &Server| server.delete(KIND.resource, KEY);
        let add = |server: &Server| KIND.add(server, 2);
        is_followed_only_while_needed::<Operator>(&server, KIND.pods, add, remove).await;
        assert_eq!(server.count("create pods"), 2, "what was orphaned is adopted");
    });
}

#[test]
fn the_first_one_waits_for_its_pods_however_they_come() {
    test(async {
        let first = |server: &Server| {
            server.add(&pod("web-0").label("app", "web"));
            KIND.add(server, 2);
        };
        let then = |server: &Server| assert_eq!((server.keys("pods").len(), server.count("create pods")), (2, 1));
        the_first_one_waits::<Operator>(&[], "pods", first, then).await;
    });
}

#[test]
fn one_that_goes_and_comes_again_finds_its_pods() {
    test(async {
        let server = Server::new();
        let running = Running::start::<Operator>(&server, &[]);
        KIND.add(&server, 3);
        running.at_rest().await;
        let meanwhile = |server: &Server| {
            server.add(&pod("stray").label("app", "web"));
            server.delete("pods", "default/stray");
        };
        let then = |server: &Server, pause| assert_eq!(server.keys("pods").len(), 3, "{pause:?}");
        let object = (KIND.resource, KEY);
        it_goes_and_comes_again((&server, &running), object, meanwhile, Duration::from_secs(5), then).await;
        assert_eq!(server.count("create pods"), 3, "no pod was made twice");
    });
}

#[test]
fn a_watch_that_stands_still_makes_no_second_pod() {
    test(async {
        let server = Server::new();
        let running = start_at_rest::<Operator>(&server, &[]).await;
        server.hold_watches("pods");
        KIND.add(&server, 3);
        for replicas in [4, 3, 4] {
            running.pass(Duration::from_secs(3)).await;
            KIND.scale(&server, replicas);
        }
        assert_eq!(server.count("create pods"), 3);
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!(server.count("create pods"), 4);
        running.pass(A_STATUS).await;
        assert_eq!(server.get(KIND.resource, KEY).unwrap()["status"]["replicas"], 4);
    });
}

#[test]
fn a_status_that_meets_a_newer_version_is_written_all_the_same() {
    test(async {
        let server = Server::new();
        KIND.add(&server, 1);
        let held = server.on("patch", &format!("{}/status", KIND.resource)).once().hold();
        let running = Running::start::<Operator>(&server, &[]);
        held.arrived().await;
        server.change(KIND.resource, KEY, |owner| owner["metadata"]["labels"]["new"] = "yes".into());
        held.release();
        running.pass(A_STATUS).await;
        let owner = server.get(KIND.resource, KEY).unwrap();
        assert_eq!((&owner["status"]["replicas"], &owner["metadata"]["labels"]["new"]), (&json!(1), &json!("yes")));
    });
}

#[test]
fn a_watch_that_expires_loses_nothing() {
    test(async {
        let server = Server::new();
        KIND.add(&server, 2);
        let running = start_at_rest::<Operator>(&server, &[]).await;
        server.hold_watches("pods");
        server.delete("pods", &server.keys("pods")[0]);
        server.expire_watches("pods");
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!((server.keys("pods").len(), server.count("create pods")), (2, 3));
    });
}

#[test]
fn a_slow_first_list_and_a_watch_that_breaks_make_no_pod_too_many() {
    test(async {
        let server = Server::new();
        let running = start_at_rest::<Operator>(&server, &[]).await;
        let slow = server.on("list", "pods").hold().once();
        KIND.add(&server, 2);
        slow.arrived().await;
        server.add(&pod("web-0").label("app", "web"));
        running.pass(Duration::from_secs(30)).await;
        assert_eq!(server.writes(), [""; 0]);
        slow.release();
        running.at_rest().await;
        server.cut_watches("pods");
        KIND.scale(&server, 3);
        running.at_rest().await;
        server.expire_watches("pods");
        KIND.scale(&server, 4);
        running.at_rest().await;
        assert_eq!((server.keys("pods").len(), server.count("create pods"), server.count("delete pods")), (4, 3, 0));
    });
}

#[test]
fn only_rejected_pods_wait() {
    test(async {
        let server = Server::new();
        let running = start_at_rest::<Operator>(&server, &[]).await;
        KIND.add(&server, 3);
        reject_for(&server, &running, MINUTE / 3).await;
        let made = server.count("create pods");
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(server.count("create pods"), made, "they wait");
        server.add(&(KIND.object)("other", 2));
        running.at_rest().await;
        assert_eq!(server.count("create pods"), made + 2, "another object's come at once");
        server.change(KIND.resource, KEY, |owner| {
            owner["spec"]["template"]["metadata"]["annotations"] = json!({ "edited": "yes" });
        });
        running.at_rest().await;
        assert_eq!(server.count("create pods"), made + 5, "another template's come at once");
        let events = server.events().into_iter().filter(|event| event.contains("RejectedPodBackoff")).count();
        assert_eq!(events, 1, "its beginning is told");

        reject_for(&server, &running, MINUTE / 3).await;
        running.pass(MINUTE / 3).await;
        server.run_pods();
        running.at_rest().await;
        let made = server.count("create pods");
        KIND.scale(&server, 9);
        running.at_rest().await;
        assert_eq!(server.count("create pods"), made + 6, "once they run none is held back");
    });
}

#[test]
fn a_dead_webhook_costs_no_list() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<Operator>(&server).await;
        let lists = || server.count("list pods") + server.count("watch pods");
        let before = lists();
        let webhook = "Internal error occurred: failed calling webhook \"dead\": connection refused";
        let refusing = server.on("create", "pods").times(8).answer(500, "InternalError", webhook);
        KIND.add(&server, 3);
        running.at_rest().await;
        assert_eq!((refusing.count(), server.keys("pods").len(), lists()), (8, 3, before));
    });
}
