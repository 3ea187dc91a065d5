//! Creates, changes and deletes slices as planned, and records these writes in the tracker.
//!
//! A slice is changed by a merge patch with its uid and resourceVersion as preconditions: fields of other clients stay, and
//! a change since the decision makes the patch fail.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;

use super::address::AddressType;
use super::endpointslice_tracker::EndpointSliceTracker;
use super::metrics::{SliceChanges, operations};
use super::slice::{ENDPOINT_SLICES, Endpoint, EndpointPort, EndpointSlice};
use super::slice_plan::{Creation, Deletion, Update, Writes};
use crate::api::intern::Text;
use crate::api::json;
use crate::api::labels::Labels;
use crate::api::names::pod_name_prefix;
use crate::api::object::{Key, Object};
use crate::api::owner::{Owner, OwnerReference};
use crate::following::cache::Cache;
use crate::transport::api_error::{ApiError, ResultExt};
use crate::working::context::ControllerContext;
use crate::working::control::{DeleteOptions, KeyControl, Patch, Preconditions, Written};

pub struct SliceWriter<S: Object> {
    pub ctx: ControllerContext,
    pub endpoint_slices: Arc<Cache<S>>,
    pub tracker: EndpointSliceTracker,
    pub changes: SliceChanges,
}

pub struct Task {
    pub owner: Owner,
    /// Annotations for each slice that is created or changed; `None` removes one.
    pub stamps: BTreeMap<Text, Option<Text>>,
}

impl Task {
    fn error(&self, what: &str) -> String {
        format!("failed to {what} for {} {}", self.owner.resource.kind, self.owner.key)
    }
}

impl<A, T: Serialize> SliceWriter<EndpointSlice<A, T>>
where
    EndpointSlice<A, T>: Object,
{
    /// Execute the writes until one fails. Gives false if the namespace is being deleted: creations are impossible there,
    /// so the rest is skipped without an error.
    ///
    /// Upstream: `finalize`, `staging/src/k8s.io/endpointslice/reconciler.go`,
    /// `pkg/controller/endpointslicemirroring/reconciler.go`.
    pub async fn write<C, W>(&self, task: &Task, writes: &Writes<T, C, W>) -> anyhow::Result<bool> {
        let Writes { create, update, delete, withheld: _ } = writes;
        for creation in create {
            match self.create(task, creation).await {
                Ok(()) => {}
                Err(error) if error.is_namespace_terminating() => return Ok(false),
                Err(error) => return Err(error).with_context(|| task.error("create EndpointSlice")),
            }
        }
        for update in update {
            let what = || format!("update {} EndpointSlice", update.key.name());
            self.update(task, update).await.with_context(|| task.error(&what()))?;
        }
        let owner = &task.owner;
        for deletion in delete {
            let what = || format!("delete {} EndpointSlice", deletion.key.name());
            let deleted = self.delete(self.control_of(owner), &owner.key, deletion).await;
            deleted.with_context(|| task.error(&what()))?;
        }
        Ok(true)
    }

    fn control_of<'a>(&'a self, owner: &'a Owner) -> KeyControl<'a> {
        self.ctx.for_key(&owner.key, owner.uid)
    }

    async fn create(&self, task: &Task, creation: &Creation<T>) -> Result<(), ApiError> {
        let Creation { address_type, labels, annotations, ports, endpoints } = creation;
        let (owner, namespace) = (&task.owner, task.owner.key.namespace());
        let stamps = task.stamps.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_deref()?)));
        let body = json(&Body {
            api_version: ENDPOINT_SLICES.api_version(),
            kind: &ENDPOINT_SLICES.kind,
            metadata: BodyMetadata {
                generate_name: pod_name_prefix(owner.key.name()),
                namespace,
                labels,
                annotations: annotations.iter().chain(stamps).collect(),
                owner_references: [owner.controller_ref()],
            },
            address_type,
            ports,
            endpoints,
        });
        let created = self.control_of(owner).create(&ENDPOINT_SLICES, namespace, body).await;
        self.note(owner, operations::CREATE, created)
    }

    async fn update<C>(&self, task: &Task, update: &Update<T, C>) -> Result<(), ApiError> {
        let Update { key, uid, resource_version, labels, annotations, sets_owner, ports, endpoints, changes: _ } =
            update;
        let preconditions = Preconditions { uid: *uid, resource_version: Some(*resource_version) };
        let owner = &task.owner;
        let patch = Patch::merge(&PatchBody {
            metadata: PatchMetadata {
                labels,
                annotations: annotations.iter().chain(&task.stamps).collect(),
                owner_references: sets_owner.then(|| [owner.controller_ref()]),
            },
            ports: ports.as_deref(),
            endpoints: endpoints.as_deref(),
        });
        let updated = self.control_of(owner).patch(&ENDPOINT_SLICES, key, preconditions, patch).await;
        self.note(owner, operations::UPDATE, updated)
    }

    /// Delete a slice of the owner with this key, which may be gone.
    ///
    /// # Errors
    ///
    /// If the apiserver refuses the deletion, or does not answer.
    pub async fn delete<W>(
        &self,
        control: KeyControl<'_>,
        owner: &Key,
        Deletion { key, uid, why: _ }: &Deletion<W>,
    ) -> Result<(), ApiError> {
        let deleted = control.delete(&ENDPOINT_SLICES, key, &DeleteOptions::of(*uid)).await;
        if deleted.unless_gone()?.is_some() {
            // The watch event may have come before the answer.
            if self.endpoint_slices.get(key).is_some_and(|slice| slice.metadata.uid == *uid) {
                self.tracker.deleted(owner, *uid);
            }
            self.changes.wrote(operations::DELETE);
        }
        Ok(())
    }

    fn note(&self, owner: &Owner, operation: &'static str, outcome: Result<Written, ApiError>) -> Result<(), ApiError> {
        let written = outcome?.metadata;
        self.tracker.wrote(&owner.key, written.uid, written.generation);
        self.changes.wrote(operation);
        Ok(())
    }
}

/// A new slice.
///
/// Upstream: `newEndpointSlice`, `staging/src/k8s.io/endpointslice/utils.go`,
/// `pkg/controller/endpointslicemirroring/utils.go`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound = "T: Serialize")]
struct Body<'a, T> {
    api_version: String,
    kind: &'a str,
    metadata: BodyMetadata<'a>,
    address_type: &'a AddressType,
    ports: &'a [EndpointPort],
    endpoints: &'a [Endpoint<T>],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BodyMetadata<'a> {
    generate_name: String,
    namespace: &'a str,
    labels: &'a Labels,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'a str, &'a str>,
    owner_references: [OwnerReference<'a>; 1],
}

/// The changed fields of a slice; `null` removes one.
#[derive(Serialize)]
#[serde(bound = "T: Serialize")]
struct PatchBody<'a, T> {
    metadata: PatchMetadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ports: Option<&'a [EndpointPort]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<&'a [Endpoint<T>]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchMetadata<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<Text, Option<Text>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'a Text, &'a Option<Text>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_references: Option<[OwnerReference<'a>; 1]>,
}
