//! The observation that an attempt would make, from the graph alone, for previews.
//!
//! It asks the same questions in the same order as an attempt. It lacks the references as they are written, so its
//! patches must never be sent.

use std::sync::Arc;

use shared::api::object::Uid;

use crate::graph::{Node, Stage};
use crate::objects::{Identity, LiveMeta, LiveObject, OwnerReference};
use crate::observe::{Caches, Dependents, Learned, Live, Observed, Owner, OwnerPlace, Owners, Present};

impl Caches {
    /// The graph's observation; none if the graph does not have the object.
    pub(crate) fn foresee(&self, uid: Uid) -> Option<Observed> {
        let (node, dependents, saw_owner_go) = self.with_graph(|graph| {
            let dependents = Dependents::of(uid, graph.dependents(uid));
            Some((graph.node(uid)?.clone(), dependents, graph.saw_owner_go(uid)))
        })?;
        let live = if node.stage == Stage::BeingDeleted { Live::NotAsked } else { self.foreseen(&node) };
        let Node { identity, stage, .. } = node;
        Some(Observed { identity, stage, dependents, saw_owner_go, live, learned: Learned::default() })
    }

    fn foreseen(&self, node: &Node) -> Live {
        let resource = match self.place_of(&node.identity) {
            Ok((resource, _)) => resource,
            Err(nowhere) => return nowhere,
        };
        if node.stage == Stage::Virtual {
            let is_absent = self.with_graph(|graph| graph.is_absent(&node.identity));
            return if is_absent { Live::Absent } else { Live::Unseen { failing: self.kinds.failing(&resource) } };
        }
        let owners = if node.stage == Stage::DeletingDependents {
            Owners::NotAsked
        } else {
            self.foreseen_owners(&node.identity, &node.owners)
        };
        let metadata = LiveMeta {
            uid: node.identity.object.uid.to_string(),
            finalizers: node.finalizers().map(str::to_owned).collect(),
            ..LiveMeta::default()
        };
        Live::Present(Box::new(Present { resource, live: LiveObject { metadata }, owners }))
    }

    fn foreseen_owners(&self, dependent: &Identity, references: &[Arc<OwnerReference>]) -> Owners {
        let mut known = Vec::with_capacity(references.len());
        for reference in references {
            let owner = match self.place_of_owner(dependent, reference) {
                Ok(OwnerPlace::Absent(_)) => self.absent_owner(dependent, reference),
                Ok(OwnerPlace::At { resource, key: _, identity }) => {
                    let seen = self.with_graph(|graph| {
                        let node = graph.node(reference.owner.uid)?;
                        let is_this = node.identity.key() == identity.key();
                        (node.stage != Stage::Virtual).then_some((is_this, node.stage))
                    });
                    match seen {
                        Some((true, Stage::DeletingDependents)) => Owner::Waiting,
                        Some((true, _)) => Owner::Solid,
                        Some((false, _)) => self.absent_owner(dependent, reference),
                        None => {
                            let failing = self.kinds.failing(&resource);
                            return Owners::Unseen { reference: Arc::clone(reference), failing };
                        }
                    }
                }
                Err(open) => return open,
            };
            known.push((Arc::clone(reference), owner));
        }
        Owners::Known(known)
    }
}
