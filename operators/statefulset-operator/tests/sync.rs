//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![cfg(test)]

#[path = "../../../shared/tests/replicas/lives.rs"]
mod lives;

use std::time::Duration;

use serde_json::{Value, json};
use shared::api::explain::{KeyState, Stage, Standing};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, the_first_one_waits};
use shared::testing::replicas::{KEY, ReplicaKind};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{A_STATUS, Running, survives_kills, test};
use shared::testing::{LARGE_BYTES, ObjectBuilder, args_bytes, enlarged, object, pod};
use statefulset_operator::controller::StatefulSetOperator as Operator;
use statefulset_operator::objects::REPLACE_STUCK_PODS;

const KIND: ReplicaKind = ReplicaKind { resource: "statefulsets", pods: "pods default/", object: parallel };

fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": image }] } })
}

/// Its pods come and go all at once.
fn parallel(name: &str, replicas: i32) -> ObjectBuilder {
    let spec = json!({
        "replicas": replicas, "selector": { "matchLabels": { "app": "web" } }, "template": template("old"),
        "serviceName": "web", "podManagementPolicy": "Parallel", "revisionHistoryLimit": 10,
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
    });
    object("apps/v1", "StatefulSet", name).set(&["spec"], spec)
}

/// Its pods come and go one after the other, and each has a claim.
fn ordered(replicas: i32) -> ObjectBuilder {
    let claim = json!({ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"] } });
    parallel("web", replicas)
        .set(&["spec", "podManagementPolicy"], "OrderedReady")
        .set(&["spec", "volumeClaimTemplates"], json!([claim]))
        .set(&["spec", "persistentVolumeClaimRetentionPolicy"], retention("Delete", "Delete"))
}

fn retention(when_scaled: &str, when_deleted: &str) -> Value {
    json!({ "whenScaled": when_scaled, "whenDeleted": when_deleted })
}

fn edit(server: &Server, field: &str, value: impl Into<Value>) {
    server.change("statefulsets", KEY, |set| set["spec"][field] = value.into());
}

fn roll_out(server: &Server) {
    edit(server, "template", template("new"));
}

fn roll_back(server: &Server) {
    edit(server, "template", template("old"));
}

fn start(server: &Server) -> Running {
    Running::start::<Operator>(server, &[])
}

/// The operator, and the kubelet a few times.
async fn run(server: &Server, running: &Running) {
    for _ in 0..6 {
        running.at_rest().await;
        server.run_pods();
    }
    running.at_rest().await;
}

fn status(server: &Server) -> Value {
    server.get("statefulsets", KEY).unwrap_or_default()["status"].clone()
}

/// The owners of the claim of this pod, such as `StatefulSet web`.
fn owners(server: &Server, ordinal: usize) -> Vec<String> {
    let claim = server.get("persistentvolumeclaims", &format!("default/data-web-{ordinal}")).unwrap_or_default();
    let owners = claim["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let text = |owner: &Value, field: &str| owner[field].as_str().unwrap_or_default().to_owned();
    owners.iter().map(|owner| format!("{} {}", text(owner, "kind"), text(owner, "name"))).collect()
}

fn image(server: &Server, pod: &str) -> Value {
    server.get("pods", pod).unwrap_or_default()["spec"]["containers"][0]["image"].clone()
}

/// The numbers of the revisions, with their images.
fn history(server: &Server) -> Vec<(i64, String)> {
    let image = |data: &Value| data["spec"]["template"]["spec"]["containers"][0]["image"].as_str().map(str::to_owned);
    let place = |revision: &Value| {
        (revision["revision"].as_i64().unwrap_or_default(), image(&revision["data"]).unwrap_or_default())
    };
    let mut history: Vec<(i64, String)> = server.list("controllerrevisions").iter().map(place).collect();
    history.sort();
    history
}

fn named(history: &[(i64, &str)]) -> Vec<(i64, String)> {
    history.iter().map(|(number, image)| (*number, (*image).to_owned())).collect()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| server.add(&ordered(2))),
            Do(Server::run_pods),
            Do(Server::run_pods),
            Do(roll_out),
            Do(Server::run_pods),
            Do(Server::run_pods),
            Do(Server::run_pods),
            Do(Server::run_pods),
            Do(|server| edit(server, "replicas", 1)),
            Do(Server::run_pods),
            Do(roll_back),
            Do(Server::run_pods),
            Do(Server::run_pods),
            Do(|server| edit(server, "persistentVolumeClaimRetentionPolicy", retention("Retain", "Retain"))),
        ];
        let server = survives_kills::<Operator>(&[], &life).await;
        assert_eq!(server.keys("pods"), ["default/web-0"]);
        assert_eq!(image(&server, "default/web-0"), "old");
        assert_eq!(history(&server), named(&[(2, "new"), (3, "old")]));
        assert_eq!(status(&server)["currentRevision"], status(&server)["updateRevision"]);
        assert_eq!((owners(&server, 0), owners(&server, 1)), (vec![], vec!["Pod web-1".to_owned()]));
    });
}

