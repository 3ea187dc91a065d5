//! Wiring, and one sync from observation to status.
//!
//! Left out: which change wakes which key, which is `changes`'.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::api::resource::Resource;
use shared::controllers::pace::{NEXT_STATUS, Pace};
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, first_stage, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Failure, Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::Deployment;
use crate::observe::{Caches, Informers, Observed, live_pods};
use crate::plan::claim::plan_claim;
use crate::plan::reason::Reason;
use crate::plan::sync::after_creation;
use crate::plan::{StatusScope, plan, progress, recreate};
use crate::status::next_status;

/// The operator as a process.
pub struct DeploymentOperator;

impl Operator for DeploymentOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let (caches, Informers { mut deployments, mut replica_sets }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        deployments.on_change(effects.of(&caches, |_, change| Caches::deployment_changed(change)));
        replica_sets.on_change(effects.of(&caches, Caches::replica_set_changed));
        let need = deployments.need(|_| true);
        setup.watch(deployments);
        setup.watch_while(replica_sets, &need);

        let writer = Writer { control: setup.control(&queue), recorder: setup.recorder() };
        let (pace, clock, decisions) = (Pace::for_people(), setup.clock(), setup.decisions(&queue));
        let controller = Arc::new(DeploymentController { caches, writer, pace, clock, decisions });
        setup.work(controller, &queue, flags.concurrent_deployment_syncs);
    }
}

/// Syncs Deployments.
pub struct DeploymentController {
    caches: Arc<Caches>,
    writer: Writer,
    pace: Pace,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for DeploymentController {
    /// Upstream: `syncDeployment`, `pkg/controller/deployment/deployment_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.writer.control.forget(key, None);
            return Ok(Requeue::Done);
        };
        let observed = self.claim(observed).await?;
        let observed = self.list_pods(observed).await?;
        let (observed, outcome) = self.carry_out(observed).await;
        let (observed, outcome) = self.after_creation(observed, outcome).await;

        let now = self.clock.now();
        let status = next_status(&observed, &outcome, now);
        let pods = observed.pods();
        let later = status.as_ref().and_then(|status| {
            // After a failure the next sync may be half a minute away.
            let is_in_between = status.is_in_between() && outcome.failure.is_none();
            let until_seen = (outcome.has_scaled && is_in_between).then(|| self.pace.until_seen(key, now)).flatten();
            until_seen.or_else(|| self.pace.put_off(key, pods, is_in_between, now))
        });
        let written = match status.as_ref().filter(|_| later.is_none()) {
            Some(status) => self.writer.write_status(&observed, status).await,
            None => Ok(()),
        };
        if let Some(Failure { error, before_status: _ }) = outcome.failure {
            return Err(match written {
                Ok(()) => error,
                Err(also) => error.context(format!("{also:#}; before that")),
            });
        }
        written?;
        let is_settled = status.is_none() && outcome.scope == StatusScope::Rollout;
        // A write comes back as an event.
        let check = is_settled.then(|| progress::next_check(&observed, &observed.deployment.status, now)).flatten();
        let live_read = recreate::next_live_read(&observed, now);
        let check = check.map(|delay| (delay, "its progress deadline"));
        let live_read = live_read.map(|delay| (delay, "the end of its old pods"));
        Ok(Requeue::earliest([check, live_read, later.map(|delay| (delay, NEXT_STATUS))]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&Deployment::RESOURCE)
    }

    fn status_of(&self) -> Option<Resource> {
        Some(Deployment::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let Some(observed) = self.caches.observe(key) else { return Vec::new() };
        let claim = plan_claim(&observed);
        if !claim.is_settled() {
            return vec![stage(&claim)];
        }
        let (observed, now) = (observed.claimed(claim.owned), self.clock.now());
        vec![first_stage(recreate::plan_live_read(&observed, now), || plan(&observed, now))]
    }
}

impl DeploymentController {
    /// The first stage, for the next one counts what it has claimed.
    async fn claim(&self, observed: Observed) -> anyhow::Result<Observed> {
        let claim = plan_claim(&observed);
        if !claim.is_settled() {
            self.decisions.record(self.clock.now(), &observed.deployment.metadata.key, &claim);
        }
        let replica_sets = self.writer.claim(&observed, claim).await?;
        Ok(observed.claimed(replica_sets))
    }

    /// The second stage, where what is to be done depends on pods of which no status tells.
    async fn list_pods(&self, observed: Observed) -> anyhow::Result<Observed> {
        let now = self.clock.now();
        let Some(live_read) = recreate::plan_live_read(&observed, now) else { return Ok(observed) };
        self.decisions.record(now, &observed.deployment.metadata.key, &live_read);
        let pods = live_pods(&self.writer.control, &observed.deployment).await?;
        Ok(observed.with_live_pods(pods))
    }

    /// Gives what was observed, with what was decided about the Deployment.
    async fn carry_out(&self, observed: Observed) -> (Observed, Outcome) {
        let now = self.clock.now();
        let plan = plan(&observed, now);
        let key = &observed.deployment.metadata.key;
        self.decisions.record(now, key, &plan);
        if let Reason::InvalidSelector { error } = &plan.reason {
            // An edit brings it back; until then there is nothing to say of it.
            tracing::warn!(%key, %error, "invalid selector");
        }
        let (revision, progressing) = (plan.revision.clone(), plan.progressing.clone());
        let outcome = self.writer.apply(&observed, plan).await;
        (observed.decided(revision, progressing), outcome)
    }

    /// Goes on with the new ReplicaSet, if there is one now.
    async fn after_creation(&self, observed: Observed, mut outcome: Outcome) -> (Observed, Outcome) {
        let Some((planned, creation)) = outcome.creation.take() else { return (observed, outcome) };
        let creation = self.caches.known(creation, &observed, &planned.name);
        let after = after_creation(&observed, &planned, &creation, self.clock.now());
        if let Some(event) = after.event {
            self.writer.event(&observed.deployment, event);
        }
        let observed = observed.decided(None, after.progressing).collided(after.collision_count);
        if let Some(new) = after.new {
            return self.carry_out(observed.with_replica_set(new)).await;
        }
        if after.collision_count.is_some() {
            // Not a failure: the count is written with the status, and that brings the key back for another name.
            outcome.failure = None;
        }
        (observed, outcome)
    }
}
