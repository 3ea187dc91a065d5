//! Wiring, and one sync from observation to status.
//!
//! Left out: which change wakes which key, which is `changes`'.

mod changes;

use std::sync::Arc;

use shared::api::object::Key;
use shared::runtime::cache::Change;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::queue::{Backoff, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use self::changes::Wake;
use crate::apply::{Failure, Outcome, Writer};
use crate::flags::Flags;
use crate::objects::Deployment;
use crate::observe::{Caches, Observed};
use crate::plan::sync::after_creation;
use crate::plan::{StatusScope, plan, progress};
use crate::status::{StatusPatch, next_status};

/// The operator as a process.
pub struct DeploymentOperator;

impl Operator for DeploymentOperator {
    const NAMES: Names = Names {
        operator: "deployment-operator",
        controller: "deployment-controller",
        event_source: "deployment-controller",
    };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue("deployment", Backoff::default());
        let (caches, mut deployments, mut replica_sets, mut pods) = Caches::new();
        let caches = Arc::new(caches);
        let writer = Arc::new(Writer::new(setup.control(&queue), setup.recorder()));

        let (woken, control) = (queue.clone(), setup.control(&queue));
        deployments.on_change(move |change| {
            if let Change::Deleted(deployment) = change {
                control.forget(&deployment.metadata.key, Some(deployment.metadata.uid));
            }
            enqueue(&woken, [Caches::deployment_changed(change)]);
        });
        let (known, woken) = (Arc::clone(&caches), queue.clone());
        replica_sets.on_change(move |change| enqueue(&woken, known.replica_set_changed(change)));
        let (known, woken) = (Arc::clone(&caches), queue.clone());
        pods.on_change(move |change| enqueue(&woken, known.pod_changed(change)));
        setup.watch(deployments);
        setup.watch(replica_sets);
        setup.watch(pods);

        let (clock, decisions) = (setup.clock(), setup.decisions(&queue));
        let controller = Arc::new(DeploymentController { caches, writer, clock, decisions });
        setup.work(controller, &queue, flags.concurrent_deployment_syncs);
    }
}

fn enqueue(queue: &Queue, wakes: impl IntoIterator<Item = Wake>) {
    for Wake { key, cause } in wakes {
        queue.add(&key, cause);
    }
}

/// Syncs Deployments.
pub struct DeploymentController {
    caches: Arc<Caches>,
    writer: Arc<Writer>,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for DeploymentController {
    /// Upstream: `syncDeployment`, `pkg/controller/deployment/deployment_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(deployment) = self.caches.deployments.get(key) else {
            self.writer.control.forget(key, None);
            return Ok(Requeue::Done);
        };
        let observed = self.observe(deployment).await?;
        let stage = self.stage(observed).await;
        let stage = self.after_creation(stage).await;
        self.finish(stage).await
    }
}

/// What is known once a plan was carried out.
struct Stage {
    /// As it was observed, with what was decided.
    observed: Observed,
    scope: StatusScope,
    outcome: Outcome,
}

impl DeploymentController {
    /// Reads the caches, and adopts and releases ReplicaSets.
    async fn observe(&self, deployment: Arc<Deployment>) -> anyhow::Result<Observed> {
        let claim = self.caches.claim(&deployment)?;
        let replica_sets = self.writer.claim(&deployment, claim).await?;
        let pods = self.caches.pods_of(&replica_sets);
        Ok(Observed::new(deployment, replica_sets, pods))
    }

    async fn stage(&self, observed: Observed) -> Stage {
        let now = self.clock.now();
        let plan = plan(&observed, now);
        self.decisions.record(now, &observed.deployment.metadata.key, &plan);
        let (scope, revision, progressing) = (plan.status, plan.revision.clone(), plan.progressing.clone());
        let outcome = self.writer.apply(&observed, plan).await;
        Stage { observed: observed.decided(revision, progressing), scope, outcome }
    }

    /// Goes on with the new ReplicaSet, if there is one now.
    async fn after_creation(&self, stage: Stage) -> Stage {
        let Stage { observed, scope, mut outcome } = stage;
        let Some((planned, creation)) = outcome.creation.take() else { return Stage { observed, scope, outcome } };
        let creation = self.caches.known(creation, &observed, &planned.name);
        let after = after_creation(&observed, &planned, &creation, self.clock.now());
        if let Some(event) = after.event {
            self.writer.tell(&observed.deployment, event);
        }
        let observed = observed.decided(None, after.progressing).collided(after.collision_count);
        if let Some(new) = after.new {
            return self.stage(observed.with_replica_set(new)).await;
        }
        if after.collision_count.is_some() {
            // Not a failure: the count is written with the status, and that brings the key back for another name.
            outcome.failure = None;
        }
        Stage { observed, scope, outcome }
    }

    /// Writes the status, and says when to look again.
    async fn finish(&self, stage: Stage) -> anyhow::Result<Requeue> {
        let Stage { observed, scope, outcome } = stage;
        let Outcome { version, creation: _, failure } = outcome;
        let now = self.clock.now();
        let fell_short = failure.as_ref().is_some_and(|failure| failure.before_status);
        let scope = if fell_short { StatusScope::Decided } else { scope };
        let next = next_status(&observed, scope, now);
        let check = (scope == StatusScope::Rollout).then(|| progress::next_check(&observed, &next, now)).flatten();
        let patch = StatusPatch::new(&observed, next, version);
        let is_written = patch.is_some();
        let written = match patch {
            Some(patch) => self.writer.write_status(&observed.deployment, &patch).await,
            None => Ok(()),
        };
        if let Some(Failure { error, before_status: _ }) = failure {
            return Err(match written {
                Ok(()) => error,
                Err(also) => error.context(format!("{also:#}; before that")),
            });
        }
        written?;
        // What is written comes back as an event.
        Ok(check.filter(|_| !is_written).map_or(Requeue::Done, Requeue::After))
    }
}
