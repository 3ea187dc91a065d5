//! The statuses, conditions and events of a whole operator, killed or not.

use std::time::Duration;

use disruption_operator::controller::DisruptionOperator;
use serde_json::json;
use shared::api::explain::KeyState;
use shared::api::resource::Resource;
use shared::api::time::Time;
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, ago, object, pod};

use crate::fixtures::{BUDGETS, KEY, budget, numbers, owned, ready, start, status};

/// A scale counts as long.
const SECOND: Duration = Duration::from_secs(1);
const PATH: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web";

/// A Deployment that asks for three pods, its ReplicaSet, and those pods.
fn add_deployment(server: &Server) {
    server.add(&object("apps/v1", "Deployment", "deployment").set(&["spec", "replicas"], 3));
    let set = object("apps/v1", "ReplicaSet", "set").set(&["spec", "replicas"], 5);
    server.add(&owned(set, "apps/v1", "Deployment", "deployment"));
    for name in ["a", "b", "c"] {
        server.add(&owned(ready(name), "apps/v1", "ReplicaSet", "set"));
    }
}

/// Add pods without an owner.
fn add_pods(server: &Server, names: &[&str]) {
    for name in names {
        server.add(&ready(name));
    }
}

fn condition(server: &Server) -> (String, String) {
    let condition = &status(server)["conditions"][0];
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

/// The apiserver's part when a pod is to be evicted, but for the deletion: it allows that, notes it, and says so.
fn evict(server: &Server, name: &str) -> bool {
    let (status, now) = (status(server), Time::of(server.clock().now()));
    let allowed = status["disruptionsAllowed"].as_i64().unwrap_or_default();
    if allowed == 0 {
        return false;
    }
    server.change(BUDGETS, KEY, |budget| {
        budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
        budget["status"]["disruptedPods"][name] = json!(now);
    });
    true
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(add_deployment),
            Do(|server| server.add(&budget("maxUnavailable", 1))),
            Do(|server| assert!(!numbers(server).contains(&-1) && evict(server, "a"))),
            Do(|server| server.delete("pods", "default/a")),
            Do(|server| server.add(&owned(ready("d"), "apps/v1", "ReplicaSet", "set"))),
            Do(|server| server.change(BUDGETS, KEY, |budget| budget["spec"]["maxUnavailable"] = 2.into())),
            Pass(Duration::from_secs(10)),
        ];
        let server = survives_kills::<DisruptionOperator>(&[], &life).await;
        assert_eq!(numbers(&server), [2, 3, 1, 3]);
        let said = (status(&server)["observedGeneration"].clone(), condition(&server).0);
        assert_eq!(said, (json!(2), "SufficientPods".to_owned()));
        assert!(status(&server)["disruptedPods"].as_object().is_none_or(serde_json::Map::is_empty));
    });
}

#[test]
fn of_thirty_evictions_at_once_one_is_allowed() {
    test(async {
        let server = Server::new();
        add_pods(&server, &["a", "b", "c"]);
        server.add(&budget("minAvailable", 2));
        let running = start(&server).await;
        assert_eq!(numbers(&server), [1, 3, 2, 3]);
        // The pods' watch is late, and the budget's is not.
        server.hold_watches("pods");
        let mut taken = Vec::new();
        for round in 0..10 {
            for name in ["a", "b", "c"] {
                if evict(&server, name) {
                    taken.push((round, name));
                    server.delete("pods", &format!("default/{name}"));
                }
            }
            running.pass(Duration::from_millis(100)).await;
        }
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!(taken, [(0, "a")]);
        assert_eq!(numbers(&server), [0, 2, 2, 2]);
        assert!(!evict(&server, "b"));
    });
}

