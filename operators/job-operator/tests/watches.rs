//! Which pods the operator follows, and what becomes of those that no watch shows: the operator as it is, against an
//! apiserver in the test's process.

use std::time::Duration;

use job_operator::controller::JobOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::the_first_one_waits;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object, pod, uid};

const LABEL: &str = "batch.kubernetes.io/controller-uid";
const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const BATCH: Duration = Duration::from_secs(3);

fn start(server: &Server) -> Running {
    Running::start::<JobOperator>(server, &[])
}

fn add_selecting(server: &Server, name: &str, pods: i32, selector: &Value, labels: &Value) {
    let template = json!({ "metadata": { "labels": labels }, "spec": { "restartPolicy": "Never", "containers": [] } });
    let spec = json!({
        "parallelism": pods, "completions": pods, "backoffLimit": 6,
        "selector": { "matchLabels": selector }, "template": template,
    });
    server.add(&object("batch/v1", "Job", name).set(&["spec"], spec));
}

/// A Job as the apiserver completes it.
fn add(server: &Server, name: &str, pods: i32) {
    let labels = json!({ LABEL: uid(name).to_string() });
    add_selecting(server, name, pods, &labels, &labels);
}

/// A Job with a selector of its user's.
fn add_manual(server: &Server, name: &str, pods: i32) {
    let labels = json!({ "job": name });
    add_selecting(server, name, pods, &labels, &labels);
}

/// A running pod that this Job tracks, with these labels.
fn pod_of(job: &str, name: &str, labels: &Value) -> ObjectBuilder {
    let owner = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid(job).to_string(), "controller": true,
    }]);
    let metadata = pod(name).phase("Running").set(&["metadata", "ownerReferences"], owner);
    metadata.set(&["metadata", "finalizers"], json!([FINALIZER])).set(&["metadata", "labels"], labels.clone())
}

fn metadata(server: &Server, pod: &str) -> Value {
    server.get("pods", pod).unwrap_or_default()["metadata"].clone()
}

fn is_let_go(server: &Server, pod: &str) -> bool {
    let metadata = metadata(server, pod);
    metadata.is_object() && metadata["finalizers"].as_array().is_none_or(Vec::is_empty)
}

fn is_released(server: &Server, pod: &str) -> bool {
    let has_no_owner = metadata(server, pod)["ownerReferences"].as_array().is_none_or(Vec::is_empty);
    has_no_owner && is_let_go(server, pod)
}

fn strip(server: &Server, pod: &str) {
    server.change("pods", pod, take_label);
}

fn take_label(pod: &mut Value) {
    if let Some(labels) = pod["metadata"]["labels"].as_object_mut() {
        labels.remove(LABEL);
    }
}

fn succeeded(server: &Server, job: &str) -> (i64, bool) {
    let status = server.get("jobs", &format!("default/{job}")).unwrap_or_default()["status"].clone();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    (status["succeeded"].as_i64().unwrap_or_default(), conditions.iter().any(|one| one["type"] == "Complete"))
}

/// Everything that waits runs, and then all that runs succeeds.
async fn succeed(server: &Server, running: &Running) {
    server.run_pods();
    running.pass(BATCH).await;
    server.end_pods("Succeeded");
    running.pass(BATCH).await;
}

/// Requests for many pods that are no writes.
fn reads_of_pods(server: &Server) -> Vec<String> {
    let requests = server.requests();
    requests.into_iter().filter(|line| line.starts_with("list pods") || line.starts_with("watch pods")).collect()
}

#[test]
fn pods_are_followed_only_while_a_job_counts_them() {
    test(async {
        let server = Server::new();
        server.add(&pod("other").namespace("elsewhere"));
        let running = start(&server);
        running.pass(Duration::from_mins(30)).await;
        assert_eq!(reads_of_pods(&server), ["list pods"], "only what was left behind is looked for");
        for name in ["pi", "e"] {
            let before = reads_of_pods(&server).len();
            add(&server, name, 2);
            running.at_rest().await;
            assert_eq!(reads_of_pods(&server)[before..], ["list pods", "watch pods"]);
            succeed(&server, &running).await;
            assert_eq!(succeeded(&server, name), (2, true));
            running.pass(Duration::from_mins(30)).await;
            let after = reads_of_pods(&server).len();
            running.pass(Duration::from_mins(30)).await;
            assert_eq!(reads_of_pods(&server).len(), after, "nobody needs them any more");
        }
        assert_eq!((server.count("create pods"), server.count("get pods")), (4, 0));
    });
}

