//! The operator as it is, against an apiserver in the test's process: its informer, its sync, its writes.

use clusterrole_aggregation_operator::controller::ClusterRoleAggregationOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

fn cluster_role(name: &str) -> ObjectBuilder {
    object("rbac.authorization.k8s.io/v1", "ClusterRole", name).namespace("")
}

/// A role that aggregates the roles with this label.
fn selecting(name: &str, label: &str) -> ObjectBuilder {
    let selector = json!({ "matchLabels": { label: "true" } });
    cluster_role(name).set(&["aggregationRule", "clusterRoleSelectors"], vec![selector])
}

/// `edit` has the rules of `view`, and more.
fn add_aggregated(server: &Server) {
    server.add(&selecting("view", "to-view").label("to-edit", "true"));
    server.add(&selecting("edit", "to-edit"));
}

fn rule(verb: &str) -> Value {
    json!({ "apiGroups": [""], "resources": ["pods"], "verbs": [verb] })
}

/// A role that is aggregated.
fn part(name: &str, label: &str, verb: &str) -> ObjectBuilder {
    cluster_role(name).label(label, "true").set(&["rules"], vec![rule(verb)])
}

fn start(server: &Server) -> Running {
    Running::start::<ClusterRoleAggregationOperator>(server, &[])
}

/// The verbs of a role's rules.
fn verbs(server: &Server, name: &str) -> String {
    let role = server.get("clusterroles", name).unwrap_or_default();
    let rules = role["rules"].as_array().into_iter().flatten();
    let verbs: Vec<&str> = rules.filter_map(|rule| rule["verbs"][0].as_str()).collect();
    verbs.join(" ")
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                add_aggregated(server);
                server.add(&part("a", "to-view", "get"));
                server.add(&part("b", "to-edit", "patch"));
            }),
            Do(|server| server.change("clusterroles", "a", |role| role["rules"] = json!([rule("get"), rule("list")]))),
            Do(|server| server.change("clusterroles", "view", |role| role["rules"] = json!([rule("delete")]))),
            Do(|server| server.change("clusterroles", "b", |role| role["metadata"]["labels"] = json!({}))),
            Do(|server| server.delete("clusterroles", "a")),
            Do(|server| server.add(&part("c", "to-view", "watch"))),
        ];
        let server = survives_kills::<ClusterRoleAggregationOperator>(&[], &life).await;
        assert_eq!([verbs(&server, "view"), verbs(&server, "edit")], ["watch", "watch"]);
        let writes = server.writes();
        let is_aggregated = |write: &String| ["patch clusterroles view", "patch clusterroles edit"].contains(&&**write);
        assert!(writes.iter().all(is_aggregated), "{writes:?}");
    });
}

#[test]
fn a_change_goes_from_role_to_role() {
    test(async {
        let server = Server::new();
        add_aggregated(&server);
        server.add(&part("a", "to-view", "get"));
        server.add(&part("b", "to-edit", "patch"));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!([verbs(&server, "view"), verbs(&server, "edit")], ["get", "patch get"]);

        let writes = server.count("patch clusterroles");
        server.change("clusterroles", "a", |role| role["rules"][0] = rule("list"));
        running.at_rest().await;
        assert_eq!([verbs(&server, "view"), verbs(&server, "edit")], ["list", "patch list"]);
        assert_eq!(server.writes()[writes..], ["patch clusterroles view", "patch clusterroles edit"]);
        server.delete("clusterroles", "a");
        running.at_rest().await;
        assert_eq!([verbs(&server, "view"), verbs(&server, "edit")], ["", "patch"]);
        assert_eq!(server.get("clusterroles", "view").unwrap()["rules"], json!([]));
    });
}

#[test]
fn a_start_among_roles_that_are_right_writes_nothing_and_neither_do_changes_that_concern_none() {
    test(async {
        let server = Server::new();
        server.add(&selecting("view", "to-view").set(&["rules"], vec![rule("get")]));
        server.add(&selecting("empty", "to-nothing").set(&["rules"], json!(null)));
        server.add(&part("a", "to-view", "get"));
        let running = start(&server);
        running.at_rest().await;
        let synced = running.why("/apis/rbac.authorization.k8s.io/v1/clusterroles/view").keys[0].last[0].count;
        server.add(&part("other", "to-other", "get"));
        server.change("clusterroles", "a", |role| role["metadata"]["annotations"] = json!({ "a": "b" }));
        running.at_rest().await;
        assert_eq!(server.writes(), Vec::<String>::new());
        let again = running.why("/apis/rbac.authorization.k8s.io/v1/clusterroles/view").keys[0].last[0].count;
        assert_eq!(synced, again, "it was synced again");
    });
}

