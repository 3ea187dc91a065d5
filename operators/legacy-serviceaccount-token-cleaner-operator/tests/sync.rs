//! The operator as it is, against an apiserver in the test's process: its informer, its rounds, its writes.

use std::time::Duration;

use legacy_serviceaccount_token_cleaner_operator::controller::LegacyServiceAccountTokenCleanerOperator;
use legacy_serviceaccount_token_cleaner_operator::objects::{INVALID_SINCE, LAST_USED};
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, ago, object, pod};

/// So short that a token of yesterday is an old one.
const FLAGS: [&str; 1] = ["--legacy-service-account-token-clean-up-period=1h"];
const TRACKING: &str = "kube-system/kube-apiserver-legacy-service-account-token-tracking";
const A_DAY: Duration = Duration::from_secs(24 * 3600 + 60);

fn token(name: &str) -> ObjectBuilder {
    object("v1", "Secret", name)
        .created(ago(400 * 24 * 3600))
        .set(&["type"], "kubernetes.io/service-account-token")
        .annotation("kubernetes.io/service-account.name", "robot")
}

fn robot(secrets: &[&str]) -> ObjectBuilder {
    let secrets: Vec<Value> = secrets.iter().map(|name| json!({ "name": name })).collect();
    object("v1", "ServiceAccount", "robot").set(&["secrets"], secrets)
}

/// Uses are noted since this day.
fn add_tracking(server: &Server, since: &str) {
    let (namespace, name) = TRACKING.split_once('/').unwrap_or_default();
    server.add(&object("v1", "ConfigMap", name).namespace(namespace).set(&["data", "since"], since));
}

/// A round begins.
fn track_since(server: &Server, since: &str) {
    server.change("configmaps", TRACKING, |config_map| config_map["data"]["since"] = since.into());
}

fn mounting(name: &str, secret: &str) -> ObjectBuilder {
    let volume = json!({ "name": "token", "secret": { "secretName": secret } });
    pod(name).set(&["spec", "volumes"], json!([volume]))
}

async fn start(server: &Server) -> Running {
    let running = Running::start::<LegacyServiceAccountTokenCleanerOperator>(server, &FLAGS);
    running.at_rest().await;
    running
}

/// The label of a token, or `gone`.
fn invalid_since(server: &Server, name: &str) -> Value {
    let token = server.get("secrets", &format!("default/{name}"));
    token.map_or(json!("gone"), |token| token["metadata"]["labels"][INVALID_SINCE].clone())
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&robot(&["unused", "overdue", "used", "mounted"]));
                server.add(&token("unused"));
                server.add(&token("overdue").label(INVALID_SINCE, "2025-06-01"));
                server.add(&token("used").label(LAST_USED, "2026-01-01"));
                server.add(&token("mounted"));
                server.add(&token("by-hand"));
                server.add(&mounting("web", "mounted"));
                add_tracking(server, "2024-01-01");
            }),
            Do(|server| track_since(server, "2024-01-02")),
        ];
        let server = survives_kills::<LegacyServiceAccountTokenCleanerOperator>(&FLAGS, &life).await;
        assert_eq!(server.writes(), ["delete secrets default/overdue", "patch secrets default/unused"]);
        assert_eq!([invalid_since(&server, "unused"), invalid_since(&server, "overdue")], ["2026-01-01", "gone"]);
    });
}

#[test]
fn a_token_is_marked_on_one_day_and_deleted_on_another_unless_somebody_takes_the_label_away() {
    test(async {
        let server = Server::new();
        add_tracking(&server, "2024-01-01");
        server.add(&robot(&["a", "b"]));
        for name in ["a", "b"] {
            server.add(&token(name));
        }
        let running = start(&server).await;
        assert_eq!([invalid_since(&server, "a"), invalid_since(&server, "b")], ["2026-01-01", "2026-01-01"]);
        server.change("secrets", "default/b", |token| {
            token["metadata"]["labels"] = json!({ LAST_USED: "2026-01-02" });
        });
        running.pass(A_DAY).await;
        assert_eq!([invalid_since(&server, "a"), invalid_since(&server, "b")], [json!("gone"), json!(null)]);
        assert_eq!(server.count("list secrets"), 2);
    });
}

