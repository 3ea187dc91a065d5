//! Which changes lead to a sync: those of the signed text, of the signatures, and of a signing token.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{BootstrapToken, ClusterInfo, Signing, cluster_info_key};

/// Upstream: `NewSigner`, `pkg/controller/bootstrap/bootstrapsigner.go`.
pub(super) fn config_map_changed(change: Change<'_, ClusterInfo>) -> Vec<Effect> {
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

/// Upstream: `NewSigner`, `pkg/controller/bootstrap/bootstrapsigner.go`.
pub(super) fn secret_changed(change: Change<'_, BootstrapToken>) -> Vec<Effect> {
    let (before, after) = match change {
        Change::Added(new) => (None, signing(new)),
        Change::Updated { old, new } => (signing(old), signing(new)),
        Change::Deleted(last) => (signing(last), None),
    };
    (before != after).then(|| Effect::Enqueue(cluster_info_key(), Cause::Event)).into_iter().collect()
}

fn signing(token: &BootstrapToken) -> Option<&Signing> {
    token.signing.as_ref().ok()
}
