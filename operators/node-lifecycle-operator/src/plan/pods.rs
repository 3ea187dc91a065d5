//! Which pods of a node are marked as not ready: those that may be ready by their status, once for each loss of the
//! node.
//!
//! Left out: pods of a node whose kubelet is there and not well, because it still keeps their conditions.
//!
//! Upstream: `MarkPodsNotReady`, `pkg/controller/util/node/controller_utils.go`.

use std::fmt;
use std::sync::Arc;

use shared::api::list::list;
use shared::runtime::decisions::{self, LiveRead, Reasoned};

use crate::objects::Pod;
use crate::observe::ObservedPods;
use crate::plan::reasons::{PodsReason, Question};

/// The decision about the pods of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct PodsPlan {
    /// The pods that are marked.
    pub mark: Vec<Arc<Pod>>,
    /// Why.
    pub reason: PodsReason,
}

/// Whether the pods have to be listed.
pub fn plan_pods_read(observed: &ObservedPods) -> Option<LiveRead<Question>> {
    idle(observed).is_none().then_some(LiveRead { step: "list pods", reason: Question::Ready })
}

/// Decides which of these pods are marked.
pub fn plan_pods(observed: &ObservedPods, pods: &[Arc<Pod>]) -> PodsPlan {
    if let Some(reason) = idle(observed) {
        return PodsPlan { mark: Vec::new(), reason };
    }
    let mark = pods.iter().filter(|pod| pod.may_be_ready).cloned().collect();
    PodsPlan { mark, reason: PodsReason::Lost }
}

/// Why nothing is to be done.
fn idle(observed: &ObservedPods) -> Option<PodsReason> {
    let ObservedPods { node, is_marked } = observed;
    if !node.is_lost() {
        Some(PodsReason::NotLost)
    } else if *is_marked {
        Some(PodsReason::Marked)
    } else {
        None
    }
}

impl Reasoned for PodsPlan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for PodsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mark, reason } = self;
        if mark.is_empty() {
            write!(f, "mark no pods ({reason})")
        } else {
            write!(f, "mark {} ({reason})", list(mark, |pod| pod.metadata.key.to_string()))
        }
    }
}
