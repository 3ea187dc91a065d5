//! The scales of the pods' owners, read live at most once a second: one request for each owner, two for a ReplicaSet of a
//! Deployment, and one more for each group version of other kinds.
//!
//! Owners are not followed. They are needed only when pods change, and then a live read is newer than any cache.
//! A sync that used a remembered scale is followed by one that reads it, because a new scale wakes no budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::object::{ControllerRef, Key, Uid};
use shared::api::resource::{DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource};
use shared::transport::api_error::{ApiError, ResultExt};
use shared::transport::discovery::GroupVersion;
use shared::working::control::Control;

use super::{Caches, Observed};
use crate::objects::Failure;
use crate::objects::owner::{OwnerScale, ReplicaSet, SCALE, SCALE_VERSIONS, STATEFUL_SETS, Scale};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scales {
    Unread,
    /// The scale of each owner, by the uid in the pods, or why it has none. Behind a passing failure no owner was read.
    Read(BTreeMap<Uid, Result<OwnerScale, Failure>>),
}

impl Scales {
    /// Why an owner could not be read, if a retry may help.
    pub fn passing_failure(&self) -> Option<&Failure> {
        let Self::Read(scales) = self else { return None };
        scales.values().filter_map(|scale| scale.as_ref().err()).find(|failure| !failure.is_lasting)
    }
}

/// Add the scale of every owner, up to the first passing failure. A scale of the last second is not read again.
///
/// Upstream: `getExpectedScale`, `pkg/controller/disruption/disruption.go`.
pub(crate) async fn read_scales(caches: &Caches, control: &Control, observed: &mut Observed, now: Timestamp) {
    let (memory, budget) = (&caches.memory, Arc::clone(&observed.budget));
    let mut finder = Finder { control, namespace: budget.metadata.namespace(), served: BTreeMap::new() };
    let mut scales = BTreeMap::new();
    for pod in &observed.pods {
        let Some(owner) = pod.metadata.controller.as_ref().filter(|owner| !scales.contains_key(&owner.uid)) else {
            continue;
        };
        if let Some((scale, left)) = memory.scales.recent(owner.uid, now) {
            scales.insert(owner.uid, Ok(scale));
            observed.reread = Some(observed.reread.map_or(left, |first| first.min(left)));
            continue;
        }
        let none = || Failure::lasting(format!("found no controllers for pod {:?}", pod.metadata.name()));
        let found = finder.find(owner).await.and_then(|scale| scale.ok_or_else(none));
        if let Ok(scale) = found {
            memory.scales.note(owner.uid, scale, now);
        }
        let goes_on = found.as_ref().err().is_none_or(|failure| failure.is_lasting);
        scales.insert(owner.uid, found);
        if !goes_on {
            break;
        }
    }
    observed.scales = Scales::Read(scales);
    let has_failed = observed.scales.passing_failure().is_some();
    // The budget may be gone by now, and nothing would forget the note about it.
    let since = has_failed.then(|| memory.outages.since(budget.metadata.uid, now, caches.exists(&budget)));
    if since.is_none() {
        memory.outages.forget(budget.metadata.uid);
    }
    observed.failing_since = since;
}

struct Finder<'a> {
    control: &'a Control,
    namespace: &'a str,
    /// The resources of the group versions read so far.
    served: BTreeMap<Text, GroupVersion>,
}

impl Finder<'_> {
    /// The scale of an owner; none if it is gone.
    ///
    /// Upstream: `finders`, `pkg/controller/disruption/disruption.go`.
    async fn find(&mut self, owner: &ControllerRef) -> Result<Option<OwnerScale>, Failure> {
        match (group_of(&owner.api_version)?, owner.kind.as_str()) {
            ("apps" | "extensions", "ReplicaSet") => self.of_replica_set(owner).await,
            ("", "ReplicationController") => self.scale(&REPLICATION_CONTROLLERS, &owner.name, owner.uid).await,
            ("apps", "StatefulSet") => self.scale(&STATEFUL_SETS, &owner.name, owner.uid).await,
            _ => self.of_other(owner).await,
        }
    }

    /// Upstream: `getPodDeployment` and `getPodReplicaSet`, `pkg/controller/disruption/disruption.go`.
    async fn of_replica_set(&self, owner: &ControllerRef) -> Result<Option<OwnerScale>, Failure> {
        let key = Key::new(self.namespace, &owner.name);
        let found: Option<ReplicaSet> = existing(self.control.get(&REPLICA_SETS, &key).await)?;
        let Some(set) = found.filter(|set| set.metadata.uid == owner.uid) else { return Ok(None) };
        if let Some(parent) = &set.metadata.controller
            && parent.kind == "Deployment"
            && matches!(group_of(&parent.api_version)?, "apps" | "extensions")
            && let Some(scale) = self.scale(&DEPLOYMENTS, &parent.name, parent.uid).await?
        {
            return Ok(Some(scale));
        }
        Ok(Some(OwnerScale { uid: owner.uid, replicas: set.spec.replicas }))
    }

    /// Upstream: `getScaleController`, `pkg/controller/disruption/disruption.go`.
    async fn of_other(&mut self, owner: &ControllerRef) -> Result<Option<OwnerScale>, Failure> {
        let ControllerRef { api_version, kind, name, uid } = owner;
        let served = self.served(api_version).await?;
        let Some(resource) = served.resource_of(kind) else {
            let message = format!("no matches for kind {:?} in version {:?}", kind.as_str(), api_version.as_str());
            return Err(Failure::lasting(message));
        };
        let has_scale = served
            .subresource(&resource, SCALE)
            .is_some_and(|(version, kind)| kind == "Scale" && SCALE_VERSIONS.contains(&version.as_str()));
        if !has_scale {
            return Err(Failure::lasting(format!("{resource} does not implement the scale subresource")));
        }
        // The owner is looked up in the pod's namespace only.
        if !resource.namespaced {
            return Ok(None);
        }
        self.scale(&resource, name, *uid).await
    }

    async fn served(&mut self, api_version: &Text) -> Result<GroupVersion, Failure> {
        if let Some(known) = self.served.get(api_version) {
            return Ok(known.clone());
        }
        let served = self.control.group_version(api_version).await.map_err(|error| Failure::passing(&error))?;
        self.served.insert(api_version.clone(), served.clone());
        Ok(served)
    }

    /// The scale of the object of this name, if its uid matches.
    async fn scale(&self, resource: &Resource, name: &str, uid: Uid) -> Result<Option<OwnerScale>, Failure> {
        let key = Key::new(self.namespace, name);
        let found: Option<Scale> = existing(self.control.get_subresource(resource, &key, SCALE).await)?;
        let own = found.filter(|scale| scale.metadata.uid == uid);
        Ok(own.map(|scale| OwnerScale { uid, replicas: scale.spec.replicas }))
    }
}

/// The object, or none if it does not exist.
fn existing<T>(read: Result<T, ApiError>) -> Result<Option<T>, Failure> {
    read.unless_absent().map_err(|error| Failure::passing(&error))
}

/// Upstream: `ParseGroupVersion`, `staging/src/k8s.io/apimachinery/pkg/runtime/schema/group_version.go`.
fn group_of(api_version: &str) -> Result<&str, Failure> {
    match api_version.split('/').collect::<Vec<_>>()[..] {
        [_] => Ok(""),
        [group, _] => Ok(group),
        _ => Err(Failure::lasting(format!("unexpected GroupVersion string: {api_version}"))),
    }
}
