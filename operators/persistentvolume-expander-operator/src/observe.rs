//! Reads one claim, and its volume live if the claim is to grow.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::PERSISTENT_VOLUMES;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::objects::{PersistentVolume, PersistentVolumeClaim};

#[derive(Debug)]
pub struct Observed {
    pub claim: Arc<PersistentVolumeClaim>,
    pub volume: Live,
}

#[derive(Debug)]
pub enum Live {
    Unread,
    Gone,
    Read(PersistentVolume),
}

pub struct Caches {
    pub persistent_volume_claims: Arc<Cache<PersistentVolumeClaim>>,
}

pub struct Informers {
    pub(crate) persistent_volume_claims: Informer<PersistentVolumeClaim>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let persistent_volume_claims = InformerBuilder::new().build();
        let caches = Self { persistent_volume_claims: persistent_volume_claims.cache() };
        (caches, Informers { persistent_volume_claims })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let claim = self.persistent_volume_claims.get(key)?;
        Some(Observed { claim, volume: Live::Unread })
    }
}

/// Upstream: `getPersistentVolume`, `pkg/controller/volume/expand/expand_controller.go`.
pub(crate) async fn live_volume(control: &Control, Observed { claim, .. }: Observed) -> anyhow::Result<Observed> {
    let key = Key::new("", &claim.spec.volume_name);
    let read = control.get::<PersistentVolume>(&PERSISTENT_VOLUMES, &key).await;
    let volume = read.unless_absent().context("cannot read the volume")?.map_or(Live::Gone, Live::Read);
    Ok(Observed { claim, volume })
}
