//! Whether a namespace's ConfigMap is created or corrected.
//!
//! Upstream: `syncNamespace`, `pkg/controller/certificates/rootcacertpublisher/publisher.go`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::{CA_CERT, ConfigMap, DESCRIPTION, DESCRIPTION_ANNOTATION, Fault, ROOT_CA_CONFIG_MAP};
use crate::observe::Observed;

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Nothing(Reason),
    Create(Value),
    Update {
        fault: Fault,
        /// The whole ConfigMap, with the uid and the version that were read.
        body: Value,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// The namespace is being deleted or gone, and has no ConfigMap.
    NotActive,
    NoCa,
    Published,
    /// The ConfigMap was deleted, which the cache does not show yet.
    Deleted,
    NoConfigMap,
    Wrong {
        what: Fault,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => *reason,
            Self::Create(_) => Reason::NoConfigMap,
            Self::Update { fault, body: _ } => Reason::Wrong { what: *fault },
        }
    }
}

/// Plans to read the ConfigMap live if the cached one is wrong, because an update must send every field.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Reason>> {
    let what = observed.fault()?;
    Some(LiveRead { step: "reread kube-root-ca.crt", reason: Reason::Wrong { what } })
}

/// Decides for one namespace. A namespace that is being deleted gets no new ConfigMap, but an existing one is corrected,
/// because its pods may still need it.
pub fn plan(observed: &Observed) -> Plan {
    let Observed { namespace: _, is_active, ca, config_map, live } = observed;
    match (ca, config_map) {
        (_, None) if !is_active => Plan::Nothing(Reason::NotActive),
        (None, _) => Plan::Nothing(Reason::NoCa),
        (Some(ca), None) => Plan::Create(new_config_map(ca)),
        (Some(ca), Some(_)) => match (observed.fault(), live) {
            (None, _) => Plan::Nothing(Reason::Published),
            (Some(_), None) => Plan::Nothing(Reason::Deleted),
            (Some(fault), Some(live)) => match updated(live, ca) {
                Some(body) => Plan::Update { fault, body },
                None => Plan::Nothing(Reason::Published),
            },
        },
    }
}

/// The corrected ConfigMap with all its other fields; none if it is right by now.
fn updated(live: &Value, ca: &Text) -> Option<Value> {
    if ConfigMap::deserialize(live).is_ok_and(|read| read.fault(ca).is_none()) {
        return None;
    }
    let mut body = live.clone();
    body["data"] = json!({ CA_CERT: ca });
    if !body["metadata"]["annotations"].is_object() {
        body["metadata"]["annotations"] = json!({});
    }
    body["metadata"]["annotations"][DESCRIPTION_ANNOTATION] = DESCRIPTION.into();
    Some(body)
}

fn new_config_map(ca: &Text) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": ROOT_CA_CONFIG_MAP, "annotations": { DESCRIPTION_ANNOTATION: DESCRIPTION } },
        "data": { CA_CERT: ca },
    })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Nothing(_) => write!(f, "nothing ({reason})"),
            Self::Create(_) => write!(f, "create {ROOT_CA_CONFIG_MAP} ({reason})"),
            Self::Update { .. } => write!(f, "update {ROOT_CA_CONFIG_MAP} ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotActive => f.write_str("not active"),
            Self::NoCa => f.write_str("no CA to publish; set --root-ca-file"),
            Self::Published => write!(f, "{ROOT_CA_CONFIG_MAP} is right"),
            Self::Deleted => write!(f, "{ROOT_CA_CONFIG_MAP} was deleted"),
            Self::NoConfigMap => f.write_str("not there"),
            Self::Wrong { what: Fault::Data } => f.write_str("other data"),
            Self::Wrong { what: Fault::Description } => f.write_str("no description"),
        }
    }
}
