//! Which token is synced when one changes.
//!
//! Left out: tokens that are gone, and those that have nothing to wait for.

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::BootstrapToken;
use crate::observe::Caches;
use crate::plan::is_of_interest;

#[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
impl Caches {
    /// Upstream: `enqueueSecrets`, `pkg/controller/bootstrap/tokencleaner.go`.
    pub(crate) fn secret_changed(&self, change: Change<'_, BootstrapToken>) -> Vec<Effect> {
        let token = change.existing().filter(|token| is_of_interest(token));
        token.map(|token| Effect::Enqueue(token.metadata.key.clone(), Cause::Event)).into_iter().collect()
    }
}
