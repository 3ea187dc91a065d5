//! Every write of an operator: create, delete, patch, replace; adoption and release; many identical writes at once.
//!
//! A write names what it was decided on: a delete carries the uid it means, a patch its own preconditions in its body.
//! Left out: deciding anything, retries (the queue's), and leases and events, which have modules of their own.

mod metadata;
mod options;

use std::sync::Arc;

use anyhow::anyhow;
use bytes::Bytes;
use futures::future::join_all;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::api::json;
use crate::api::object::{Key, Meta, NoAnnotations, Object, ResourceVersion};
use crate::api::owner::{Claim, Owner, adopt_patch, release_patch};
use crate::api::resource::Resource;
use crate::runtime::api_error::ApiError;
use crate::runtime::client::{Accept, Client, PatchType};
use crate::runtime::leader::Term;

pub use options::{DeleteOptions, Preconditions, Propagation};

/// Writes through one client, for as long as this replica leads; cheap to clone.
#[derive(Clone)]
pub struct Control {
    client: Client,
    term: Option<Term>,
}

/// An object as the server stored it: its metadata, which is all that a write asks the server to answer.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Written {
    /// What the server gave it.
    pub metadata: Meta,
}

impl Object for Written {
    type Annotations = NoAnnotations;
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Control {
    /// Writes through this client; no term where nobody else may be at work.
    pub fn new(client: Client, term: Option<Term>) -> Self {
        Self { client, term }
    }

    /// The client for a write, unless another replica may be at work.
    fn writer(&self) -> Result<&Client, ApiError> {
        if self.term.as_ref().is_some_and(Term::is_over) { Err(ApiError::NotLeading) } else { Ok(&self.client) }
    }

    /// POST of an object's JSON into a namespace (`""` for a cluster-scoped one).
    pub async fn create(&self, resource: &Resource, namespace: &str, body: Bytes) -> Result<Written, ApiError> {
        self.writer()?.create(&resource.collection_path(namespace), Accept::Metadata, body).await
    }

    /// DELETE of one object.
    pub async fn delete<U: Serialize, V: Serialize>(
        &self,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions<U, V>,
    ) -> Result<(), ApiError> {
        let path = resource.object_path(key.namespace(), key.name(), "");
        let IgnoredAny = self.writer()?.delete(&path, Accept::Metadata, json(options)).await?;
        Ok(())
    }

    /// PATCH of an object or a subresource (`""` for the object itself).
    pub async fn patch(
        &self,
        resource: &Resource,
        key: &Key,
        subresource: &str,
        kind: PatchType,
        body: Bytes,
    ) -> Result<Written, ApiError> {
        let path = resource.object_path(key.namespace(), key.name(), subresource);
        self.writer()?.patch(&path, Accept::Metadata, kind, body).await
    }

    /// PATCH of the status alone, on exactly this state of the object where the preconditions have its version. A merge
    /// patch: what this build does not know of the status stays.
    pub async fn patch_status(
        &self,
        resource: &Resource,
        key: &Key,
        preconditions: Preconditions,
        status: &impl Serialize,
    ) -> Result<Written, ApiError> {
        #[derive(Serialize)]
        struct Patch<'a, S> {
            metadata: Preconditions,
            status: &'a S,
        }
        let body = json(&Patch { metadata: preconditions, status });
        self.patch(resource, key, "status", PatchType::Merge, body).await
    }

    /// PUT of an object's or a subresource's whole JSON.
    pub async fn replace(
        &self,
        resource: &Resource,
        key: &Key,
        subresource: &str,
        body: Bytes,
    ) -> Result<Written, ApiError> {
        let path = resource.object_path(key.namespace(), key.name(), subresource);
        self.writer()?.replace(&path, Accept::Metadata, body).await
    }

