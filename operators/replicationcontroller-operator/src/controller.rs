//! Wiring. One sync is the same for both kinds that keep a number of pods: [`shared::controllers::replicas::sync`].
//!
//! Left out: which event wakes which key, which is [`shared::controllers::replicas::changes`]'.

use std::sync::Arc;

use shared::controllers::replicas::sync::ReplicaController;
use shared::process::run::{Names, Operator, Setup};
use shared::working::queue::Backoff;

use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::ReplicationController;

pub struct ReplicationControllerOperator;

impl Operator for ReplicationControllerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let backoff = flags.rejected_pod_backoff;
        let controller = ReplicaController::<ReplicationController, _>::new(setup, &queue, (), backoff);
        setup.work(Arc::new(controller), &queue, flags.concurrent_rc_syncs);
    }
}