/// Upstream: `TestUpdatePDBStatusRetries`.
#[test]
fn an_eviction_that_comes_before_a_write_is_not_written_over() {
    test(async {
        let server = Server::new();
        add_pods(&server, &["moe", "larry", "curly"]);
        server.add(&budget("minAvailable", 1));
        let running = start(&server).await;
        assert_eq!(numbers(&server)[0], 2);
        let held = server.on("patch", "poddisruptionbudgets/status").once().hold();
        server.delete("pods", "default/moe");
        held.arrived().await;
        assert!(evict(&server, "larry") && evict(&server, "curly"));
        held.release();
        running.pass(Duration::from_millis(1)).await;
        assert_eq!(numbers(&server)[0], 0);
        running.at_rest().await;
        assert_eq!(numbers(&server), [0, 0, 1, 2]);
        assert_eq!(condition(&server).0, "InsufficientPods", "a conflict is no failure");
    });
}

#[test]
fn an_eviction_of_a_pod_that_is_not_seen_yet_is_not_forgotten() {
    test(async {
        let server = Server::new();
        add_pods(&server, &["a", "b", "c"]);
        server.add(&budget("minAvailable", 2));
        let running = start(&server).await;
        server.hold_watches("pods");
        server.add(&ready("new"));
        assert!(evict(&server, "new"));
        running.pass(Duration::from_secs(2)).await;
        assert!(!status(&server)["disruptedPods"]["new"].is_null(), "nothing says that it is gone");
        let why = running.why(PATH);
        let KeyState { now, last, .. } = &why.keys[0];
        assert_eq!(now[0].reason["evicted"]["pods"], json!(["new"]));
        assert_eq!(now[..], last[0].stages[..], "the preview shows the stage at which the sync waits");
        server.release_watches("pods");
        running.at_rest().await;
        assert!(!status(&server)["disruptedPods"]["new"].is_null(), "it is there");
        server.delete("pods", "default/new");
        running.at_rest().await;
        assert!(status(&server)["disruptedPods"]["new"].is_null());
        assert_eq!(numbers(&server), [1, 3, 2, 3]);
    });
}

#[test]
fn evicted_pods_in_another_etcd_whose_versions_stay_below_the_budgets_are_seen_to_be_gone() {
    test(async {
        let server = Server::new();
        server.set_apart("pods");
        add_pods(&server, &["a", "b", "c"]);
        server.add(&budget("minAvailable", 1));
        let running = start(&server).await;
        for name in ["a", "b"] {
            assert!(evict(&server, name));
            server.delete("pods", &format!("default/{name}"));
        }
        running.pass(Duration::from_secs(15)).await;
        assert!(status(&server)["disruptedPods"].as_object().is_none_or(serde_json::Map::is_empty));
        assert_eq!(numbers(&server), [0, 1, 1, 1]);
    });
}

#[test]
fn an_eviction_that_takes_too_long_is_told_and_the_pod_counts_again() {
    test(async {
        let server = Server::new();
        add_pods(&server, &["a", "b"]);
        server.add(&budget("minAvailable", 1));
        let running = start(&server).await;
        assert!(evict(&server, "a"));
        running.pass(Duration::from_secs(100)).await;
        assert_eq!(numbers(&server), [0, 1, 1, 2]);
        let timer = running.why(PATH).keys[0].standing.timer.clone().unwrap();
        assert_eq!(timer.purpose, "the timeout of an eviction");
        running.pass(Duration::from_secs(30)).await;
        assert_eq!(numbers(&server), [1, 2, 1, 2]);
        let told = "Warning NotDeleted: Pod was expected by PDB default/default to be deleted but it wasn't";
        assert_eq!(server.events(), [told]);
    });
}

