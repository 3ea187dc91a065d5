//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Memory, Names, Queue};

/// Its keys are unique names of volumes.
pub const VOLUMES: Queue = Queue::other("attach_detach_volume");
pub const NODES: Queue = Queue::of("Node", "attach_detach_node");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "persistentvolume-attach-detach-operator",
        controller: "persistentvolume-attach-detach-controller",
        event_source: "attachdetach-controller",
    },
    queues: &[VOLUMES, NODES],
    queues_without: &["pvcs"],
    acts_on: &[
        Acts::on("", "PersistentVolume"),
        Acts::on("", "Pod"),
        Acts::on("", "Node"),
        Acts::keeps("storage.k8s.io", "VolumeAttachment"),
    ],
    memory: Some(Memory {
        keeps: "all volumes, nodes and VolumeAttachments; pods and claims of namespaces with such volumes",
        bytes: "taken as 450 a pod",
        request: "32Mi",
        limit: "192Mi",
    }),
    ..Facts::NONE
};
