//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, KnownDifference, Names, Queue};

pub const QUEUE: Queue = Queue::of("ClusterRole", "ClusterRoleAggregator");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "clusterrole-aggregation-operator",
        controller: "clusterrole-aggregation-controller",
        event_source: "clusterrole-aggregation-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps("rbac.authorization.k8s.io", "ClusterRole")],
    differences: &[KnownDifference {
        resource: "clusterroles.rbac.authorization.k8s.io",
        paths: &["rules"],
        decided: "apply 0 rules",
        sentence: "Where the selected roles have no rules, an empty list is applied, and replaces rules that somebody \
                   else has written.",
    }],
    // The apiserver checks it within a write, and logs no request.
    rights_without_request: &["escalate clusterroles"],
    ..Facts::NONE
};
