//! The operator as a process, and one sync of a volume on one screen.

pub mod changes;
mod nodes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::{PERSISTENT_VOLUMES, PODS};
use shared::following::cache::Change;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::{NodeWriter, Writer};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::{DetachMetrics, VolumeCounts};
use crate::objects::VOLUME_ATTACHMENTS;
use crate::objects::volume::VolumeName;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::{Config, is_awaited, plan};
use nodes::NodeController;

/// A sync makes one request or two, and waits for nothing else. Upstream attaches each volume in a goroutine of its own.
const VOLUME_WORKERS: usize = 32;
const NODE_WORKERS: usize = 8;

pub struct PersistentVolumeAttachDetachOperator;

impl Operator for PersistentVolumeAttachDetachOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let of_volumes = setup.queue(facts::VOLUMES.name, Backoff::default());
        let of_nodes = setup.queue(facts::NODES.name, Backoff::default());
        let (caches, informers) = Caches::new();
        let (caches, config) = (Arc::new(caches), Config::from(flags));
        let memory = Arc::clone(&caches.memory);
        setup.on_restore(move || memory.forget_all());
        let Informers {
            mut persistent_volumes,
            mut persistent_volume_claims,
            mut pods,
            mut nodes,
            mut csi_drivers,
            mut volume_attachments,
            claims,
            inline,
        } = informers;
        let effects = setup.effects(&of_volumes);
        persistent_volumes.on_change(effects.with(changes::persistent_volume_changed));
        persistent_volume_claims.on_change(effects.of(&caches, Caches::claim_changed));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        // A standby follows the pods that it will need.
        let noting = Arc::clone(&caches);
        nodes.on_change_at_any_time(move |change| noting.note_inline(change));
        // It also remembers how nodes were deleted, which no cache shows afterwards.
        let noting = Arc::clone(&caches);
        nodes.on_change_at_any_time(move |change| noting.note_left(change));
        let memory = Arc::clone(&caches.memory);
        volume_attachments.on_change_at_any_time(move |change| {
            if let Change::Deleted(attachment) = change {
                memory.note_left(attachment.metadata.uid, false);
            }
        });
        // When work starts, each node is noted again: this handler may have run before the volumes were listed.
        let noting = Arc::clone(&caches);
        nodes.on_change(move |change| noting.note_inline(change));
        nodes.on_change(effects.of(&caches, Caches::node_changed));
        nodes.on_change(setup.effects(&of_nodes).with(changes::report_changed));
        csi_drivers.on_change(effects.of(&caches, Caches::driver_changed));
        volume_attachments.on_change(effects.of(&caches, Caches::attachment_changed));
        setup.watch(persistent_volumes);
        setup.watch(nodes);
        setup.watch(csi_drivers);
        setup.watch(volume_attachments);
        setup.watch_beside(persistent_volume_claims, &claims);
        setup.watch_while_and_beside(pods, &inline, &claims);
        setup.metrics().register_collector(VolumeCounts::new(&caches));
        let ctx = setup.context(&of_volumes);
        let writer = Writer {
            ctx: ctx.clone(),
            memory: Arc::clone(&caches.memory),
            nodes: of_nodes.clone(),
            metrics: DetachMetrics::register(setup.metrics()),
        };
        let node_ctx = setup.context(&of_nodes);
        let node_writer =
            NodeWriter { ctx: node_ctx.clone(), memory: Arc::clone(&caches.memory), volumes: of_volumes.clone() };
        let nodes = NodeController { caches: Arc::clone(&caches), writer: node_writer, config, ctx: node_ctx };
        setup.work(Arc::new(VolumeController { caches, writer, config, ctx }), &of_volumes, VOLUME_WORKERS);
        setup.work(Arc::new(nodes), &of_nodes, NODE_WORKERS);
    }
}

struct VolumeController {
    caches: Arc<Caches>,
    writer: Writer,
    config: Config,
    ctx: ControllerContext,
}

impl Controller for VolumeController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = self.caches.observe(&VolumeName::of_key(key));
        let plan = |observed: &Observed| plan(observed, self.config);
        let read = |observed| self.caches.read_live(self.ctx.control(), observed);
        let (observed, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        self.writer.apply(key, plan, observed.at).await
    }

    /// Of a pod with several volumes, the key of the first that it waits for.
    fn key_of(&self, object: &Subject) -> Option<Key> {
        let Caches { pods, persistent_volumes, volume_attachments, .. } = &*self.caches;
        let volume = if let Some(key) = object.key_of(&PODS) {
            let pod = pods.get(&key)?;
            let volumes = self.caches.volumes_of_pod(&pod);
            let awaited = |volume: &&VolumeName| is_awaited(&self.caches.observe(volume), &pod.node);
            volumes.iter().find(awaited).or_else(|| volumes.first())?.clone()
        } else if let Some(key) = object.key_of(&PERSISTENT_VOLUMES) {
            persistent_volumes.get(&key)?.spec.as_ref()?.volume.clone()
        } else {
            self.caches.volume_of(&*volume_attachments.get(&object.key_of(&VOLUME_ATTACHMENTS)?)?)?
        };
        Some(volume.key())
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(&VolumeName::of_key(key));
        vec![plan(&observed, self.config).stage()]
    }
}
