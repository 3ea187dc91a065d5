//! The writes for one key. Each notes what the caches must have seen before the key is synced again.
//!
//! Left out: writes that need no waiting. A known refusal stored nothing. If an answer is lost, only a creation under a
//! generated name is in doubt: every other write carries its precondition or its name, so a second try meets the result
//! of the first one and changes nothing.

use std::ops::Deref;

use anyhow::anyhow;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::patch::object_under;
use super::{Claimed, Control, DeleteOptions, Patch, Preconditions, Written};
use crate::api::json;
use crate::api::object::{Key, Object, ResourceVersion, Uid};
use crate::api::owner::{Claim, Owner, adopt_patch, release_patch};
use crate::api::resource::{PODS, Resource};
use crate::api::url::with_query;
use crate::transport::api_error::{ApiError, Status};
use crate::transport::client::Accept;
use crate::working::consistency::Write;
use crate::working::worker::running::wrote;
use crate::working::worker::trace::link;

/// Writes for one key, and reads as its [`Control`] does.
#[derive(Clone, Copy)]
pub struct KeyControl<'a> {
    pub(super) control: &'a Control,
    pub(super) key: &'a Key,
    pub(super) uid: Uid,
}

impl Deref for KeyControl<'_> {
    type Target = Control;
    fn deref(&self) -> &Control {
        self.control
    }
}

impl KeyControl<'_> {
    fn noted(&self, resource: &Resource, result: Result<Written, ApiError>) -> Result<Written, ApiError> {
        result.inspect(|Written { metadata }| {
            let write = Write { object: &metadata.key, version: metadata.resource_version, created_with: None };
            self.record(resource, write);
        })
    }

    fn record(&self, resource: &Resource, write: Write<'_>) {
        wrote();
        link(resource, write.object, write.version);
        self.control.decisions.wrote(self.key, resource, write.object, write.version);
        self.control.consistency.record(self.key, self.uid, resource, write);
    }

    /// POST of an object's JSON into a namespace (`""` for a cluster-scoped one).
    pub async fn create(&self, resource: &Resource, namespace: &str, body: Bytes) -> Result<Written, ApiError> {
        let path = self.control.client.spoken(resource).collection_path(namespace);
        let created = self.control.client.create(&path, Accept::Metadata, body.clone()).await;
        if created.as_ref().is_err_and(ApiError::is_outcome_unknown) && !has_name(&body) {
            self.control.consistency.lost(self.key, self.uid, resource);
        }
        created.inspect(|Written { metadata }| {
            let (object, version) = (&metadata.key, metadata.resource_version);
            self.record(resource, Write { object, version, created_with: Some(&metadata.labels) });
        })
    }

    pub async fn delete<U: Serialize, V: Serialize>(
        &self,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions<U, V>,
    ) -> Result<(), ApiError> {
        let path = self.control.path(resource, key, "");
        let deleted: Deleted = self.control.client.delete(&path, Accept::Metadata, json(options)).await?;
        let version = deleted.metadata.resource_version;
        if version == ResourceVersion::default() {
            wrote();
        } else {
            self.record(resource, Write { object: key, version, created_with: None });
        }
        Ok(())
    }

    /// POST of an eviction of the pod with this uid: a deletion that the server refuses (429) where a disruption budget
    /// does not allow it. The answer has no version, so the key does not wait for the caches to see it; for a pod that
    /// is on its way out the same again changes nothing.
    pub async fn evict(&self, key: &Key, uid: Uid) -> Result<(), ApiError> {
        let path = PODS.object_path(key.namespace(), key.name(), "eviction");
        let status: Status = self.control.client.create(&path, Accept::Object, json(&Eviction::of(key, uid))).await?;
        // The server refuses a pod of several budgets by an answer of success with a failure in it.
        if status.code >= 400 {
            return Err(ApiError::Status(Box::new(status)));
        }
        wrote();
        Ok(())
    }

    /// PATCH of the object with this uid and, if the preconditions have a version, in exactly this state.
    pub async fn patch<U: Serialize, V: Serialize>(
        &self,
        resource: &Resource,
        key: &Key,
        preconditions: impl Into<Preconditions<U, V>>,
        patch: Patch,
    ) -> Result<Written, ApiError> {
        let spoken = self.control.client.spoken(resource);
        let path = spoken.object_path(key.namespace(), key.name(), patch.subresource);
        let (path, body) = (with_query(&path, &patch.query()), patch.body(&spoken, &preconditions.into()));
        self.noted(resource, self.control.client.patch(&path, Accept::Metadata, patch.kind, body).await)
    }

    /// PATCH of the status alone, so fields that this build does not know stay; see [`Patch::status`] for its lists.
    pub async fn patch_status(
        &self,
        resource: &Resource,
        key: &Key,
        preconditions: Preconditions,
        status: &impl Serialize,
    ) -> Result<Written, ApiError> {
        #[derive(Serialize)]
        struct Body<'a, S> {
            status: &'a S,
        }
        self.patch(resource, key, preconditions, Patch::status(&Body { status })).await
    }

    /// PUT of a whole object or subresource (`""` for the object itself) that was read and changed.
    pub async fn replace<U: Serialize, V: Serialize>(
        &self,
        resource: &Resource,
        key: &Key,
        subresource: &str,
        preconditions: Preconditions<U, V>,
        body: &Value,
    ) -> Result<Written, ApiError> {
        let path = self.control.path(resource, key, subresource);
        // The server refuses an empty body.
        let body = object_under(&preconditions, &json(body)).unwrap_or_default();
        self.noted(resource, self.control.client.replace(&path, Accept::Metadata, body).await)
    }

    /// Adopts and releases as planned. Every object is tried; the first adoption is preceded by one live read of the
    /// owner, so that an owner which is being deleted adopts nothing.
    ///
    /// Upstream: `ClaimPods` and `RecheckDeletionTimestamp`, `pkg/controller/controller_ref_manager.go`.
    pub async fn claim<T: Object>(
        &self,
        owner: &Owner,
        resource: &Resource,
        claim: Claim<T>,
        finalizers: &[&str],
    ) -> Claimed<T> {
        let Claim { owned, adopt, release } = claim;
        let mut claimed = Claimed { objects: owned, errors: Vec::new() };
        for object in release {
            let (key, uid) = (&object.meta().key, object.meta().uid);
            match self.patch(resource, key, uid, Patch::strategic(&release_patch(owner.uid, finalizers))).await {
                // The object is gone or has another owner: either way it is released.
                Err(error) if !error.is_not_found() && !error.is_invalid() => claimed.errors.push(error.into()),
                Ok(_) | Err(_) => {}
            }
        }
        if adopt.is_empty() {
            return claimed;
        }
        let may_adopt = self.recheck(owner).await;
        for object in adopt {
            let (key, uid) = (object.meta().key.clone(), object.meta().uid);
            if let Err(reason) = &may_adopt {
                claimed.errors.push(anyhow!("can't adopt {} {key} ({uid}): {reason}", resource.kind));
                continue;
            }
            match self.patch(resource, &key, uid, Patch::strategic(&adopt_patch(owner, finalizers))).await {
                Ok(_) => claimed.objects.push(object),
                Err(error) if error.is_not_found() => {}
                Err(error) => claimed.errors.push(error.into()),
            }
        }
        claimed.objects.sort_by(|a, b| a.meta().key.cmp(&b.meta().key));
        claimed
    }

    async fn recheck(&self, owner: &Owner) -> Result<(), String> {
        let live: Written = self
            .get(&owner.resource, &owner.key)
            .await
            .map_err(|error| format!("can't recheck DeletionTimestamp: {error}"))?;
        let (kind, key, got) = (&owner.resource.kind, &owner.key, live.metadata.uid);
        if got != owner.uid {
            return Err(format!("original {kind} {key} is gone: got uid {got}, wanted {}", owner.uid));
        }
        match live.metadata.deletion {
            Some(at) => Err(format!("{key} has just been deleted at {at}")),
            None => Ok(()),
        }
    }
}

