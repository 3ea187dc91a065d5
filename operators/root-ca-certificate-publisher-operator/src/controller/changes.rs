//! Which namespaces are synced when an object, or what is to be published, changes.
//!
//! Left out: namespaces that are gone, which have nothing to do; and ConfigMaps of any other name, which the apiserver
//! does not send.

use shared::api::object::Key;
use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::{ConfigMap, Namespace};
use crate::observe::Caches;

#[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
impl Caches {
    /// Upstream: `namespaceAdded` and `namespaceUpdated`, `pkg/controller/certificates/rootcacertpublisher/publisher.go`.
    pub(crate) fn namespace_changed(&self, change: Change<'_, Namespace>) -> Vec<Effect> {
        let key = change.existing().map(|namespace| namespace.metadata.key.clone());
        key.map(|key| Effect::Enqueue(key, Cause::Event)).into_iter().collect()
    }

    /// Upstream: `configMapUpdated` and `configMapDeleted`,
    /// `pkg/controller/certificates/rootcacertpublisher/publisher.go`.
    pub(crate) fn config_map_changed(&self, change: Change<'_, ConfigMap>) -> Vec<Effect> {
        vec![Effect::Enqueue(Key::new("", change.latest().metadata.namespace()), Cause::Event)]
    }

    /// Something else is to be published, everywhere: in a namespace that is being deleted too, if it has a ConfigMap.
    pub(crate) fn root_ca_changed(&self) -> Vec<Key> {
        let active = self.namespaces.all().into_iter().map(|namespace| namespace.metadata.key.clone());
        let config_maps = self.config_maps.all();
        let publishing = config_maps.iter().map(|config_map| Key::new("", config_map.metadata.namespace()));
        active.chain(publishing).collect()
    }
}
