//! A sync of the signer follows from every change of one of its bundles.
//!
//! Left out: bundles of other signers, which the apiserver does not send.

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::{ClusterTrustBundle, signer_key};
use crate::observe::Caches;

#[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
impl Caches {
    /// Upstream: `newClusterTrustBundlePublisher`,
    /// `pkg/controller/certificates/clustertrustbundlepublisher/publisher.go`.
    pub(crate) fn bundle_changed(&self, _change: Change<'_, ClusterTrustBundle>) -> Vec<Effect> {
        vec![Effect::Enqueue(signer_key(), Cause::Event)]
    }
}
