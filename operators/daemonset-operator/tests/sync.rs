//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![cfg(test)]

use std::time::Duration;

use daemonset_operator::controller::DaemonSetOperator;
use serde_json::{Value, json};
use shared::api::explain::{KeyState, Stage, Standing};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::Do;
use shared::testing::running::{A_STATUS, Running, survives_kills, test};
use shared::testing::{LARGE_BYTES, ObjectBuilder, args_bytes, enlarged, object, pod};

const KEY: &str = "default/web";
const HASH: &str = "controller-revision-hash";

fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": image }] } })
}

fn daemon_set(name: &str) -> ObjectBuilder {
    let spec = json!({
        "selector": { "matchLabels": { "app": "web" } }, "template": template("old"), "revisionHistoryLimit": 10,
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 } },
    });
    object("apps/v1", "DaemonSet", name).set(&["spec"], spec)
}

fn surging() -> ObjectBuilder {
    let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } });
    daemon_set("web").set(&["spec", "updateStrategy"], strategy)
}

/// One whose pods are for no node.
fn other() -> ObjectBuilder {
    let selector = json!({ "matchLabels": { "app": "other" } });
    let nowhere = json!({ "metadata": { "labels": { "app": "other" } }, "spec": { "nodeName": "nowhere" } });
    daemon_set("other").set(&["spec", "selector"], selector).set(&["spec", "template"], nowhere)
}

fn add_nodes(server: &Server, names: &[&str]) {
    for name in names {
        server.add(&object("v1", "Node", name));
    }
}

fn taint(server: &Server, node: &str, effect: &str) {
    server.change("nodes", node, |node| node["spec"]["taints"] = json!([{ "key": "k", "effect": effect }]));
}

/// Plays scheduler and kubelet for a moment: each pod runs on the node that it is pinned to.
fn run_pods(server: &Server) {
    for key in server.keys("pods") {
        server.change("pods", &key, |pod| {
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            } else if pod["status"]["phase"] == "Pending" {
                pod["spec"]["nodeName"] = pinned_to(pod);
                let since = pod["metadata"]["creationTimestamp"].clone();
                pod["status"]["conditions"] =
                    json!([{ "type": "Ready", "status": "True", "lastTransitionTime": since }]);
                pod["status"]["phase"] = "Running".into();
            }
        });
    }
}

fn pinned_to(pod: &Value) -> Value {
    let required = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0].clone()
}

fn edit(server: &Server, field: &str, value: impl Into<Value>) {
    server.change("daemonsets", KEY, |set| set["spec"][field] = value.into());
}

fn roll_out(server: &Server) {
    edit(server, "template", template("new"));
}

fn roll_back(server: &Server) {
    edit(server, "template", template("old"));
}

/// The operator, and the kubelet a few times.
async fn run(server: &Server, running: &Running) {
    for _ in 0..8 {
        running.at_rest().await;
        run_pods(server);
    }
    running.at_rest().await;
}

fn start(server: &Server) -> Running {
    Running::start::<DaemonSetOperator>(server, &[])
}

async fn started(server: &Server) -> Running {
    let running = start(server);
    running.at_rest().await;
    running
}

fn status(server: &Server) -> Value {
    server.get("daemonsets", KEY).unwrap_or_default()["status"].clone()
}

/// Each pod's node and image, sorted.
fn pods(server: &Server) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = |pod: &Value| format!("{} {}", text(&pinned_to(pod)), text(&pod["spec"]["containers"][0]["image"]));
    let mut pods: Vec<String> = server.list("pods").iter().map(place).collect();
    pods.sort();
    pods
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
            Do(|server| add_nodes(server, &["a", "b"])),
            Do(|server| server.add(&daemon_set("web"))),
            Do(run_pods),
            Do(roll_out),
            Do(run_pods),
            Do(run_pods),
            Do(run_pods),
            Do(run_pods),
            Do(|server| add_nodes(server, &["c"])),
            Do(run_pods),
            Do(|server| taint(server, "b", "NoExecute")),
            Do(run_pods),
            Do(roll_back),
            Do(run_pods),
            Do(run_pods),
            Do(run_pods),
            Do(run_pods),
            Do(|server| edit(server, "revisionHistoryLimit", 0)),
        ];
        let server = survives_kills::<DaemonSetOperator>(&[], &life).await;
        assert_eq!(pods(&server), ["a old", "c old"]);
        assert_eq!(history(&server), named(&[(3, "old")]));
        let expected = json!({
            "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 2,
            "updatedNumberScheduled": 2, "numberAvailable": 2, "numberUnavailable": 0, "observedGeneration": 4,
        });
        assert_eq!(status(&server), expected);
    });
}

