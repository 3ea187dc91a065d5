//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![cfg(test)]

use std::time::Duration;

use deployment_operator::controller::DeploymentOperator;
use serde_json::{Value, json};
use shared::api::explain::Stage;
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{A_STATUS, Running, survives_kills, test};
use shared::testing::{LARGE_BYTES, ObjectBuilder, args_bytes, enlarged, object, pod};

const KEY: &str = "default/web";

fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": image }] } })
}

fn add(server: &Server) {
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    add_with(server, &rolling, 600);
}

/// Without a deadline, and so without a condition Progressing: its message is of the old ReplicaSet where a kill comes right
/// after the creation of the new one, as upstream's.
fn add_recreating(server: &Server) {
    add_with(server, &json!({ "type": "Recreate" }), i32::MAX);
}

fn add_with(server: &Server, strategy: &Value, deadline: i32) {
    let spec = json!({
        "replicas": 2, "selector": { "matchLabels": { "app": "web" } }, "template": template("old"),
        "strategy": strategy, "revisionHistoryLimit": 0, "progressDeadlineSeconds": deadline,
    });
    server.add(&object("apps/v1", "Deployment", "web").set(&["spec"], spec));
}

fn roll_out(server: &Server) {
    server.change("deployments", KEY, |deployment| deployment["spec"]["template"] = template("new"));
}

/// Plays the replicaset-operator and its pods: every ReplicaSet has what it asks for.
fn follow(server: &Server) {
    for key in server.keys("replicasets") {
        server.change("replicasets", &key, |set| {
            let (replicas, generation) = (set["spec"]["replicas"].clone(), set["metadata"]["generation"].clone());
            set["status"] = json!({
                "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
                "fullyLabeledReplicas": replicas, "observedGeneration": generation,
            });
        });
    }
}

/// Plays a replicaset-operator that makes pods, and a server that keeps how many terminate, or an older one.
fn follow_with_pods(server: &Server, says_terminating: bool) {
    for key in server.keys("replicasets") {
        let set = server.get("replicasets", &key).unwrap();
        let wanted = usize::try_from(set["spec"]["replicas"].as_u64().unwrap()).unwrap();
        let (running, mut terminating): (Vec<String>, Vec<String>) =
            pods_of(server, &set).into_iter().partition(|pod| !is_terminating(server, pod));
        for number in running.len()..wanted {
            server.add(&pod_of(&set, number));
        }
        for extra in running.iter().skip(wanted) {
            let now = server.clock().now().to_string();
            server.change("pods", extra, |pod| {
                pod["metadata"]["deletionTimestamp"] = now.into();
                pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
                pod["metadata"]["finalizers"] = json!(["test/held"]);
            });
            terminating.push(extra.clone());
        }
        server.change("replicasets", &key, |set| {
            set["status"] = json!({ "replicas": wanted, "readyReplicas": wanted, "availableReplicas": wanted,
                "observedGeneration": set["metadata"]["generation"] });
            if says_terminating {
                set["status"]["terminatingReplicas"] = terminating.len().into();
            }
        });
    }
    let sets = server.list("replicasets");
    let with_pods = sets.iter().filter(|set| !pods_of(server, set).is_empty()).count();
    assert!(with_pods <= 1, "pods of {with_pods} templates at once");
}

fn follow_new(server: &Server) {
    follow_with_pods(server, true);
}

fn follow_old(server: &Server) {
    follow_with_pods(server, false);
}

fn pod_of(set: &Value, number: usize) -> ObjectBuilder {
    let name = &set["metadata"]["name"];
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": set["metadata"]["uid"],
        "controller": true }]);
    let labels = set["spec"]["template"]["metadata"]["labels"].clone();
    pod(&format!("{}-{number}", name.as_str().unwrap()))
        .set(&["metadata", "ownerReferences"], owner)
        .set(&["metadata", "labels"], labels)
        .phase("Running")
}

fn pods_of(server: &Server, set: &Value) -> Vec<String> {
    let is_own = |pod: &Value| {
        pod["metadata"]["ownerReferences"][0]["uid"] == set["metadata"]["uid"] && pod["status"]["phase"] != "Failed"
    };
    let keys = server.keys("pods").into_iter();
    keys.filter(|key| is_own(&server.get("pods", key).unwrap())).collect()
}

fn is_terminating(server: &Server, pod: &str) -> bool {
    !server.get("pods", pod).unwrap()["metadata"]["deletionTimestamp"].is_null()
}

