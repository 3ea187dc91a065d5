//! Reads one policy from the cache, and what its check needs from the apiserver: the policy itself, discovery, and the
//! schemas of its kinds.
//!
//! The cache knows no expression. Policies that are checked at the same time, such as all of a new cluster, share the reads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use cel_check::Definitions;
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

/// The schemas of the kinds of a policy; `None` of one that cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    pub kinds: BTreeMap<GroupVersionKind, Option<Arc<Definitions>>>,
    pub params: Option<Arc<Definitions>>,
}

type ServedNow = Arc<Vec<Served>>;

pub struct Caches {
    pub validating_admission_policies: Arc<Cache<ValidatingAdmissionPolicy>>,
    served: Answers<(), ServedNow>,
    schemas: Answers<GroupVersionKind, Option<Arc<Definitions>>>,
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
        let live = read.unless_gone().context("cannot read the policy")?;
        let Some(live) = live.filter(|live| live.metadata.uid == policy.metadata.uid) else {
            return Ok(Observed { policy, live: Live::Gone });
        };
        let reads = Reads {
            caches: self,
            control,
            version: live.metadata.resource_version,
            seen: self.validating_admission_policies.progress(),
        };
        let mut schemas = Schemas::default();
        if live.spec.names_kinds() {
            for kind in live.spec.kinds(&reads.served(feeder).await?) {
                let definitions = reads.schema(&kind).await?;
                schemas.kinds.insert(kind, definitions);
            }
        }
        if let Some(kind) = live.spec.param_kind() {
            schemas.params = reads.schema(&kind).await?;
        }
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

    async fn schema(&self, kind: &GroupVersionKind) -> anyhow::Result<Option<Arc<Definitions>>> {
        let read = read_schema(self.control, kind);
        let read = self.caches.schemas.ask(kind, self.version, self.seen, read).await;
        read.with_context(|| format!("cannot read the schema of {kind}"))
    }
}

/// Upstream: `ResolveSchema`, `staging/src/k8s.io/apiserver/pkg/cel/openapi/resolver/discovery.go`.
async fn read_schema(control: &Control, kind: &GroupVersionKind) -> Result<Option<Arc<Definitions>>, ApiError> {
    let GroupVersionKind { group, version, kind: name } = kind;
    // A parameter's kind may name anything.
    if !is_segment(version) || !(group.is_empty() || is_segment(group)) {
        return Ok(None);
    }
    let path = match &**group {
        "" => format!("/openapi/v3/api/{}", segment(version)),
        group => format!("/openapi/v3/apis/{}/{}", segment(group), segment(version)),
    };
    let document: Box<RawValue> = match control.get_path(&path).await {
        Ok(document) => document,
        Err(error) if error.status().is_none() => return Err(error),
        Err(error) => return Ok(skip(kind, &error)),
    };
    match Definitions::read(document.get().as_bytes(), group, version, name) {
        Ok(definitions) => Ok(definitions.map(Arc::new)),
        Err(error) => Ok(skip(kind, &error)),
    }
}

/// A kind without a schema is not checked.
fn skip<T>(kind: &GroupVersionKind, error: &dyn fmt::Display) -> Option<T> {
    tracing::debug!(%kind, %error, "cannot read the schema; skipping the kind");
    None
}