#[test]
fn a_write_whose_answer_is_lost_is_not_made_twice() {
    test(async {
        let server = Server::new();
        server.on("patch", "secrets").once().lose();
        server.on("delete", "secrets").once().lose();
        add_tracking(&server, "2024-01-01");
        server.add(&robot(&["unused", "overdue"]));
        server.add(&token("unused"));
        server.add(&token("overdue").label(INVALID_SINCE, "2025-06-01"));
        let running = start(&server).await;
        running.pass(Duration::from_mins(10)).await;
        track_since(&server, "2024-01-02");
        running.at_rest().await;
        assert_eq!([invalid_since(&server, "unused"), invalid_since(&server, "overdue")], ["2026-01-01", "gone"]);
        assert_eq!((server.count("patch secrets"), server.count("delete secrets")), (1, 1));
    });
}

#[test]
fn before_uses_are_noted_for_long_enough_no_token_is_read() {
    test(async {
        let server = Server::new();
        server.add(&robot(&["a"]));
        server.add(&token("a"));
        let running = start(&server).await;
        add_tracking(&server, "2026-01-01");
        running.at_rest().await;
        let path = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
        let why = running.why(path);
        let expected = "nothing (uses are not tracked for long enough until 2026-01-02T01:00:00Z)";
        assert_eq!(why.keys[0].now[0].text, expected, "{why}");
        assert_eq!(server.count("list secrets"), 0);
        running.pass(A_DAY).await;
        assert_eq!(invalid_since(&server, "a"), "2026-01-02");
    });
}

#[test]
fn only_tokens_are_read_and_of_others_nothing_is_asked() {
    test(async {
        let server = Server::new();
        add_tracking(&server, "2024-01-01");
        server.add(&robot(&["opaque", "new"]));
        server.add(&token("opaque").set(&["type"], "Opaque"));
        server.add(&token("new").created(ago(60)));
        // A ConfigMap of that name elsewhere is somebody's own.
        let (_, name) = TRACKING.split_once('/').unwrap();
        server.add(&object("v1", "ConfigMap", name).set(&["data", "since"], "2000-01-01"));
        let _running = start(&server).await;
        assert_eq!(server.writes(), [""; 0]);
        let is_asked = |start: &str| server.count(start) > 0;
        assert!(is_asked("list secrets") && !is_asked("get") && !is_asked("list pods"), "{:?}", server.requests());
    });
}

#[test]
fn the_pods_of_a_namespace_are_listed_once_and_only_where_that_makes_a_difference() {
    test(async {
        let server = Server::new();
        add_tracking(&server, "2024-01-01");
        server.add(&robot(&["a", "b", "c"]));
        for name in ["a", "b", "c", "by-hand"] {
            server.add(&token(name));
        }
        server.add(&mounting("web", "b"));
        server.add(&token("lonely").namespace("elsewhere"));
        let _running = start(&server).await;
        assert_eq!(server.writes(), ["patch secrets default/a", "patch secrets default/c"]);
        assert_eq!((server.count("list pods default"), server.count("list pods")), (1, 1));
    });
}

#[test]
fn of_a_name_that_no_account_can_have_nothing_is_asked() {
    test(async {
        let server = Server::new();
        add_tracking(&server, "2024-01-01");
        for (name, account) in [("a", "a/token"), ("b", ".."), ("c", "50%"), ("d", "")] {
            server.add(&token(name).annotation("kubernetes.io/service-account.name", account));
        }
        let _running = start(&server).await;
        assert_eq!((server.count("list secrets"), server.count("get serviceaccounts")), (1, 0));
    });
}

