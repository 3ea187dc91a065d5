//! The fields of a new pod. Upstream: `TestPodGenerateNameWithIndex`, `TestAddCompletionIndexEnvVariables`,
//! `indexed_job_utils_test.go`, and `TestCreatePodsWithControllerRefAndGenerateName`, `controller_utils_test.go`.

use job_operator::objects::Job;
use job_operator::plan::new_pod::{IndexFailures, NewPod, NewPods, pod_generate_name};
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, uid};

use crate::fixtures::{FINALIZER, case, check, indexed, job, pod};

fn body(job: &ObjectBuilder, pod: NewPod) -> Value {
    serde_json::from_str(&text(&job.build(), pod)).unwrap()
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

/// A Job whose template is this text: [`ObjectBuilder`] would read it and write it again.
fn job_of(template: &str, mode: &str) -> Job {
    let job = format!(
        r#"{{"metadata":{{"name":"pi","namespace":"default","uid":"{}"}},"spec":{{"completionMode":"{mode}","completions":9,"template":{template}}}}}"#,
        uid("pi")
    );
    serde_json::from_str(&job).unwrap()
}

fn text(job: &Job, pod: NewPod) -> String {
    String::from_utf8(NewPods::of(job).ok().unwrap().body(pod).to_vec()).unwrap()
}

const INDEXED: NewPod = NewPod { index: Some(7), failures: None };
const VARIABLE: &str = r#"{"name":"JOB_COMPLETION_INDEX","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['batch.kubernetes.io/job-completion-index']"}}}"#;

/// Rows of a pod's spec as the template has it, and as the pod of index 7 gets it.
#[test]
fn every_byte_of_the_spec_survives_but_for_what_is_spliced_in() {
    let lines = "{\"a\":\"\u{2028}\u{2029}\"}";
    let lines_told = "{HOST,\"a\":\"\u{2028}\u{2029}\"}";
    for (spec, told) in [
        (
            r#"{"a":1e400,"b":12345678901234567890,"c":-0.0,"d":1.50}"#,
            r#"{HOST,"a":1e400,"b":12345678901234567890,"c":-0.0,"d":1.50}"#,
        ),
        (r#"{"a":"\u003c&\u2028\/<>\ud800"}"#, r#"{HOST,"a":"\u003c&\u2028\/<>\ud800"}"#),
        (lines, lines_told),
        (r#"{"z":[ 1 , 2 ],"a":{ "y":0, "b":0 }}"#, r#"{HOST,"z":[ 1 , 2 ],"a":{ "y":0, "b":0 }}"#),
        (r#"{"a":1,"b":{"c":1,"c":2},"a":2}"#, r#"{HOST,"a":1,"b":{"c":1,"c":2},"a":2}"#),
        (r#"{"a":1,"hostname":"x","b":2,"hostname":"y"}"#, r#"{"a":1,HOST,"b":2}"#),
        (
            r#"{"new":0,"containers":[{"name":"c","new":1e400}],"x":0}"#,
            r#"{HOST,"new":0,"containers":[{"env":[VARIABLE],"name":"c","new":1e400}],"x":0}"#,
        ),
        (
            r#"{"initContainers":[{"name":"c","env":[{"name":"\u0041","new":1e400}],"x":0}]}"#,
            r#"{HOST,"initContainers":[{"name":"c","env":[{"name":"\u0041","new":1e400},VARIABLE],"x":0}]}"#,
        ),
        (
            r#"{"containers":[{"env":[{"name":"JOB_COMPLETION_\u0049NDEX","value":"1"}]}]}"#,
            r#"{HOST,"containers":[{"env":[{"name":"JOB_COMPLETION_\u0049NDEX","value":"1"}]}]}"#,
        ),
        (r#"{"containers":null,"initContainers":[]}"#, r#"{HOST,"containers":null,"initContainers":[]}"#),
    ] {
        let template = format!(r#"{{"metadata":{{"labels":{{"job":"pi"}}}},"spec":{spec}}}"#);
        let alike = text(&job_of(&template, "NonIndexed"), NewPod::default());
        assert!(alike.ends_with(&format!(r#","spec":{spec}}}"#)), "{alike}");
        let told = told.replace("HOST", r#""hostname":"pi-7""#).replace("VARIABLE", VARIABLE);
        let indexed = text(&job_of(&template, "Indexed"), INDEXED);
        assert!(indexed.ends_with(&format!(r#","spec":{told}}}"#)), "{indexed}\n{told}");
    }
}

#[test]
fn annotations_and_finalizers_stay_as_they_are_served() {
    let annotations = r#""a":"\u003c\ud800","c":"\u2028""#;
    let template = |finalizers: &str| {
        format!(
            r#"{{"metadata":{{"labels":{{"job":"pi"}},"annotations":{{{annotations}}},"finalizers":{finalizers}}},"spec":{{}}}}"#
        )
    };
    let other = template(r#"["\u0066"]"#);
    let alike = text(&job_of(&other, "NonIndexed"), NewPod::default());
    let both = format!(r#""annotations":{{{annotations}}},"finalizers":["\u0066","{FINALIZER}"]"#);
    assert!(alike.contains(&both), "{alike}");
    let indexed = text(&job_of(&other, "Indexed"), INDEXED);
    let told = annotations.replace(r#","c""#, r#","batch.kubernetes.io/job-completion-index":"7","c""#);
    assert!(indexed.contains(&format!(r#""annotations":{{{told}}}"#)), "{indexed}");
    let tracked = format!(r#"["{FINALIZER}","x"]"#);
    let alike = text(&job_of(&template(&tracked), "NonIndexed"), NewPod::default());
    assert!(alike.contains(&format!(r#""finalizers":{tracked}"#)), "{alike}");
}

#[test]
fn pods_without_index_share_one_body() {
    let job = job_of(r#"{"metadata":{"labels":{"job":"pi"}},"spec":{}}"#, "NonIndexed");
    let pods = NewPods::of(&job).ok().unwrap();
    assert_eq!(pods.body(NewPod::default()).as_ptr(), pods.body(NewPod::default()).as_ptr());
}

/// Rows of what cannot be read, and what is said of it.
#[test]
fn a_template_that_cannot_be_read_makes_no_pods_and_says_why() {
    let template =
        |metadata: &str, spec: &str| format!(r#"{{"metadata":{{"labels":{{"job":"pi"}}{metadata}}},"spec":{spec}}}"#);
    for (template, said) in [
        ("null".to_owned(), "no labels"),
        (template("", "null"), "the template has no spec"),
        (template("", "[]"), "cannot read spec of the template"),
        (template(r#","annotations":1"#, "{}"), "cannot read metadata.annotations of the template"),
        (template(r#","finalizers":[1]"#, "{}"), "cannot read metadata.finalizers of the template"),
        (template("", r#"{"containers":[1]}"#), "cannot read spec.containers of the template"),
        (template("", r#"{"initContainers":[{"env":[1]}]}"#), "cannot read spec.initContainers of the template"),
    ] {
        let invalid = NewPods::of(&job_of(&template, "Indexed")).err().unwrap().to_string();
        assert!(invalid.starts_with("unable to create pods, ") && invalid.contains(said), "{template}: {invalid}");
    }
}

#[test]
fn a_template_is_read_only_where_pods_are_missing() {
    let empty = |job: ObjectBuilder| job.set(&["spec", "template", "spec"], Value::Null);
    check([
        (
            "one is missing",
            case(empty(job(2, 2)), [pod("a", "Running")]),
            "nothing (unable to create pods, the template has no spec)\nsaid: active 1",
        ),
        ("none is missing", case(empty(job(1, 1)), [pod("a", "Running")]), "nothing (1 of 1 active)\nsaid: active 1"),
    ]);
}

#[test]
fn a_name_is_cut_and_its_index_is_not() {
    assert_eq!(pod_generate_name("indexed-job", 1), "indexed-job-1-");
    let long = "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh";
    assert_eq!(pod_generate_name(long, 1), format!("{}-1-", &long[..55]));
    assert_eq!(pod_generate_name(long, 12345).len(), 58);
}
