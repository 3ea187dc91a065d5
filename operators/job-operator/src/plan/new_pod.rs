//! The JSON of a Job's new pod: the template's, with the tracking finalizer and, for an Indexed Job, the index.
//! The template stays raw JSON; only upstream's changes are inserted.
//! Upstream: `manageJob`, `pkg/controller/job/job_controller.go`, and `GetPodFromTemplate`,
//! `pkg/controller/controller_utils.go`.

use std::borrow::Cow;
use std::sync::OnceLock;

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;
use shared::api::json;
use shared::api::labels::Labels;
use shared::api::names::pod_name_prefix;
use shared::api::object::Kind;
use shared::api::owner::{Owner, OwnerReference};
use shared::api::pod::creation::NoLabels;
use shared::api::raw::{RawObject, raw_of};

use crate::objects::{
    JOB_COMPLETION_INDEX, JOB_COMPLETION_INDEX_ENV, JOB_INDEX_FAILURE_COUNT, JOB_INDEX_IGNORED_FAILURE_COUNT,
    JOB_TRACKING_FINALIZER, Job,
};

/// The longest generateName that leaves room for the suffix.
const GENERATE_NAME_MAX_LENGTH: usize = 58;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewPod {
    pub index: Option<i32>,
    /// The earlier failures of its index, if they are limited.
    pub failures: Option<IndexFailures>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFailures {
    pub counted: i32,
    pub ignored: i32,
}

/// Why a Job's template is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// It has no labels, so no selector finds its pods.
    #[error(transparent)]
    NoLabels(#[from] NoLabels),
    #[error("unable to create pods, the template has no spec")]
    NoSpec,
    /// The cache has no room for it, and it was not read yet.
    #[error("unable to create pods, the template was not read")]
    NotRead,
    /// A field does not decode.
    #[error("unable to create pods, cannot read {field} of the template: {error}")]
    Unreadable { field: &'static str, error: String },
}

/// The parts that all new pods of a Job share, borrowed from its template.
pub struct NewPods<'a> {
    owner: Owner,
    labels: Labels,
    annotations: RawObject<'a>,
    finalizers: Vec<Cow<'a, RawValue>>,
    spec: RawObject<'a>,
    /// The body of a pod without an index.
    alike: OnceLock<Bytes>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    spec: &'a RawObject<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    generate_name: String,
    labels: Labels,
    #[serde(skip_serializing_if = "RawObject::is_empty")]
    annotations: &'a RawObject<'a>,
    finalizers: &'a [Cow<'a, RawValue>],
    owner_references: [OwnerReference<'a>; 1],
}

impl<'a> NewPods<'a> {
    pub fn of(job: &'a Job) -> Result<Self, InvalidTemplate> {
        let template = &job.spec.template;
        if template.left_out() > 0 {
            return Err(InvalidTemplate::NotRead);
        }
        let labels = template.labels();
        if labels.is_empty() {
            return Err(NoLabels.into());
        }
        let annotations = template.annotations().map_or_else(|| Ok(RawObject::default()), RawObject::parse);
        let mut spec = RawObject::parse(template.spec().ok_or(InvalidTemplate::NoSpec)?).map_err(unreadable("spec"))?;
        if job.is_indexed() {
            add_completion_index_env(&mut spec)?;
        }
        Ok(Self {
            owner: job.owner(),
            labels,
            annotations: annotations.map_err(unreadable("metadata.annotations"))?,
            finalizers: finalizers(template.finalizers()).map_err(unreadable("metadata.finalizers"))?,
            spec,
            alike: OnceLock::new(),
        })
    }

    pub fn body(&self, pod: NewPod) -> Bytes {
        let NewPod { index, failures } = pod;
        let name = self.owner.key.name();
        let Some(index) = index else {
            let alike = || self.json(pod_name_prefix(name), self.labels.clone(), &self.annotations, &self.spec);
            return self.alike.get_or_init(alike).clone();
        };
        let number = index.to_string();
        let mut annotations = self.annotations.borrowed();
        annotations.insert(JOB_COMPLETION_INDEX, raw_of(&number));
        if let Some(IndexFailures { counted, ignored }) = failures {
            annotations.insert(JOB_INDEX_FAILURE_COUNT, raw_of(&counted.to_string()));
            if ignored > 0 {
                annotations.insert(JOB_INDEX_IGNORED_FAILURE_COUNT, raw_of(&ignored.to_string()));
            }
        }
        let mut spec = self.spec.borrowed();
        spec.replace("hostname", raw_of(&format!("{name}-{index}")));
        let labels = self.labels.with(JOB_COMPLETION_INDEX, &number);
        self.json(pod_generate_name(name, index), labels, &annotations, &spec)
    }

    fn json(&self, generate_name: String, labels: Labels, annotations: &RawObject<'_>, spec: &RawObject<'_>) -> Bytes {
        let owner_references = [self.owner.controller_ref()];
        let metadata = Metadata { generate_name, labels, annotations, finalizers: &self.finalizers, owner_references };
        json(&Body { api_version: "v1", kind: "Pod", metadata, spec })
    }
}

impl Serialize for InvalidTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn unreadable(field: &'static str) -> impl Fn(serde_json::Error) -> InvalidTemplate {
    move |error| InvalidTemplate::Unreadable { field, error: error.to_string() }
}

fn finalizers(served: Option<&RawValue>) -> serde_json::Result<Vec<Cow<'_, RawValue>>> {
    let served: Vec<&RawValue> = served.map_or_else(|| Ok(Vec::new()), |json| serde_json::from_str(json.get()))?;
    let mut is_tracked = false;
    for finalizer in &served {
        is_tracked |= serde_json::from_str::<Cow<'_, str>>(finalizer.get())? == JOB_TRACKING_FINALIZER;
    }
    let ours = (!is_tracked).then(|| Cow::Owned(raw_of(&JOB_TRACKING_FINALIZER)));
    Ok(served.into_iter().map(Cow::Borrowed).chain(ours).collect())
}