#[test]
fn a_surge_survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| add_nodes(server, &["a", "b"])),
            Do(|server| server.add(&surging())),
            Do(run_pods),
            Do(roll_out),
            Do(run_pods),
            Do(run_pods),
            Do(run_pods),
            Do(run_pods),
        ];
        let server = survives_kills::<DaemonSetOperator>(&[], &life).await;
        assert_eq!(pods(&server), ["a new", "b new"]);
        assert_eq!(history(&server), named(&[(1, "old"), (2, "new")]));
    });
}

#[test]
fn one_pod_after_the_other_is_replaced() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a", "b", "c"]);
        server.add(&daemon_set("web"));
        let running = start(&server);
        run(&server, &running).await;
        roll_out(&server);
        running.at_rest().await;
        assert_eq!(server.count("delete pods"), 1);
        run_pods(&server);
        running.at_rest().await;
        assert_eq!((server.count("delete pods"), server.count("create pods")), (1, 4));
        run(&server, &running).await;
        assert_eq!(pods(&server), ["a new", "b new", "c new"]);
        let hash = |pod: &Value| pod["metadata"]["labels"][HASH].clone();
        let hashes: Vec<Value> = server.list("pods").iter().map(hash).collect();
        let revisions = server.list("controllerrevisions");
        let last = revisions.iter().find(|revision| revision["revision"] == 2).unwrap();
        assert_eq!(hashes, vec![last["metadata"]["labels"][HASH].clone(); 3]);
    });
}

#[test]
fn on_delete_a_pod_is_replaced_when_somebody_has_deleted_it() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a", "b"]);
        server.add(&daemon_set("web").set(&["spec", "updateStrategy"], json!({ "type": "OnDelete" })));
        let running = start(&server);
        run(&server, &running).await;
        roll_out(&server);
        run(&server, &running).await;
        assert_eq!((pods(&server), server.count("delete pods")), (vec!["a old".to_owned(), "b old".to_owned()], 0));
        server.delete("pods", &server.keys("pods")[0]);
        run(&server, &running).await;
        assert_eq!(pods(&server), ["a new", "b old"]);
        assert_eq!(status(&server)["updatedNumberScheduled"], 1);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_pod() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a", "b"]);
        server.add(&other());
        let running = started(&server).await;
        server.on("create", "controllerrevisions").once().lose();
        server.on("create", "pods").once().lose();
        server.add(&daemon_set("web"));
        running.at_rest().await;
        assert_eq!((pods(&server), server.count("create pods")), (vec!["a old".to_owned(), "b old".to_owned()], 2));
        assert_eq!(status(&server)["collisionCount"], Value::Null, "the revision is as good as made");
    });
}

#[test]
fn a_watch_that_stands_still_or_expires_makes_no_second_pod() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a", "b"]);
        server.add(&other());
        let running = started(&server).await;
        server.hold_watches("pods");
        server.add(&daemon_set("web"));
        for number in 0..3 {
            running.pass(Duration::from_secs(3)).await;
            edit(&server, "minReadySeconds", number + 1);
        }
        assert_eq!(server.count("create pods"), 2);
        server.expire_watches("pods");
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!((server.count("create pods"), server.keys("pods").len()), (2, 2));
    });
}

#[test]
fn a_status_that_meets_a_newer_version_is_written_all_the_same() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a"]);
        let condition = json!([{ "type": "Odd", "status": "True" }]);
        server.add(&daemon_set("web").set(&["status", "conditions"], condition.clone()));
        let held = server.on("patch", "daemonsets/status").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.change("daemonsets", KEY, |set| set["metadata"]["labels"]["new"] = "yes".into());
        held.release();
        running.at_rest().await;
        let set = server.get("daemonsets", KEY).unwrap();
        let found = (&set["status"]["desiredNumberScheduled"], &set["metadata"]["labels"]["new"]);
        assert_eq!(found, (&json!(1), &json!("yes")));
        assert_eq!(set["status"]["conditions"], condition, "conditions of others stay");
    });
}

#[test]
fn nodes_pods_and_revisions_are_followed_only_while_there_is_a_set() {
    test(async {
        for resource in ["nodes", "pods default/", "controllerrevisions default/"] {
            let (add, remove) =
                (|server: &Server| server.add(&daemon_set("web")), |server: &Server| server.delete("daemonsets", KEY));
            is_followed_only_while_needed::<DaemonSetOperator>(&Server::new(), resource, add, remove).await;
        }
    });
}

