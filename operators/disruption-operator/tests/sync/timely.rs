//! A status is never late, however many other budgets change, and whatever the pods' owners and revisions.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;
use shared::api::resource::Resource;
use shared::testing::apiserver::Server;
use shared::testing::running::test;
use shared::testing::{ObjectBuilder, object, pod};

use crate::fixtures::{budget, numbers, owned, ready, start};

const TICK: Duration = Duration::from_millis(10);
const TICKS_A_SECOND: usize = 100;
/// The number of pods of the budget `web`, of which at most one may be unavailable.
const PODS: usize = 6;
const OTHER_BUDGETS: usize = 20;

/// How many pods are unready, and for how many ticks.
fn life() -> Vec<(usize, usize)> {
    let mut life = vec![(0, 50)];
    // A roll: each new pod is ready for a while before the next one is replaced.
    life.extend([(1, 30), (0, 250)].repeat(3));
    // Readiness flaps: the numbers fall back to what is written, and rise again.
    life.extend([(1, 15), (0, 15)].repeat(10));
    life.push((0, 250));
    // All pods become ready in turn.
    life.extend((0..PODS).rev().map(|unready| (unready, 20)));
    life.push((0, 250));
    life
}

fn set_ready(server: &Server, pod: &str, is_ready: bool) {
    let status = if is_ready { "True" } else { "False" };
    server.change("pods", &format!("default/{pod}"), |pod| {
        pod["status"]["conditions"] = json!([{ "type": "Ready", "status": status }]);
    });
}

fn add_other_budgets(server: &Server) {
    for at in 0..OTHER_BUDGETS {
        let name = format!("other-{at}");
        let selector = json!({ "matchLabels": { "app": name } });
        let budget = object("policy/v1", "PodDisruptionBudget", &name).set(&["spec", "selector"], selector);
        server.add(&budget.set(&["spec", "minAvailable"], 0));
        server.add(&pod(&name).label("app", &name).ready());
    }
}

/// Runs a budget's life beside this many changes a second of other budgets.
async fn is_timely(add_pods: fn(&Server), rate: usize) {
    let server = Server::new();
    server.serve(Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets"));
    server.add(&budget("maxUnavailable", 1));
    add_pods(&server);
    add_other_budgets(&server);
    let running = start(&server).await;
    running.pass(Duration::from_secs(2)).await;

    let (mut is_ready, mut others_changed, mut tick) = ([true; PODS], 0, 0_usize);
    let mut expected = VecDeque::new();
    let (mut written, mut written_at) = (numbers(&server), 0);
    for (unready, ticks) in life() {
        for (at, is_ready) in is_ready.iter_mut().enumerate().filter(|(at, is_ready)| **is_ready != (*at >= unready)) {
            *is_ready = !*is_ready;
            set_ready(&server, &format!("web-{at}"), *is_ready);
        }
        let healthy = i64::try_from(PODS - unready).unwrap();
        for _ in 0..ticks {
            tick += 1;
            while others_changed < tick * rate / TICKS_A_SECOND {
                let is_ready = others_changed / OTHER_BUDGETS % 2 == 1;
                set_ready(&server, &format!("other-{}", others_changed % OTHER_BUDGETS), is_ready);
                others_changed += 1;
            }
            running.pass(TICK).await;
            let allowed = (healthy - 5).max(0);
            expected.push_back([allowed, healthy, 5, 6]);
            if expected.len() > 2 * TICKS_A_SECOND {
                expected.pop_front();
            }
            let found = numbers(&server);
            let context = format!("tick {tick} at {rate} changes a second: {found:?}, {healthy} are healthy");
            assert!(expected.contains(&found), "late: {context}");
            assert!(found[0] <= allowed, "a fall waits: {context}");
            if found != written {
                let waited = tick - written_at;
                assert!(found[0] <= written[0] || waited >= TICKS_A_SECOND - 1, "{waited} ticks apart: {context}");
                (written, written_at) = (found, tick);
            }
        }
    }
    assert_eq!(numbers(&server), [1, 6, 5, 6]);
    assert!(server.count("patch poddisruptionbudgets/status default/other-0") > 1, "other budgets change too");
}

fn check(add_pods: fn(&Server)) {
    for rate in [1, 10, 100] {
        test(is_timely(add_pods, rate));
    }
}

fn replicas(api_version: &str, kind: &str, name: &str, replicas: usize) -> ObjectBuilder {
    object(api_version, kind, name).set(&["spec", "replicas"], replicas)
}

/// Pods `web-0` to `web-5`, each of the set and the revision of its number.
fn add_pods(server: &Server, kind: &str, of: fn(usize) -> (&'static str, &'static str)) {
    for at in 0..PODS {
        let (set, revision) = of(at);
        let label = if kind == "StatefulSet" { "controller-revision-hash" } else { "pod-template-hash" };
        server.add(&owned(ready(&format!("web-{at}")), "apps/v1", kind, set).label(label, revision));
    }
}

#[test]
fn of_one_owner() {
    check(|server| {
        server.add(&replicas("apps/v1", "ReplicaSet", "web", PODS));
        add_pods(server, "ReplicaSet", |_| ("web", "1"));
    });
}

#[test]
fn of_several_owners() {
    check(|server| {
        server.add(&replicas("apps/v1", "StatefulSet", "master", 2));
        server.add(&replicas("apps/v1", "StatefulSet", "data", PODS - 2));
        add_pods(server, "StatefulSet", |at| if at < 2 { ("master", "master-1") } else { ("data", "data-1") });
    });
}

#[test]
fn of_a_partitioned_stateful_set() {
    check(|server| {
        server.add(&replicas("apps/v1", "StatefulSet", "web", PODS));
        add_pods(server, "StatefulSet", |at| ("web", if at < 4 { "web-1" } else { "web-2" }));
    });
}

#[test]
fn of_a_paused_rollout() {
    check(|server| {
        server.add(&replicas("apps/v1", "Deployment", "web", PODS));
        for (set, count) in [("web-1", 4), ("web-2", PODS - 4)] {
            server.add(&owned(replicas("apps/v1", "ReplicaSet", set, count), "apps/v1", "Deployment", "web"));
        }
        add_pods(server, "ReplicaSet", |at| if at < 4 { ("web-1", "1") } else { ("web-2", "2") });
    });
}