/// Asks that pods which keep it stuck are replaced.
fn curable(set: ObjectBuilder) -> ObjectBuilder {
    set.annotation(REPLACE_STUCK_PODS, "true")
}

/// Plays the kubelet once; no pod of the old template ever gets ready.
fn run_faulty_pods(server: &Server) {
    for key in server.keys("pods") {
        server.change("pods", &key, |pod| {
            let start = pod["metadata"]["creationTimestamp"].clone();
            if pod["status"]["phase"] == "Pending" && pod["spec"]["containers"][0]["image"] == "old" {
                let condition = json!({ "type": "Ready", "status": "False", "lastTransitionTime": start });
                pod["status"] = json!({ "phase": "Running", "startTime": start, "conditions": [condition] });
                pod["spec"]["nodeName"] = "node".into();
            }
        });
    }
    server.run_pods();
}

/// The operator, and that kubelet a few times.
async fn run_faulty(server: &Server, running: &Running) {
    for _ in 0..8 {
        running.at_rest().await;
        run_faulty_pods(server);
    }
    running.at_rest().await;
}

fn evictions(server: &Server) -> usize {
    server.count("create pods/eviction")
}

/// A budget of its pods that allows so many disruptions.
fn budget(allowed: i32) -> ObjectBuilder {
    object("policy/v1", "PodDisruptionBudget", "web")
        .set(&["spec", "selector", "matchLabels", "app"], "web")
        .set(&["status", "disruptionsAllowed"], allowed)
}

/// Upstream: k/k#67250.
#[test]
fn a_stuck_set_that_is_cured_survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| server.add(&curable(ordered(2)))),
            Do(run_faulty_pods),
            Do(roll_out),
            Do(run_faulty_pods),
            Do(run_faulty_pods),
            Do(run_faulty_pods),
        ];
        let server = survives_kills::<Operator>(&[], &life).await;
        assert!(evictions(&server) > 0);
        assert_eq!([image(&server, "default/web-0"), image(&server, "default/web-1")], ["new", "new"]);
        assert_eq!((&status(&server)["readyReplicas"], &status(&server)["updatedReplicas"]), (&json!(2), &json!(2)));
        let update = status(&server)["updateRevision"].as_str().unwrap_or_default().to_owned();
        let told = format!(
            "Normal SuccessfulEvict: Evict Pod web-0 in StatefulSet web successful: never ready, not of {update}"
        );
        assert!(server.events().contains(&told), "{:?}", server.events());
    });
}

#[test]
fn a_stuck_set_stays_so_until_it_asks_for_the_cure() {
    test(async {
        let server = Server::new();
        server.add(&ordered(2));
        let running = start(&server);
        run_faulty(&server, &running).await;
        roll_out(&server);
        run_faulty(&server, &running).await;
        assert_eq!((server.keys("pods").len(), image(&server, "default/web-0")), (1, json!("old")));
        assert_eq!(evictions(&server) + server.count("delete pods"), 0);
        server.change("statefulsets", KEY, |set| {
            set["metadata"]["annotations"] = json!({ REPLACE_STUCK_PODS: "true" });
        });
        run_faulty(&server, &running).await;
        assert!(evictions(&server) > 0);
        assert_eq!(status(&server)["availableReplicas"], 2);
    });
}