/// Plays the kubelet: what terminates is gone.
fn end(server: &Server) {
    for key in server.keys("pods") {
        if is_terminating(server, &key) {
            server.change("pods", &key, |pod| pod["metadata"]["finalizers"] = json!([]));
        }
    }
}

fn start(server: &Server) -> Running {
    Running::start::<DeploymentOperator>(server, &[])
}

/// The operator at rest, once a rollout is done and the next one has begun.
async fn rolling_out(server: &Server, follow: fn(&Server)) -> Running {
    let running = start(server);
    running.at_rest().await;
    for step in [follow, roll_out] {
        step(server);
        running.at_rest().await;
    }
    running
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [Do(add), Do(follow), Do(roll_out), Do(follow), Do(follow), Do(follow), Do(follow), Do(follow)];
        let server = survives_kills::<DeploymentOperator>(&[], &life).await;
        let sets = server.list("replicasets");
        assert_eq!((sets.len(), &sets[0]["spec"]["replicas"]), (1, &json!(2)), "the old one is history");
        assert_eq!(server.get("deployments", KEY).unwrap()["status"]["updatedReplicas"], 2);
    });
}

#[test]
fn while_many_pods_come_statuses_are_apart_and_the_last_one_comes_at_once() {
    test(async {
        let server = Server::new();
        add(&server);
        server.change("deployments", KEY, |deployment| deployment["spec"]["replicas"] = 300.into());
        let running = start(&server);
        running.at_rest().await;
        let become_available = |available: i32| {
            server.change("replicasets", &server.keys("replicasets")[0], |set| {
                let generation = set["metadata"]["generation"].clone();
                set["status"] = json!({ "replicas": 300, "readyReplicas": available, "availableReplicas": available,
                    "fullyLabeledReplicas": 300, "observedGeneration": generation });
            });
        };
        become_available(0);
        running.at_rest().await;
        let before = server.count("patch deployments/status");
        // Enough for the condition Available with the last one alone.
        for available in 1..=300 {
            become_available(available);
            running.pass(Duration::from_millis(4)).await;
        }
        assert_eq!(server.get("deployments", KEY).unwrap()["status"]["availableReplicas"], 300);
        // 1200 ms, of which each second brings one.
        let written = server.count("patch deployments/status") - before;
        assert!((2..=3).contains(&written), "{written} statuses");
    });
}

#[test]
fn counts_in_between_are_written_once_where_two_sets_are_scaled() {
    test(async {
        let server = Server::new();
        let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 2, "maxUnavailable": 2 } });
        add_with(&server, &rolling, 600);
        server.change("deployments", KEY, |deployment| deployment["spec"]["replicas"] = 10.into());
        let running = rolling_out(&server, follow).await;
        let become_available = |available: i32| {
            for key in server.keys("replicasets") {
                server.change("replicasets", &key, |set| {
                    let replicas = set["spec"]["replicas"].clone();
                    let is_new = set["spec"]["template"]["spec"] == template("new")["spec"];
                    let available = if is_new { available.into() } else { replicas.clone() };
                    set["status"] = json!({ "replicas": replicas, "readyReplicas": available,
                        "availableReplicas": available, "observedGeneration": set["metadata"]["generation"] });
                });
            }
        };
        become_available(0);
        running.pass(A_STATUS).await;
        let written = || ["replicasets", "deployments/status"].map(|of| server.count(&format!("patch {of}")));
        let [scaled, told] = written();
        become_available(1);
        running.pass(A_STATUS).await;
        assert_eq!(written(), [scaled + 2, told + 1]);
        let status = &server.get("deployments", KEY).unwrap()["status"];
        assert_eq!([&status["availableReplicas"], &status["unavailableReplicas"]], [9, 3]);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_replica_set() {
    test(async {
        let server = Server::new();
        server.on("create", "replicasets").once().lose();
        add(&server);
        start(&server).at_rest().await;
        assert_eq!(server.keys("replicasets").len(), 1);
        let status = server.get("deployments", KEY).unwrap()["status"].clone();
        assert_eq!(status["collisionCount"], json!(null), "{status}");
    });
}