#[test]
fn a_share_follows_the_deployment_of_a_replica_set() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        server.add(&budget("maxUnavailable", 1));
        let running = start(&server).await;
        assert_eq!(numbers(&server), [1, 3, 2, 3]);
        // Once for all three pods, and not again for what was written.
        let asked = || server.count("get deployments/scale default/deployment");
        let before = asked();
        server.change(BUDGETS, KEY, |budget| budget["spec"]["maxUnavailable"] = "67%".into());
        running.pass(SECOND).await;
        assert_eq!((numbers(&server), asked()), ([3, 3, 0, 3], before + 1));
        // A change without a difference to the budget causes no sync.
        server.change("pods", "default/a", |pod| pod["metadata"]["annotations"] = json!({ "a": "b" }));
        running.pass(SECOND).await;
        assert_eq!(asked(), before + 1);
        // A ReplicaSet whose Deployment is gone says itself how many it asks for.
        server.delete("deployments", "default/deployment");
        server.change("pods", "default/a", |pod| pod["status"]["conditions"] = json!([]));
        running.at_rest().await;
        assert_eq!(numbers(&server), [1, 2, 1, 5]);
    });
}

#[test]
fn changes_within_a_second_read_an_owner_once_and_once_more_at_its_end() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        server.add(&budget("maxUnavailable", 1));
        let running = start(&server).await;
        running.pass(SECOND * 2).await;
        let reads = || ["deployments/scale", "replicasets"].map(|kind| server.count(&format!("get {kind} default/")));
        let before = reads();
        // A roll of one pod, in which the Deployment gets another scale.
        for name in ["d", "e", "f", "g"] {
            server.add(&owned(ready(name), "apps/v1", "ReplicaSet", "set"));
            running.pass(SECOND / 10).await;
        }
        server.change("deployments", "default/deployment", |set| set["spec"]["replicas"] = 7.into());
        for name in ["a", "b"] {
            server.delete("pods", &format!("default/{name}"));
            running.pass(SECOND / 10).await;
        }
        assert_eq!(reads(), before.map(|count| count + 1));
        running.pass(SECOND).await;
        assert_eq!((reads(), numbers(&server)), (before.map(|count| count + 2), [0, 5, 6, 7]));
        running.pass(SECOND * 60).await;
        assert_eq!(reads(), before.map(|count| count + 2), "nothing has changed since");
    });
}

#[test]
fn an_error_of_a_read_takes_permissions_away_only_after_half_a_minute() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        server.add(&budget("maxUnavailable", 2));
        let running = start(&server).await;
        running.pass(SECOND * 2).await;
        assert_eq!(numbers(&server), [2, 3, 1, 3]);
        let refused = server.on("get", "deployments/scale").answer(503, "ServiceUnavailable", "not now");
        let set_ready = |status: &str| {
            let conditions = json!([{ "type": "Ready", "status": status }]);
            server.change("pods", "default/a", |pod| pod["status"]["conditions"] = conditions);
        };
        set_ready("False");
        running.pass(SECOND * 2).await;
        assert!(refused.count() > 0);
        assert_eq!((numbers(&server), condition(&server).0), ([1, 2, 1, 3], "SufficientPods".to_owned()), "it falls");
        set_ready("True");
        running.pass(SECOND * 20).await;
        assert_eq!((numbers(&server), server.events()), ([1, 2, 1, 3], Vec::new()), "it does not rise");
        running.pass(SECOND * 60).await;
        assert_eq!((numbers(&server)[0], condition(&server)), (0, ("SyncFailed".to_owned(), "not now".to_owned())));
    });
}

/// The status of a budget of one pod, which has this owner.
async fn with_owner(server: &Server, api_version: &str, kind: &str, name: &str) -> ([i64; 4], String) {
    server.add(&owned(ready("a"), api_version, kind, name));
    server.add(&budget("maxUnavailable", "50%"));
    let running = start(server).await;
    running.pass(Duration::from_secs(60)).await;
    (numbers(server), condition(server).1)
}

fn flocks() -> Resource {
    Resource::namespaced("birds.example", "v1", "Flock", "flocks")
}