/// Upstream: k/k#137409.
#[test]
fn a_faulty_first_revision_in_parallel_is_replaced_pod_by_pod() {
    test(async {
        let server = Server::new();
        server.add(&curable(parallel("web", 3)));
        let flags = ["--feature-gates=MaxUnavailableStatefulSet=true"];
        let running = Running::start::<Operator>(&server, &flags);
        run_faulty(&server, &running).await;
        roll_out(&server);
        running.at_rest().await;
        let is_going = |pod: &&Value| !pod["metadata"]["deletionTimestamp"].is_null();
        assert_eq!(server.list("pods").iter().filter(is_going).count(), 1, "one at a time");
        run_faulty(&server, &running).await;
        assert!(evictions(&server) >= 3);
        assert_eq!(server.count("delete pods"), 0);
        let status = status(&server);
        assert_eq!((&status["availableReplicas"], &status["updatedReplicas"]), (&json!(3), &json!(3)));
    });
}

#[test]
fn a_pod_that_was_ready_is_not_replaced() {
    test(async {
        let server = Server::new();
        server.add(&curable(ordered(2)));
        let running = start(&server);
        run(&server, &running).await;
        running.pass(Duration::from_secs(2)).await;
        let now = server.clock().now().to_string();
        server.change("pods", "default/web-1", |pod| {
            pod["status"]["startTime"] = pod["metadata"]["creationTimestamp"].clone();
            pod["status"]["conditions"] = json!([{ "type": "Ready", "status": "False", "lastTransitionTime": now }]);
        });
        roll_out(&server);
        run_faulty(&server, &running).await;
        assert_eq!((image(&server, "default/web-1"), evictions(&server)), (json!("old"), 0));
    });
}

#[test]
fn a_budget_keeps_a_pod_for_as_long_as_it_wants() {
    test(async {
        let server = Server::new();
        server.add(&curable(ordered(1)));
        server.add(&budget(0));
        let running = start(&server);
        run_faulty(&server, &running).await;
        roll_out(&server);
        running.pass(Duration::from_secs(12)).await;
        assert!(evictions(&server) >= 3, "at once, and each five seconds");
        assert_eq!(image(&server, "default/web-0"), "old");
        let why = running.why(PATH);
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let decided = why.keys[0].last.iter().find(|decision| decision.stages.len() == 2);
        let decided = decided.unwrap_or_else(|| panic!("{why}"));
        assert_eq!(decided.stages[1].text, format!("nothing (waiting until a budget lets web-0 go: {message})"));
        assert_eq!(decided.stages[1].reason, json!({ "budget": { "pod": "web-0", "message": message } }));
        assert_eq!(why.keys[0].standing.failures, 0);
        let events = server.events();
        assert!(!events.iter().any(|event| event.contains("Evict")), "{events:?}");
        server.change("poddisruptionbudgets", KEY, |budget| budget["status"]["disruptionsAllowed"] = 1.into());
        running.pass(Duration::from_secs(6)).await;
        run_faulty(&server, &running).await;
        assert_eq!((image(&server, "default/web-0"), &status(&server)["readyReplicas"]), (json!("new"), &json!(1)));
    });
}

#[test]
fn an_eviction_that_fails_is_told_and_tried_again() {
    test(async {
        let server = Server::new();
        server.add(&curable(ordered(1)));
        let running = start(&server);
        run_faulty(&server, &running).await;
        let error = "This pod has more than one PodDisruptionBudget";
        server.on("create", "pods/eviction").once().answer(500, "InternalError", error);
        roll_out(&server);
        run_faulty(&server, &running).await;
        let told = format!("Warning FailedEvict: Evict Pod web-0 in StatefulSet web failed error: {error}");
        assert!(server.events().contains(&told), "{:?}", server.events());
        assert!(evictions(&server) >= 2);
        assert_eq!(image(&server, "default/web-0"), "new");
    });
}

