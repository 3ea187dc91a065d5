//! Whether an object is in the scopes of a quota.
//!
//! Upstream: `podMatchesScopeFunc`, `pkg/quota/v1/evaluator/core/pods.go`; `pvcMatchesScopeFunc`,
//! `persistent_volume_claims.go`.

use crate::objects::quota::Operator;
use crate::objects::{ClaimFacts, PodFacts, Scope};

pub fn has_pod(scope: &Scope, pod: &PodFacts) -> bool {
    match scope.name.as_str() {
        "Terminating" => pod.is_terminating,
        "NotTerminating" => !pod.is_terminating,
        "BestEffort" => pod.is_best_effort,
        "NotBestEffort" => !pod.is_best_effort,
        "PriorityClass" => {
            let class = Some(pod.priority_class.as_str()).filter(|class| !class.is_empty());
            // Upstream looks at the operator first, and then at no values.
            if scope.operator == Operator::Exists { class.is_some() } else { scope.selects(class) }
        }
        "CrossNamespacePodAffinity" => pod.has_cross_namespace_affinity,
        _ => false,
    }
}

/// Whether a claim is in this scope: it is if any of its classes is.
pub fn has_claim(scope: &Scope, claim: &ClaimFacts) -> bool {
    let classes = &claim.attributes_classes;
    if scope.name != "VolumeAttributesClass" {
        return false;
    }
    if scope.operator == Operator::Exists {
        return !classes.is_empty();
    }
    if classes.is_empty() { scope.selects(None) } else { classes.iter().any(|class| scope.selects(Some(class))) }
}
