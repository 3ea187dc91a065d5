//! Wiring, and one sync from observation to status.
//!
//! Left out: which event wakes which key, which is [`shared::controllers::replicas::changes`]' for both kinds.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::api::resource::Resource;
use shared::controllers::replicas::sync::{follow, requeue};
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::flags::Flags;
use crate::objects::ReplicationController;
use crate::observe::Caches;
use crate::plan::{Reason, plan};
use crate::status::next_status;

/// The operator as a process.
pub struct ReplicationControllerOperator;

impl Operator for ReplicationControllerOperator {
    const NAMES: Names = Names {
        operator: "replicationcontroller-operator",
        controller: "replicationcontroller-controller",
        event_source: "replication-controller",
    };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue("replicationmanager", Backoff::default());
        let (caches, writer) = follow(setup, &queue);
        let (clock, decisions) = (setup.clock(), setup.decisions(&queue));
        let controller = Arc::new(ReplicationControllerController { caches, writer, clock, decisions });
        setup.work(controller, &queue, flags.concurrent_rc_syncs);
    }
}

/// Syncs `ReplicationController`s.
pub struct ReplicationControllerController {
    caches: Arc<Caches<ReplicationController>>,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for ReplicationControllerController {
    /// Upstream: `syncReplicaSet`, `pkg/controller/replicaset/replica_set.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.clock.now();
        let Some(observed) = self.caches.observe(&self.writer.expectations, key, now) else {
            self.writer.forget(key);
            return Ok(Requeue::Done);
        };
        let plan = plan(&observed, now);
        self.decisions.record(now, key, &plan);
        if let Reason::InvalidSelector { error } = &plan.reason {
            // An edit brings it back; until then there is nothing to say of it.
            tracing::warn!(%key, %error, "invalid selector");
            return Ok(Requeue::Done);
        }
        let outcome = self.writer.apply(&observed, plan).await;

        let now = self.clock.now();
        let status = next_status(&observed, &outcome, now);
        if let Some(status) = &status {
            self.writer.write_status(&observed, status).await?;
        }
        requeue(&observed, outcome, status.as_ref(), now)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&ReplicationController::RESOURCE)
    }

    fn status_of(&self) -> Option<Resource> {
        Some(ReplicationController::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let now = self.clock.now();
        let observed = self.caches.observe(&self.writer.expectations, key, now);
        observed.iter().map(|observed| stage(&plan(observed, now))).collect()
    }
}
