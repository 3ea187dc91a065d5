//! The reasons of decisions, for programs and in words.

use std::fmt;

use serde::Serialize;
use shared::api::list::list;
use shared::api::time::Time;
use shared::working::decisions;

use super::due::Cause;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    Gone,
    BeingDeleted,
    /// Its devices have no `NoExecute` taints, or tolerate them forever.
    NotTainted {
        claims: usize,
    },
    /// Taints of its devices end it, at this time.
    Tainted {
        causes: Vec<Cause>,
        due: Time,
    },
}

/// Why the condition of a DeviceTaintRule is written, or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RuleReason {
    /// It was written within ten seconds.
    WrittenJustNow,
    /// It is written once for each generation.
    Simulated,
    /// It counts the pods that were evicted before this process began, and none is left.
    CompletedBefore,
    Pending {
        pods: usize,
        namespaces: usize,
    },
    NothingPending,
    /// What the effect `NoExecute` would do.
    WouldEvict {
        published: usize,
        allocated: usize,
        pods: usize,
        namespaces: usize,
    },
    /// The effect evicts no pods.
    OtherEffect,
}

impl decisions::Reason for Reason {}
impl decisions::Reason for RuleReason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the pod is gone"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NotTainted { claims: 0 } => f.write_str("uses no claims"),
            Self::NotTainted { claims } => {
                write!(f, "claims: {claims}, without NoExecute taints or tolerating them forever")
            }
            Self::Tainted { causes, due } => write!(f, "{}, due {due}", list(causes, Cause::to_string)),
        }
    }
}

impl fmt::Display for RuleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrittenJustNow => f.write_str("its condition was written within 10s"),
            Self::Simulated => f.write_str("its condition says what NoExecute would do"),
            Self::CompletedBefore => f.write_str("no pods to evict since this process began"),
            Self::Pending { pods, namespaces } => write!(f, "pods to evict: {pods}, in namespaces: {namespaces}"),
            Self::NothingPending => f.write_str("no pods to evict"),
            Self::WouldEvict { published, allocated, pods, namespaces } => write!(
                f,
                "effect None, devices published: {published}, allocated: {allocated}, pods: {pods}, \
                 in namespaces: {namespaces}"
            ),
            Self::OtherEffect => f.write_str("its effect evicts no pods"),
        }
    }
}
