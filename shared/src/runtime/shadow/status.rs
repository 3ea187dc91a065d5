//! The writers of a status, as the `managedFields` of a second watch tell: that of the metadata of a key's kind.
//!
//! The caches have no `managedFields`, and only a shadow asks. Left out: deletions, which leave no writer's name, and
//! other writes under the same name: many controllers of one program write under one name.

use jiff::Timestamp;
use serde::Deserialize;

use super::timing::StatusWrite;
use crate::api::intern::Text;
use crate::api::object::{Key, Meta, NoAnnotations, Object, ResourceVersion, Uid, null_as_default};
use crate::api::time::Time;
use crate::runtime::cache::Change;

/// One state of an object's metadata, as far as it tells the writers.
#[derive(Deserialize)]
#[serde(from = "Served")]
pub(super) struct Written {
    metadata: Meta,
    status: Option<Entry>,
    /// The entries of all other writes.
    others: Vec<Entry>,
}

impl Object for Written {
    type Annotations = NoAnnotations;
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Deserialize)]
struct Served {
    metadata: ServedMeta,
}

/// The metadata that `Written` needs. A `Meta` flattened into it would hide the fields that are read from a list in
/// protobuf.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServedMeta {
    #[serde(default)]
    namespace: String,
    name: String,
    #[serde(default)]
    uid: Uid,
    resource_version: ResourceVersion,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    deletion_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "null_as_default")]
    managed_fields: Vec<Entry>,
}

/// One entry of `managedFields`; its time has seconds only.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Entry {
    #[serde(default)]
    time: Option<Timestamp>,
    #[serde(default)]
    manager: Text,
    #[serde(default)]
    subresource: Text,
}

impl From<Served> for Written {
    fn from(Served { metadata: served }: Served) -> Self {
        let is_status = |entry: &Entry| &*entry.subresource == "status";
        let (statuses, others): (Vec<_>, Vec<_>) = served.managed_fields.into_iter().partition(is_status);
        let metadata = Meta {
            key: Key::new(&served.namespace, &served.name),
            uid: served.uid,
            resource_version: served.resource_version,
            generation: served.generation,
            deletion: served.deletion_timestamp,
            ..Meta::default()
        };
        Self { metadata, status: statuses.into_iter().max(), others }
    }
}

impl Written {
    /// Whether this state was made by a write of the status: its writer's time says so, or, within one second, that no
    /// other writer's does.
    fn is_by_status_after(&self, old: &Self) -> bool {
        let Some(status) = &self.status else { return false };
        let same_spec = |a: &Meta, b: &Meta| (a.generation, &a.deletion) == (b.generation, &b.deletion);
        let is_last = self.others.iter().all(|other| other.time <= status.time);
        let nobody_else = self.others == old.others && same_spec(&self.metadata, &old.metadata);
        old.status.as_ref() != Some(status) || is_last && nobody_else
    }
}

/// The write of a status that this change is, if it is one.
pub(super) fn written(change: &Change<'_, Written>, now: Timestamp) -> Option<StatusWrite> {
    let Change::Updated { old, new } = change else { return None };
    let manager = new.status.as_ref().filter(|_| new.is_by_status_after(old))?.manager.clone();
    Some(StatusWrite { version: new.metadata.resource_version, manager, time: now })
}
