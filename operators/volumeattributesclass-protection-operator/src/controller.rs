//! Wiring. One sync is the same for all protected kinds: [`shared::controllers::protection::sync`].

pub mod changes;

use std::sync::Arc;

use shared::controllers::protection::sync::ProtectionController;
use shared::process::run::{Names, Operator, Setup};
use shared::working::queue::Backoff;

use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers};
use changes::class_changed;

/// Upstream's.
const WORKERS: usize = 1;

pub struct VolumeAttributesClassProtectionOperator;

impl Operator for VolumeAttributesClassProtectionOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut volume_attributes_classes, mut persistent_volumes, mut persistent_volume_claims }) =
            Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        volume_attributes_classes.on_change(effects.with(class_changed));
        persistent_volumes.on_change(effects.of(&caches, Caches::volume_changed));
        persistent_volume_claims.on_change(effects.of(&caches, Caches::claim_changed));
        let deletions = volume_attributes_classes.need(|class| class.metadata.is_being_deleted());
        setup.watch(volume_attributes_classes);
        setup.watch_while(persistent_volumes, &deletions);
        setup.watch_while(persistent_volume_claims, &deletions);
        let controller = ProtectionController { caches, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}