/// Upstream: `TestScaleFinderNoResource`, `TestBasicFinderFunctions`, `TestDeploymentFinderFunction`.
#[test]
fn owners_of_every_kind_are_asked_for_their_scale() {
    test(async {
        let four = |api_version: &str, kind: &str| object(api_version, kind, "owner").set(&["spec", "replicas"], 4);
        let stateful_sets = Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets");
        for (api_version, kind) in [
            ("v1", "ReplicationController"),
            ("apps/v1", "StatefulSet"),
            ("apps/v1", "ReplicaSet"),
            ("apps/v1", "Deployment"),
            ("birds.example/v1", "Flock"),
        ] {
            let server = Server::new();
            server.serve_scalable(flocks());
            server.serve(stateful_sets.clone());
            server.add(&four(api_version, kind));
            let found = with_owner(&server, api_version, kind, "owner").await;
            assert_eq!(found, ([0, 1, 2, 4], String::new()), "{kind}");
        }
    });
}

#[test]
fn an_owner_that_has_no_scale_or_is_not_there_allows_nothing_and_is_told_once() {
    test(async {
        for (api_version, kind, name, expected) in [
            ("batch/v1", "Job", "owner", "jobs.batch does not implement the scale subresource"),
            ("birds.example/v1", "Flock", "owner", r#"no matches for kind "Flock" in version "birds.example/v1""#),
            ("batch/v7", "Job", "owner", r#"no matches for kind "Job" in version "batch/v7""#),
            ("apps/v1", "ReplicaSet", "gone", r#"found no controllers for pod "a""#),
            ("apps/v1", "Deployment", "gone", r#"found no controllers for pod "a""#),
            ("apps/v1", "ReplicaSet", "../secrets", r#"found no controllers for pod "a""#),
            ("a/b/c", "ReplicaSet", "owner", "unexpected GroupVersion string: a/b/c"),
            ("v1", "Node", "owner", "nodes does not implement the scale subresource"),
        ] {
            let server = Server::new();
            server.add(&object("batch/v1", "Job", "owner"));
            let found = with_owner(&server, api_version, kind, name).await;
            // The numbers were never known.
            assert_eq!(found, ([0, 0, 0, 0], expected.to_owned()), "{api_version} {kind} {name}");
            let told = format!(
                "Warning CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: {expected}"
            );
            assert_eq!(server.events(), [told]);
            assert_eq!(condition(&server).0, "SyncFailed");
        }
    });
}

/// kubernetes/kubernetes#129625
#[test]
fn a_pod_of_a_job_blocks_no_eviction_once_it_has_ended() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        server.add(&object("batch/v1", "Job", "migrate"));
        server.add(&budget("maxUnavailable", 1));
        let running = start(&server).await;
        server.add(&owned(ready("migrate"), "batch/v1", "Job", "migrate"));
        running.at_rest().await;
        assert_eq!((numbers(&server)[0], condition(&server).0), (0, "SyncFailed".to_owned()));
        // Ready or not, it has ended.
        server.change("pods", "default/migrate", |pod| pod["status"]["phase"] = "Succeeded".into());
        running.at_rest().await;
        assert_eq!((numbers(&server), condition(&server).0), ([1, 3, 2, 3], "SufficientPods".to_owned()));
    });
}

#[test]
fn an_owner_that_cannot_be_asked_is_asked_again() {
    test(async {
        let server = Server::new();
        add_deployment(&server);
        server.add(&budget("maxUnavailable", 1));
        let refused = server.on("get", "deployments/scale").answer(503, "ServiceUnavailable", "not now").times(3);
        let running = Running::start::<DisruptionOperator>(&server, &[]);
        refused.arrived().await;
        running.pass(Duration::from_millis(1)).await;
        assert_eq!((numbers(&server)[0], condition(&server)), (0, ("SyncFailed".to_owned(), "not now".to_owned())));
        running.at_rest().await;
        assert_eq!((numbers(&server), condition(&server).0), ([1, 3, 2, 3], "SufficientPods".to_owned()));
    });
}

#[test]
fn a_status_that_cannot_be_written_is_replaced_by_one_that_allows_nothing() {
    test(async {
        let server = Server::new();
        add_pods(&server, &["a", "b"]);
        server.add(&budget("minAvailable", 1));
        let running = start(&server).await;
        assert_eq!(numbers(&server)[0], 1);
        let refused = server.on("patch", "poddisruptionbudgets/status").once().answer(500, "InternalError", "no");
        server.add(&ready("c"));
        refused.arrived().await;
        running.pass(Duration::from_millis(1)).await;
        assert_eq!((numbers(&server)[0], condition(&server)), (0, ("SyncFailed".to_owned(), "no".to_owned())));
        running.at_rest().await;
        assert_eq!((numbers(&server), condition(&server).1), ([2, 3, 1, 3], String::new()));
    });
}

#[test]
fn a_pod_of_several_budgets_is_told_and_each_counts_it() {
    test(async {
        let server = Server::new();
        let other = object("policy/v1", "PodDisruptionBudget", "all").set(&["spec", "minAvailable"], 0);
        server.add(&other.set(&["spec", "selector"], json!({})));
        server.add(&budget("minAvailable", 0));
        let running = start(&server).await;
        server.add(&ready("a"));
        running.at_rest().await;
        let allowed = |key: &str| server.get(BUDGETS, key).unwrap()["status"]["disruptionsAllowed"].clone();
        assert_eq!([allowed(KEY), allowed("default/all")], [1, 1]);
        let expected = "Warning MultiplePodDisruptionBudgets: \
            Pod \"default\"/\"a\" matches multiple PodDisruptionBudgets.  Chose \"all\" arbitrarily.";
        assert!(server.events().contains(&expected.to_owned()), "{:?}", server.events());
        // It leaves one of them.
        server.change("pods", "default/a", |pod| pod["metadata"]["labels"] = json!({}));
        running.at_rest().await;
        assert_eq!([allowed(KEY), allowed("default/all")], [0, 1]);
        assert!(server.events().contains(&"Normal NoPods: No matching pods found".to_owned()));
    });
}

#[test]
fn each_budget_finds_its_pods_whatever_it_looks_for() {
    test(async {
        let server = Server::new();
        let selectors = [
            ("app", json!({ "matchLabels": { "app": "web" } })),
            ("app-and-tier", json!({ "matchLabels": { "app": "web", "tier": "front" } })),
            (
                "one-of",
                json!({ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["front", "back"] }] }),
            ),
            ("none-of", json!({ "matchExpressions": [{ "key": "tier", "operator": "DoesNotExist" }] })),
            ("all", json!({})),
        ];
        server.add(&ready("early"));
        for (name, selector) in &selectors {
            let budget = object("policy/v1", "PodDisruptionBudget", name).set(&["spec", "minAvailable"], 0);
            server.add(&budget.set(&["spec", "selector"], selector.clone()));
        }
        let running = start(&server).await;
        server.add(&ready("front").label("tier", "front"));
        server.add(&pod("back").label("tier", "back").ready());
        let expected = |names: [i64; 5]| {
            let found = selectors.each_ref().map(|(name, _)| {
                server.get(BUDGETS, &format!("default/{name}")).unwrap()["status"]["expectedPods"].as_i64().unwrap_or(0)
            });
            assert_eq!(found, names);
        };
        // A status with only counts waits until a second after the last one.
        let moment = Duration::from_secs(1);
        running.pass(moment).await;
        expected([2, 1, 2, 1, 3]);
        // A pod that another label finds.
        server.change("pods", "default/back", |pod| pod["metadata"]["labels"] = json!({ "app": "web" }));
        running.pass(moment).await;
        expected([3, 1, 1, 2, 3]);
        server.delete("pods", "default/front");
        running.pass(moment).await;
        expected([2, 0, 0, 2, 2]);
    });
}