/// Upstream: `Eviction`, staging/src/k8s.io/api/policy/v1/types.go.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Eviction<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: EvictedPod<'a>,
    delete_options: DeleteOptions,
}

#[derive(Serialize)]
struct EvictedPod<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Eviction<'a> {
    fn of(key: &'a Key, uid: Uid) -> Self {
        Self {
            api_version: "policy/v1",
            kind: "Eviction",
            metadata: EvictedPod { namespace: key.namespace(), name: key.name() },
            delete_options: DeleteOptions::of(uid),
        }
    }
}

/// What a DELETE is answered with. An object that stays for a while has a new version; one that is gone at once often has
/// none, and neither has a `Status`.
#[derive(Deserialize)]
struct Deleted {
    #[serde(default)]
    metadata: VersionOnly,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VersionOnly {
    resource_version: ResourceVersion,
}

/// Whether the JSON has a `metadata.name`.
fn has_name(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Named {
        metadata: Name,
    }
    #[derive(Deserialize)]
    struct Name {
        #[serde(default)]
        name: String,
    }
    serde_json::from_slice::<Named>(body).is_ok_and(|named| !named.metadata.name.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::api::protobuf::read_object;
    use crate::process::serving::loopback;
    use crate::testing;
    use crate::transport::client::{Client, ClientOptions};
    use crate::working::consistency::{Consistency, Watched};
    use crate::working::decisions::Decisions;

    #[test]
    fn what_a_deletion_answers_is_read_in_every_form() {
        let version = |body: &[u8]| read_object::<Deleted>(body).unwrap().metadata.resource_version.0;
        let check = |answer: &Value, expected| {
            assert_eq!(version(answer.to_string().as_bytes()), expected, "{answer}");
            assert_eq!(version(&testing::protobuf::object(answer).unwrap()), expected, "{answer}");
        };
        let metadata = json!({ "name": "a", "resourceVersion": "7" });
        check(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata }), 7);
        check(&json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata }), 7);
        check(&json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata" }), 0);
        check(&json!({ "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success" }), 0);
    }

    #[tokio::test]
    async fn an_eviction_that_is_refused_by_an_answer_of_success_is_refused() {
        let failure = r#"{"kind":"Status","status":"Failure","code":500,"message":"two budgets"}"#;
        let address = loopback::serve(move |_| loopback::answer(201, failure)).await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let consistency = Arc::new(Consistency::new(client.clone(), Watched::default()));
        let control = Control::new(client, consistency, Decisions::default());
        let pod = Key::new("default", "web-0");
        let refused = control.for_name(&pod).evict(&pod, Uid::default()).await.unwrap_err();
        assert_eq!((refused.code(), refused.to_string()), (Some(500), "two budgets".to_owned()));
    }
}
