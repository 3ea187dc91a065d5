//! Whether a pod's node has rejected it: a kubelet that does not admit a pod ends it before any container starts.
//!
//! Left out: which reasons there are. A kubelet's plugins have reasons of their own, such as `OutOfexample.com/gpu`.

use serde::de::IgnoredAny;

use crate::api::intern::Text;
use crate::api::pod::Phase;

/// `containerStatuses` or `initContainerStatuses`, of which only counts whether there is any.
pub type ContainerStatuses = Option<Vec<IgnoredAny>>;

/// The reason for which a pod's node has rejected it; none where it has not. `containers` are both lists of its status:
/// a kubelet tells of no container of a pod that it has not admitted.
///
/// Upstream: `rejectPod`, `pkg/kubelet/kubelet.go`.
pub fn rejection(phase: Phase, reason: &str, containers: &[ContainerStatuses; 2]) -> Option<Text> {
    let has_containers = containers.iter().flatten().any(|all| !all.is_empty());
    (phase == Phase::Failed && !reason.is_empty() && !has_containers).then(|| Text::new(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_rejected_that_failed_for_a_reason_and_has_no_container() {
        let out_of_cpu = Some(Text::new("OutOfcpu"));
        let (none, one) = ([None, Some(Vec::new())], [Some(vec![IgnoredAny]), None]);
        assert_eq!(rejection(Phase::Failed, "OutOfcpu", &none), out_of_cpu);
        assert_eq!(rejection(Phase::Failed, "Evicted", &one), None);
        assert_eq!(rejection(Phase::Failed, "", &none), None);
        assert_eq!(rejection(Phase::Pending, "OutOfcpu", &none), None);
        assert_eq!(rejection(Phase::Succeeded, "OutOfcpu", &none), None);
    }
}