#[test]
fn the_first_one_waits_for_nodes_pods_and_revisions() {
    test(async {
        for resource in ["nodes", "pods", "controllerrevisions"] {
            let first = |server: &Server| {
                add_nodes(server, &["a"]);
                server.add(&daemon_set("web"));
            };
            let then = |server: &Server| assert_eq!(pods(server), ["a old"], "{resource}");
            the_first_one_waits::<DaemonSetOperator>(&[], resource, first, then).await;
        }
    });
}

#[test]
fn one_that_goes_and_comes_again_finds_its_pods() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a", "b"]);
        server.add(&daemon_set("web"));
        let running = started(&server).await;
        run_pods(&server);
        running.at_rest().await;
        let then = |server: &Server, pause| assert_eq!(server.keys("pods").len(), 2, "{pause:?}");
        let object = ("daemonsets", KEY);
        it_goes_and_comes_again((&server, &running), object, |_| (), Duration::from_secs(5), then).await;
        assert_eq!(server.count("create pods"), 2, "no pod was made twice");
    });
}

#[test]
fn a_heartbeat_is_no_work_and_a_taint_is() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a"]);
        server.add(&daemon_set("web"));
        let running = start(&server);
        run(&server, &running).await;
        let node = || running.why("/api/v1/nodes/a").keys[0].last.clone();
        let (requests, looks) = (server.requests(), node());
        for beat in 0..20 {
            let conditions = json!([{ "type": "Ready", "beat": beat }]);
            server.change("nodes", "a", |node| node["status"]["conditions"] = conditions);
            running.pass(Duration::from_secs(1)).await;
        }
        assert_eq!((server.requests(), node()), (requests, looks));
        taint(&server, "a", "NoSchedule");
        running.at_rest().await;
        assert_eq!(server.count("delete pods"), 0);
        taint(&server, "a", "NoExecute");
        running.at_rest().await;
        assert_eq!(server.count("delete pods"), 1);
    });
}

/// Each pod that gets ready would be a status.
#[test]
fn while_a_large_set_comes_its_statuses_are_apart_and_the_last_one_comes_at_once() {
    test(async {
        let server = Server::new();
        let names: Vec<String> = (0..200).map(|at| format!("n{at:03}")).collect();
        add_nodes(&server, &names.iter().map(String::as_str).collect::<Vec<_>>());
        server.add(&daemon_set("web"));
        let running = started(&server).await;
        let before = server.count("patch daemonsets/status");
        for key in server.keys("pods") {
            server.change("pods", &key, |pod| {
                pod["status"] = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
            });
            running.pass(Duration::from_millis(16)).await;
        }
        assert_eq!(status(&server)["numberAvailable"], 200);
        // 3.2 s, of which each second brings one.
        let written = server.count("patch daemonsets/status") - before;
        assert!((3..=5).contains(&written), "{written} statuses");
    });
}

#[test]
fn a_node_that_is_gone_counts_no_more_and_its_unbound_pod_goes() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a", "b"]);
        server.add(&daemon_set("web"));
        let running = started(&server).await;
        assert_eq!(status(&server)["desiredNumberScheduled"], 2);
        server.delete("nodes", "b");
        running.pass(A_STATUS).await;
        running.at_rest().await;
        assert_eq!((pods(&server), &status(&server)["desiredNumberScheduled"]), (vec!["a old".to_owned()], &json!(1)));
    });
}

/// Upstream: `TestDaemonKillFailedPodsBackoff`.
#[test]
fn a_pod_that_fails_again_and_again_is_replaced_later_and_later() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a"]);
        server.add(&daemon_set("web"));
        let running = started(&server).await;
        for (number, seconds) in [(1, 0), (2, 1), (3, 2), (4, 4)] {
            run_pods(&server);
            running.pass(Duration::from_millis(10)).await;
            server.end_pods("Failed");
            if seconds > 0 {
                running.pass(Duration::from_millis(seconds * 1000 - 500)).await;
                assert_eq!(server.count("delete pods"), number - 1, "{seconds}");
            }
            running.pass(Duration::from_millis(if seconds > 0 { 600 } else { 10 })).await;
            assert_eq!(server.count("delete pods"), number, "{seconds}");
        }
        running.at_rest().await;
        let events = server.events();
        let told = events.iter().filter(|event| event.starts_with("Warning FailedDaemonPod: Found failed daemon pod "));
        assert_eq!(told.count(), 4, "{events:?}");
    });
}

