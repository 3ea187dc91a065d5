//! Wiring. One sync is the same for both kinds that keep a number of pods: [`shared::controllers::replicas::sync`].
//!
//! Left out: which event wakes which key, which is [`shared::controllers::replicas::changes`]'.

use std::sync::Arc;

use shared::controllers::replicas::sync::ReplicaController;
use shared::process::run::{Names, Operator, Setup};
use shared::working::queue::Backoff;

use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::ReplicaSetMetrics;
use crate::objects::ReplicaSet;

pub struct ReplicaSetOperator;

impl Operator for ReplicaSetOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let metrics = ReplicaSetMetrics::register(setup.metrics());
        let controller = ReplicaController::<ReplicaSet, _>::new(setup, &queue, metrics, flags.rejected_pod_backoff);
        setup.count_held(
            &queue,
            "replicaset_controller_stale_sync_skips",
            "Total number of ReplicaSet syncs skipped due to a stale watch cache",
        );
        setup.work(Arc::new(controller), &queue, flags.concurrent_replicaset_syncs);
    }
}
