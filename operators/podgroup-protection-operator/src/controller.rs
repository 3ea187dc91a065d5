//! Wiring. One sync is the same for all protected kinds: [`shared::controllers::protection::sync`].

pub mod changes;

use std::sync::Arc;

use shared::controllers::protection::sync::ProtectionController;
use shared::process::run::{Names, Operator, Setup};
use shared::working::queue::Backoff;

use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers};
use changes::group_changed;

/// Upstream's.
const WORKERS: usize = 1;

pub struct PodGroupProtectionOperator;

impl Operator for PodGroupProtectionOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut pod_groups, mut pods }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        pod_groups.on_change(effects.with(group_changed));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        let deletions = pod_groups.need(|group| group.metadata.is_being_deleted());
        setup.watch_while_served(pod_groups);
        setup.watch_beside(pods, &deletions);
        let controller = ProtectionController { caches, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}
