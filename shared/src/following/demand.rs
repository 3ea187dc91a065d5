//! Watches on demand: a resource is followed only while an object that needs it is there.
//!
//! A key whose sync would read such a cache waits until its first list is in ([`Demand::listed_for`]). What is not needed
//! any more is followed a while longer, for a need often comes back.
//! Left out: which objects need what, which each operator's wiring says
//! ([`Setup::watch_while`](crate::process::run::Setup::watch_while)).

mod need;
mod parts;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::intern::Text;
use crate::api::object::Key;
use crate::following::cache::Part;
use crate::following::collection::Collection;
use crate::following::source::Source;
pub use need::{Need, Needed};
pub(crate) use parts::Parts;

/// How much of a resource is followed for the objects that need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Cluster,
    /// The namespaces of these objects; all of it where they are many.
    Namespaces,
    /// The same without the informer's selectors, beside [`Self::Cluster`] in one cache.
    WholeNamespaces,
    /// Of pods those of these nodes; those of all nodes where they are many. A node's name is in the place of a
    /// namespace.
    Nodes,
    /// Those for which this field selector, with the name of the object that needs them at its end, holds; all where they
    /// are many. That name is in the place of a namespace.
    Selected(&'static str),
}

impl Extent {
    /// The parts of the cache that it fills: those of two extents are not the same.
    fn numbers(self) -> impl Iterator<Item = Part> {
        let taken = match self {
            Self::Cluster | Self::Namespaces | Self::Nodes | Self::Selected(_) => 0,
            Self::WholeNamespaces => 1,
        };
        Part::all().skip(taken)
    }
}

/// The state of one resource that is followed on demand; cheap to clone.
#[derive(Clone)]
pub(crate) struct Demand(Arc<State>);

struct State {
    resource: String,
    need: Need,
    extent: Extent,
    parts: Mutex<Parts>,
    /// Counts the first lists that came in, and those that were begun anew.
    changed: watch::Sender<u64>,
}

impl Demand {
    pub(crate) fn new(resource: String, need: &Need, extent: Extent) -> Self {
        let (need, parts, changed) = (need.clone(), Mutex::default(), watch::Sender::default());
        Self(Arc::new(State { resource, need, extent, parts, changed }))
    }

    pub(crate) fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects that need the resource, and the first lists, as they change.
    pub(crate) fn subscribe(&self) -> (watch::Receiver<BTreeMap<Text, usize>>, watch::Receiver<u64>) {
        (self.0.need.subscribe(), self.0.changed.subscribe())
    }

    pub(crate) fn has_changed(&self) {
        self.0.changed.send_modify(|changes| *changes += 1);
    }

    /// Whether all of the resource is followed by one watch.
    pub(crate) fn is_of_cluster(&self) -> bool {
        self.0.extent == Extent::Cluster
    }

    /// The resource as upstream prints it, such as `replicasets.apps`.
    pub(crate) fn resource(&self) -> &str {
        &self.0.resource
    }

