//! Reads one PersistentVolume: its metadata from the cache, and live its phase once it is being deleted.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::objects::{LiveVolume, PERSISTENT_VOLUMES, PersistentVolume};

/// The observation of one PersistentVolume.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The PersistentVolume.
    pub volume: Arc<PersistentVolume>,
    /// Its live state.
    pub live: Live,
}

/// The live state of a PersistentVolume.
#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    /// It was not read.
    Unread,
    /// It is gone; another one may have its name.
    Gone,
    /// It was read.
    Read(LiveVolume),
}

/// The cache of this operator.
pub struct Caches {
    /// The metadata of all PersistentVolumes.
    pub persistent_volumes: Arc<Cache<PersistentVolume>>,
}

/// The informer that fills the cache.
pub(crate) struct Informers {
    pub(crate) persistent_volumes: Informer<PersistentVolume>,
}

impl Caches {
    /// An empty cache, and the informer that fills it.
    pub(crate) fn new() -> (Self, Informers) {
        let persistent_volumes = InformerBuilder::new().metadata_only().build();
        (Self { persistent_volumes: persistent_volumes.cache() }, Informers { persistent_volumes })
    }

    /// Reads the PersistentVolume of this key; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let volume = self.persistent_volumes.get(key)?;
        Some(Observed { volume, live: Live::Unread })
    }
}

/// Adds the live state.
pub(crate) async fn live_volume(control: &Control, Observed { volume, .. }: Observed) -> anyhow::Result<Observed> {
    let metadata = &volume.metadata;
    let read = control.get::<LiveVolume>(&PERSISTENT_VOLUMES, &metadata.key).await;
    let read = read.unless_gone().context("cannot read the volume")?;
    let live = read.filter(|live| live.metadata.uid == metadata.uid).map_or(Live::Gone, Live::Read);
    Ok(Observed { volume, live })
}
