//! Which signatures the ConfigMap gets and loses.
//!
//! Upstream: `signConfigMap` and `getTokens`, `pkg/controller/bootstrap/bootstrapsigner.go`.

pub mod jws;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, Reasoned};

use crate::objects::{BootstrapToken, ClusterInfo, Signing, Unfit};
use crate::observe::Observed;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The signatures to write, by token id; none for one to remove.
    pub signatures: BTreeMap<String, Option<String>>,
    /// The state of the ConfigMap whose text was signed.
    pub preconditions: Preconditions,
    /// The time until a token expires and its signature is removed.
    pub next: Option<Duration>,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    NoKubeconfig,
    /// Each token has its signature, and there are no others.
    Signed {
        tokens: usize,
        /// The tokens that do not sign, by name.
        unfit: BTreeMap<String, Unfit>,
    },
    Different {
        /// How many tokens have no signature, or a wrong one.
        unsigned: usize,
        /// How many signatures belong to no signing token.
        stale: usize,
        /// The tokens that do not sign, by name.
        unfit: BTreeMap<String, Unfit>,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { cluster_info, tokens } = observed;
    let ClusterInfo { metadata, kubeconfig, signatures: has } = &**cluster_info;
    let preconditions = Preconditions::of(metadata);
    let Some(kubeconfig) = kubeconfig else {
        let (signatures, reason) = (BTreeMap::new(), Reason::NoKubeconfig);
        return Plan { signatures, preconditions, next: None, reason };
    };
    let (mut wanted, mut unfit, mut next) = (BTreeMap::new(), BTreeMap::new(), None);
    for token in tokens {
        match fit(token, now) {
            Ok(Signing { id, secret, expiration }) => {
                wanted.insert(id.to_string(), jws::detached_signature(kubeconfig, id, secret));
                next = next.into_iter().chain(expiration.left(now)).min();
            }
            Err(why) => {
                unfit.insert(token.metadata.name().to_owned(), why);
            }
        }
    }
    let tokens = wanted.len();
    let stale: Vec<String> = has.keys().filter(|id| !wanted.contains_key(*id)).cloned().collect();
    wanted.retain(|id, signature| has.get(id) != Some(&*signature));
    let reason = if wanted.is_empty() && stale.is_empty() {
        Reason::Signed { tokens, unfit }
    } else {
        Reason::Different { unsigned: wanted.len(), stale: stale.len(), unfit }
    };
    let written = wanted.into_iter().map(|(id, signature)| (id, Some(signature)));
    let signatures = written.chain(stale.into_iter().map(|id| (id, None))).collect();
    Plan { signatures, preconditions, next, reason }
}

fn fit(token: &BootstrapToken, now: Timestamp) -> Result<&Signing, Unfit> {
    match &token.signing {
        Ok(signing) if signing.expiration.is_over(now) => Err(Unfit::Expired),
        Ok(signing) => Ok(signing),
        Err(why) => Err(*why),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { signatures, preconditions: _, next: _, reason } = self;
        if signatures.is_empty() {
            return write!(f, "nothing ({reason})");
        }
        let steps = signatures.iter().map(|(id, signature)| match signature {
            Some(_) => format!("sign for {id}"),
            None => format!("remove {id}"),
        });
        write!(f, "{} ({reason})", steps.collect::<Vec<String>>().join(", "))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unfit = match self {
            Self::NoKubeconfig => return f.write_str("no kubeconfig to sign"),
            Self::Signed { tokens, unfit } => {
                write!(f, "signed by {tokens} tokens")?;
                unfit
            }
            Self::Different { unsigned, stale, unfit } => {
                write!(f, "{unsigned} signatures are missing or wrong, {stale} are stale")?;
                unfit
            }
        };
        unfit.iter().try_for_each(|(name, why)| write!(f, "; {name} signs nothing: {why}"))
    }
}
