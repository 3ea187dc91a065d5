//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("PersistentVolumeClaim", "volume_expand");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "persistentvolume-expander-operator",
        controller: "persistentvolume-expander-controller",
        event_source: "volume_expand",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "PersistentVolumeClaim")],
    ..Facts::NONE
};