    /// The parts of the cache that it may fill.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = Part> {
        self.0.extent.numbers()
    }

    pub(crate) fn collections(&self) -> Vec<Collection> {
        self.parts().collections().cloned().collect()
    }

    /// The namespaces or nodes to be followed; the empty one stands for all.
    pub(crate) fn wanted(&self, parts: &Parts) -> BTreeSet<Text> {
        let needed = self.0.need.namespaces();
        let is_split = self.0.extent != Extent::Cluster && !parts.are_too_many(&needed);
        if is_split || needed.is_empty() { needed } else { BTreeSet::from([Text::default()]) }
    }

    /// Whether a sync of this key may read the cache: all that the key's namespace needs was listed.
    pub(crate) fn is_listed_for(&self, key: &Key) -> bool {
        let (parts, need) = (self.parts(), &self.0.need);
        match (self.0.extent, key.namespace()) {
            (Extent::Cluster, _) => !need.is_there() || parts.have_listed(&Text::default()),
            (Extent::Namespaces | Extent::WholeNamespaces, "") => {
                need.namespaces().iter().all(|namespace| parts.have_listed(namespace))
            }
            (Extent::Namespaces | Extent::WholeNamespaces, namespace) => {
                let namespace = Text::new(namespace);
                !need.is_of(&namespace) || parts.have_listed(&namespace)
            }
            (Extent::Nodes | Extent::Selected(_), "") => {
                let name = Text::new(key.name());
                !need.is_of(&name) || parts.have_listed(&name)
            }
            // The key of a pod does not say which node has it.
            (Extent::Nodes, _) => need.namespaces().iter().all(|node| parts.have_listed(node)),
            // Only the object of the name reads what is selected for it.
            (Extent::Selected(_), _) => true,
        }
    }

    /// Ends when a sync of this key may read the cache.
    pub(crate) async fn listed_for(&self, key: &Key) {
        let (mut needed, mut changed) = self.subscribe();
        while !self.is_listed_for(key) {
            tokio::select! {
                _ = changed.changed() => {}
                _ = needed.changed() => {}
            }
        }
    }

    /// The source that is followed on this demand for an informer with the source `whole`.
    pub(crate) fn source(&self, whole: &Source) -> Source {
        let source = whole.within(&Text::default());
        match self.0.extent {
            Extent::Cluster | Extent::Namespaces | Extent::Nodes | Extent::Selected(_) => source,
            Extent::WholeNamespaces => source.without_selectors(),
        }
    }

    /// The part of this source that one namespace or node needs.
    pub(crate) fn part_of(&self, source: &Source, place: &Text) -> Source {
        match self.0.extent {
            Extent::Cluster | Extent::Namespaces | Extent::WholeNamespaces => source.within(place),
            Extent::Nodes => {
                let field_selector = Cow::Owned(on_node(&source.field_selector, place));
                Source { field_selector, ..source.within(&Text::default()) }
            }
            Extent::Selected(start) => {
                let field_selector = Cow::Owned(selected(&source.field_selector, start, place));
                Source { field_selector, ..source.within(&Text::default()) }
            }
        }
    }

    /// Why something that is needed is not listed yet.
    pub(crate) fn check(&self) -> Result<(), String> {
        let parts = self.parts();
        let wanted = self.wanted(&parts);
        let Some(missing) = wanted.iter().find(|namespace| !parts.have_listed(namespace)) else { return Ok(()) };
        Err(parts.failing(missing).unwrap_or_else(|| "not listed yet".to_owned()))
    }

    /// Begins the first lists anew that are not in yet and were begun before this moment: they may lack what was written
    /// until then.
    pub(crate) fn restart_first_lists(&self, moment: Instant) {
        self.parts().abandon_first_lists(moment);
        self.has_changed();
    }
}

/// The field selector of the pods that these fields leave of one node, or of all nodes for the empty one.
fn on_node(fields: &str, node: &Text) -> String {
    let of_node = if node.is_empty() { "spec.nodeName!=".to_owned() } else { format!("spec.nodeName={node}") };
    both(fields, of_node)
}

/// The field selector of what these fields leave for the object of a name, or all of it for the empty one.
fn selected(fields: &str, start: &str, name: &Text) -> String {
    if name.is_empty() { fields.to_owned() } else { both(fields, format!("{start}{name}")) }
}

fn both(fields: &str, more: String) -> String {
    if fields.is_empty() { more } else { format!("{fields},{more}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_narrows_the_fields_that_are_followed_anyway() {
        let row = |fields: &str, node: &str, expected: &str| assert_eq!(on_node(fields, &Text::new(node)), expected);
        row("", "a", "spec.nodeName=a");
        row("", "", "spec.nodeName!=");
        row("status.phase!=Failed", "a", "status.phase!=Failed,spec.nodeName=a");
    }

    #[test]
    fn a_name_narrows_the_fields_that_are_followed_anyway() {
        let row = |fields: &str, name: &str, expected: &str| {
            assert_eq!(selected(fields, "metadata.name=of-", &Text::new(name)), expected);
        };
        row("", "a", "metadata.name=of-a");
        row("", "", "");
        row("status.phase!=Failed", "a", "status.phase!=Failed,metadata.name=of-a");
    }
}
