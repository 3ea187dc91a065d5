//! Wiring, and one sync from observation to status.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::api::resource::DEPLOYMENTS;
use shared::controllers::live_spec::complete;
use shared::controllers::status_writer::{Retry, StatusWrite, StatusWriter};
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::{Failure, Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::{Deployment, ReplicaSet};
use crate::observe::{Caches, Informers, Observed, live_pods};
use crate::plan::ladder::{Next, next};
use crate::plan::new_replica_set::{AfterCreation, Creation, after_creation};
use crate::plan::reasons::Reason;
use crate::plan::template_read::TemplateOf;
use crate::plan::{StatusScope, live_read, progress};
use crate::status::{NextStatus, next_status};

pub struct DeploymentOperator;

impl Operator for DeploymentOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let (caches, Informers { mut deployments, mut replica_sets }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        deployments.on_change(effects.with(changes::deployment_changed));
        replica_sets.on_change(effects.of(&caches, Caches::replica_set_changed));
        let need = deployments.need(|_| true);
        setup.watch(deployments);
        setup.watch_while(replica_sets, &need);

        let ctx = setup.context(&queue);
        let statuses = StatusWriter::new(DEPLOYMENTS, Retry::Never, ctx.clone());
        let controller = DeploymentController { caches, writer: Writer { ctx: ctx.clone(), statuses }, ctx };
        setup.work(Arc::new(controller), &queue, flags.concurrent_deployment_syncs);
    }
}

pub struct DeploymentController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for DeploymentController {
    /// Upstream: `syncDeployment`, `pkg/controller/deployment/deployment_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else {
            self.ctx.forget(key, None);
            return Ok(Requeue::Done);
        };
        let (observed, outcome) = self.act(observed).await?;

        let now = self.ctx.now();
        let status = next_status(&observed, &outcome, now);
        let written = match &status {
            Some(NextStatus { patch, is_in_between }) => {
                // After a failure the next sync may be half a minute away.
                let can_wait = *is_in_between && outcome.failure.is_none();
                self.writer.write_status(&observed, outcome.version, patch, can_wait).await.map(Some)
            }
            None => Ok(None),
        };
        if let Some(Failure { error, before_status: _ }) = outcome.failure {
            return Err(match written {
                Ok(_) => error,
                Err(also) => error.context(format!("{also:#}; before that")),
            });
        }
        let later = written?.and_then(StatusWrite::timer);
        let is_settled = status.is_none() && outcome.scope == StatusScope::Rollout;
        // A write comes back as an event.
        let check = is_settled.then(|| progress::next_check(&observed, &observed.deployment.status, now)).flatten();
        let live_read = live_read::next_live_read(&observed, now);
        let check = check.map(|delay| (delay, "its progress deadline"));
        let live_read = live_read.map(|delay| (delay, "the end of its old pods"));
        Ok(Requeue::earliest([check, live_read, later]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&Deployment::RESOURCE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        observed.map(|observed| next(observed, self.ctx.now()).1.stage()).into_iter().collect()
    }
}

impl DeploymentController {
    /// Executes the stages. A plan that creates the new ReplicaSet is followed by another one.
    async fn act(&self, mut observed: Observed) -> anyhow::Result<(Observed, Outcome)> {
        loop {
            let (known, stage) = next(observed, self.ctx.now());
            let key = &known.deployment.metadata.key;
            observed = match stage {
                Next::Claim(claim) => {
                    self.ctx.decide(key, &claim);
                    let replica_sets = self.writer.claim(&known, claim).await?;
                    known.claimed(replica_sets)
                }
                Next::ListPods(live_read) => {
                    self.ctx.decide(key, &live_read);
                    let pods = live_pods(self.ctx.control(), &known.deployment).await?;
                    known.with_live_pods(pods)
                }
                Next::ReadTemplate(live_read, of) => {
                    self.ctx.decide(key, &live_read);
                    let control = self.ctx.control();
                    match of {
                        TemplateOf::Deployment => {
                            let deployment = complete(control, &known.deployment).await?;
                            known.with_template(deployment)
                        }
                        TemplateOf::ReplicaSet(replica_set) => {
                            known.with_template_of(&complete(control, &replica_set).await?)
                        }
                    }
                }
                Next::Act(plan) => {
                    self.ctx.decide(key, &plan);
                    if let Reason::InvalidSelector { error } = &plan.reason {
                        tracing::warn!(%key, %error, "invalid selector");
                    }
                    let (revision, progressing) = (plan.revision.clone(), plan.progressing.clone());
                    let mut outcome = self.writer.apply(&known, plan).await;
                    let known = known.decided(revision, progressing);
                    let (known, new) = self.after_creation(known, &mut outcome);
                    match new {
                        Some(new) => known.with_replica_set(new),
                        None => return Ok((known, outcome)),
                    }
                }
            };
        }
    }

    /// The consequences of a creation, and the new ReplicaSet if there is one now.
    fn after_creation(&self, observed: Observed, outcome: &mut Outcome) -> (Observed, Option<Arc<ReplicaSet>>) {
        let Some((planned, creation)) = outcome.creation.take() else { return (observed, None) };
        let creation = match creation {
            Creation::AlreadyExists(None) => {
                let name = Key::new(observed.deployment.metadata.namespace(), &planned.name);
                Creation::AlreadyExists(self.caches.replica_sets.get(&name))
            }
            Creation::AlreadyExists(Some(_))
            | Creation::Created(_)
            | Creation::NamespaceTerminating
            | Creation::Failed(_) => creation,
        };
        let AfterCreation { new, progressing, collision_count, event } =
            after_creation(&observed, &planned, &creation, self.ctx.now());
        if let Some(event) = event {
            self.ctx.event(event);
        }
        if collision_count.is_some() {
            // Not a failure: the count is written with the status, and that brings the key back for another name.
            outcome.failure = None;
        }
        (observed.decided(None, progressing).collided(collision_count), new)
    }
}