#[test]
fn a_name_that_another_replica_set_has_is_a_collision() {
    test(async {
        let server = Server::new();
        add(&server);
        let held = server.on("create", "replicasets").once().hold();
        let running = start(&server);
        held.arrived().await;
        let create = server.requests().into_iter().find(|line| line.starts_with("create replicasets")).unwrap();
        let name = create.rsplit_once('/').unwrap().1;
        let other =
            json!({ "replicas": 0, "selector": { "matchLabels": { "app": "other" } }, "template": template("other") });
        server.add(&object("apps/v1", "ReplicaSet", name).set(&["spec"], other));
        held.release();
        running.at_rest().await;
        assert_eq!(server.keys("replicasets").len(), 2);
        assert_eq!(server.get("deployments", KEY).unwrap()["status"]["collisionCount"], 1);
    });
}

#[test]
fn a_replica_set_that_somebody_scales_meanwhile_is_looked_at_again() {
    test(async {
        let server = Server::new();
        add(&server);
        let running = start(&server);
        running.at_rest().await;
        let key = &server.keys("replicasets")[0];
        let held = server.on("patch", "replicasets").once().hold();
        server.change("deployments", KEY, |deployment| deployment["spec"]["replicas"] = 5.into());
        held.arrived().await;
        server.change("replicasets", key, |set| set["spec"]["replicas"] = 9.into());
        held.release();
        running.at_rest().await;
        assert_eq!(server.get("replicasets", key).unwrap()["spec"]["replicas"], 5);
        assert_eq!(server.count("patch replicasets"), 2);
    });
}

#[test]
fn an_orphan_is_adopted_and_released_when_it_is_selected_no_more() {
    test(async {
        let server = Server::new();
        let spec =
            json!({ "replicas": 2, "selector": { "matchLabels": { "app": "web" } }, "template": template("old") });
        server.add(&object("apps/v1", "ReplicaSet", "orphan").label("app", "web").set(&["spec"], spec));
        let owners = || server.get("replicasets", "default/orphan").unwrap()["metadata"]["ownerReferences"].clone();
        add(&server);
        let running = start(&server);
        running.at_rest().await;
        assert_eq!(owners()[0]["name"], "web");
        assert_eq!(server.keys("replicasets"), ["default/orphan"], "it is the new one");
        server.change("replicasets", "default/orphan", |set| set["metadata"]["labels"]["app"] = "debug".into());
        running.at_rest().await;
        assert!(owners().as_array().is_none_or(Vec::is_empty), "{}", owners());
        assert_eq!(server.keys("replicasets").len(), 2);
    });
}

#[test]
fn a_recreation_survives_a_kill_before_any_write() {
    test(async {
        for follow in [follow_new, follow_old] {
            let life = [
                Do(add_recreating),
                Do(follow),
                Do(roll_out),
                Do(follow),
                Pass(Duration::from_secs(20)),
                Do(follow),
                Do(end),
                Do(follow),
                Pass(Duration::from_secs(20)),
                Do(follow),
                Do(follow),
            ];
            let server = survives_kills::<DeploymentOperator>(&[], &life).await;
            let sets = server.list("replicasets");
            assert_eq!((sets.len(), &sets[0]["spec"]["replicas"]), (1, &json!(2)), "the old one is history");
            assert_eq!(server.keys("pods").len(), 2);
            assert_eq!(server.count("watch pods"), 0);
        }
    });
}

/// A Deployment whose old pods have just begun to terminate.
async fn recreating(server: &Server, follow: fn(&Server)) -> Running {
    let running = start(server);
    for step in [add_recreating, follow, roll_out, follow] {
        step(server);
        running.at_rest().await;
    }
    running
}

#[test]
fn where_statuses_say_how_many_pods_terminate_none_is_listed() {
    test(async {
        let server = Server::new();
        let running = recreating(&server, follow_new).await;
        running.pass(Duration::from_mins(5)).await;
        assert_eq!(server.keys("replicasets").len(), 1, "old pods still run");
        end(&server);
        follow_new(&server);
        running.at_rest().await;
        assert_eq!(server.keys("replicasets").len(), 2);
        assert_eq!((server.count("list pods"), server.count("watch pods")), (0, 0));
    });
}

#[test]
fn where_they_do_not_pods_are_listed_now_and_then_until_the_last_old_one_is_gone() {
    test(async {
        let server = Server::new();
        let running = recreating(&server, follow_old).await;
        server.add(&pod("of-nobody").label("app", "web").phase("Running"));
        server.add(&pod_of(&server.list("replicasets")[0], 9).phase("Failed"));
        running.pass(Duration::from_mins(1)).await;
        let looks = server.count("list pods");
        assert!((10..=20).contains(&looks), "{looks} looks in a minute");
        assert_eq!(server.keys("replicasets").len(), 1, "old pods still run");
        end(&server);
        running.pass(Duration::from_secs(11)).await;
        assert_eq!(server.keys("replicasets").len(), 2);
        follow_old(&server);
        running.at_rest().await;
        let looks = server.count("list pods");
        running.pass(Duration::from_mins(30)).await;
        assert_eq!((server.count("list pods"), server.count("watch pods")), (looks, 0), "there is nothing to wait for");
    });
}

