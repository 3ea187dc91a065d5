//! Charges of the apiserver, which come before what they are for: no count may give them back.

use std::time::Duration;

use resourcequota_operator::controller::ResourceQuotaOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::{Running, test};
use shared::testing::{ObjectBuilder, object, pod};

/// Longer than a charge is kept for what has not come.
const SOON: Duration = Duration::from_secs(15);

fn quota(hard: &Value) -> ObjectBuilder {
    object("v1", "ResourceQuota", "team").set(&["spec", "hard"], hard.clone())
}

fn worker(name: &str) -> ObjectBuilder {
    let container = json!({ "name": "c", "resources": { "requests": { "cpu": "250m" } } });
    pod(name).set(&["spec", "containers"], json!([container]))
}

fn start(server: &Server) -> Running {
    Running::start::<ResourceQuotaOperator>(server, &[])
}

fn status(server: &Server) -> Value {
    server.get("resourcequotas", "default/team").unwrap_or_default()["status"].clone()
}

fn used(server: &Server) -> Value {
    status(server)["used"].clone()
}

/// What the apiserver does when a pod is created: it charges it, and stores it.
fn create(server: &Server, name: &str, pods: &str) {
    server.change("resourcequotas", "default/team", |quota| quota["status"]["used"]["pods"] = pods.into());
    server.add(&worker(name));
}

/// Somebody asks for a count.
fn edit(server: &Server, limit: &str) {
    server.change("resourcequotas", "default/team", |quota| quota["spec"]["hard"]["pods"] = limit.into());
}

#[test]
fn nothing_is_given_back_that_was_charged_while_pods_are_not_seen() {
    test(async {
        let server = Server::new();
        server.add(&quota(&json!({ "pods": "5", "secrets": "5" })));
        server.add(&worker("p"));
        let running = start(&server);
        running.pass(SOON).await;
        server.hold_watches("pods");
        create(&server, "q", "2");
        create(&server, "r", "3");
        server.add(&object("v1", "Secret", "a"));
        edit(&server, "6");
        running.at_rest().await;
        let limits = json!({ "pods": "6", "secrets": "5" });
        let expected = json!({ "hard": limits, "used": { "pods": "3", "secrets": "1" } });
        assert_eq!(status(&server), expected, "other kinds and limits go on");
        let why = running.why("/api/v1/namespaces/default/resourcequotas/team");
        assert_eq!(why.keys[0].now[0].reason, json!({ "counted": { "kinds": 1, "behind": 1, "more": 0 } }), "{why}");
        server.delete("pods", "default/p");
        server.release_watches("pods");
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(used(&server), json!({ "pods": "2", "secrets": "1" }));
    });
}

#[test]
fn what_was_charged_and_is_not_stored_yet_is_not_given_back() {
    test(async {
        let server = Server::new();
        server.add(&quota(&json!({ "pods": "5", "cpu": "4" })));
        server.add(&worker("p"));
        let running = start(&server);
        running.pass(SOON).await;
        let charge = |pods: &str, cpu: &str| {
            server.change("resourcequotas", "default/team", |quota| {
                quota["status"]["used"] = json!({ "pods": pods, "cpu": cpu });
            });
        };
        charge("2", "500m");
        // The watch of pods is as new as that, and one of them goes.
        server.change("pods", "default/p", |pod| pod["metadata"]["labels"] = json!({ "a": "b" }));
        server.delete("pods", "default/p");
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(used(&server), json!({ "pods": "1", "cpu": "250m" }), "of one that is under way");
        server.add(&worker("q"));
        charge("2", "500m");
        server.add(&worker("r"));
        server.delete("pods", "default/q");
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(used(&server), json!({ "pods": "1", "cpu": "250m" }), "both have come, one has gone");
        // Nothing comes of this one, as where the name is taken.
        charge("2", "500m");
        server.change("pods", "default/r", |pod| pod["metadata"]["labels"] = json!({ "a": "b" }));
        edit(&server, "6");
        running.pass(Duration::from_secs(3)).await;
        assert_eq!(used(&server), json!({ "pods": "2", "cpu": "500m" }));
        running.pass(SOON).await;
        assert_eq!(used(&server), json!({ "pods": "1", "cpu": "250m" }));
    });
}

#[test]
fn a_charge_for_what_was_never_stored_is_given_back_though_the_watch_is_silent() {
    test(async {
        let server = Server::new();
        server.add(&quota(&json!({ "pods": "5" })));
        let running = start(&server);
        running.pass(SOON).await;
        server.hold_watches("pods");
        server.change("resourcequotas", "default/team", |quota| quota["status"]["used"]["pods"] = "1".into());
        edit(&server, "6");
        running.pass(Duration::from_secs(3)).await;
        assert_eq!(used(&server), json!({ "pods": "1" }));
        let lists = server.count("list pods");
        running.pass(Duration::from_secs(27)).await;
        assert_eq!((used(&server), server.count("list pods") - lists), (json!({ "pods": "0" }), 1));
    });
}

#[test]
fn a_kind_in_another_etcd_is_counted_although_its_versions_stay_below_those_of_charges() {
    test(async {
        let server = Server::new();
        server.set_apart("secrets");
        server.add(&quota(&json!({ "secrets": "5" })));
        let secret = |name: &str| object("v1", "Secret", name);
        server.add(&secret("a"));
        let running = start(&server);
        running.pass(SOON).await;
        assert_eq!(used(&server), json!({ "secrets": "1" }));
        let create = |name: &str, secrets: &str| {
            server
                .change("resourcequotas", "default/team", |quota| quota["status"]["used"]["secrets"] = secrets.into());
            server.add(&secret(name));
        };
        create("b", "2");
        server.delete("secrets", "default/a");
        running.pass(2 * SOON).await;
        assert_eq!(used(&server), json!({ "secrets": "1" }), "a list that was requested after the charge has seen it");
        let lists = server.count("list secrets");
        create("c", "2");
        server.delete("secrets", "default/b");
        running.pass(SOON).await;
        assert_eq!(
            (used(&server), server.count("list secrets")),
            (json!({ "secrets": "1" }), lists),
            "one list is enough"
        );
    });
}

#[test]
fn a_charge_after_a_restore_of_etcd_is_waited_for_although_versions_were_higher_before() {
    test(async {
        let server = Server::new();
        server.add(&quota(&json!({ "pods": "5" })));
        let running = start(&server);
        running.pass(SOON).await;
        let backup = server.back_up();
        server.hold_watches("pods");
        create(&server, "p", "1");
        edit(&server, "6");
        running.pass(Duration::from_secs(1)).await;
        server.release_watches("pods");
        running.pass(SOON).await;
        server.restore(backup);
        running.start_over().await;
        running.pass(SOON).await;
        assert_eq!(used(&server), json!({ "pods": "0" }));
        server.hold_watches("pods");
        create(&server, "q", "1");
        edit(&server, "6");
        running.pass(SOON).await;
        assert_eq!(used(&server), json!({ "pods": "1" }), "the count has a list in which the pod is");
    });
}
