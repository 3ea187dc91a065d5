//! Reads one policy from the cache, and what its check needs from the apiserver: the policy itself, discovery, and the
//! schemas of its kinds.
//!
//! The cache knows no expression. Policies that are checked at the same time, such as all of a new cluster, share the reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use cel_check::{Definitions, Document};
use serde_json::value::RawValue;
use shared::api::object::{Key, ResourceVersion};
use shared::api::url::{is_segment, segment};
use shared::following::answers::Answers;
use shared::following::cache::{Cache, Progress};
use shared::following::informer::{Feeder, Informer, InformerBuilder};
use shared::transport::api_error::{ApiError, ResultExt};
use shared::transport::discovery::Served;
use shared::working::control::Control;

use crate::objects::kinds::GroupVersionKind;
use crate::objects::{LivePolicy, VALIDATING_ADMISSION_POLICIES, ValidatingAdmissionPolicy};

#[derive(Clone, Debug)]
pub struct Observed {
    pub policy: Arc<ValidatingAdmissionPolicy>,
    pub live: Live,
}

/// What the apiserver says about a policy that has not been checked.
#[derive(Clone, Debug)]
pub enum Live {
    NotRead,
    /// The policy is gone, or another one has its name.
    Gone,
    Policy {
        policy: Arc<LivePolicy>,
        schemas: Schemas,
    },
}

/// The schemas of the kinds of a policy, and of its parameters if it has a kind.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    pub kinds: SchemaByKind,
    pub params: Option<Arc<Definitions>>,
}

/// `None` for a kind whose schema cannot be read.
type SchemaByKind = BTreeMap<GroupVersionKind, Option<Arc<Definitions>>>;

type ServedNow = Arc<Vec<Served>>;

pub struct Caches {
    pub validating_admission_policies: Arc<Cache<ValidatingAdmissionPolicy>>,
    served: Answers<(), ServedNow>,
    /// By kinds of one group version, whose schemas are in one document.
    schemas: Answers<Box<[GroupVersionKind]>, SchemaByKind>,
}

pub struct Informers {
    pub(crate) validating_admission_policies: Informer<ValidatingAdmissionPolicy>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let validating_admission_policies = InformerBuilder::new().build();
        let caches = Self {
            validating_admission_policies: validating_admission_policies.cache(),
            served: Answers::default(),
            schemas: Answers::default(),
        };
        (caches, Informers { validating_admission_policies })
    }

    /// Reads the policy of this key, and nothing live.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        self.validating_admission_policies.get(key).map(|policy| Observed { policy, live: Live::NotRead })
    }

    /// The same observation with the live reads.
    ///
    /// # Errors
    /// When the policy or discovery cannot be read, or the apiserver does not answer. A schema that it refuses is left
    /// out, as upstream does.
    pub(crate) async fn read(
        &self,
        control: &Control,
        feeder: &Feeder,
        observed: Observed,
    ) -> anyhow::Result<Observed> {
        let Observed { policy, live: _ } = observed;
        let key = &policy.metadata.key;
        let read = control.get::<LivePolicy>(&VALIDATING_ADMISSION_POLICIES, key).await;
        let live = read.unless_absent().context("cannot read the policy")?;
        let Some(live) = live.filter(|live| live.metadata.uid == policy.metadata.uid) else {
            return Ok(Observed { policy, live: Live::Gone });
        };
        let reads = Reads {
            caches: self,
            control,
            version: live.metadata.resource_version,
            seen: self.validating_admission_policies.progress(),
        };
        let kinds =
            if live.spec.names_kinds() { live.spec.kinds(&reads.served(feeder).await?) } else { BTreeSet::new() };
        // No expression is checked for parameters alone.
        let schemas =
            if kinds.is_empty() { Schemas::default() } else { reads.schemas(kinds, live.spec.param_kind()).await? };
        Ok(Observed { policy, live: Live::Policy { policy: Arc::new(live), schemas } })
    }
}

/// The reads for one policy.
struct Reads<'a> {
    caches: &'a Caches,
    control: &'a Control,
    version: ResourceVersion,
    seen: Progress,
}

impl Reads<'_> {
    async fn served(&self, feeder: &Feeder) -> anyhow::Result<ServedNow> {
        let read = async { feeder.discover().await.map(|discovery| Arc::new(discovery.served)) };
        self.caches.served.ask(&(), self.version, self.seen, read).await.context("cannot discover resources")
    }

    async fn schemas(
        &self,
        kinds: BTreeSet<GroupVersionKind>,
        param_kind: Option<GroupVersionKind>,
    ) -> anyhow::Result<Schemas> {
        let wanted: BTreeSet<&GroupVersionKind> = kinds.iter().chain(&param_kind).collect();
        let wanted: Vec<GroupVersionKind> = wanted.into_iter().cloned().collect();
        let mut all = SchemaByKind::new();
        for of_one in wanted.chunk_by(|one, next| one.group == next.group && one.version == next.version) {
            let read = read_schemas(self.control, of_one);
            let read = self.caches.schemas.ask(&of_one.into(), self.version, self.seen, read).await;
            all.append(&mut read.context("cannot read the schemas of kinds")?);
        }
        let params = param_kind.and_then(|kind| all.get(&kind).cloned().flatten());
        all.retain(|kind, _| kinds.contains(kind));
        Ok(Schemas { kinds: all, params })
    }
}

/// The schemas of kinds of one group version.
///
/// Upstream: `ResolveSchema`, `staging/src/k8s.io/apiserver/pkg/cel/openapi/resolver/discovery.go`.
async fn read_schemas(control: &Control, kinds: &[GroupVersionKind]) -> Result<SchemaByKind, ApiError> {
    let text = match kinds.first().and_then(document_path) {
        Some(path) => read_document(control, &path).await?,
        None => None,
    };
    let document = text.as_ref().and_then(|text| readable(Document::read(text.get().as_bytes())));
    let definitions = |GroupVersionKind { group, version, kind }: &GroupVersionKind| {
        readable(document.as_ref()?.definitions(group, version, kind))?.map(Arc::new)
    };
    Ok(kinds.iter().map(|kind| (kind.clone(), definitions(kind))).collect())
}

/// The path of the document of a kind's group version; none if no group version is called so.
fn document_path(GroupVersionKind { group, version, kind: _ }: &GroupVersionKind) -> Option<String> {
    // A parameter's kind may name anything.
    if !is_segment(version) || !(group.is_empty() || is_segment(group)) {
        return None;
    }
    Some(match &**group {
        "" => format!("/openapi/v3/api/{}", segment(version)),
        group => format!("/openapi/v3/apis/{}/{}", segment(group), segment(version)),
    })
}

async fn read_document(control: &Control, path: &str) -> Result<Option<Box<RawValue>>, ApiError> {
    match control.get_path(path).await {
        Err(error) if error.status().is_none() => Err(error),
        answer => Ok(readable(answer)),
    }
}

/// A kind without a schema is not checked.
fn readable<T, E: fmt::Display>(read: Result<T, E>) -> Option<T> {
    read.inspect_err(|error| tracing::debug!(%error, "cannot read schemas; skipping their kinds")).ok()
}
