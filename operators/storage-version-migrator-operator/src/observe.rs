//! Reads one migration, and the migrations of one resource, from the cache; everything else live.

pub mod live;

use std::sync::Arc;

use shared::api::object::Key;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::Migration;
use crate::objects::definition::Definition;
use live::{Page, Served, ServedVersion};

/// What is known of one migration.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub migration: Arc<Migration>,
    /// How the apiserver serves the resource; none if it was not asked.
    pub served: Option<Served>,
    /// The next page of objects; none if it was not read.
    pub page: Option<Page>,
}

/// What is known of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedResource {
    /// All its migrations, by name.
    pub migrations: Vec<Arc<Migration>>,
    /// Its definition, and none if it is not a custom resource; the outer none if it was not read.
    pub definition: Option<Option<Definition>>,
    /// How the apiserver serves it, and its version at the moment; none if it was not asked.
    pub served: Option<ServedVersion>,
}

pub struct Caches {
    pub migrations: Arc<Cache<Migration>>,
    by_resource: IndexId,
}

impl Caches {
    pub fn new() -> (Self, Informer<Migration>) {
        let mut migrations = InformerBuilder::<Migration>::new();
        let by_resource = migrations.index(|migration, emit| emit(IndexValue::from(&migration.target.key())));
        let migrations = migrations.build();
        (Self { migrations: migrations.cache(), by_resource }, migrations)
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let migration = self.migrations.get(key)?;
        Some(Observed { migration, served: None, page: None })
    }

    pub fn observe_resource(&self, key: &Key) -> ObservedResource {
        let migrations = self.migrations.by_index(self.by_resource, &key.into());
        ObservedResource { migrations, definition: None, served: None }
    }
}
