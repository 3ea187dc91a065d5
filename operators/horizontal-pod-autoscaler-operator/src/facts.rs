//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, KnownDifference, Names, Queue};

pub const QUEUE: Queue = Queue::of("HorizontalPodAutoscaler", "horizontalpodautoscaler");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "horizontal-pod-autoscaler-operator",
        controller: "horizontal-pod-autoscaler-controller",
        event_source: "horizontal-pod-autoscaler",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("autoscaling", "HorizontalPodAutoscaler")],
    differences: &[KnownDifference {
        resource: "horizontalpodautoscalers.autoscaling/status",
        paths: &["status.conditions", "status.currentMetrics"],
        decided: "the metrics are too old: ",
        sentence: "A value that is too old counts as missing, and one of an object or from outside fails.",
    }],
    // By default an autoscaler is synced so seldom, and scales down so late, that no test could wait for it.
    needed_flags: &[
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--horizontal-pod-autoscaler-downscale-stabilization=3s",
    ],
    ..Facts::NONE
};
