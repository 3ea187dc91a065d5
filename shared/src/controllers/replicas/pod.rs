//! The view of a Pod for a controller that keeps a number of them: its node, its readiness, its owner.
//!
//! Left out: everything else, most of all the pod's spec; it never differs from the template's in a way that matters.

use serde::{Deserialize, Deserializer};

use crate::api::intern::Text;
use crate::api::object::Meta;
use crate::api::pod::container::{ContainerStatus, InitContainer, sidecars};
use crate::api::pod::ranking::Standing;
use crate::api::pod::{Conditions, DeletionCost, Phase, PodView, Readiness, Restarts};
use crate::api::resource::PODS;

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Its metadata; of the annotations, the deletion cost.
    pub metadata: Meta<DeletionCost>,
    /// `spec.nodeName`, `""` if it has none yet.
    pub node: Text,
    pub phase: Phase,
    pub readiness: Readiness,
    /// Whether the scheduler has found no node for it.
    pub is_unschedulable: bool,
    pub restarts: Restarts,
}

impl Pod {
    /// Whether both states of one pod lead to the same decisions.
    pub fn is_alike(&self, other: &Self) -> bool {
        let Self { metadata, node, phase, readiness, is_unschedulable, restarts } = self;
        let meta = |meta: &Meta<DeletionCost>| {
            let Meta { labels, annotations, deletion, controller, .. } = meta;
            (labels.clone(), *annotations, *deletion, controller.clone())
        };
        meta(metadata) == meta(&other.metadata)
            && (node, phase, readiness, restarts) == (&other.node, &other.phase, &other.readiness, &other.restarts)
            && *is_unschedulable == other.is_unschedulable
    }

    /// How it stands among others when some must go; `colocated` is how many related pods are on its node.
    pub fn standing(&self, colocated: usize) -> Standing {
        Standing {
            uid: self.metadata.uid,
            is_assigned: !self.node.is_empty(),
            phase: self.phase,
            readiness: self.readiness,
            deletion_cost: self.metadata.annotations,
            colocated,
            restarts: self.restarts,
            creation: self.metadata.creation,
        }
    }
}

crate::view!(Pod, PODS, DeletionCost);

impl PodView for Pod {
    fn phase(&self) -> Phase {
        self.phase
    }
    fn readiness(&self) -> Readiness {
        self.readiness
    }
}

#[derive(Deserialize)]
struct Raw<'a> {
    metadata: Meta<DeletionCost>,
    #[serde(borrow, default)]
    spec: RawSpec<'a>,
    #[serde(borrow, default)]
    status: RawStatus<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec<'a> {
    node_name: Text,
    #[serde(borrow)]
    init_containers: Option<Vec<InitContainer<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus<'a> {
    phase: Phase,
    conditions: Conditions,
    #[serde(borrow)]
    container_statuses: Option<Vec<ContainerStatus<'a>>>,
    #[serde(borrow)]
    init_container_statuses: Option<Vec<ContainerStatus<'a>>>,
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec, status } = Raw::deserialize(deserializer)?;
        let sidecars = sidecars(spec.init_containers.as_deref(), status.init_container_statuses.as_deref());
        let restarts = Restarts::highest(status.container_statuses.as_deref(), sidecars);
        let Conditions { readiness, is_unschedulable } = status.conditions;
        Ok(Self { metadata, node: spec.node_name, phase: status.phase, readiness, is_unschedulable, restarts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::time::Time;
    use crate::testing::{NOW, pod};
    use serde_json::json;

    #[test]
    fn reads_what_counts_and_skips_the_rest() {
        let init_containers = json!([{ "name": "sidecar", "restartPolicy": "Always" }, { "name": "setup" }]);
        let init_statuses =
            json!([{ "name": "sidecar", "restartCount": 4 }, { "name": "setup", "restartCount": 9, "state": {} }]);
        let statuses = json!([{ "name": "a", "restartCount": 2 }, { "name": "b", "restartCount": 3 }]);
        let pod = pod("web-a")
            .ready()
            .deletion_cost("-7")
            .set(&["spec", "initContainers"], init_containers)
            .set(&["spec", "containers"], json!([{ "name": "a", "image": "\u{1F980}" }]))
            .set(&["status", "containerStatuses"], statuses)
            .set(&["status", "initContainerStatuses"], init_statuses)
            .build::<Pod>();
        assert_eq!(pod.node, "node");
        assert_eq!(pod.phase, Phase::Running);
        assert_eq!(pod.readiness, Readiness::Ready { since: Some(Time::of(NOW)) });
        assert_eq!(pod.restarts, Restarts { containers: 3, sidecars: 4 });
        assert_eq!(pod.metadata.annotations, DeletionCost(-7));
    }

    #[test]
    fn a_pod_of_metadata_alone_is_readable() {
        let pod: Pod = serde_json::from_str(r#"{"metadata":{"name":"a"}}"#).unwrap();
        assert!(pod.node.is_empty());
        assert_eq!((pod.phase, pod.readiness), (Phase::Other, Readiness::NotReady));
    }

    #[test]
    fn active_terminating_and_terminal_exclude_each_other() {
        let check = |builder: crate::testing::ObjectBuilder, active, terminating| {
            let pod = builder.build::<Pod>();
            assert_eq!((pod.is_active(), pod.is_terminating()), (active, terminating), "{pod:?}");
        };
        check(pod("a"), true, false);
        check(pod("a").phase(""), true, false);
        check(pod("a").terminating(), false, true);
        check(pod("a").phase("Succeeded"), false, false);
        check(pod("a").phase("Failed").terminating(), false, false);
    }

    #[test]
    fn a_pod_that_the_scheduler_finds_no_node_for_has_changed() {
        let pending = pod("a").node("").phase("Pending");
        let unschedulable = pending.clone().unschedulable().build::<Pod>();
        assert!(unschedulable.is_unschedulable && !unschedulable.is_alike(&pending.build::<Pod>()));
    }

    #[test]
    fn a_pod_stays_small() {
        assert!(size_of::<Pod>() <= 176, "{} bytes", size_of::<Pod>());
    }
}
