//! Reads one StorageVersion and the Leases of its apiservers: first from the caches, and live if a Lease is not in its
//! cache.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;
use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion};
use shared::api::resource::LEASES;
use shared::following::answers::Answers;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::{Control, Preconditions};

use crate::objects::{Lease, NAMESPACE, OF_APISERVERS, STORAGE_VERSIONS, StorageVersion};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub storage_version: Arc<StorageVersion>,
    /// The apiservers that it names and whose Leases are not in the cache.
    pub unseen: Vec<Text>,
    /// The same read live; none if it was not.
    pub live: Option<Live>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    Gone,
    Found {
        /// The StorageVersion with every field.
        object: Value,
        /// The apiservers that it names and that have no Lease.
        dead: BTreeSet<Text>,
    },
}

pub struct Caches {
    pub storage_versions: Arc<Cache<StorageVersion>>,
    pub(crate) storage_versions_by_apiserver: IndexId,
    /// The Leases of apiservers, while there is a StorageVersion.
    pub leases: Arc<Cache<Lease>>,
    /// Whether an apiserver is dead, by its ID.
    answers: Answers<Text, bool>,
}

pub struct Informers {
    pub(crate) storage_versions: Informer<StorageVersion>,
    pub(crate) leases: Informer<Lease>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let mut storage_versions = InformerBuilder::<StorageVersion>::new();
        let storage_versions_by_apiserver = storage_versions.index(|storage_version, emit| {
            storage_version.apiservers.iter().for_each(|apiserver| emit(IndexValue::Text(apiserver.clone())));
        });
        let storage_versions = storage_versions.build();
        let leases = InformerBuilder::new().metadata_only().namespace(NAMESPACE).labels(OF_APISERVERS).build();
        let caches = Self {
            storage_versions: storage_versions.cache(),
            storage_versions_by_apiserver,
            leases: leases.cache(),
            answers: Answers::default(),
        };
        (caches, Informers { storage_versions, leases })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let storage_version = self.storage_versions.get(key)?;
        let unseen = self.unseen(&storage_version);
        Some(Observed { storage_version, unseen, live: None })
    }

    /// The apiservers that it names and whose Leases are not in the cache.
    pub fn unseen(&self, storage_version: &StorageVersion) -> Vec<Text> {
        storage_version.apiservers.iter().filter(|apiserver| !self.has_lease(apiserver)).cloned().collect()
    }

    fn has_lease(&self, apiserver: &str) -> bool {
        self.leases.get(&lease_key(apiserver)).is_some()
    }

    /// Adds the StorageVersion as it is now, and which of its apiservers are dead.
    ///
    /// Upstream: `syncStorageVersion`, `pkg/controller/storageversiongc/gc_controller.go`.
    pub(crate) async fn live(&self, control: &Control, observed: Observed) -> anyhow::Result<Observed> {
        let key = &observed.storage_version.metadata.key;
        let object = match control.get_raw(&STORAGE_VERSIONS, key).await {
            Ok(object) => object,
            // Not only if the object is gone: the apiserver may have stopped serving the kind.
            Err(error) if error.is_not_found() => return Ok(Observed { live: Some(Live::Gone), ..observed }),
            Err(error) => return Err(error).context("cannot read the StorageVersion"),
        };
        let version = Preconditions::of_read(&object).resource_version.and_then(|version| version.parse().ok());
        let version = ResourceVersion(version.unwrap_or(u64::MAX));
        let mut dead = BTreeSet::new();
        for entry in entries(&object) {
            let apiserver = Text::new(apiserver_of(entry));
            if !self.has_lease(&apiserver) && self.is_dead(control, &apiserver, version).await? {
                dead.insert(apiserver);
            }
        }
        Ok(Observed { live: Some(Live::Found { object, dead }), ..observed })
    }

    /// Whether an apiserver has no Lease. StorageVersions that name the same one share the read, unless `version`, that of
    /// the StorageVersion, is newer than the read: the apiserver may have come back in between.
    async fn is_dead(&self, control: &Control, apiserver: &Text, version: ResourceVersion) -> anyhow::Result<bool> {
        // A read without a name would be a list.
        if apiserver.is_empty() {
            return Ok(true);
        }
        let seen = self.storage_versions.progress();
        let read = async {
            let read = control.get_metadata::<Lease>(&LEASES, &lease_key(apiserver)).await.unless_absent();
            read.map(|lease| lease.is_none_or(|lease| !lease.is_of_apiserver()))
        };
        self.answers.ask(apiserver, version, seen, read).await.context("cannot read the Lease of an apiserver")
    }
}

fn lease_key(apiserver: &str) -> Key {
    Key::new(NAMESPACE, apiserver)
}

/// The entries of a StorageVersion, one for each apiserver.
pub(crate) fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["storageVersions"].as_array().into_iter().flatten()
}

/// The ID of an entry's apiserver.
pub(crate) fn apiserver_of(entry: &Value) -> &str {
    entry["apiServerID"].as_str().unwrap_or_default()
}
