//! Reads the signer's bundles from the cache, and the CA's bundle live if the cached one is wrong.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use serde_json::Value;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::Resource;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::objects::{CLUSTER_TRUST_BUNDLES, ClusterTrustBundle, bundle_name};

const OF_SIGNER: &str = "spec.signerName=kubernetes.io/kube-apiserver-serving";

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Bundles in the version that the apiserver serves; none if it serves none.
    pub served: Option<Resource>,
    /// The CA to publish; none if none is known.
    pub ca: Option<Text>,
    /// All bundles of the signer, by name.
    pub bundles: Vec<Arc<ClusterTrustBundle>>,
    /// The CA's bundle as read live, with every field, if the cached one is wrong; none if it is gone.
    pub live: Option<Value>,
}

pub struct Caches {
    bundles: Arc<Cache<ClusterTrustBundle>>,
    served: Mutex<Option<Resource>>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informer<ClusterTrustBundle>) {
        let cluster_trust_bundles = InformerBuilder::new().fields(OF_SIGNER).build();
        let caches = Self { bundles: cluster_trust_bundles.cache(), served: Mutex::default() };
        (caches, cluster_trust_bundles)
    }

    fn served(&self) -> MutexGuard<'_, Option<Resource>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note_served(&self, served: Option<&Resource>) {
        *self.served() = served.cloned();
    }

    pub fn observe(&self, ca: Option<Text>) -> Observed {
        Observed { served: self.served().clone(), ca, bundles: self.bundles.all(), live: None }
    }
}

pub(crate) async fn live_bundle(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let Some(ca) = &observed.ca else { return Ok(observed) };
    let read = control.get_raw(&CLUSTER_TRUST_BUNDLES, &Key::new("", &bundle_name(ca))).await;
    let live = read.unless_absent().context("cannot read the ClusterTrustBundle")?;
    Ok(Observed { live, ..observed })
}
