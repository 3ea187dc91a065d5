//! What a new pod looks like. Upstream: `TestPodGenerateNameWithIndex`, `TestAddCompletionIndexEnvVariables`,
//! `indexed_job_utils_test.go`, and `TestCreatePodsWithControllerRefAndGenerateName`, `controller_utils_test.go`.

use job_operator::objects::Job;
use job_operator::plan::new_pod::{NewPods, pod_generate_name};
use job_operator::plan::scale::{IndexFailures, NewPod};
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, uid};

use crate::fixtures::{FINALIZER, indexed, job};

fn body(job: &ObjectBuilder, pod: NewPod) -> Value {
    let pods = NewPods::of(&job.build::<Job>()).ok().unwrap();
    serde_json::from_slice(&pods.body(pod)).unwrap()
}

fn with_template(job: ObjectBuilder) -> ObjectBuilder {
    let env = json!([{ "name": "A", "value": "1" }]);
    let own = json!([{ "name": "JOB_COMPLETION_INDEX", "value": "mine" }]);
    job.set(
        &["spec", "template"],
        json!({
            "metadata": { "name": "dropped", "labels": { "job": "pi" }, "annotations": { "a": "b" }, "finalizers": ["f"], "ownerReferences": [{}] },
            "spec": {
                "notKnownYet": { "x": 1.5 },
                "hostname": "overwritten",
                "initContainers": [{ "name": "init" }],
                "containers": [{ "name": "one", "env": env }, { "name": "two", "env": own }, { "name": "three", "env": null }],
            },
        }),
    )
}

#[test]
fn a_pod_without_index_is_the_templates() {
    let body = body(&with_template(job(1, 1)), NewPod::default());
    let template = with_template(job(1, 1));
    assert_eq!(body["spec"], template.json()["spec"]["template"]["spec"]);
    assert_eq!(
        body["metadata"],
        json!({
            "generateName": "pi-",
            "labels": { "job": "pi" },
            "annotations": { "a": "b" },
            "finalizers": ["f", FINALIZER],
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": "pi", "uid": uid("pi").to_string(), "controller": true, "blockOwnerDeletion": true,
            }],
        })
    );
}

#[test]
fn a_pod_with_index_is_told_its_index() {
    let pod = NewPod { index: Some(7), failures: Some(IndexFailures { counted: 2, ignored: 1 }) };
    let body = body(&with_template(indexed(1, 9)), pod);
    let metadata = &body["metadata"];
    assert_eq!(metadata["generateName"], "pi-7-");
    assert_eq!(metadata["labels"], json!({ "batch.kubernetes.io/job-completion-index": "7", "job": "pi" }));
    assert_eq!(
        metadata["annotations"],
        json!({
            "a": "b",
            "batch.kubernetes.io/job-completion-index": "7",
            "batch.kubernetes.io/job-index-failure-count": "2",
            "batch.kubernetes.io/job-index-ignored-failure-count": "1",
        })
    );
    let spec = &body["spec"];
    assert_eq!((&spec["hostname"], &spec["notKnownYet"]), (&json!("pi-7"), &json!({ "x": 1.5 })));
    let variable = json!({
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": { "fieldRef": { "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']" } },
    });
    assert_eq!(spec["initContainers"], json!([{ "name": "init", "env": [variable] }]));
    assert_eq!(spec["containers"][0]["env"], json!([{ "name": "A", "value": "1" }, variable]));
    assert_eq!(spec["containers"][1]["env"], json!([{ "name": "JOB_COMPLETION_INDEX", "value": "mine" }]));
    assert_eq!(spec["containers"][2]["env"], json!([variable]));
}

#[test]
fn failures_are_said_where_they_are_limited() {
    let annotations = |failures| {
        body(&indexed(1, 1), NewPod { index: Some(0), failures })["metadata"]["annotations"].as_object().unwrap().len()
    };
    assert_eq!(annotations(None), 1);
    assert_eq!(annotations(Some(IndexFailures::default())), 2);
    assert_eq!(annotations(Some(IndexFailures { counted: 0, ignored: 1 })), 3);
}

#[test]
fn a_template_without_labels_makes_no_pods() {
    let job = job(1, 1).set(&["spec", "template", "metadata"], json!({}));
    assert!(NewPods::of(&job.build::<Job>()).is_err());
}

#[test]
fn a_name_is_cut_and_its_index_is_not() {
    assert_eq!(pod_generate_name("indexed-job", 1), "indexed-job-1-");
    let long = "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh";
    assert_eq!(pod_generate_name(long, 1), format!("{}-1-", &long[..55]));
    assert_eq!(pod_generate_name(long, 12345).len(), 58);
}