#[test]
fn a_set_that_selects_everything_is_told_of_and_left_alone() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a"]);
        server.add(&pod("web-1").label("app", "web"));
        server.add(&daemon_set("web").set(&["spec", "selector"], json!({})));
        started(&server).await;
        let message = "This daemon set is selecting all pods. A non-empty selector is required.";
        assert_eq!(server.events(), [format!("Warning SelectingAll: {message}")]);
        assert_eq!(server.writes(), [""; 0]);
    });
}

/// Upstream: `TestDontDoAnythingIfBeingDeletedRace`.
#[test]
fn a_set_that_is_being_deleted_adopts_nothing_though_the_cache_does_not_know() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a"]);
        server.add(&daemon_set("web"));
        let running = start(&server);
        run(&server, &running).await;
        server.hold_watches("daemonsets");
        let now = server.clock().now().to_string();
        server.change("daemonsets", KEY, |set| {
            set["metadata"]["deletionTimestamp"] = now.into();
            set["metadata"]["finalizers"] = json!(["orphan"]);
        });
        server.add(&pod("orphan").label("app", "web"));
        running.pass(Duration::from_secs(3)).await;
        assert!(server.count("get daemonsets default/web") > 0);
        assert_eq!((server.count("patch pods"), server.count("delete pods")), (0, 0));
    });
}

#[test]
fn an_earlier_template_finds_its_revision_and_old_ones_go() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a"]);
        server.add(&daemon_set("web"));
        let running = start(&server);
        run(&server, &running).await;
        roll_out(&server);
        run(&server, &running).await;
        assert_eq!(history(&server), named(&[(1, "old"), (2, "new")]));
        roll_back(&server);
        run(&server, &running).await;
        assert_eq!((history(&server), pods(&server)), (named(&[(2, "new"), (3, "old")]), vec!["a old".to_owned()]));
        edit(&server, "revisionHistoryLimit", 0);
        running.at_rest().await;
        assert_eq!(history(&server), named(&[(3, "old")]));
    });
}

#[test]
fn a_default_that_an_apiserver_begins_to_set_makes_no_revision_and_replaces_no_pod() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a", "b"]);
        server.add(&daemon_set("web"));
        let mut running = start(&server);
        run(&server, &running).await;
        let uids = || server.list("pods").iter().map(|pod| pod["metadata"]["uid"].clone()).collect::<Vec<_>>();
        let before = (uids(), history(&server));
        server.set_default("daemonsets", KEY, |set| set["spec"]["template"]["spec"]["tidyUp"] = true.into());
        run(&server, &running).await;
        let reads = server.count("get controllerrevisions");
        assert_eq!((reads, (uids(), history(&server))), (1, before.clone()));
        // Neither a restart nor a later edit of another field needs the revision again.
        drop(running);
        running = start(&server);
        edit(&server, "revisionHistoryLimit", 3);
        run(&server, &running).await;
        assert_eq!((server.count("get controllerrevisions"), (uids(), history(&server))), (reads, before));
        assert_eq!(status(&server)["updatedNumberScheduled"], 2);
        roll_out(&server);
        run(&server, &running).await;
        assert_eq!((pods(&server), history(&server).len()), (vec!["a new".to_owned(), "b new".to_owned()], 2));
    });
}

#[test]
fn a_name_that_another_revision_has_is_a_collision() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a"]);
        server.add(&daemon_set("web"));
        let held = server.on("create", "controllerrevisions").once().hold();
        let running = start(&server);
        held.arrived().await;
        let is_create = |line: &String| line.starts_with("create controllerrevisions");
        let create = server.requests().into_iter().find(is_create).unwrap();
        let name = create.rsplit_once('/').unwrap().1;
        let taken = object("apps/v1", "ControllerRevision", name).set(&["data", "spec", "template"], template("other"));
        server.add(&taken.set(&["revision"], 1));
        held.release();
        running.at_rest().await;
        assert_eq!((server.keys("controllerrevisions").len(), &status(&server)["collisionCount"]), (2, &json!(1)));
        assert_eq!((pods(&server).len(), &status(&server)["desiredNumberScheduled"]), (1, &json!(1)));
    });
}