#[test]
fn a_list_of_pods_that_fails_lets_no_new_pod_come() {
    test(async {
        let server = Server::new();
        let running = recreating(&server, follow_old).await;
        end(&server);
        let refused = server.on("list", "pods").answer(500, "InternalError", "no").times(4);
        while refused.count() < 4 {
            assert_eq!(server.keys("replicasets").len(), 1);
            running.pass(Duration::from_millis(100)).await;
        }
        running.pass(Duration::from_secs(15)).await;
        assert_eq!(server.keys("replicasets").len(), 2);
    });
}

#[test]
fn an_old_set_that_its_controller_has_not_looked_at_yet_may_still_make_pods() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        add_recreating(&server);
        running.at_rest().await;
        roll_out(&server);
        running.at_rest().await;
        running.pass(Duration::from_mins(1)).await;
        let sets = server.list("replicasets");
        assert_eq!((sets.len(), &sets[0]["spec"]["replicas"]), (1, &json!(0)));
        follow_new(&server);
        running.at_rest().await;
        assert_eq!(server.keys("replicasets").len(), 2);
    });
}

#[test]
fn replica_sets_are_followed_only_while_there_is_a_deployment() {
    test(async {
        let server = Server::new();
        let spec = json!({ "replicas": 1, "selector": { "matchLabels": { "app": "db" } }, "template": template("db") });
        server.add(&object("apps/v1", "ReplicaSet", "db").label("app", "db").set(&["spec"], spec));
        let remove = |server: &Server| server.delete("deployments", KEY);
        is_followed_only_while_needed::<DeploymentOperator>(&server, "replicasets", add, remove).await;
        assert_eq!(server.keys("replicasets").len(), 2);
    });
}

/// A ReplicaSet of the template of [`add`] that has no owner.
fn add_orphan(server: &Server) {
    let spec = json!({ "replicas": 2, "selector": { "matchLabels": { "app": "web" } }, "template": template("old") });
    server.add(&object("apps/v1", "ReplicaSet", "orphan").label("app", "web").set(&["spec"], spec));
}

#[test]
fn the_first_deployment_waits_for_its_replica_sets_however_they_come() {
    let first = |server: &Server| {
        add_orphan(server);
        add(server);
    };
    let then = |server: &Server| {
        assert_eq!(server.keys("replicasets").len(), 1);
        assert_eq!(server.count("create replicasets"), 0, "the one there is is adopted");
    };
    test(the_first_one_waits::<DeploymentOperator>(&[], "replicasets", first, then));
}

#[test]
fn a_slow_first_list_and_a_watch_that_breaks_make_no_second_replica_set() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        running.at_rest().await;
        let slow = server.on("list", "replicasets").hold().once();
        add(&server);
        slow.arrived().await;
        add_orphan(&server);
        running.pass(Duration::from_secs(30)).await;
        assert_eq!(server.writes(), [""; 0]);
        slow.release();
        running.at_rest().await;
        for disturb in [Server::cut_watches, Server::expire_watches] {
            disturb(&server, "replicasets");
            server.change("deployments", KEY, |deployment| deployment["spec"]["replicas"] = 5.into());
            running.at_rest().await;
        }
        assert_eq!((server.keys("replicasets").len(), server.count("create replicasets")), (1, 0));
        assert_eq!(server.get("replicasets", "default/orphan").unwrap()["spec"]["replicas"], 5);
    });
}

#[test]
fn one_that_goes_and_comes_again_finds_its_replica_sets() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        add_recreating(&server);
        running.at_rest().await;
        follow_new(&server);
        let then = |server: &Server, pause| assert_eq!(server.keys("replicasets").len(), 1, "{pause:?}");
        let web = ("deployments", KEY);
        it_goes_and_comes_again((&server, &running), web, |_| (), Duration::from_secs(5), then).await;
        assert_eq!(server.count("create replicasets"), 1, "none was made twice");
        server.delete("deployments", KEY);
        running.pass(Duration::from_mins(60)).await;
        add_recreating(&server);
        roll_out(&server);
        for follow in [follow_new, follow_new] {
            running.pass(Duration::from_mins(1)).await;
            follow(&server);
        }
        assert_eq!(server.keys("replicasets").len(), 1, "old pods still run");
        end(&server);
        follow_new(&server);
        running.at_rest().await;
        assert_eq!(server.keys("replicasets").len(), 2);
    });
}

