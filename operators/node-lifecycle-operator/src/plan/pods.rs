//! Which pods of a lost node are marked as not ready: those that may be ready by their status, once for each loss.
//!
//! If the kubelet runs and the node is not ready, it keeps the conditions of its pods itself.
//!
//! Upstream: `MarkPodsNotReady`, `pkg/controller/util/node/controller_utils.go`.

use std::fmt;
use std::sync::Arc;

use shared::api::list::list;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::Pod;
use crate::observe::ObservedPods;
use crate::plan::Next;
use crate::plan::reasons::{PodsReason, Question};

#[derive(Clone, Debug, PartialEq)]
pub struct PodsPlan {
    pub mark: Vec<Arc<Pod>>,
    pub reason: PodsReason,
}

/// The next stage for the pods of a node: a list of them, unless none can need a mark.
pub fn next_pods(observed: &ObservedPods) -> Next<PodsPlan> {
    let ObservedPods { node, is_marked } = observed;
    let none = |reason| Next::Execute(PodsPlan { mark: Vec::new(), reason });
    if !node.is_lost() {
        none(PodsReason::NotLost)
    } else if *is_marked {
        none(PodsReason::Marked)
    } else {
        Next::Ask(LiveRead { step: "list pods", reason: Question::Ready })
    }
}

/// Decides which of the listed pods of a lost node are marked.
pub fn plan_pods(pods: &[Arc<Pod>]) -> PodsPlan {
    let mark = pods.iter().filter(|pod| pod.may_be_ready).cloned().collect();
    PodsPlan { mark, reason: PodsReason::Lost }
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
