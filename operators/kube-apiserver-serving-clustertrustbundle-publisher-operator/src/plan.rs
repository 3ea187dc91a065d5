//! Whether the CA's bundle is created or corrected, and which bundles of its signer are deleted.
//!
//! The apiserver validates the CA: it refuses a bundle with duplicates, or with certificates that are not CAs.
//!
//! Upstream: `syncClusterTrustBundle`, `pkg/controller/certificates/clustertrustbundlepublisher/publisher.go`.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::api::resource::Resource;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::{ClusterTrustBundle, SIGNER, bundle_name};
use crate::observe::Observed;

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The first step: write the CA's bundle, so that there is always one.
    pub publish: Publish,
    /// The second step: delete the other bundles.
    pub delete: Vec<Deletion>,
    pub reason: Reason,
}

/// The write of the CA's bundle, if it needs one.
#[derive(Clone, Debug, PartialEq)]
pub enum Publish {
    Nothing,
    Create(Value),
    Update {
        key: Key,
        /// The whole bundle, with the uid and the version that were read.
        body: Value,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub key: Key,
    pub uid: Uid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    NotServed,
    NoCa,
    /// The CA's bundle was deleted, which the cache does not show yet.
    Deleted,
    Published {
        /// How many other bundles of the signer are deleted.
        others: usize,
    },
    NoBundle {
        /// How many other bundles of the signer are deleted.
        others: usize,
    },
    Wrong {
        /// How many other bundles of the signer are deleted.
        others: usize,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        self.reason
    }
}

impl Plan {
    fn nothing(reason: Reason) -> Self {
        Self { publish: Publish::Nothing, delete: Vec::new(), reason }
    }
}

/// Plans to read the CA's bundle live if the cached one is wrong, because an update must send every field.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Reason>> {
    let Observed { served, ca, bundles, live: _ } = observed;
    let (Some(_), Some(ca)) = (served, ca) else { return None };
    let name = bundle_name(ca);
    let own = bundles.iter().find(|bundle| bundle.metadata.name() == name)?;
    let reason = Reason::Wrong { others: deletions(bundles, &name).len() };
    (own.trust_bundle != *ca).then_some(LiveRead { step: "reread the CA's bundle", reason })
}

pub fn plan(observed: &Observed) -> Plan {
    let Observed { served, ca, bundles, live } = observed;
    let Some(resource) = served else { return Plan::nothing(Reason::NotServed) };
    let Some(ca) = ca else { return Plan::nothing(Reason::NoCa) };
    let name = bundle_name(ca);
    let delete = deletions(bundles, &name);
    let others = delete.len();
    let own = bundles.iter().find(|bundle| bundle.metadata.name() == name);
    let (publish, reason) = match (own, live) {
        (None, _) => (Publish::Create(new_bundle(resource, &name, ca)), Reason::NoBundle { others }),
        (Some(own), _) if own.trust_bundle == *ca => (Publish::Nothing, Reason::Published { others }),
        (Some(_), None) => return Plan::nothing(Reason::Deleted),
        (Some(own), Some(live)) => match updated(live, ca) {
            Some(body) => (Publish::Update { key: own.metadata.key.clone(), body }, Reason::Wrong { others }),
            None => (Publish::Nothing, Reason::Published { others }),
        },
    };
    Plan { publish, delete, reason }
}

/// The bundles of other names, without those that are being deleted already.
fn deletions(bundles: &[Arc<ClusterTrustBundle>], name: &str) -> Vec<Deletion> {
    let others = bundles.iter().map(|bundle| &bundle.metadata);
    let others = others.filter(|metadata| metadata.name() != name && !metadata.is_being_deleted());
    others.map(|metadata| Deletion { key: metadata.key.clone(), uid: metadata.uid }).collect()
}

/// The corrected bundle with all its other fields; none if it is right by now.
fn updated(live: &Value, ca: &Text) -> Option<Value> {
    if live.pointer("/spec/trustBundle").and_then(Value::as_str) == Some(ca.as_str()) {
        return None;
    }
    let mut body = live.clone();
    if !body["spec"].is_object() {
        body["spec"] = json!({ "signerName": SIGNER });
    }
    body["spec"]["trustBundle"] = json!(ca);
    Some(body)
}

fn new_bundle(resource: &Resource, name: &str, ca: &Text) -> Value {
    json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": { "name": name },
        "spec": { "signerName": SIGNER, "trustBundle": ca },
    })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { publish, delete, reason } = self;
        let publish = match publish {
            Publish::Nothing => None,
            Publish::Create(_) => Some("create the CA's bundle".to_owned()),
            Publish::Update { key, body: _ } => Some(format!("update {key}")),
        };
        let steps = publish.into_iter().chain(delete.iter().map(|Deletion { key, uid: _ }| format!("delete {key}")));
        let steps: Vec<String> = steps.collect();
        let steps = if steps.is_empty() { "nothing".to_owned() } else { steps.join(", ") };
        write!(f, "{steps} ({reason})")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = match self {
            Self::NotServed => return f.write_str("the apiserver serves no bundles"),
            Self::NoCa => return f.write_str("no CA to publish; set --root-ca-file"),
            Self::Deleted => return f.write_str("the CA's bundle was deleted"),
            Self::Published { others } => {
                f.write_str("the CA's bundle is right")?;
                others
            }
            Self::NoBundle { others } => {
                f.write_str("the CA has no bundle")?;
                others
            }
            Self::Wrong { others } => {
                f.write_str("the CA's bundle has other content")?;
                others
            }
        };
        match others {
            0 => Ok(()),
            others => write!(f, "; other bundles of the signer: {others}"),
        }
    }
}
