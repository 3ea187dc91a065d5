//! EndpointSlices as JSON by name, and planned writes of them, carried out as an apiserver would.
//!
//! Left out: what a writer adds to what was planned.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde_json::{Value, json};

use super::objects::object;
use crate::api::intern::Text;
use crate::api::object::Kind;
use crate::controllers::endpoints::slice_plan::{Creation, Deletion, Update, Writes};

/// Slices of one owner, by name; each method panics where a plan is about others, or about other states of them.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    by_name: BTreeMap<String, Value>,
    /// How many were created under names that were made up: `new-1`, `new-2`.
    created: usize,
}

impl Deref for Slices {
    type Target = BTreeMap<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.by_name
    }
}

impl DerefMut for Slices {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.by_name
    }
}

#[expect(clippy::missing_panics_doc, clippy::unwrap_used, reason = "a slice that is not there is a broken plan")]
impl Slices {
    /// Carries out writes for this owner.
    pub fn apply<T: Serialize, C, W>(&mut self, owner: &impl Kind, writes: &Writes<T, C, W>) {
        let Writes { create, update, delete, withheld: _ } = writes;
        for creation in create {
            self.created += 1;
            self.create(&format!("new-{}", self.created), owner, creation);
        }
        for update in update {
            self.update(owner, update);
        }
        for deletion in delete {
            self.delete(deletion);
        }
    }

    /// Creates one under this name.
    pub fn create<T: Serialize>(&mut self, name: &str, owner: &impl Kind, creation: &Creation<T>) {
        let Creation { address_type, labels, annotations, ports, endpoints } = creation;
        let slice = object("discovery.k8s.io/v1", "EndpointSlice", name)
            .set(&["metadata", "labels"], json!(labels))
            .set(&["metadata", "annotations"], json!(annotations))
            .owned_by(owner)
            .set(&["addressType"], address_type.as_str())
            // The apiserver makes empty lists null.
            .set(&["ports"], if ports.is_empty() { Value::Null } else { json!(ports) })
            .set(&["endpoints"], json!(endpoints));
        self.by_name.insert(name.to_owned(), slice.json().clone());
    }

    fn update<T: Serialize, C>(&mut self, owner: &impl Kind, update: &Update<T, C>) {
        let Update { key, uid, resource_version, labels, annotations, sets_owner, ports, endpoints, changes: _ } =
            update;
        let slice = self.by_name.get_mut(key.name()).unwrap();
        assert_eq!(slice["metadata"]["uid"], uid.to_string());
        assert_eq!(slice["metadata"]["resourceVersion"], resource_version.to_string());
        slice["metadata"]["resourceVersion"] = (resource_version.0 + 1).to_string().into();
        merge(&mut slice["metadata"]["labels"], labels);
        merge(&mut slice["metadata"]["annotations"], annotations);
        if *sets_owner {
            let owned = object("v1", "Pod", "any").owned_by(owner);
            slice["metadata"]["ownerReferences"] = owned.json()["metadata"]["ownerReferences"].clone();
        }
        if let Some(ports) = ports {
            slice["ports"] = json!(ports);
        }
        if let Some(endpoints) = endpoints {
            slice["endpoints"] = json!(endpoints);
        }
    }

    /// Deletes one.
    pub fn delete<W>(&mut self, deletion: &Deletion<W>) {
        let slice = self.by_name.remove(deletion.key.name()).unwrap();
        assert_eq!(slice["metadata"]["uid"], deletion.uid.to_string());
    }
}

fn merge(own: &mut Value, changes: &BTreeMap<Text, Option<Text>>) {
    for (key, value) in changes {
        match (value, own.as_object_mut()) {
            (Some(value), _) => own[&**key] = json!(value),
            (None, Some(own)) => drop(own.remove(&**key)),
            (None, None) => {}
        }
    }
}
