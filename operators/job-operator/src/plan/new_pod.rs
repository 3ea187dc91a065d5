//! The JSON of a Job's new pod: the template's, with the tracking finalizer and, of an Indexed Job, all that tells a pod
//! its index.
//!
//! Left out: what the apiserver adds to the template itself: the labels by which a Job's pods are found.
//!
//! Upstream: `manageJob`, `pkg/controller/job/job_controller.go`, and `GetPodFromTemplate`,
//! `pkg/controller/controller_utils.go`.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::api::json;
use shared::api::labels::Labels;
use shared::api::names::pod_name_prefix;
use shared::api::owner::{Owner, OwnerReference};
use shared::api::pod::creation::NoLabels;

use super::scale::{IndexFailures, NewPod};
use crate::objects::{
    JOB_COMPLETION_INDEX, JOB_COMPLETION_INDEX_ENV, JOB_INDEX_FAILURE_COUNT, JOB_INDEX_IGNORED_FAILURE_COUNT,
    JOB_TRACKING_FINALIZER, Job,
};

/// The longest generateName that leaves room for the suffix.
const GENERATE_NAME_MAX_LENGTH: usize = 58;

/// What all new pods of a Job have in common.
pub struct NewPods {
    owner: Owner,
    labels: Labels,
    annotations: BTreeMap<String, String>,
    finalizers: Vec<String>,
    spec: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    spec: &'a Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    generate_name: String,
    labels: Labels,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    finalizers: &'a [String],
    owner_references: [OwnerReference<'a>; 1],
}

impl NewPods {
    /// Reads the Job's template.
    pub fn of(job: &Job) -> Result<Self, NoLabels> {
        let template = &job.spec.template;
        let labels = template.labels();
        if labels.is_empty() {
            return Err(NoLabels);
        }
        let text = |json: Option<&serde_json::value::RawValue>| json.map_or("null", |json| json.get()).to_owned();
        let mut finalizers: Vec<String> = read(&text(template.finalizers()));
        if !finalizers.iter().any(|finalizer| finalizer == JOB_TRACKING_FINALIZER) {
            finalizers.push(JOB_TRACKING_FINALIZER.to_owned());
        }
        let mut spec: Map<String, Value> = read(&text(template.spec()));
        if job.is_indexed() {
            add_completion_index_env(&mut spec);
        }
        Ok(Self { owner: job.owner(), labels, annotations: read(&text(template.annotations())), finalizers, spec })
    }

    /// The request's body for one of them.
    pub fn body(&self, pod: NewPod) -> Bytes {
        let NewPod { index, failures } = pod;
        let name = self.owner.key.name();
        let (mut labels, mut annotations) = (self.labels.clone(), self.annotations.clone());
        let mut indexed_spec = None;
        if let Some(index) = index {
            let number = index.to_string();
            labels = labels.with(JOB_COMPLETION_INDEX, &number);
            annotations.insert(JOB_COMPLETION_INDEX.to_owned(), number);
            let spec = indexed_spec.insert(self.spec.clone());
            spec.insert("hostname".to_owned(), Value::String(format!("{name}-{index}")));
        }
        if let Some(IndexFailures { counted, ignored }) = failures {
            annotations.insert(JOB_INDEX_FAILURE_COUNT.to_owned(), counted.to_string());
            if ignored > 0 {
                annotations.insert(JOB_INDEX_IGNORED_FAILURE_COUNT.to_owned(), ignored.to_string());
            }
        }
        let generate_name = index.map_or_else(|| pod_name_prefix(name), |index| pod_generate_name(name, index));
        let metadata = Metadata {
            generate_name,
            labels,
            annotations,
            finalizers: &self.finalizers,
            owner_references: [self.owner.controller_ref()],
        };
        let spec = indexed_spec.as_ref().unwrap_or(&self.spec);
        json(&Body { api_version: "v1", kind: "Pod", metadata, spec })
    }
}

/// What is absent, or not what the API says it is, is as good as empty.
fn read<T: Default + serde::de::DeserializeOwned>(json: &str) -> T {
    serde_json::from_str::<Option<T>>(json).ok().flatten().unwrap_or_default()
}

/// `name-index-`, the name cut where that were too long.
///
/// Upstream: `podGenerateNameWithIndex`, `pkg/controller/job/indexed_job_utils.go`.
pub fn pod_generate_name(name: &str, index: i32) -> String {
    let suffix = format!("-{index}-");
    let room = GENERATE_NAME_MAX_LENGTH.saturating_sub(suffix.len());
    let cut = name.floor_char_boundary(room.min(name.len()));
    format!("{}{suffix}", &name[..cut])
}

/// Gives every container the variable, unless it has one of that name.
///
/// Upstream: `addCompletionIndexEnvVariables`, `pkg/controller/job/indexed_job_utils.go`.
fn add_completion_index_env(spec: &mut Map<String, Value>) {
    let field_path = format!("metadata.labels['{JOB_COMPLETION_INDEX}']");
    let variable =
        json!({ "name": JOB_COMPLETION_INDEX_ENV, "valueFrom": { "fieldRef": { "fieldPath": field_path } } });
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            let env = container.entry("env").or_insert_with(|| Value::Array(Vec::new()));
            if env.is_null() {
                *env = Value::Array(Vec::new());
            }
            let Some(env) = env.as_array_mut() else { continue };
            if !env.iter().any(|known| known["name"] == JOB_COMPLETION_INDEX_ENV) {
                env.push(variable.clone());
            }
        }
    }
}
