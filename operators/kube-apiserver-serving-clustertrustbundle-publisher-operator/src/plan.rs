//! Whether the CA's bundle is created or set right, and which bundles of its signer go: a value made from what was
//! observed, and nothing else.
//!
//! Left out: whether the CA is one that the apiserver takes. It refuses a bundle with other than CA certificates, or
//! with one of them twice, and says so.
//!
//! Upstream: `syncClusterTrustBundle`, `pkg/controller/certificates/clustertrustbundlepublisher/publisher.go`.

use std::fmt;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::runtime::decisions::{self, LiveRead, Reasoned};

use crate::objects::{ClusterTrustBundle, SIGNER, SIGNER_IN_NAMES, Version};
use crate::observe::Observed;

/// How many bytes of the hash are in a name.
const NAMED: usize = 12;

/// The decision about the signer's bundles, with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The bundle of the CA comes first: there is always one.
    pub publish: Publish,
    /// The others go once it is as it should be.
    pub delete: Vec<Deletion>,
    /// Why.
    pub reason: Reason,
}

/// The write of the CA's bundle, if it needs one.
#[derive(Clone, Debug, PartialEq)]
pub enum Publish {
    /// It needs none.
    Nothing,
    /// It is created, so.
    Create(Value),
    /// It is set right.
    Update {
        /// This one.
        key: Key,
        /// All of it, with the uid and the version that were read.
        body: Value,
    },
}

/// A bundle that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// This one.
    pub key: Key,
    /// And no other of its name.
    pub uid: Uid,
}

/// Why bundles are written, or none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// The apiserver serves no bundles.
    NotServed,
    /// Nobody has said what is to be published.
    NoCa,
    /// The CA's bundle has been deleted, which the cache will show.
    Deleted,
    /// The CA's bundle is as it should be.
    Published {
        /// How many others the signer has that are to go.
        others: usize,
    },
    /// The CA has no bundle.
    NoBundle {
        /// How many others the signer has that are to go.
        others: usize,
    },
    /// The CA's bundle has another content.
    Wrong {
        /// How many others the signer has that are to go.
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

/// The name of the bundle with this CA: its signer, and the beginning of the CA's hash.
///
/// Upstream: `constructBundleName`.
pub fn bundle_name(ca: &str) -> String {
    let hash = digest(&SHA256, ca.as_bytes());
    let named = hash.as_ref().iter().take(NAMED).fold(0_u128, |named, byte| (named << 8) | u128::from(*byte));
    format!("{SIGNER_IN_NAMES}:{named:0width$x}", width = 2 * NAMED)
}

/// Plans to read the CA's bundle anew where the cached one is wrong: what is written back has every field.
pub fn plan_live_read(observed: &Observed) -> Option<LiveRead<Reason>> {
    let Observed { served, ca, bundles, live: _ } = observed;
    let (Some(_), Some(ca)) = (served, ca) else { return None };
    let name = bundle_name(ca);
    let own = bundles.iter().find(|bundle| bundle.metadata.name() == name)?;
    let reason = Reason::Wrong { others: deletions(bundles, &name).len() };
    (own.trust_bundle != *ca).then_some(LiveRead { step: "read the CA's bundle anew", reason })
}

/// Decides about the signer's bundles.
pub fn plan(observed: &Observed) -> Plan {
    let Observed { served, ca, bundles, live } = observed;
    let Some(version) = served else { return Plan::nothing(Reason::NotServed) };
    let Some(ca) = ca else { return Plan::nothing(Reason::NoCa) };
    let name = bundle_name(ca);
    let delete = deletions(bundles, &name);
    let others = delete.len();
    let own = bundles.iter().find(|bundle| bundle.metadata.name() == name);
    let (publish, reason) = match (own, live) {
        (None, _) => (Publish::Create(new_bundle(*version, &name, ca)), Reason::NoBundle { others }),
        (Some(own), _) if own.trust_bundle == *ca => (Publish::Nothing, Reason::Published { others }),
        (Some(_), None) => return Plan::nothing(Reason::Deleted),
        (Some(own), Some(live)) => match updated(live, ca) {
            Some(body) => (Publish::Update { key: own.metadata.key.clone(), body }, Reason::Wrong { others }),
            None => (Publish::Nothing, Reason::Published { others }),
        },
    };
    Plan { publish, delete, reason }
}

/// The bundles that are not called so. One that is being deleted already, and that only a finalizer keeps, is not
/// deleted again.
fn deletions(bundles: &[Arc<ClusterTrustBundle>], name: &str) -> Vec<Deletion> {
    let others = bundles.iter().map(|bundle| &bundle.metadata);
    let others = others.filter(|metadata| metadata.name() != name && !metadata.is_being_deleted());
    others.map(|metadata| Deletion { key: metadata.key.clone(), uid: metadata.uid }).collect()
}

/// The bundle as it is to be written, with everything else that is in it; none if nothing is wrong with it any more.
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

fn new_bundle(version: Version, name: &str, ca: &Text) -> Value {
    let resource = version.resource();
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
            Self::NoCa => return f.write_str("no CA to publish: --root-ca-file gives one"),
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
                f.write_str("the CA's bundle has another content")?;
                others
            }
        };
        match others {
            0 => Ok(()),
            others => write!(f, "; {others} of the signer's bundles are not the CA's"),
        }
    }
}