#[test]
fn of_several_revisions_of_one_template_the_last_one_stays_and_no_pod_goes() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a"]);
        server.add(&daemon_set("web"));
        let running = start(&server);
        run(&server, &running).await;
        let data = server.list("controllerrevisions")[0]["data"].clone();
        let again = object("apps/v1", "ControllerRevision", "web-again")
            .label("app", "web")
            .label(HASH, "again")
            .set(&["data"], data)
            .set(&["revision"], 7);
        server.add(&again);
        running.at_rest().await;
        assert_eq!(server.keys("controllerrevisions"), ["default/web-again"]);
        assert_eq!(server.list("pods")[0]["metadata"]["labels"][HASH], "again");
        assert_eq!((server.count("delete pods"), &status(&server)["updatedNumberScheduled"]), (0, &json!(1)));
    });
}

#[test]
fn an_orphan_is_adopted_and_released_when_it_is_selected_no_more() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["node"]);
        server.add(&pod("stray").label("app", "web"));
        server.add(&daemon_set("web").set(&["spec", "updateStrategy"], json!({ "type": "OnDelete" })));
        let running = started(&server).await;
        let stray = || server.get("pods", "default/stray").unwrap_or_default();
        let owner = || stray()["metadata"]["ownerReferences"][0].clone();
        assert_eq!(owner()["name"], "web");
        assert_eq!(server.count("create pods"), 0, "it is on the node");
        server.change("pods", "default/stray", |pod| pod["metadata"]["labels"]["app"] = "debug".into());
        running.at_rest().await;
        assert_eq!((owner(), server.count("create pods")), (Value::Null, 1));
    });
}

const PATH: &str = "/apis/apps/v1/namespaces/default/daemonsets/web";

fn texts(stages: &[Stage]) -> Vec<&str> {
    stages.iter().map(|stage| stage.text.as_str()).collect()
}

#[test]
fn why_says_how_far_it_is_and_what_was_written() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["a"]);
        server.add(&other());
        let running = started(&server).await;
        server.add(&daemon_set("web"));
        running.pass(A_STATUS).await;
        running.at_rest().await;
        let requests = server.requests();

        let why = running.why(PATH);
        let [KeyState { queue, key, now, last, standing }] = &why.keys[..] else { panic!("{why}") };
        assert_eq!((queue.as_str(), key.as_str(), standing), ("daemonset", KEY, &Standing::default()));
        assert_eq!(texts(now), ["nothing (0 of 1 nodes available, 1 updated)"]);
        let numbers = json!({ "desired": 1, "available": 0, "updated": 1, "misscheduled": 0 });
        assert_eq!(now[0].reason, json!({ "nodes": numbers }));
        let created = last.iter().find(|decision| decision.stages.len() == 2).unwrap_or_else(|| panic!("{why}"));
        let revision = server.list("controllerrevisions").pop().unwrap()["metadata"]["name"].clone();
        let revision = revision.as_str().unwrap();
        assert_eq!(
            texts(&created.stages),
            [
                format!("create revision {revision} as number 1 (the template is new)"),
                "create on a [missing] (0 of 1 nodes available, 0 updated)".to_owned(),
            ],
        );
        let wrote: Vec<&str> = created.wrote.iter().map(|version| version.resource.as_str()).collect();
        assert_eq!(wrote, ["controllerrevisions.apps", "pods", "daemonsets.apps"], "{why}");
        assert_eq!(created.cause.as_ref().map(|cause| cause.resource.as_str()), Some("daemonsets.apps"));
        let of_node = running.why("/api/v1/nodes/a");
        assert_eq!(texts(&of_node.keys[0].now), ["nothing (0 of 2 DaemonSets are concerned)"]);
        assert_eq!(running.why(PATH).keys, why.keys);
        assert_eq!(server.requests(), requests, "asking asks nobody");
    });
}

#[test]
fn large_templates_are_rolled_out_with_a_revision_each_and_read_when_they_are_copied() {
    test(async {
        let server = Server::new();
        add_nodes(&server, &["n1", "n2"]);
        server.add(&daemon_set("web"));
        edit(&server, "template", enlarged(template("old")));
        let running = start(&server);
        run(&server, &running).await;
        edit(&server, "template", enlarged(template("new")));
        run(&server, &running).await;
        assert_eq!(history(&server), named(&[(1, "old"), (2, "new")]));
        assert_eq!(pods(&server), ["n1 new", "n2 new"]);
        let args: Vec<usize> = server.list("pods").iter().map(|pod| args_bytes(&pod["spec"])).collect();
        assert_eq!(args, [LARGE_BYTES; 2]);
        let reads = server.count("get daemonsets");
        edit(&server, "minReadySeconds", 1);
        server.delete("nodes", "n2");
        run(&server, &running).await;
        assert_eq!((server.count("get daemonsets"), server.keys("controllerrevisions").len()), (reads, 2));
    });
}