    /// A live read: the newest state there is, past every cache.
    pub async fn get<T: Object>(&self, resource: &Resource, key: &Key) -> Result<T, ApiError> {
        self.client.get(&resource.object_path(key.namespace(), key.name(), "")).await
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
        let mut claimed = Claimed { objects: owned, written: Vec::new(), errors: Vec::new() };
        for object in release {
            let (key, uid) = (&object.meta().key, object.meta().uid);
            let body = release_patch(owner.uid, uid, finalizers);
            match self.patch(resource, key, "", PatchType::StrategicMerge, body).await {
                Ok(written) => claimed.written.push(written.metadata.resource_version),
                // Gone, or not ours any more: either way it is released.
                Err(error) if error.is_not_found() || error.is_invalid() => {}
                Err(error) => claimed.errors.push(error.into()),
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
            let body = adopt_patch(owner, uid, finalizers);
            match self.patch(resource, &key, "", PatchType::StrategicMerge, body).await {
                Ok(written) => {
                    claimed.written.push(written.metadata.resource_version);
                    claimed.objects.push(object);
                }
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

/// What is ours after [`Control::claim`].
#[derive(Debug)]
pub struct Claimed<T> {
    /// What was owned and what was adopted, by key, as the cache has it.
    pub objects: Vec<Arc<T>>,
    /// The versions the patches made.
    pub written: Vec<ResourceVersion>,
    /// What failed; the rest was still done.
    pub errors: Vec<anyhow::Error>,
}

/// One error that says them all, or none.
pub fn aggregate(errors: Vec<anyhow::Error>) -> anyhow::Result<()> {
    let mut errors = errors.into_iter();
    let Some(first) = errors.next() else { return Ok(()) };
    let rest: Vec<String> = errors.map(|error| format!("{error:#}")).collect();
    if rest.is_empty() {
        Err(first)
    } else {
        Err(first.context(format!("and {} more: {}", rest.len(), rest.join("; "))))
    }
}

/// How a slow start ended.
#[derive(Debug)]
pub struct SlowStart<T, E> {
    /// What the calls that succeeded gave.
    pub succeeded: Vec<T>,
    /// Why calls failed; all are of one batch.
    pub failed: Vec<E>,
    /// How many calls were not made after a batch with a failure.
    pub skipped: usize,
}

/// Makes `count` calls in batches of 1, 2, 4, …, the calls of a batch at once, and stops after a batch with a failure:
/// where all calls fail alike, such as by a quota, the server sees a few and not hundreds.
///
/// Upstream: `slowStartBatch`, `pkg/controller/replicaset/replica_set.go`.
pub async fn slow_start<T, E, F>(count: usize, mut call: impl FnMut(usize) -> F) -> SlowStart<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut outcome = SlowStart { succeeded: Vec::new(), failed: Vec::new(), skipped: 0 };
    let (mut done, mut batch) = (0, 1);
    while done < count && outcome.failed.is_empty() {
        let end = count.min(done + batch);
        for result in join_all((done..end).map(&mut call)).await {
            match result {
                Ok(made) => outcome.succeeded.push(made),
                Err(error) => outcome.failed.push(error),
            }
        }
        (done, batch) = (end, batch * 2);
    }
    outcome.skipped = count - done;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[track_caller]
    fn check(count: usize, limit: usize, expected: (usize, usize, usize)) {
        let started = std::cell::Cell::new(0);
        let outcome = slow_start(count, |_| {
            started.set(started.get() + 1);
            let result = if started.get() <= limit { Ok(()) } else { Err(()) };
            async move { result }
        })
        .now_or_never()
        .unwrap();
        assert_eq!((outcome.succeeded.len(), outcome.failed.len(), outcome.skipped), expected);
    }

    #[test]
    fn a_slow_start_stops_after_a_batch_with_a_failure() {
        check(0, 0, (0, 0, 0));
        check(10, 10, (10, 0, 0));
        check(10, 0, (0, 1, 9));
        check(10, 2, (2, 1, 7));
        check(100, 10, (10, 5, 85));
    }

    #[test]
    fn an_aggregate_says_all() {
        assert!(aggregate(Vec::new()).is_ok());
        let error = aggregate(vec![anyhow!("a"), anyhow!("b"), anyhow!("c")]).unwrap_err();
        assert_eq!(format!("{error:#}"), "and 2 more: b; c: a");
    }
}
