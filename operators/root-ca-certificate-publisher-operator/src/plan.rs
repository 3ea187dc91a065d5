//! Whether a namespace's ConfigMap is created or set right: a value made from what was observed, and nothing else.
//!
//! Left out: deleting. A ConfigMap goes with its namespace.
//!
//! Upstream: `syncNamespace`, `pkg/controller/certificates/rootcacertpublisher/publisher.go`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::runtime::decisions::{self, LiveRead, Reasoned};

use crate::objects::{CA_CERT, ConfigMap, DESCRIPTION, DESCRIPTION_ANNOTATION, ROOT_CA_CONFIG_MAP};
use crate::observe::Observed;

/// What becomes of a namespace, and why.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing.
    Nothing(Reason),
    /// It gets its ConfigMap, this one.
    Create(Value),
    /// Its ConfigMap is set right.
    Update {
        /// What is wrong with it.
        wrong: Wrong,
        /// All of it, with the uid and the version that were read.
        body: Value,
    },
}

/// Why something is written, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It is being deleted, or gone, and has none.
    NotActive,
    /// Nobody has said what is to be published.
    NoCa,
    /// Its ConfigMap is as it should be.
    Published,
    /// Its ConfigMap has been deleted, which the cache will show.
    Deleted,
    /// It has no ConfigMap.
    NoConfigMap,
    /// Its ConfigMap is not as it should be.
    Wrong {
        /// What of it.
        what: Wrong,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => *reason,
            Self::Create(_) => Reason::NoConfigMap,
            Self::Update { wrong, body: _ } => Reason::Wrong { what: *wrong },
        }
    }
}

/// What is wrong with a ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Wrong {
    /// Its data is not the CA, or not the CA alone.
    Data,
    /// It does not say what it is for.
    Description,
}

/// Plans to read the ConfigMap anew where the cached one is wrong: what is written back has every field.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Reason>> {
    let what = observed.wrong()?;
    Some(LiveRead { step: "read kube-root-ca.crt anew", reason: Reason::Wrong { what } })
}

/// Decides for one namespace. One that is being deleted gets no ConfigMap any more; one that it still has is set right,
/// for its pods, which may take their time.
pub fn plan(observed: &Observed) -> Plan {
    let Observed { namespace: _, is_active, ca, config_map, live } = observed;
    match (ca, config_map) {
        (_, None) if !is_active => Plan::Nothing(Reason::NotActive),
        (None, _) => Plan::Nothing(Reason::NoCa),
        (Some(ca), None) => Plan::Create(new_config_map(ca)),
        (Some(ca), Some(_)) => match (observed.wrong(), live) {
            (None, _) => Plan::Nothing(Reason::Published),
            (Some(_), None) => Plan::Nothing(Reason::Deleted),
            (Some(wrong), Some(live)) => match updated(live, ca) {
                Some(body) => Plan::Update { wrong, body },
                None => Plan::Nothing(Reason::Published),
            },
        },
    }
}

/// The ConfigMap as it is to be written, with everything else that is in it; none if there is nothing wrong with it any
/// more. What does not read as a ConfigMap is wrong in any case.
fn updated(live: &Value, ca: &Text) -> Option<Value> {
    if ConfigMap::deserialize(live).is_ok_and(|read| wrong_with(&read, ca).is_none()) {
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

/// What is wrong with a ConfigMap that is to publish this.
pub fn wrong_with(config_map: &ConfigMap, ca: &Text) -> Option<Wrong> {
    if config_map.ca.as_ref() != Some(ca) {
        Some(Wrong::Data)
    } else if !config_map.metadata.annotations.0 {
        Some(Wrong::Description)
    } else {
        None
    }
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
            Self::NoCa => f.write_str("no CA to publish: --root-ca-file gives one"),
            Self::Published => write!(f, "{ROOT_CA_CONFIG_MAP} is right"),
            Self::Deleted => write!(f, "{ROOT_CA_CONFIG_MAP} was deleted"),
            Self::NoConfigMap => f.write_str("not there"),
            Self::Wrong { what: Wrong::Data } => f.write_str("other data"),
            Self::Wrong { what: Wrong::Description } => f.write_str("no description"),
        }
    }
}
