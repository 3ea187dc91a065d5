//! The writes of a plan, and the merge patches that make them.

use std::fmt;

use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, ResourceVersion, Uid};
use shared::working::control::Preconditions;
use shared::working::events::PlannedEvent;

use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::recycler::PodId;
use crate::objects::{BETA_STORAGE_PROVISIONER, BIND_COMPLETED, BOUND_BY_CONTROLLER, MIGRATED_TO, STORAGE_PROVISIONER};
use crate::status::{ClaimStatus, VolumeStatus};

/// The state of an object that writes were decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub key: Key,
    pub uid: Uid,
    pub version: ResourceVersion,
}

impl Target {
    pub fn of<A>(metadata: &Meta<A>) -> Self {
        Self { key: metadata.key.clone(), uid: metadata.uid, version: metadata.resource_version }
    }

    pub const fn preconditions(&self) -> Preconditions {
        Preconditions { uid: self.uid, resource_version: Some(self.version) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Tell(PlannedEvent),
    Volume(VolumeEdit),
    Claim(ClaimEdit),
    /// Delete the volume's folder on this host. If that fails, so does the volume.
    RemoveFolder(Folder),
    DeleteVolume,
    CreateRecycler(NewRecycler),
    EndRecycler(PodId),
    /// An operation of a plugin has failed before it wrote anything.
    CountFailure(Operation),
    /// Tell of the volume what an event says about its pod.
    Relay {
        event: Uid,
        tell: PlannedEvent,
    },
    SyncClaim(Key),
}

/// What the plugin for folders on this host can fail to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Provision,
    Delete,
}

impl Operation {
    /// Its name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Delete => "delete",
        }
    }
}

/// A pod to empty the volume. If it is refused, the volume has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecycler {
    pub key: Key,
    /// The pod's JSON.
    pub body: Value,
    /// Whether the volume's phase says already that it could not be emptied.
    pub has_failed: bool,
}

/// What is behind a volume of the host-path plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: Box<str>,
    /// Whether the volume's phase says already that it could not be deleted.
    pub has_failed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeEdit {
    Bind(Binding),
    /// Take back a binding that a controller made, or leave the volume reserved for a claim of its name.
    Unbind {
        was_bound_by_controller: bool,
    },
    Status(VolumeStatus),
    Migrate {
        migrated_to: Option<MigratedTo>,
        finalizers: Option<Box<[Text]>>,
    },
    Finalizers(Box<[Text]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The claim, unless the volume names it already.
    pub claim: Option<Target>,
    /// Whether to note that it is no binding of the volume's user.
    pub by_controller: bool,
}

/// The value of the annotation; none to remove it.
pub type MigratedTo = Option<&'static str>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimEdit {
    Bind {
        /// The volume, unless the claim names it already.
        volume: Option<Text>,
        by_controller: bool,
    },
    Status(ClaimStatus),
    Migrate(MigratedTo),
    Class(Text),
    Provisioner {
        name: Box<str>,
        migrated_to: Option<MigratedTo>,
    },
}

impl VolumeEdit {
    pub const fn is_status(&self) -> bool {
        matches!(self, Self::Status(_))
    }

    /// The merge patch.
    pub fn body(&self) -> Value {
        match self {
            Self::Bind(Binding { claim, by_controller }) => {
                let mut body = json!({});
                if let Some(Target { key, uid, version }) = claim {
                    body["spec"]["claimRef"] = json!({
                        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": key.namespace(),
                        "name": key.name(), "uid": uid, "resourceVersion": version, "fieldPath": null,
                    });
                }
                if *by_controller {
                    body["metadata"]["annotations"][BOUND_BY_CONTROLLER] = json!("yes");
                }
                body
            }
            Self::Unbind { was_bound_by_controller: true } => {
                json!({ "metadata": { "annotations": { BOUND_BY_CONTROLLER: null } }, "spec": { "claimRef": null } })
            }
            Self::Unbind { was_bound_by_controller: false } => json!({ "spec": { "claimRef": { "uid": null } } }),
            Self::Status(status) => status.body(),
            Self::Migrate { migrated_to, finalizers } => {
                let mut body = json!({});
                if let Some(driver) = migrated_to {
                    body["metadata"]["annotations"][MIGRATED_TO] = json!(driver);
                }
                if let Some(finalizers) = finalizers {
                    body["metadata"]["finalizers"] = json!(finalizers);
                }
                body
            }
            Self::Finalizers(finalizers) => json!({ "metadata": { "finalizers": finalizers } }),
        }
    }
}