#[test]
fn a_list_that_fails_is_tried_again() {
    test(async {
        let server = Server::new();
        add_tracking(&server, "2024-01-01");
        server.add(&robot(&["a"]));
        server.add(&token("a"));
        server.on("list", "secrets").times(3).answer(500, "InternalError", "etcd is down");
        start(&server).await;
        assert_eq!((invalid_since(&server, "a"), server.count("list secrets")), (json!("2026-01-01"), 4));
    });
}

#[test]
fn a_token_that_cannot_be_looked_at_waits_for_the_next_round_and_keeps_no_other_waiting() {
    test(async {
        let server = Server::new();
        add_tracking(&server, "2024-01-01");
        for namespace in ["a", "b", "c"] {
            server.add(&robot(&["token"]).namespace(namespace));
            server.add(&token("token").namespace(namespace));
        }
        server.on("list", "pods").once().answer(500, "InternalError", "etcd is down");
        server.on("patch", "secrets").once().answer(403, "Forbidden", "not today");
        let running = start(&server).await;
        assert_eq!(server.writes(), ["patch secrets b/token", "patch secrets c/token"]);
        let why = running.why("/api/v1/namespaces/a/secrets/token");
        let error = why.keys[0].last[0].error.clone().unwrap_or_default();
        assert!(error.starts_with("cannot list the pods of its namespace: "), "{why}");
        track_since(&server, "2024-01-02");
        running.at_rest().await;
        assert_eq!(server.writes()[2..], ["patch secrets a/token", "patch secrets b/token"]);
    });
}

#[test]
fn a_token_that_is_used_at_the_last_moment_stays() {
    test(async {
        let server = Server::new();
        add_tracking(&server, "2024-01-01");
        server.add(&robot(&["a"]));
        server.add(&token("a").label(INVALID_SINCE, "2025-06-01"));
        let held = server.on("delete", "secrets").once().hold();
        let running = Running::start::<LegacyServiceAccountTokenCleanerOperator>(&server, &FLAGS);
        held.arrived().await;
        server.change("secrets", "default/a", |token| token["metadata"]["labels"][LAST_USED] = "2026-01-01".into());
        held.release();
        running.at_rest().await;
        track_since(&server, "2024-01-02");
        running.at_rest().await;
        assert_eq!((invalid_since(&server, "a"), server.count("delete secrets")), (json!("2025-06-01"), 1));
    });
}

#[test]
fn why_says_what_the_last_round_has_decided_about_a_token() {
    test(async {
        let server = Server::new();
        add_tracking(&server, "2024-01-01");
        server.add(&robot(&["a", "b", "c"]));
        server.add(&token("a"));
        server.add(&token("b"));
        server.add(&token("c").label(LAST_USED, "2026-01-01"));
        server.add(&mounting("web", "b"));
        let running = start(&server).await;
        let decided = |name: &str| {
            let why = running.why(&format!("/api/v1/namespaces/default/secrets/{name}"));
            assert!(why.keys[0].now.is_empty(), "{why}");
            let stages = why.keys[0].last[0].stages.iter();
            stages.map(|stage| (stage.text.clone(), stage.reason.clone())).collect::<Vec<(String, Value)>>()
        };
        let unused = json!({ "unused": { "lastUsed": null } });
        let asked = "read its ServiceAccount and the pods of its namespace (never used while tracked)".to_owned();
        let marked = "mark as invalid since 2026-01-01 (never used while tracked)".to_owned();
        assert_eq!(decided("a"), [(asked.clone(), unused.clone()), (marked, unused.clone())]);
        let used = json!({ "usedByPod": { "pod": "web" } });
        assert_eq!(decided("b"), [(asked, unused), ("keep (pod web uses it)".to_owned(), used)]);
        let recent = json!({ "used": { "on": "2026-01-01" } });
        assert_eq!(decided("c"), [("keep (used on 2026-01-01)".to_owned(), recent)]);
        let path = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
        assert_eq!(running.why(path).keys[0].now[0].text, "check all tokens (uses are tracked since 2024-01-01)");
        assert!(running.why("/api/v1/namespaces/kube-system/configmaps/other").keys.is_empty());
    });
}