#[test]
fn many_at_once_survive_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| KIND.add(server, 3)),
            Do(Server::run_pods),
            Do(|server| KIND.scale(server, 1)),
            Do(Server::run_pods),
            Do(|server| KIND.scale(server, 2)),
            Do(Server::run_pods),
            Do(|server| server.end_pods("Failed")),
            Do(Server::run_pods),
        ];
        let server = survives_kills::<Operator>(&[], &life).await;
        assert_eq!(server.keys("pods"), ["default/web-0", "default/web-1"]);
        assert_eq!(status(&server)["availableReplicas"], 2);
    });
}

/// Each pod that gets ready would be a status.
#[test]
fn while_a_large_set_comes_its_statuses_are_apart_and_the_last_one_comes_at_once() {
    test(async {
        let server = Server::new();
        KIND.add(&server, 200);
        let running = start(&server);
        running.at_rest().await;
        let before = server.count("patch statefulsets/status");
        for key in server.keys("pods") {
            server.change("pods", &key, |pod| {
                pod["status"] = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
            });
            running.pass(Duration::from_millis(16)).await;
        }
        assert_eq!(status(&server)["availableReplicas"], 200);
        // 3.2 s, of which each second brings one.
        let written = server.count("patch statefulsets/status") - before;
        assert!((3..=5).contains(&written), "{written} statuses");
    });
}

/// A kill forgets the back-off: then they come sooner.
#[test]
fn rejected_pods_survive_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| KIND.add(server, 3)),
            Do(|server| server.reject_pods("OutOfcpu")),
            Do(|server| server.reject_pods("OutOfcpu")),
            Pass(Duration::from_secs(10)),
            Do(Server::run_pods),
        ];
        let server = survives_kills::<Operator>(&[], &life).await;
        assert_eq!((server.count("create pods"), server.count("delete pods")), (9, 6));
        assert_eq!(status(&server)["availableReplicas"], 3);
    });
}

#[test]
fn rejected_pods_are_replaced_with_back_off_unless_a_flag_says_otherwise() {
    test(async {
        let minute = Duration::from_mins(1);
        let in_order = ReplicaKind { object: |_, replicas| ordered(replicas), ..KIND };
        for kind in [KIND, in_order] {
            let made = kind.pods_of_rejections::<Operator>(&[], minute).await;
            assert!((6..=40).contains(&made), "{made} pods");
            let flag = "--rejected-pod-backoff=false";
            let made = kind.pods_of_rejections::<Operator>(&[flag], minute).await;
            assert!(made > 300, "{made} pods");
        }
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_pod() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<Operator>(&server).await;
        for resource in ["controllerrevisions", "persistentvolumeclaims", "pods"] {
            server.on("create", resource).once().lose();
        }
        server.add(&ordered(1));
        running.at_rest().await;
        assert_eq!(server.keys("pods"), ["default/web-0"]);
        assert_eq!(server.keys("persistentvolumeclaims"), ["default/data-web-0"]);
        assert_eq!(status(&server)["collisionCount"], 0, "the revision is as good as made");
    });
}

#[test]
fn revisions_and_claims_are_followed_only_while_there_is_a_set_with_any() {
    test(async {
        let remove = |server: &Server| server.delete("statefulsets", KEY);
        for resource in ["controllerrevisions default/", "persistentvolumeclaims default/"] {
            let add = |server: &Server| server.add(&ordered(1));
            is_followed_only_while_needed::<Operator>(&Server::new(), resource, add, remove).await;
        }
        let server = Server::new();
        KIND.add(&server, 1);
        start(&server).at_rest().await;
        assert_eq!(server.count("list persistentvolumeclaims"), 0, "it makes none");
    });
}

#[test]
fn the_first_one_waits_for_revisions_and_claims_however_they_come() {
    test(async {
        for resource in ["controllerrevisions", "persistentvolumeclaims"] {
            let then = |server: &Server| assert_eq!(server.keys("pods"), ["default/web-0"], "{resource}");
            let first = |server: &Server| server.add(&ordered(2));
            the_first_one_waits::<Operator>(&[], resource, first, then).await;
        }
    });
}