const PATH: &str = "/apis/apps/v1/namespaces/default/deployments/web";

/// The text and the reason of each stage.
fn told(stages: &[Stage]) -> Vec<(&str, &Value)> {
    stages.iter().map(|Stage { text, reason }| (text.as_str(), reason)).collect()
}

#[test]
fn at_rest_it_says_why_and_what_it_has_done() {
    test(async {
        let server = Server::new();
        add(&server);
        let running = rolling_out(&server, follow).await;
        let requests = server.requests();

        let why = running.why(PATH);
        let [key] = &why.keys[..] else { panic!("{why}") };
        let waits = json!({ "rollingUpdate": { "wanted": 2, "updated": 0, "updatedAvailable": 0, "old": 2,
            "available": 2, "minAvailable": 2, "maxReplicas": 3 } });
        let text = "rolling update (0 of 2 updated, 0 of these available, 2 old); status: rollout";
        assert_eq!(told(&key.now), [(text, &waits)]);
        assert_eq!(key.standing.timer.as_ref().map(|timer| timer.purpose.as_str()), Some("its progress deadline"));
        // It created the new ReplicaSet, and said so in the status.
        let created = key.last.iter().find(|decision| decision.stages[0].text.contains("create")).unwrap();
        assert_eq!(told(&created.stages)[0].1, &waits);
        let wrote: Vec<&str> = created.wrote.iter().map(|version| version.resource.as_str()).collect();
        assert_eq!(wrote, ["replicasets.apps", "deployments.apps"]);
        assert_eq!(running.why(PATH).keys, why.keys);
        assert_eq!(running.why("/api/v1/namespaces/default/pods/web").keys, []);
        assert_eq!(server.requests(), requests, "asking asks nobody");
    });
}

#[test]
fn what_only_a_list_can_tell_is_not_asked_for_by_asking_why() {
    test(async {
        let server = Server::new();
        add_recreating(&server);
        let running = rolling_out(&server, follow_old).await;
        follow_old(&server);
        running.pass(Duration::from_secs(20)).await;
        let requests = server.requests();
        let why = running.why(PATH);
        let [key] = &why.keys[..] else { panic!("{why}") };
        let old = server.list("replicasets")[0]["metadata"]["name"].clone();
        assert_eq!(key.now[0].reason, json!({ "oldPods": { "replicaSets": [old] } }));
        let reasons: Vec<&Value> = key.last[0].stages.iter().map(|stage| &stage.reason).collect();
        assert_eq!(reasons[1], &json!({ "waitingForOldPods": { "replicaSets": [old] } }), "{why}");
        assert_eq!(key.standing.timer.as_ref().map(|timer| timer.purpose.as_str()), Some("the end of its old pods"));
        assert_eq!(server.requests(), requests, "asking asks nobody");
    });
}

#[test]
fn large_templates_are_rolled_out_and_back_with_a_replica_set_each() {
    test(async {
        let server = Server::new();
        add(&server);
        let edit = |template: Value| {
            server.change("deployments", KEY, |deployment| {
                deployment["spec"]["template"] = enlarged(template);
                deployment["spec"]["revisionHistoryLimit"] = 10.into();
            });
        };
        edit(template("old"));
        let running = start(&server);
        let settle = async || {
            for _ in 0..8 {
                running.pass(A_STATUS).await;
                follow(&server);
            }
        };
        settle().await;
        edit(template("new"));
        settle().await;
        let sets = server.list("replicasets");
        let args = sets.iter().map(|set| args_bytes(&set["spec"]["template"]["spec"]));
        assert_eq!(args.collect::<Vec<_>>(), [LARGE_BYTES; 2]);
        server.change("deployments", KEY, |deployment| {
            deployment["metadata"]["annotations"]["deprecated.deployment.rollback.to"] = "1".into();
        });
        settle().await;
        let spec = server.get("deployments", KEY).unwrap()["spec"]["template"]["spec"].clone();
        assert_eq!((args_bytes(&spec), &spec["containers"][0]["image"]), (LARGE_BYTES, &json!("old")));
        assert_eq!(server.keys("replicasets").len(), 2);
        assert_eq!((server.count("get deployments"), server.count("get replicasets")), (2, 1));
    });
}
