//! Executes a plan: creates, changes and deletes Endpoints, and tells people of failures.
//!
//! Decides nothing. Endpoints are changed by a merge patch under the uid and resourceVersion it was decided on: what
//! others wrote there stays, and what they wrote since then makes it fail.
//! Left out: Endpoints that are gone when they are to be deleted are as good as deleted.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::json;
use shared::api::labels::Labels;
use shared::api::object::{Key, ObjectReference, ResourceVersion, Uid};
use shared::api::time::Time;
use shared::runtime::api_error::ApiError;
use shared::runtime::control::{Control, DeleteOptions, KeyControl, Patch, Preconditions};
use shared::runtime::events::{EventType, Recorder};

use crate::objects::{ENDPOINTS, Subset, TRUNCATED, annotations, reasons};
use crate::observe::Observed;
use crate::plan::{Creation, Deletion, Plan, Update};

/// Writes Endpoints.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
}

/// The result of executing a plan.
pub(crate) struct Outcome {
    /// The error.
    pub(crate) error: Option<anyhow::Error>,
}

impl Writer {
    /// Does what was planned.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let key = &observed.key;
        let control = if let Some(service) = &observed.service {
            self.control.for_key(key, service.metadata.uid)
        } else {
            self.control.forget(key, None);
            self.control.for_name(key)
        };
        let done = match plan {
            Plan::Nothing(_) => Ok(()),
            Plan::Create(creation) => self.create(control, key, creation).await,
            Plan::Update(update) => self.update(control, key, update).await,
            Plan::Delete(deletion) => delete(control, key, deletion).await,
        };
        Outcome { error: done.err() }
    }

    async fn create(&self, control: KeyControl<'_>, key: &Key, creation: Creation) -> anyhow::Result<()> {
        let Creation { labels, subsets, is_truncated, trigger, why: _ } = creation;
        let mut annotations = marks(is_truncated, trigger);
        annotations.retain(|_, value| value.is_some());
        let body = json(&Body {
            api_version: ENDPOINTS.api_version(),
            kind: &ENDPOINTS.kind,
            metadata: BodyMetadata { name: key.name(), namespace: key.namespace(), labels, annotations },
            subsets: &subsets,
        });
        match control.create(&ENDPOINTS, key.namespace(), body).await {
            Ok(_) => Ok(()),
            // Nothing can be created there ever again.
            Err(error) if error.is_namespace_terminating() => Ok(()),
            Err(error) => {
                let message = format!("Failed to create endpoint for service {key}: {error}");
                self.tell(key, Uid::default(), ResourceVersion::default(), (reasons::FAILED_TO_CREATE, message));
                Err(error).context("create the Endpoints")
            }
        }
    }

    async fn update(&self, control: KeyControl<'_>, key: &Key, update: Update) -> anyhow::Result<()> {
        let Update { uid, resource_version, labels, subsets, is_truncated, trigger, why: _ } = update;
        let preconditions = Preconditions { uid, resource_version: Some(resource_version) };
        let patch = Patch::merge(&PatchBody {
            metadata: PatchMetadata { annotations: marks(is_truncated, trigger), labels },
            subsets: subsets.as_deref(),
        });
        match control.patch(&ENDPOINTS, key, preconditions, patch).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let message = format!("Failed to update endpoint {key}: {error}");
                self.tell(key, uid, resource_version, (reasons::FAILED_TO_UPDATE, message));
                Err(error).context("change the Endpoints")
            }
        }
    }

    fn tell(&self, key: &Key, uid: Uid, resource_version: ResourceVersion, (reason, message): (&str, String)) {
        let about = ObjectReference { resource: ENDPOINTS, key: key.clone(), uid, resource_version };
        self.recorder.event(&about, EventType::Warning, reason, message);
    }
}

async fn delete(control: KeyControl<'_>, key: &Key, Deletion { uid }: Deletion) -> anyhow::Result<()> {
    let deleted: Result<(), ApiError> = control.delete(&ENDPOINTS, key, &DeleteOptions::of(uid)).await;
    match deleted {
        Err(error) if !error.is_not_found() => Err(error).context("delete the Endpoints"),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The annotations of this controller: none is a field that goes.
fn marks(is_truncated: bool, trigger: Option<Time>) -> BTreeMap<&'static str, Option<String>> {
    let over_capacity = is_truncated.then(|| TRUNCATED.to_owned());
    let trigger = trigger.map(|time| time.to_string());
    [(annotations::OVER_CAPACITY, over_capacity), (annotations::TRIGGER_TIME, trigger)].into()
}

/// New Endpoints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: String,
    kind: &'a str,
    metadata: BodyMetadata<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    subsets: &'a [Subset],
}

#[derive(Serialize)]
struct BodyMetadata<'a> {
    name: &'a str,
    namespace: &'a str,
    labels: Labels,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, Option<String>>,
}

/// The changed fields of Endpoints; `null` removes one.
#[derive(Serialize)]
struct PatchBody<'a> {
    metadata: PatchMetadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    subsets: Option<&'a [Subset]>,
}

#[derive(Serialize)]
struct PatchMetadata {
    annotations: BTreeMap<&'static str, Option<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<Text, Option<Text>>,
}
