//! Which changes lead to a sync of the cluster's information.
//!
//! Left out: changes that no signature depends on, such as those of labels, and tokens that signed nothing before and
//! sign nothing now.

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::{BootstrapToken, ClusterInfo, Signing, cluster_info_key};
use crate::observe::Caches;

#[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
impl Caches {
    /// Upstream: `NewSigner`, `pkg/controller/bootstrap/bootstrapsigner.go`.
    pub(crate) fn config_map_changed(&self, change: Change<'_, ClusterInfo>) -> Vec<Effect> {
        let (old, new) = match change {
            Change::Added(new) => (None, new),
            Change::Updated { old, new } => (Some(old), new),
            Change::Deleted(_) => return Vec::new(),
        };
        let is_edit = old.is_none_or(|old| old.kubeconfig != new.kubeconfig);
        let is_written = old.is_some_and(|old| old.signatures != new.signatures);
        let cause = if is_edit { Cause::Edit } else { Cause::Event };
        let matters = new.kubeconfig.is_some() && (is_edit || is_written);
        matters.then(|| Effect::Enqueue(new.metadata.key.clone(), cause)).into_iter().collect()
    }

    /// Upstream: the same.
    pub(crate) fn secret_changed(&self, change: Change<'_, BootstrapToken>) -> Vec<Effect> {
        let (before, after) = match change {
            Change::Added(new) => (None, signing(new)),
            Change::Updated { old, new } => (signing(old), signing(new)),
            Change::Deleted(last) => (signing(last), None),
        };
        (before != after).then(|| Effect::Enqueue(cluster_info_key(), Cause::Event)).into_iter().collect()
    }
}

fn signing(token: &BootstrapToken) -> Option<&Signing> {
    token.signing.as_ref().ok()
}