#[test]
fn rules_that_somebody_else_has_written_are_replaced() {
    test(async {
        let server = Server::new();
        server.add(&selecting("view", "to-view").set(&["rules"], vec![rule("delete")]));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!(verbs(&server, "view"), "");
        server.change("clusterroles", "view", |role| role["rules"] = json!([rule("delete")]));
        running.at_rest().await;
        assert_eq!((verbs(&server, "view"), server.count("patch clusterroles")), (String::new(), 2));
    });
}

#[test]
fn an_apply_that_fails_is_tried_again() {
    test(async {
        let server = Server::new();
        server.on("patch", "clusterroles").times(3).answer(500, "InternalError", "etcd is down");
        server.add(&selecting("view", "to-view"));
        server.add(&part("a", "to-view", "get"));
        start(&server).at_rest().await;
        assert_eq!((verbs(&server, "view"), server.count("patch clusterroles")), ("get".to_owned(), 4));
    });
}

#[test]
fn a_role_that_has_gone_is_not_brought_back() {
    test(async {
        let server = Server::new();
        server.add(&selecting("view", "to-view"));
        server.add(&part("a", "to-view", "get"));
        let held = server.on("patch", "clusterroles").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.delete("clusterroles", "view");
        held.release();
        running.at_rest().await;
        assert_eq!(server.keys("clusterroles"), ["a"]);
    });
}

#[test]
fn a_role_of_the_same_name_is_another_role() {
    test(async {
        let server = Server::new();
        server.add(&selecting("view", "to-view"));
        server.add(&part("a", "to-view", "get"));
        let held = server.on("patch", "clusterroles").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.delete("clusterroles", "view");
        server.add(&cluster_role("view").uid_of("another").set(&["rules"], vec![rule("delete")]));
        held.release();
        running.at_rest().await;
        // Refused for the uid that it was decided on. The new one does not aggregate.
        assert_eq!((verbs(&server, "view"), server.count("patch clusterroles")), ("delete".to_owned(), 1));
    });
}

#[test]
fn a_watch_that_stands_still_costs_no_rule() {
    test(async {
        let server = Server::new();
        add_aggregated(&server);
        server.add(&part("a", "to-view", "get"));
        let running = start(&server);
        running.at_rest().await;
        server.hold_watches("clusterroles");
        server.change("clusterroles", "a", |role| role["rules"] = json!([rule("list")]));
        running.at_rest().await;
        assert_eq!(verbs(&server, "edit"), "get");
        server.expire_watches("clusterroles");
        server.release_watches("clusterroles");
        running.at_rest().await;
        assert_eq!([verbs(&server, "view"), verbs(&server, "edit")], ["list", "list"]);
    });
}

#[test]
fn why_says_which_rules_a_role_has_and_lacks() {
    test(async {
        let server = Server::new();
        server.add(&selecting("view", "to-view"));
        server.add(&part("a", "to-view", "get"));
        let running = start(&server);
        running.at_rest().await;
        let why = running.why("/apis/rbac.authorization.k8s.io/v1/clusterroles/view");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].text, "nothing (has the 1 rules of 1 roles)");
        assert_eq!(key.now[0].reason, json!({ "complete": { "rules": 1, "roles": 1 } }));
        let wrote = key.last.iter().flat_map(|decision| &decision.stages).map(|stage| &stage.reason);
        let lacked = json!({ "different": { "missing": 1, "foreign": 0, "roles": 1 } });
        assert!(wrote.into_iter().any(|reason| *reason == lacked), "{why}");
        let why = running.why("/apis/rbac.authorization.k8s.io/v1/clusterroles/a");
        assert_eq!(why.keys[0].now[0].text, "nothing (has no aggregationRule)");
        assert!(running.why("/apis/rbac.authorization.k8s.io/v1/clusterroles/gone").keys[0].now.is_empty());
    });
}