/// Upstream: `TestStatefulSetControllerDeletionTimestampRace`.
#[test]
fn a_set_that_is_being_deleted_adopts_nothing_though_the_cache_does_not_know() {
    test(async {
        let server = Server::new();
        KIND.add(&server, 0);
        let running = start(&server);
        running.at_rest().await;
        server.hold_watches("statefulsets");
        let now = server.clock().now().to_string();
        server.change("statefulsets", KEY, |set| {
            set["metadata"]["deletionTimestamp"] = now.into();
            set["metadata"]["finalizers"] = json!(["orphan"]);
        });
        server.add(&pod("web-0").label("app", "web"));
        running.pass(Duration::from_secs(3)).await;
        assert!(server.count("get statefulsets default/web") > 0);
        assert_eq!((server.count("patch pods"), server.count("delete pods")), (0, 0));
    });
}

#[test]
fn an_orphan_is_adopted_and_released_when_it_is_selected_no_more() {
    test(async {
        let server = Server::new();
        for name in ["web-0", "xweb-0", "web-x"] {
            server.add(&pod(name).label("app", "web"));
        }
        KIND.add(&server, 2);
        let running = start(&server);
        running.at_rest().await;
        let owner = |key: &str| server.get("pods", key).unwrap_or_default()["metadata"]["ownerReferences"][0].clone();
        assert_eq!(owner("default/web-0")["name"], "web");
        assert_eq!((owner("default/xweb-0"), owner("default/web-x")), (Value::Null, Value::Null));
        assert_eq!(server.keys("pods").len(), 4);
        let labels = server.get("pods", "default/web-0").unwrap()["metadata"]["labels"].clone();
        assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "web-0", "it gets its identity");
        server.change("pods", "default/web-0", |pod| pod["metadata"]["labels"]["app"] = "debug".into());
        running.pass(Duration::from_secs(3)).await;
        assert_eq!(owner("default/web-0"), Value::Null);
        assert_eq!(server.keys("pods").len(), 4, "its name is taken");
    });
}

#[test]
fn a_pod_that_has_ended_is_replaced_once_it_is_gone() {
    test(async {
        let server = Server::new();
        server.add(&ordered(1));
        let running = start(&server);
        run(&server, &running).await;
        server.change("pods", "default/web-0", |pod| pod["metadata"]["finalizers"] = json!(["test/held"]));
        server.end_pods("Failed");
        running.at_rest().await;
        assert_eq!((server.count("delete pods"), server.count("create pods")), (1, 1));
        server.change("pods", "default/web-0", |pod| pod["metadata"]["finalizers"] = json!([]));
        running.at_rest().await;
        assert_eq!((server.count("delete pods"), server.count("create pods")), (1, 2));
        assert_eq!(server.get("pods", "default/web-0").unwrap()["status"]["phase"], "Pending");
    });
}

#[test]
fn the_next_pod_comes_once_the_one_before_is_available() {
    test(async {
        let server = Server::new();
        server.add(&ordered(2).set(&["spec", "minReadySeconds"], 30));
        let running = start(&server);
        running.at_rest().await;
        server.run_pods();
        running.pass(Duration::from_secs(20)).await;
        assert_eq!((server.keys("pods").len(), &status(&server)["readyReplicas"]), (1, &json!(1)));
        assert_eq!(status(&server)["availableReplicas"], 0);
        running.pass(Duration::from_secs(20)).await;
        assert_eq!((server.keys("pods").len(), &status(&server)["availableReplicas"]), (2, &json!(1)));
    });
}

