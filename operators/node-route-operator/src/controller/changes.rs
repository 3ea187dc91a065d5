//! Which changes of a Node are due at once: those of its CIDRs and addresses.
//!
//! A round finds what else is wrong: routes of a Node that is gone, and a condition that somebody else wrote. If two
//! controllers want different conditions, each writes once a round.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::memory::Known;
use crate::objects::Node;
use crate::observe::Caches;

impl Caches {
    /// Upstream: `handleNodeUpdate`, `k8s.io/cloud-provider/controllers/route/route_controller.go`.
    pub fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        let metadata = &change.latest().metadata;
        let is_due = match change {
            Change::Added(node) => !node.pod_cidrs.is_empty(),
            Change::Updated { old, new } => (&old.pod_cidrs, &old.addresses) != (&new.pod_cidrs, &new.addresses),
            Change::Deleted(_) => return vec![Effect::Forget(metadata.key.clone(), metadata.uid)],
        };
        // Before the routes are listed, nothing can be decided, and after that a round looks at every Node.
        let is_listed = || matches!(self.routes.of_node(metadata.key.name()), Known::Routes(_));
        (is_due && is_listed()).then(|| Effect::Enqueue(metadata.key.clone(), Cause::Edit)).into_iter().collect()
    }
}