/// A status that allows more is no news a second time, or a shadow would never come to rest.
#[test]
fn a_shadow_goes_on_wishing_for_a_status_that_allows_more() {
    test(async {
        let server = Server::new();
        add_pods(&server, &["a", "b"]);
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = json!({
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 2, "conditions": [condition],
        });
        server.add(&budget("minAvailable", 1).set(&["status"], status));
        let running = Running::start::<DisruptionOperator>(&server, &["--mode=shadow"]);
        running.pass(Duration::from_secs(90)).await;
        assert_eq!(server.writes(), [""; 0]);
        let report = running.shadow_report().unwrap();
        let wishes: Vec<&str> = report.differences.iter().map(|difference| difference.resource.as_str()).collect();
        assert_eq!((wishes, report.moving), (vec!["poddisruptionbudgets.policy/status"], 0), "{report:?}");
    });
}

fn target(name: &str, seconds_ago: i64) -> ObjectBuilder {
    let since = ago(seconds_ago).to_string();
    let target = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "m",
        "lastTransitionTime": since,
    });
    pod(name).set(&["status", "conditions"], json!([target]))
}

fn is_target(server: &Server, key: &str) -> bool {
    server.get("pods", key).unwrap()["status"]["conditions"][0]["status"] == "True"
}

#[test]
fn a_condition_that_nothing_followed_is_taken_back_after_two_minutes_where_there_is_a_budget() {
    test(async {
        let server = Server::new();
        server.add(&budget("minAvailable", 0));
        let running = start(&server).await;
        server.add(&target("a", 0));
        server.add(&target("deleted", 0));
        running.pass(Duration::from_secs(115)).await;
        assert!(is_target(&server, "default/a"));
        server.delete("pods", "default/deleted");
        running.pass(Duration::from_secs(10)).await;
        assert!(!is_target(&server, "default/a"));
        let condition = server.get("pods", "default/a").unwrap()["status"]["conditions"][0].clone();
        assert_eq!((condition.get("reason"), condition.get("message")), (None, None));
        assert_eq!(condition["observedGeneration"], 1);
        assert_eq!(server.writes().last().unwrap(), "patch pods/status default/a");
    });
}

