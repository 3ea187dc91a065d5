//! Every change of one of the signer's bundles leads to a sync of the signer.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{ClusterTrustBundle, signer_key};

/// Upstream: `newClusterTrustBundlePublisher`, `pkg/controller/certificates/clustertrustbundlepublisher/publisher.go`.
pub(super) fn bundle_changed(_: Change<'_, ClusterTrustBundle>) -> Vec<Effect> {
    vec![Effect::Enqueue(signer_key(), Cause::Event)]
}
