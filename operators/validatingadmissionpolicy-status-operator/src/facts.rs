//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("ValidatingAdmissionPolicy", "validatingadmissionpolicy-status");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "validatingadmissionpolicy-status-operator",
        controller: "validatingadmissionpolicy-status-controller",
        event_source: "validatingadmissionpolicy-status-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")],
    ..Facts::NONE
};
