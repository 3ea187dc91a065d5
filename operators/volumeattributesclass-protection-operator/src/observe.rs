//! Reads one class and what names it: first from the caches, and live if nothing in the caches does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::{Key, Meta};
use shared::api::resource::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES};
use shared::controllers::protection::observe::{self, UserCaches};
use shared::controllers::protection::users::{self, Words};
use shared::following::answers::Answers;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::objects::{PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass};

pub type Observed = observe::Observed<VolumeAttributesClass, Users>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Users {
    pub volumes: Vec<String>,
    /// `namespace/name` of each claim.
    pub claims: Vec<String>,
}

impl users::Users for Users {
    const WORDS: Words = Words {
        list: "list claims and volumes",
        another_list: "another list of claims and volumes",
        used_by: "named by",
        used_by_others: "named by what is not in the caches:",
        not_seen: "nothing in the caches names it",
        unused: "nothing names it",
    };

    fn is_empty(&self) -> bool {
        self.volumes.is_empty() && self.claims.is_empty()
    }
}

/// `volumes: a, b; claims: default/c`.
impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { volumes, claims } = self;
        let part = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what}: {}", list(names, String::clone)))
        };
        let parts = [part("volumes", volumes), part("claims", claims)];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

pub struct Caches {
    pub volume_attributes_classes: Arc<Cache<VolumeAttributesClass>>,
    /// All volumes, while a class is being deleted.
    pub persistent_volumes: Arc<Cache<PersistentVolume>>,
    volumes_by_class: IndexId,
    /// All claims, at the same time.
    pub persistent_volume_claims: Arc<Cache<PersistentVolumeClaim>>,
    claims_by_class: IndexId,
    answers: Answers<(), Arc<BTreeMap<Text, Users>>>,
}

pub struct Informers {
    pub(crate) volume_attributes_classes: Informer<VolumeAttributesClass>,
    pub(crate) persistent_volumes: Informer<PersistentVolume>,
    pub(crate) persistent_volume_claims: Informer<PersistentVolumeClaim>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let volume_attributes_classes = InformerBuilder::new().metadata_only().build();
        let mut persistent_volumes = InformerBuilder::<PersistentVolume>::new();
        let volumes_by_class = persistent_volumes
            .index(|volume, emit| volume.class.iter().for_each(|class| emit(IndexValue::Text(class.clone()))));
        let mut persistent_volume_claims = InformerBuilder::<PersistentVolumeClaim>::new();
        let claims_by_class = persistent_volume_claims
            .index(|claim, emit| claim.classes.iter().for_each(|class| emit(IndexValue::Text(class.clone()))));
        let (persistent_volumes, persistent_volume_claims) =
            (persistent_volumes.build(), persistent_volume_claims.build());
        let caches = Self {
            volume_attributes_classes: volume_attributes_classes.cache(),
            persistent_volumes: persistent_volumes.cache(),
            volumes_by_class,
            persistent_volume_claims: persistent_volume_claims.cache(),
            claims_by_class,
            answers: Answers::default(),
        };
        (caches, Informers { volume_attributes_classes, persistent_volumes, persistent_volume_claims })
    }

    /// Upstream: `isBeingUsed`, `pkg/controller/volume/vacprotection/vac_protection_controller.go`.
    fn users(&self, class: &str) -> Users {
        let class = IndexValue::Text(Text::new(class));
        let volumes = self.persistent_volumes.by_index(self.volumes_by_class, &class);
        let claims = self.persistent_volume_claims.by_index(self.claims_by_class, &class);
        Users {
            volumes: volumes.iter().map(|volume| name(&volume.metadata)).collect(),
            claims: claims.iter().map(|claim| name(&claim.metadata)).collect(),
        }
    }
}

impl UserCaches for Caches {
    type Object = VolumeAttributesClass;
    type Users = Users;

    fn observe(&self, key: &Key) -> Option<Observed> {
        let class = self.volume_attributes_classes.get(key)?;
        let cached = if class.metadata.is_being_deleted() { self.users(key.name()) } else { Users::default() };
        Some(Observed { object: class, cached, live: None })
    }

    /// Classes that are deleted together share the lists: they are newer than the deletion of each.
    async fn live_users(&self, control: &Control, class: &VolumeAttributesClass) -> anyhow::Result<Users> {
        let (metadata, seen) = (&class.metadata, self.volume_attributes_classes.progress());
        let lists = users_by_class(control);
        let users = self.answers.ask(&(), metadata.resource_version, seen, lists).await?;
        Ok(users.get(metadata.name()).cloned().unwrap_or_default())
    }
}

fn name(metadata: &Meta) -> String {
    metadata.key.as_str().to_owned()
}

/// What names each class. Of claims and volumes, which a cluster may have many of, only those names are kept.
async fn users_by_class(control: &Control) -> anyhow::Result<Arc<BTreeMap<Text, Users>>> {
    let mut users = BTreeMap::<Text, Users>::new();
    // Claims first: a name goes from a claim to its volume, and the claim may be deleted meanwhile.
    let each = |PersistentVolumeClaim { metadata, classes }: PersistentVolumeClaim| {
        for class in classes {
            users.entry(class).or_default().claims.push(name(&metadata));
        }
    };
    let listed = control.list_each(&PERSISTENT_VOLUME_CLAIMS, "", Selection::default(), Accept::Json, each).await;
    listed.context("cannot list claims")?;
    let each = |PersistentVolume { metadata, class }: PersistentVolume| {
        if let Some(class) = class {
            users.entry(class).or_default().volumes.push(name(&metadata));
        }
    };
    let listed = control.list_each(&PERSISTENT_VOLUMES, "", Selection::default(), Accept::Json, each).await;
    listed.context("cannot list volumes")?;
    Ok(Arc::new(users))
}
