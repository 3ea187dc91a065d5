//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Memory, Names, Queue};

pub const PODS: Queue = Queue::of("Pod", "device-taint-eviction-controller");
pub const RULES: Queue = Queue::of("DeviceTaintRule", "device-taint-eviction-controller-rules");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "device-taint-eviction-operator",
        controller: "device-taint-eviction-controller",
        event_source: "device-taint-eviction-controller",
    },
    queues: &[PODS, RULES],
    acts_on: &[Acts::on("", "Pod"), Acts::keeps_with_status("resource.k8s.io", "DeviceTaintRule")],
    needed_flags: &["--feature-gates=DRADeviceTaintRules=true"],
    memory: Some(Memory {
        keeps: "ResourceClaims; while one is allocated, ResourceSlices, and pods of namespaces with tainted claims",
        bytes: "taken as 600 a claim, 100 a device, and 400 a pod",
        request: "32Mi",
        limit: "192Mi",
    }),
    ..Facts::NONE
};