#[test]
fn the_first_job_waits_for_its_pods_however_they_come() {
    let first = |server: &Server| {
        server.add(&pod("pi-a").label(LABEL, &uid("pi").to_string()));
        add(server, "pi", 2);
    };
    let then = |server: &Server| {
        assert_eq!(server.keys("pods").len(), 2);
        assert_eq!(server.count("create pods"), 1, "one was there to be adopted");
    };
    test(the_first_one_waits::<JobOperator>(&[], "pods", first, then));
}

#[test]
fn a_slow_first_list_and_a_watch_that_breaks_make_no_pod_too_many() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        running.at_rest().await;
        let slow = server.on("list", "pods").hold().once();
        add(&server, "pi", 2);
        slow.arrived().await;
        server.add(&pod("pi-a").label(LABEL, &uid("pi").to_string()));
        running.pass(Duration::from_secs(30)).await;
        assert_eq!(server.writes(), [""; 0]);
        slow.release();
        running.at_rest().await;
        server.cut_watches("pods");
        succeed(&server, &running).await;
        server.hold_watches("pods");
        server.expire_watches("pods");
        add(&server, "e", 2);
        running.pass(BATCH).await;
        server.release_watches("pods");
        succeed(&server, &running).await;
        assert_eq!((succeeded(&server, "pi"), succeeded(&server, "e")), ((2, true), (2, true)));
        assert_eq!((server.count("create pods"), server.count("delete pods")), (3, 0));
    });
}

#[test]
fn a_job_that_selects_other_labels_adopts_a_pod_without_this_one() {
    test(async {
        let server = Server::new();
        server.add(&pod("stray").label("job", "pi"));
        let running = start(&server);
        running.at_rest().await;
        add_manual(&server, "pi", 2);
        running.at_rest().await;
        assert!(reads_of_pods(&server).contains(&"list pods default/".to_owned()));
        assert_eq!(metadata(&server, "default/stray")["finalizers"], json!([FINALIZER]));
        succeed(&server, &running).await;
        assert_eq!((succeeded(&server, "pi"), server.count("create pods")), ((2, true), 1));
    });
}

#[test]
fn jobs_of_both_forms_in_one_namespace_count_each_pod_once() {
    test(async {
        let life = [
            Do(|server| add(server, "pi", 2)),
            Do(|server| add_manual(server, "e", 3)),
            Do(Server::run_pods),
            Pass(BATCH),
            Do(|server| server.end_pods("Succeeded")),
            Pass(BATCH),
        ];
        let server = survives_kills::<JobOperator>(&[], &life).await;
        assert_eq!((succeeded(&server, "pi"), succeeded(&server, "e")), ((2, true), (3, true)));
        assert_eq!((server.count("create pods"), server.count("get pods")), (5, 0));
    });
}

#[test]
fn a_pod_that_loses_its_label_is_released_and_replaced_whenever_the_operator_is_killed() {
    test(async {
        let life = [
            Do(|server| add(server, "pi", 1)),
            Do(Server::run_pods),
            Do(|server| strip(server, &server.keys("pods")[0])),
            Pass(BATCH),
            Do(Server::run_pods),
            Pass(BATCH),
        ];
        let server = survives_kills::<JobOperator>(&[], &life).await;
        let (released, kept): (Vec<_>, Vec<_>) =
            server.keys("pods").into_iter().partition(|pod| is_released(&server, pod));
        assert_eq!((released.len(), kept.len(), server.count("get pods")), (1, 1, 1));
        assert!(metadata(&server, &released[0])["labels"].get(LABEL).is_none());
    });
}

#[test]
fn a_label_that_is_taken_while_nobody_looks_is_found_out_at_the_next_start() {
    test(async {
        let server = Server::new();
        add(&server, "pi", 1);
        let running = start(&server);
        running.at_rest().await;
        drop(running);
        let stripped = server.keys("pods")[0].clone();
        strip(&server, &stripped);
        let running = start(&server);
        running.pass(BATCH).await;
        assert!(is_released(&server, &stripped));
        assert_eq!(server.count("create pods"), 2);
    });
}