/// Upstream: `TestStalePodDisruption`; it follows all pods.
#[test]
fn a_condition_is_taken_back_after_two_minutes_where_there_is_no_budget() {
    test(async {
        let server = Server::new();
        let running = start(&server).await;
        // Whenever a pod is to be disrupted, between any two searches.
        for moment in 0..10 {
            let name = format!("at-{moment}");
            server.add(&pod(&name));
            let since = Time::of(server.clock().now());
            let target = json!({ "type": "DisruptionTarget", "status": "True", "lastTransitionTime": since });
            server.change("pods", &format!("default/{name}"), |pod| pod["status"]["conditions"] = json!([target]));
            let key = format!("default/{name}");
            running.pass(Duration::from_secs(118)).await;
            assert!(is_target(&server, &key), "{name}");
            running.pass(Duration::from_secs(3)).await;
            assert!(!is_target(&server, &key), "{name}");
            running.pass(Duration::from_secs(7)).await;
        }
    });
}

#[test]
fn a_search_among_many_pods_reads_page_by_page() {
    test(async {
        let server = Server::new();
        for number in 0..1200 {
            server.add(&pod(&format!("{number:04}")));
        }
        server.add(&target("last", 600));
        let pages = || server.count("list pods") - server.count("list pods default/");
        let running = Running::start::<DisruptionOperator>(&server, &[]);
        let refused = server.on("list", "pods").answer(503, "ServiceUnavailable", "not now").once();
        refused.arrived().await;
        running.pass(Duration::from_secs(10)).await;
        assert_eq!(pages(), 1 + 3, "a page that fails is read again");
        assert!(!is_target(&server, "default/last"));
        running.pass(Duration::from_mins(60)).await;
        let reads = pages() - 4;
        assert!((39 * 3..=40 * 3).contains(&reads), "three pages each 90 seconds: {reads}");
    });
}