#[test]
fn a_pod_below_the_partition_comes_again_from_the_current_revision() {
    test(async {
        let server = Server::new();
        server.add(&parallel("web", 2).set(&["spec", "updateStrategy", "rollingUpdate", "partition"], 1));
        let running = start(&server);
        run(&server, &running).await;
        roll_out(&server);
        run(&server, &running).await;
        let images = || (image(&server, "default/web-0"), image(&server, "default/web-1"));
        assert_eq!(images(), (json!("old"), json!("new")));
        server.delete("pods", "default/web-0");
        running.at_rest().await;
        assert_eq!((images(), server.count("get controllerrevisions")), ((json!("old"), json!("new")), 1));
        assert_ne!(status(&server)["currentRevision"], status(&server)["updateRevision"]);
    });
}

#[test]
fn several_pods_go_at_once_where_the_gate_is_on() {
    test(async {
        for (flags, gone) in [(&[][..], 1), (&["--feature-gates=MaxUnavailableStatefulSet=true"], 2)] {
            let server = Server::new();
            server.add(&parallel("web", 3).set(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"], 2));
            let running = Running::start::<Operator>(&server, flags);
            run(&server, &running).await;
            roll_out(&server);
            running.at_rest().await;
            assert_eq!(server.count("delete pods"), gone, "{flags:?}");
        }
    });
}

#[test]
fn an_earlier_template_finds_its_revision_and_old_ones_go() {
    test(async {
        let server = Server::new();
        KIND.add(&server, 1);
        let running = start(&server);
        run(&server, &running).await;
        roll_out(&server);
        run(&server, &running).await;
        assert_eq!(history(&server), named(&[(1, "old"), (2, "new")]));
        roll_back(&server);
        run(&server, &running).await;
        assert_eq!(history(&server), named(&[(2, "new"), (3, "old")]));
        assert_eq!(image(&server, "default/web-0"), "old");
        edit(&server, "revisionHistoryLimit", 0);
        running.at_rest().await;
        assert_eq!(history(&server), named(&[(3, "old")]));
    });
}

#[test]
fn a_default_that_an_apiserver_begins_to_set_replaces_no_pod() {
    test(async {
        let server = Server::new();
        server.add(&ordered(2));
        let mut running = start(&server);
        run(&server, &running).await;
        let uids = || server.list("pods").iter().map(|pod| pod["metadata"]["uid"].clone()).collect::<Vec<_>>();
        let before = (uids(), history(&server));
        server.set_default("statefulsets", KEY, |set| set["spec"]["template"]["spec"]["tidyUp"] = true.into());
        run(&server, &running).await;
        let reads = server.count("get controllerrevisions");
        assert_eq!((reads, (uids(), history(&server))), (1, before.clone()));
        // Neither a restart nor a later edit of another field needs the revision again.
        drop(running);
        running = start(&server);
        edit(&server, "replicas", 3);
        run(&server, &running).await;
        assert_eq!((server.count("get controllerrevisions"), &uids()[..2]), (reads, &before.0[..]));
        assert_eq!((status(&server)["updatedReplicas"].clone(), history(&server)), (json!(3), before.1));
        roll_out(&server);
        run(&server, &running).await;
        assert_eq!(image(&server, "default/web-0"), "new");
    });
}

#[test]
fn a_name_that_is_too_long_for_pods_is_told_once_and_no_pod_is_tried() {
    test(async {
        let (server, name) = (Server::new(), "n".repeat(63));
        server.add(&parallel(&name, 1));
        let running = start(&server);
        run(&server, &running).await;
        let events = server.events();
        let [told] = events.as_slice() else { panic!("{events:?}") };
        let begin = format!("Warning FailedCreate: Create Pod {name}-0 in StatefulSet {name} failed error: its label ");
        assert!(told.starts_with(&begin) && told.ends_with("use a name of at most 52 characters"), "{told}");
        assert_eq!(server.count("create pods"), 0);
        let set = server.get("statefulsets", &format!("default/{name}")).unwrap();
        assert_eq!(set["status"]["observedGeneration"], 1);
    });
}

#[test]
fn a_name_that_another_revision_has_is_a_collision() {
    test(async {
        let server = Server::new();
        KIND.add(&server, 1);
        let held = server.on("create", "controllerrevisions").once().hold();
        let running = start(&server);
        held.arrived().await;
        let is_create = |line: &String| line.starts_with("create controllerrevisions");
        let create = server.requests().into_iter().find(is_create).unwrap();
        let name = create.rsplit_once('/').unwrap().1;
        let other = object("apps/v1", "ControllerRevision", name).set(&["data", "spec", "template"], template("other"));
        server.add(&other.set(&["revision"], 1));
        held.release();
        running.at_rest().await;
        assert_eq!((server.keys("controllerrevisions").len(), &status(&server)["collisionCount"]), (2, &json!(1)));
        assert_eq!(server.keys("pods").len(), 1);
    });
}

#[test]
fn claims_go_with_the_set_and_before_that_with_a_pod_that_is_too_many() {
    test(async {
        let server = Server::new();
        server.add(&ordered(2));
        let running = start(&server);
        run(&server, &running).await;
        assert_eq!([owners(&server, 0), owners(&server, 1)], [["StatefulSet web"], ["StatefulSet web"]]);
        edit(&server, "replicas", 1);
        running.at_rest().await;
        assert_eq!([owners(&server, 0), owners(&server, 1)], [["StatefulSet web"], ["Pod web-1"]]);
        server.run_pods();
        running.at_rest().await;
        // The pod is gone; the garbage collector has not come by yet.
        edit(&server, "replicas", 2);
        running.at_rest().await;
        assert_eq!(server.keys("pods"), ["default/web-0"], "the claim of the earlier pod has to go first");
        server.delete("persistentvolumeclaims", "default/data-web-1");
        running.at_rest().await;
        assert_eq!(server.keys("pods"), ["default/web-0", "default/web-1"]);
        run(&server, &running).await;
        assert_eq!(owners(&server, 1), ["StatefulSet web"]);
        edit(&server, "persistentVolumeClaimRetentionPolicy", retention("Retain", "Retain"));
        running.at_rest().await;
        assert_eq!((owners(&server, 0).len(), owners(&server, 1).len()), (0, 0));
        let told = "Normal SuccessfulUpdate: Update Pod web-0 in StatefulSet web successful".to_owned();
        assert!(server.events().contains(&told), "{:?}", server.events());
    });
}

#[test]
fn a_claim_that_is_being_deleted_is_waited_for_and_told_of() {
    test(async {
        let server = Server::new();
        let leaving = object("v1", "PersistentVolumeClaim", "data-web-0").terminating();
        server.add(&leaving.set(&["metadata", "finalizers"], json!(["kubernetes.io/pvc-protection"])));
        server.add(&ordered(1));
        let running = start(&server);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(server.count("create pods"), 0);
        let error = "pvc data-web-0 is being deleted";
        let told = format!("Warning FailedCreate: Create Pod web-0 in StatefulSet web failed error: {error}");
        assert!(server.events().contains(&told), "{:?}", server.events());
        server.change("persistentvolumeclaims", "default/data-web-0", |claim| {
            claim["metadata"]["finalizers"] = json!([]);
        });
        running.at_rest().await;
        assert_eq!(server.keys("pods"), ["default/web-0"]);
        // The pod's own event has the same time here, and so the same name.
        let told = "Normal SuccessfulCreate: Create Claim data-web-0 Pod web-0 in StatefulSet web success".to_owned();
        assert!(server.events().contains(&told), "{:?}", server.events());
    });
}

#[test]
fn a_claim_that_somebody_else_manages_is_told_of() {
    test(async {
        let server = Server::new();
        let manager = json!({ "apiVersion": "example.com/v1", "kind": "Manager", "name": "m", "uid": "m-1",
            "controller": true });
        let claim = object("v1", "PersistentVolumeClaim", "data-web-0");
        server.add(&claim.set(&["metadata", "ownerReferences"], json!([manager])));
        server.add(&ordered(1));
        let running = start(&server);
        run(&server, &running).await;
        assert_eq!(owners(&server, 0), ["Manager m"]);
        let events = server.events();
        let told = events.iter().filter(|event| event.starts_with("Warning ConflictingController: ")).count();
        assert_eq!(told, 1, "{events:?}");
    });
}

#[test]
fn conditions_of_others_are_removed_as_upstream_removes_them() {
    test(async {
        let server = Server::new();
        server.add(&parallel("web", 1).set(&["status", "conditions"], json!([{ "type": "Odd", "status": "True" }])));
        start(&server).pass(A_STATUS).await;
        assert_eq!((&status(&server)["conditions"], &status(&server)["replicas"]), (&Value::Null, &json!(1)));
    });
}

const PATH: &str = "/apis/apps/v1/namespaces/default/statefulsets/web";

fn texts(stages: &[Stage]) -> Vec<&str> {
    stages.iter().map(|stage| stage.text.as_str()).collect()
}

#[test]
fn why_says_what_is_waited_for_and_what_was_written() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<Operator>(&server).await;
        server.add(&ordered(2));
        running.pass(A_STATUS).await;
        let requests = server.requests();

        let why = running.why(PATH);
        let [KeyState { queue, key, now, last, standing }] = &why.keys[..] else { panic!("{why}") };
        assert_eq!((queue.as_str(), key.as_str(), standing), ("statefulset", KEY, &Standing::default()));
        assert_eq!(texts(now), ["nothing (waiting until web-0 is ready; 0 of 2 available, 1 updated)"]);
        let waiting = json!({ "pod": "web-0", "until": "ready", "wanted": 2, "present": 1, "available": 0,
            "updated": 1, "condemned": 0 });
        assert_eq!(now[0].reason, json!({ "waiting": waiting }));
        let created = last.iter().find(|decision| decision.stages.len() == 2).unwrap_or_else(|| panic!("{why}"));
        let update = status(&server)["updateRevision"].as_str().unwrap().to_owned();
        assert_eq!(
            texts(&created.stages),
            [
                format!("create revision {update} as number 1 (the template is new)"),
                format!("create web-0 of {update} with data-web-0 (0 of 2 available, 0 updated)"),
            ],
        );
        let wrote: Vec<&str> = created.wrote.iter().map(|version| version.resource.as_str()).collect();
        assert_eq!(wrote, ["controllerrevisions.apps", "persistentvolumeclaims", "pods", "statefulsets.apps"], "{why}");
        assert_eq!(created.cause.as_ref().map(|cause| cause.resource.as_str()), Some("statefulsets.apps"));
        assert_eq!(running.why(PATH).keys, why.keys);
        assert_eq!(running.why("/api/v1/namespaces/default/pods/web-0").keys, [], "pods are somebody else's keys");
        assert_eq!(server.requests(), requests, "asking asks nobody");
    });
}

