//! The writes of a history: a revision is created, renumbered, labelled, or deleted.
//!
//! Left out: adoption and release, which are [`KeyControl::claim`]'s, and any decision.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{ControllerRevision, NewRevision};
use crate::api::json;
use crate::api::labels::Labels;
use crate::api::object::Key;
use crate::api::owner::{Owner, OwnerReference};
use crate::api::resource::CONTROLLER_REVISIONS;
use crate::transport::api_error::ApiError;
use crate::working::control::{DeleteOptions, KeyControl, Patch, Preconditions};

#[derive(Clone, Debug, PartialEq)]
pub enum Creation {
    /// There is a revision of this name with these data: it was made now, or had been there.
    Made(Arc<ControllerRevision>),
    Taken,
}

/// Creates a revision. One of the same name and the same data is as good, whoever owns it: the caches were late.
///
/// Upstream: one round of `CreateControllerRevision`, `pkg/controller/history/controller_history.go`.
pub async fn create(
    control: KeyControl<'_>,
    owner: &Owner,
    annotations: Option<&RawValue>,
    new: &NewRevision,
) -> Result<Creation, ApiError> {
    let namespace = owner.key.namespace();
    let NewRevision { name, labels: _, data, revision } = new;
    let fingerprint = data.fingerprint();
    match control.create(&CONTROLLER_REVISIONS, namespace, json(&Body::new(owner, annotations, new))).await {
        Ok(written) => {
            let made = ControllerRevision { metadata: written.metadata, revision: *revision, data: fingerprint };
            Ok(Creation::Made(Arc::new(made)))
        }
        Err(error) if error.is_already_exists() => {
            let found: ControllerRevision = control.get(&CONTROLLER_REVISIONS, &Key::new(namespace, name)).await?;
            let is_same = found.data.exact == fingerprint.exact;
            Ok(if is_same { Creation::Made(Arc::new(found)) } else { Creation::Taken })
        }
        Err(error) => Err(error),
    }
}

/// Gives a revision another place in the history. Its data cannot change.
///
/// Upstream: `UpdateControllerRevision`, `controller_history.go`.
pub async fn renumber(control: KeyControl<'_>, revision: &ControllerRevision, to: i64) -> Result<(), ApiError> {
    #[derive(Serialize)]
    struct Number {
        revision: i64,
    }
    let meta = &revision.metadata;
    let preconditions = Preconditions::of(meta);
    let patch = Patch::merge(&Number { revision: to });
    control.patch(&CONTROLLER_REVISIONS, &meta.key, preconditions, patch).await.map(drop)
}

/// Sets one label of a revision.
///
/// Upstream: `constructHistory`, `pkg/controller/daemon/update.go`.
pub async fn label(
    control: KeyControl<'_>,
    revision: &ControllerRevision,
    name: &str,
    value: &str,
) -> Result<(), ApiError> {
    let meta = &revision.metadata;
    let preconditions = Preconditions::of(meta);
    let patch = Patch::merge(&serde_json::json!({ "metadata": { "labels": { name: value } } }));
    control.patch(&CONTROLLER_REVISIONS, &meta.key, preconditions, patch).await.map(drop)
}

/// Deletes this very revision; one that is gone needs no deletion.
///
/// Upstream: `DeleteControllerRevision`, `controller_history.go`.
pub async fn delete(control: KeyControl<'_>, revision: &ControllerRevision) -> Result<(), ApiError> {
    let meta = &revision.metadata;
    match control.delete(&CONTROLLER_REVISIONS, &meta.key, &DeleteOptions::of(meta.uid)).await {
        Err(error) if !error.is_not_found() => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    data: &'a RawValue,
    revision: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
    labels: &'a Labels,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a RawValue>,
    owner_references: [OwnerReference<'a>; 1],
}

impl<'a> Body<'a> {
    fn new(owner: &'a Owner, annotations: Option<&'a RawValue>, new: &'a NewRevision) -> Self {
        let NewRevision { name, labels, data, revision } = new;
        let metadata = Metadata {
            name,
            namespace: owner.key.namespace(),
            labels,
            annotations,
            owner_references: [owner.controller_ref()],
        };
        Self { api_version: "apps/v1", kind: "ControllerRevision", metadata, data: data.json(), revision: *revision }
    }
}
