//! Executes a plan: creates, changes or deletes Endpoints, and records failures as events.
//!
//! Endpoints are changed by a merge patch with their uid and resourceVersion as preconditions: fields of other clients
//! stay, and a change since the decision makes the patch fail.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::json;
use shared::api::labels::Labels;
use shared::api::object::{Key, ObjectReference, ResourceVersion, Uid};
use shared::api::time::Time;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, KeyControl, Patch, Preconditions};
use shared::working::events::PlannedEvent;

use crate::objects::{ENDPOINTS, Subset, TRUNCATED, annotations, reasons};
use crate::observe::Observed;
use crate::plan::{Creation, Deletion, Plan, Update};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let key = &observed.key;
        let control = if let Some(service) = &observed.service {
            self.ctx.for_key(key, service.metadata.uid)
        } else {
            self.ctx.forget(key, None);
            self.ctx.for_name(key)
        };
        match plan {
            Plan::Nothing(_) => Ok(()),
            Plan::Create(creation) => self.create(control, key, creation).await,
            Plan::Update(update) => self.update(control, key, update).await,
            Plan::Delete(deletion) => delete(control, key, deletion).await,
        }
    }

    async fn create(&self, control: KeyControl<'_>, key: &Key, creation: Creation) -> anyhow::Result<()> {
        let Creation { labels, subsets, is_truncated, trigger, why: _ } = creation;
        let mut annotations = own_annotations(is_truncated, trigger);
        annotations.retain(|_, value| value.is_some());
        let body = json(&Body {
            api_version: ENDPOINTS.api_version(),
            kind: &ENDPOINTS.kind,
            metadata: BodyMetadata { name: key.name(), namespace: key.namespace(), labels, annotations },
            subsets: &subsets,
        });
        match control.create(&ENDPOINTS, key.namespace(), body).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_namespace_terminating() => Ok(()),
            Err(error) => {
                let message = format!("Failed to create endpoint for service {key}: {error}");
                self.warn(key, Uid::default(), ResourceVersion::default(), (reasons::FAILED_TO_CREATE, message));
                Err(error).context("cannot create Endpoints")
            }
        }
    }

    async fn update(&self, control: KeyControl<'_>, key: &Key, update: Update) -> anyhow::Result<()> {
        let Update { uid, resource_version, labels, subsets, is_truncated, trigger, why: _ } = update;
        let preconditions = Preconditions { uid, resource_version: Some(resource_version) };
        let patch = Patch::merge(&PatchBody {
            metadata: PatchMetadata { annotations: own_annotations(is_truncated, trigger), labels },
            subsets: subsets.as_deref(),
        });
        match control.patch(&ENDPOINTS, key, preconditions, patch).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let message = format!("Failed to update endpoint {key}: {error}");
                self.warn(key, uid, resource_version, (reasons::FAILED_TO_UPDATE, message));
                Err(error).context("cannot update Endpoints")
            }
        }
    }

    fn warn(&self, key: &Key, uid: Uid, resource_version: ResourceVersion, (reason, message): (&'static str, String)) {
        let about = ObjectReference { resource: ENDPOINTS, key: key.clone(), uid, resource_version };
        self.ctx.event(PlannedEvent::warning(about, reason, message));
    }
}

async fn delete(control: KeyControl<'_>, key: &Key, Deletion { uid }: Deletion) -> anyhow::Result<()> {
    let deleted = control.delete(&ENDPOINTS, key, &DeleteOptions::of(uid)).await;
    deleted.unless_gone().context("cannot delete Endpoints")?;
    Ok(())
}

/// The annotations of this controller; `None` removes one.
fn own_annotations(is_truncated: bool, trigger: Option<Time>) -> BTreeMap<&'static str, Option<String>> {
    let over_capacity = is_truncated.then(|| TRUNCATED.to_owned());
    let trigger = trigger.map(|time| time.to_string());
    [(annotations::OVER_CAPACITY, over_capacity), (annotations::TRIGGER_TIME, trigger)].into()
}

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
