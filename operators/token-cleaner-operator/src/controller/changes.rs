//! Which token is synced when one changes: one that expires.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::BootstrapToken;
use crate::plan::is_of_interest;

/// Upstream: `enqueueSecrets`, `pkg/controller/bootstrap/tokencleaner.go`.
pub(super) fn secret_changed(change: Change<'_, BootstrapToken>) -> Vec<Effect> {
    let token = change.existing().filter(|token| is_of_interest(token));
    token.map(|token| Effect::Enqueue(token.metadata.key.clone(), Cause::Event)).into_iter().collect()
}