#[test]
fn large_templates_are_rolled_out_with_a_revision_each_and_read_when_they_are_copied() {
    test(async {
        let server = Server::new();
        server.add(&ordered(2));
        edit(&server, "template", enlarged(template("old")));
        server.change("statefulsets", KEY, |set| {
            let large = "x".repeat(LARGE_BYTES);
            set["spec"]["volumeClaimTemplates"][0]["metadata"]["annotations"] = json!({ "large": large });
        });
        let running = start(&server);
        run(&server, &running).await;
        edit(&server, "template", enlarged(template("new")));
        run(&server, &running).await;
        assert_eq!(history(&server), named(&[(1, "old"), (2, "new")]));
        for pod in ["default/web-0", "default/web-1"] {
            assert_eq!(image(&server, pod), "new");
            assert_eq!(args_bytes(&server.get("pods", pod).unwrap()["spec"]), LARGE_BYTES);
        }
        let claim = server.get("persistentvolumeclaims", "default/data-web-1").unwrap();
        assert_eq!(claim["metadata"]["annotations"]["large"].as_str().map(str::len), Some(LARGE_BYTES));
        let reads = server.count("get statefulsets");
        edit(&server, "revisionHistoryLimit", 5);
        edit(&server, "replicas", 1);
        run(&server, &running).await;
        assert_eq!((server.keys("pods").len(), server.count("get statefulsets")), (1, reads));
        assert_eq!(server.keys("controllerrevisions").len(), 2);
    });
}
