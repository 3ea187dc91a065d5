//! Which namespaces are synced when an object or the CA changes.

use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{ConfigMap, Namespace};
use crate::observe::Caches;

/// Upstream: `namespaceAdded` and `namespaceUpdated`, `pkg/controller/certificates/rootcacertpublisher/publisher.go`.
pub(super) fn namespace_changed(change: Change<'_, Namespace>) -> Vec<Effect> {
    let key = change.existing().map(|namespace| namespace.metadata.key.clone());
    key.map(|key| Effect::Enqueue(key, Cause::Event)).into_iter().collect()
}

/// Upstream: `configMapUpdated` and `configMapDeleted`, `pkg/controller/certificates/rootcacertpublisher/publisher.go`.
pub(super) fn config_map_changed(change: Change<'_, ConfigMap>) -> Vec<Effect> {
    vec![Effect::Enqueue(Key::new("", change.latest().metadata.namespace()), Cause::Event)]
}

impl Caches {
    /// The namespaces to sync after a change of the CA: active ones, and those being deleted that have a ConfigMap.
    pub(crate) fn root_ca_changed(&self) -> Vec<Key> {
        let active = self.namespaces.all().into_iter().map(|namespace| namespace.metadata.key.clone());
        let config_maps = self.config_maps.all();
        let publishing = config_maps.iter().map(|config_map| Key::new("", config_map.metadata.namespace()));
        active.chain(publishing).collect()
    }
}
