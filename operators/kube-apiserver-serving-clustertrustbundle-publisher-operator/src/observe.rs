//! Reads the signer's bundles from the cache of the served version, and the CA's bundle live if the cached one is wrong.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use serde_json::Value;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder, Need, Needed};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::objects::{ClusterTrustBundle, Version, bundle_name};

const OF_SIGNER: &str = "spec.signerName=kubernetes.io/kube-apiserver-serving";

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The version in which the apiserver serves bundles; none if it serves none.
    pub served: Option<Version>,
    /// The CA to publish; none if none is known.
    pub ca: Option<Text>,
    /// All bundles of the signer, by name.
    pub bundles: Vec<Arc<ClusterTrustBundle>>,
    /// The CA's bundle as read live, with every field, if the cached one is wrong; none if it is gone.
    pub live: Option<Value>,
}

pub struct Caches {
    beta: InVersion,
    alpha: InVersion,
    served: Mutex<Option<Served>>,
}

struct InVersion {
    bundles: Arc<Cache<ClusterTrustBundle>>,
    /// They are watched while this is held.
    need: Need,
}

struct Served {
    version: Version,
    _needed: Needed,
}

/// The informer that fills one of the caches, and the need that turns it on.
pub(crate) struct InformerOnDemand {
    pub(crate) cluster_trust_bundles: Informer<ClusterTrustBundle>,
    pub(crate) need: Need,
}

impl InVersion {
    fn new(version: Version) -> (Self, InformerOnDemand) {
        let cluster_trust_bundles = InformerBuilder::of(version.resource()).fields(OF_SIGNER).build();
        let need = Need::default();
        let in_version = Self { bundles: cluster_trust_bundles.cache(), need: need.clone() };
        (in_version, InformerOnDemand { cluster_trust_bundles, need })
    }
}

impl Caches {
    pub(crate) fn new() -> (Self, [InformerOnDemand; 2]) {
        let ((beta, of_beta), (alpha, of_alpha)) = (InVersion::new(Version::Beta), InVersion::new(Version::Alpha));
        (Self { beta, alpha, served: Mutex::default() }, [of_beta, of_alpha])
    }

    fn of(&self, version: Version) -> &InVersion {
        match version {
            Version::Beta => &self.beta,
            Version::Alpha => &self.alpha,
        }
    }

    fn served(&self) -> MutexGuard<'_, Option<Served>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches bundles in this version and in no other.
    pub(crate) fn follow(&self, version: Option<Version>) {
        *self.served() = version.map(|version| Served { version, _needed: self.of(version).need.hold("") });
    }

    pub fn observe(&self, ca: Option<Text>) -> Observed {
        let served = self.served().as_ref().map(|served| served.version);
        let bundles = served.map(|version| self.of(version).bundles.all()).unwrap_or_default();
        Observed { served, ca, bundles, live: None }
    }
}

pub(crate) async fn live_bundle(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let (Some(version), Some(ca)) = (observed.served, &observed.ca) else { return Ok(observed) };
    let read = control.get_raw(&version.resource(), &Key::new("", &bundle_name(ca))).await;
    let live = read.unless_absent().context("cannot read the ClusterTrustBundle")?;
    Ok(Observed { live, ..observed })
}