/// `name-index-`, with the name truncated if it is too long.
///
/// Upstream: `podGenerateNameWithIndex`, `pkg/controller/job/indexed_job_utils.go`.
pub fn pod_generate_name(name: &str, index: i32) -> String {
    let suffix = format!("-{index}-");
    let room = GENERATE_NAME_MAX_LENGTH.saturating_sub(suffix.len());
    let cut = name.floor_char_boundary(room.min(name.len()));
    format!("{}{suffix}", &name[..cut])
}

/// Adds the variable to every container without one of that name.
///
/// Upstream: `addCompletionIndexEnvVariables`, `pkg/controller/job/indexed_job_utils.go`.
fn add_completion_index_env(spec: &mut RawObject<'_>) -> Result<(), InvalidTemplate> {
    let field_path = format!("metadata.labels['{JOB_COMPLETION_INDEX}']");
    let variable =
        raw_of(&json!({ "name": JOB_COMPLETION_INDEX_ENV, "valueFrom": { "fieldRef": { "fieldPath": field_path } } }));
    for (list, field) in [("initContainers", "spec.initContainers"), ("containers", "spec.containers")] {
        let edited = spec.get(list).map(|containers| with_variable(containers, &variable));
        if let Some(containers) = edited.transpose().map_err(unreadable(field))? {
            spec.replace(list, containers);
        }
    }
    Ok(())
}

fn with_variable(containers: &RawValue, variable: &RawValue) -> serde_json::Result<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Variable<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    let Some(mut containers) = serde_json::from_str::<Option<Vec<RawObject<'_>>>>(containers.get())? else {
        return Ok(containers.to_owned());
    };
    for container in &mut containers {
        let env = container.get("env").map_or("null", RawValue::get).to_owned();
        let mut env = serde_json::from_str::<Option<Vec<&RawValue>>>(&env)?.unwrap_or_default();
        let mut is_known = false;
        for known in &env {
            is_known |= serde_json::from_str::<Variable<'_>>(known.get())?.name == JOB_COMPLETION_INDEX_ENV;
        }
        if !is_known {
            env.push(variable);
            container.replace("env", raw_of(&env));
        }
    }
    Ok(raw_of(&containers))
}