#[test]
fn a_question_that_fails_is_asked_again_and_its_job_goes_on() {
    test(async {
        let server = Server::new();
        add(&server, "pi", 1);
        let running = start(&server);
        running.at_rest().await;
        let refused = server.on("get", "pods").answer(500, "InternalError", "no").times(3);
        let stripped = server.keys("pods")[0].clone();
        strip(&server, &stripped);
        running.pass(Duration::from_millis(1500)).await;
        assert_eq!((server.count("create pods"), is_let_go(&server, &stripped)), (2, false));
        running.pass(Duration::from_secs(30)).await;
        assert_eq!((refused.count(), is_released(&server, &stripped)), (3, true));
        assert_eq!(server.count("create pods"), 2);
    });
}

#[test]
fn a_pod_that_misses_in_a_new_list_is_asked_for() {
    test(async {
        let server = Server::new();
        add(&server, "pi", 1);
        let running = start(&server);
        running.at_rest().await;
        server.hold_watches("pods");
        let stripped = server.keys("pods")[0].clone();
        strip(&server, &stripped);
        server.expire_watches("pods");
        server.release_watches("pods");
        running.pass(BATCH).await;
        assert_eq!((is_released(&server, &stripped), server.count("create pods")), (true, 2));
    });
}

#[test]
fn pods_from_which_a_webhook_takes_the_label_are_released_and_not_waited_for() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        running.at_rest().await;
        server.on("create", "pods").change(take_label).times(2);
        add(&server, "pi", 1);
        running.pass(Duration::from_secs(10)).await;
        let released: Vec<_> = server.keys("pods").into_iter().filter(|pod| is_released(&server, pod)).collect();
        assert_eq!((released.len(), server.count("create pods")), (2, 3));
        succeed(&server, &running).await;
        assert_eq!((succeeded(&server, "pi"), server.count("create pods")), ((1, true), 3));
    });
}

#[test]
fn a_job_that_does_not_select_the_label_does_not_mind_that_a_webhook_takes_it() {
    test(async {
        let server = Server::new();
        server.on("create", "pods").change(take_label);
        let running = start(&server);
        running.at_rest().await;
        let labels = json!({ "job": "pi", LABEL: uid("pi").to_string() });
        add_selecting(&server, "pi", 3, &json!({ "job": "pi" }), &labels);
        running.pass(BATCH).await;
        succeed(&server, &running).await;
        assert_eq!((succeeded(&server, "pi"), server.count("create pods")), ((3, true), 3));
    });
}

#[test]
fn finalizers_of_jobs_that_are_gone_or_over_are_found_at_start() {
    test(async {
        let server = Server::new();
        add_manual(&server, "over", 1);
        server.change("jobs", "default/over", |job| {
            job["status"] = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
        });
        add_manual(&server, "theirs", 1);
        server.change("jobs", "default/theirs", |job| job["spec"]["managedBy"] = "example.com/x".into());
        let label = |name: &str| json!({ LABEL: uid(name).to_string() });
        server.add(&pod_of("gone", "labelled", &label("gone")));
        server.add(&pod_of("gone", "stripped", &json!({})));
        server.add(&pod_of("over", "done", &label("over")));
        server.add(&pod_of("theirs", "kept", &label("theirs")));
        let refused = server.on("list", "pods").answer(500, "InternalError", "no").times(2);
        let running = start(&server);
        running.pass(Duration::from_secs(10)).await;
        let held: Vec<_> = server.keys("pods").into_iter().filter(|pod| !is_let_go(&server, pod)).collect();
        assert_eq!(held, ["default/kept"]);
        assert_eq!((refused.count(), server.count("watch pods"), server.writes().len()), (2, 0, 3));
    });
}

#[test]
fn finalizers_go_with_a_job_that_is_deleted_even_where_the_label_went_before() {
    test(async {
        let server = Server::new();
        add(&server, "pi", 2);
        let running = start(&server);
        running.at_rest().await;
        server.run_pods();
        running.at_rest().await;
        strip(&server, &server.keys("pods")[0]);
        server.delete("jobs", "default/pi");
        running.at_rest().await;
        let keys = server.keys("pods");
        assert!(keys.iter().all(|pod| is_let_go(&server, pod)), "{:?}", server.writes());
        assert_eq!(keys.len(), 2);
    });
}