#[test]
fn pods_are_followed_only_where_there_is_a_budget() {
    test(async {
        let server = Server::new();
        server.add(&pod("other").namespace("elsewhere"));
        let running = start(&server).await;
        let follows = || ["list", "watch"].map(|verb| server.count(&format!("{verb} pods default/")));
        assert_eq!((follows(), server.count("watch pods")), ([0, 0], 0));
        for _ in 0..2 {
            let before = follows();
            server.add(&budget("minAvailable", 0));
            running.pass(Duration::from_secs(60)).await;
            assert_eq!(follows(), before.map(|count| count + 1));
            server.delete(BUDGETS, KEY);
            running.pass(Duration::from_mins(6)).await;
            let before = server.count("watch pods");
            running.pass(Duration::from_mins(30)).await;
            assert_eq!(server.count("watch pods"), before, "no budget needs pods");
        }
        assert_eq!(server.count("list pods elsewhere/"), 0);
    });
}

#[test]
fn the_first_budget_waits_for_its_pods_however_they_come() {
    let add = |server: &Server| {
        add_pods(server, &["a", "b"]);
        server.add(&budget("minAvailable", 1));
    };
    let then = |server: &Server| assert_eq!(numbers(server), [1, 2, 1, 2]);
    test(the_first_one_waits::<DisruptionOperator>(&[], "pods", add, then));
}

#[test]
fn one_that_goes_and_comes_again_finds_its_pods() {
    test(async {
        let server = Server::new();
        add_pods(&server, &["a", "b"]);
        server.add(&budget("minAvailable", 1));
        let running = start(&server).await;
        let meanwhile = |server: &Server| {
            let name = format!("more-{}", server.keys("pods").len());
            server.add(&ready(&name));
        };
        let then = |server: &Server, pause| {
            let pods = i64::try_from(server.keys("pods").len()).unwrap();
            assert_eq!(numbers(server), [pods - 1, pods, 1, pods], "{pause:?}");
        };
        it_goes_and_comes_again((&server, &running), (BUDGETS, KEY), meanwhile, Duration::from_secs(60), then).await;
    });
}

#[test]
fn it_says_how_many_pods_may_be_evicted_and_why() {
    test(async {
        let server = Server::new();
        add_pods(&server, &["a", "b", "c"]);
        server.add(&budget("minAvailable", 2));
        let running = start(&server).await;
        let requests = server.requests();
        let why = running.why(PATH);
        let [KeyState { queue, key, now, last, .. }] = &why.keys[..] else { panic!("{why}") };
        assert_eq!((queue.as_str(), key.as_str()), ("disruption", KEY));
        assert_eq!(now[0].text, "allow 1 (3 of 3 pods are healthy, 2 required)");
        assert_eq!(now[0].reason, last[0].stages[0].reason);
        let wrote: Vec<&str> = last.iter().flat_map(|decision| &decision.wrote).map(|it| it.object.as_str()).collect();
        assert_eq!(wrote, [KEY]);
        assert_eq!(
            running.why("/api/v1/namespaces/default/pods/a").keys[0].now[0].text,
            "keep (no condition DisruptionTarget)"
        );
        assert_eq!(server.requests(), requests, "an explanation sends no request");
        // The next stage reads the owners.
        server.change(BUDGETS, KEY, |budget| budget["spec"] = json!({ "maxUnavailable": 1, "selector": {} }));
        server.change("pods", "default/a", |pod| {
            pod["metadata"]["ownerReferences"] =
                json!([{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true }]);
        });
        running.at_rest().await;
        let scale = json!({ "scale": { "owners": ["Node n"], "more": 0 } });
        assert_eq!(running.why(PATH).keys[0].now[0].reason, scale);
    });
}
