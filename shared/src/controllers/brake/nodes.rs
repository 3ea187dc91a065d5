//! The brake of operators that delete Nodes or their pods; its units are nodes.

use std::sync::Arc;

use crate::api::intern::Text;
use crate::api::object::{Key, Object, ObjectReference, ResourceVersion, Uid};
use crate::api::resource::NODES;
use crate::controllers::brake::{Brake, Limits};
use crate::following::cache::Change;
use crate::following::informer::Informer;
use crate::process::run::Setup;
use crate::working::context::ControllerContext;
use crate::working::worker::Requeue;

const GROUP: &str = "nodes";
/// The least number of nodes that may be affected at once.
const LEAST: usize = 10;

impl Brake<Text> {
    /// The brake of this context's queue: the pods of this share of the nodes may be deleted at once.
    pub fn of_nodes(setup: &Setup, ctx: ControllerContext, share: f64) -> Arc<Self> {
        Arc::new(Self::new(setup, ctx, Limits { share, least: LEAST }))
    }

    pub fn follow<N: Object>(self: &Arc<Self>, nodes: &mut Informer<N>) {
        let brake = Arc::clone(self);
        nodes.on_change(move |change| {
            let node = Text::new(change.latest().meta().name());
            match change {
                Change::Added(_) => brake.member_back(GROUP, &node),
                Change::Deleted(_) => brake.gone(&node),
                Change::Updated { .. } => {}
            }
        });
    }

    pub fn gone(&self, node: &Text) {
        self.member_gone(GROUP, node);
    }

    /// As [`Brake::ask`], for the pods of a node of this uid. An event reports each node that begins to wait.
    pub fn ask_for_node(&self, key: &Key, node: (&Text, Uid), exist: impl FnOnce() -> usize) -> Option<Requeue> {
        let (name, uid) = node;
        let object = Key::new("", name);
        let about = ObjectReference { resource: NODES, key: object, uid, resource_version: ResourceVersion::default() };
        self.ask(key, (GROUP, name), exist, Some(about))
    }
}