impl ClaimEdit {
    pub const fn is_status(&self) -> bool {
        matches!(self, Self::Status(_))
    }

    /// The merge patch.
    pub fn body(&self) -> Value {
        let mut body = json!({});
        match self {
            Self::Bind { volume, by_controller } => {
                body["metadata"]["annotations"][BIND_COMPLETED] = json!("yes");
                if let Some(volume) = volume {
                    body["spec"]["volumeName"] = json!(volume);
                }
                if *by_controller {
                    body["metadata"]["annotations"][BOUND_BY_CONTROLLER] = json!("yes");
                }
            }
            Self::Status(status) => return status.body(),
            Self::Migrate(driver) => body["metadata"]["annotations"][MIGRATED_TO] = json!(driver),
            Self::Class(class) => body["spec"]["storageClassName"] = json!(class),
            Self::Provisioner { name, migrated_to } => {
                let annotations = &mut body["metadata"]["annotations"];
                annotations[BETA_STORAGE_PROVISIONER] = json!(name);
                annotations[STORAGE_PROVISIONER] = json!(name);
                if let Some(driver) = migrated_to {
                    annotations[MIGRATED_TO] = json!(driver);
                }
            }
        }
        body
    }

    /// The write that completes the binding of a claim to a volume; none if that is complete.
    ///
    /// Upstream: `bindClaimToVolume`.
    pub fn bind(claim: &PersistentVolumeClaim, volume: &str) -> Option<Self> {
        let is_named = claim.spec.volume_name == *volume;
        (!is_named || !claim.is_bind_completed()).then(|| Self::Bind {
            volume: (!is_named).then(|| Text::new(volume)),
            by_controller: !is_named && !claim.is_bound_by_controller(),
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tell(event) | Self::Relay { event: _, tell: event } => {
                write!(f, "tell {} {}", event.about.resource.kind, event.reason)
            }
            Self::Volume(edit) => edit.fmt(f),
            Self::Claim(edit) => edit.fmt(f),
            Self::RemoveFolder(Folder { path, has_failed: _ }) => write!(f, "delete the folder {path}"),
            Self::DeleteVolume => f.write_str("delete the volume"),
            Self::CreateRecycler(NewRecycler { key, .. }) => write!(f, "create pod {key}"),
            Self::EndRecycler(pod) => write!(f, "delete pod {}", pod.key),
            Self::CountFailure(operation) => write!(f, "count that {} failed", operation.as_str()),
            Self::SyncClaim(key) => write!(f, "sync claim {key}"),
        }
    }
}

impl fmt::Display for VolumeEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(Binding { claim: Some(Target { key, .. }), .. }) => write!(f, "bind the volume to claim {key}"),
            Self::Bind(Binding { claim: None, .. }) => f.write_str("note who bound the volume"),
            Self::Unbind { was_bound_by_controller: true } => f.write_str("unbind the volume"),
            Self::Unbind { was_bound_by_controller: false } => f.write_str("leave the volume reserved"),
            Self::Status(status) => write!(f, "the volume is {}", status.phase.as_str()),
            Self::Migrate { .. } => f.write_str("note the driver of the volume"),
            Self::Finalizers(_) => f.write_str("remove the finalizer"),
        }
    }
}

impl fmt::Display for ClaimEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { volume: Some(volume), .. } => write!(f, "bind the claim to volume {volume}"),
            Self::Bind { volume: None, .. } => f.write_str("complete the binding of the claim"),
            Self::Status(status) => write!(f, "the claim is {}", status.phase.as_str()),
            Self::Migrate(_) => f.write_str("note the driver of the claim"),
            Self::Class(class) => write!(f, "give the claim class {class}"),
            Self::Provisioner { name, .. } => write!(f, "name the provisioner {name}"),
        }
    }
}
