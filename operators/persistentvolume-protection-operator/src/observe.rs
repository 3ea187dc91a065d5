//! Reads one PersistentVolume: its metadata from the cache, and live its phase once it is being deleted.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::PERSISTENT_VOLUMES;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::objects::{LiveVolume, PersistentVolume};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub volume: Arc<PersistentVolume>,
    pub live: Live,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    /// It was not read.
    Unread,
    Gone,
    Read(LiveVolume),
}

pub struct Caches {
    pub persistent_volumes: Arc<Cache<PersistentVolume>>,
}

pub(crate) struct Informers {
    pub(crate) persistent_volumes: Informer<PersistentVolume>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let persistent_volumes = InformerBuilder::new().metadata_only().build();
        (Self { persistent_volumes: persistent_volumes.cache() }, Informers { persistent_volumes })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let volume = self.persistent_volumes.get(key)?;
        Some(Observed { volume, live: Live::Unread })
    }
}

pub(crate) async fn live_volume(control: &Control, Observed { volume, .. }: Observed) -> anyhow::Result<Observed> {
    let metadata = &volume.metadata;
    let read = control.get::<LiveVolume>(&PERSISTENT_VOLUMES, &metadata.key).await;
    let read = read.unless_absent().context("cannot read the volume")?;
    let live = read.filter(|live| live.metadata.uid == metadata.uid).map_or(Live::Gone, Live::Read);
    Ok(Observed { volume, live })
}
