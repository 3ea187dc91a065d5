//! ControllerRevisions: the former templates of a StatefulSet or a DaemonSet. They show which template a pod was made
//! from, and allow a rollback to an earlier one.
//!
//! Reading order: [`ControllerRevision`] (the view) → [`data`] (its bytes) → [`history`] (the place of a template among
//! revisions) → [`defaults`] (a template that got defaults) → [`truncation`] (the end of old ones) → [`apply`] (the
//! writes).
//! Left out: the count of collisions after a name was taken, which each owner keeps in its own way.
//!
//! Upstream: `pkg/controller/history/controller_history.go`.

pub mod apply;
pub mod data;
pub mod defaults;
pub mod history;
pub mod truncation;

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::hash::{fnv1_32, safe_encode};
use crate::api::labels::Labels;
use crate::api::object::Meta;
use crate::api::resource::CONTROLLER_REVISIONS;
use data::{Data, Fingerprint};

/// The label in which a StatefulSet's revision notes the hash of its data.
pub const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// The label of a pod with the revision it was made from: of a StatefulSet's pod the revision's name, of a DaemonSet's
/// the hash. A DaemonSet's revision notes its own hash in the same label.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// The label of a revision whose template is served with defaults that its data lack: the hash of the data with them.
/// Upstream has no such label.
pub const DEFAULTED_LABEL: &str = "controllerrevision.operators.local/defaulted";

/// Of a StatefulSet's name so many bytes are part of the names of its revisions.
const PREFIX_MAX: usize = 223;

/// The view of a ControllerRevision. A cache holds what tells it from others, and not its data: they are as long as a
/// template, and are needed only where a pod is made of an earlier one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ControllerRevision {
    pub metadata: Meta,
    #[serde(default)]
    pub revision: i64,
    #[serde(default)]
    pub data: Fingerprint,
}

crate::view!(ControllerRevision, CONTROLLER_REVISIONS);

impl ControllerRevision {
    /// Whether it is the revision of a template with these data: its own, or its own with later defaults.
    pub fn is_of(&self, wanted: Fingerprint) -> bool {
        let defaulted = self.metadata.labels.get(DEFAULTED_LABEL);
        self.data.exact == wanted.exact || defaulted.is_some_and(|hash| hash == wanted.label())
    }

    /// The hash of a DaemonSet's revision, which its pods carry too. One that does not say stands for itself by its
    /// name, as the label that it then gets.
    ///
    /// Upstream: `constructHistory`, `pkg/controller/daemon/update.go`.
    pub fn pod_hash(&self) -> &str {
        self.metadata.labels.get(REVISION_LABEL).unwrap_or_else(|| self.metadata.name())
    }
}

/// The annotations of an owner as they are served: its revisions get them.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Annotations(Box<RawValue>);

impl Annotations {
    pub fn json(&self) -> Option<&RawValue> {
        Some(&*self.0).filter(|json| json.get() != "null")
    }

    pub fn get(&self, name: &str) -> Option<String> {
        let mut all: BTreeMap<String, String> = serde_json::from_str(self.0.get()).ok()?;
        all.remove(name)
    }
}

impl fmt::Debug for Annotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewRevision {
    pub name: String,
    pub labels: Labels,
    pub data: Data,
    pub revision: i64,
}

impl NewRevision {
    /// The revision of a StatefulSet of this name.
    ///
    /// Upstream: `NewControllerRevision`, `pkg/controller/history/controller_history.go`.
    pub fn new(owner: &str, labels: &Labels, data: Data, revision: i64, collision_count: i32) -> Self {
        let hash = hash(&data, collision_count);
        Self { name: name(owner, &hash), labels: labels.with(HASH_LABEL, &hash), data, revision }
    }

    /// The revision of a DaemonSet of this name, whose pods carry this hash.
    ///
    /// Upstream: `snapshot`, `pkg/controller/daemon/update.go`.
    pub fn of_daemon_set(owner: &str, labels: &Labels, data: Data, revision: i64, hash: &str) -> Self {
        Self { name: format!("{owner}-{hash}"), labels: labels.with(REVISION_LABEL, hash), data, revision }
    }

    /// The same after another collision of names. As upstream the label keeps the hash of the first try.
    #[must_use]
    pub fn renamed(self, owner: &str, collision_count: i32) -> Self {
        Self { name: name(owner, &hash(&self.data, collision_count)), ..self }
    }
}

/// The hash of a StatefulSet's revision.
///
/// Upstream: `HashControllerRevision`, `controller_history.go`.
pub fn hash(data: &Data, collision_count: i32) -> String {
    let count = collision_count.to_string();
    safe_encode(&fnv1_32(data.text().bytes().chain(count.bytes())).to_string())
}

/// Upstream: `ControllerRevisionName`, `controller_history.go`.
fn name(owner: &str, hash: &str) -> String {
    let prefix = &owner[..owner.floor_char_boundary(PREFIX_MAX)];
    format!("{prefix}-{hash}")
}

#[cfg(test)]
mod tests;
