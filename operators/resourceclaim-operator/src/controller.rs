//! The operator as a process, and one sync of a claim.

pub mod changes;
mod users;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::effect::Effects;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::{ClaimCounts, ClaimMetrics};
use crate::objects::RESOURCE_CLAIMS;
use crate::observe::{Caches, Informers};
use crate::plan::users::{plan_pod, plan_pod_group};
use crate::plan::{Next, plan};
use changes::{claim_changed, group_changed, pod_changed};
use users::UserController;

pub struct ResourceClaimOperator;

impl Operator for ResourceClaimOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let claims = setup.queue(facts::CLAIMS.name, Backoff::default());
        let pods = setup.queue(facts::PODS.name, Backoff::default());
        let groups = setup.queue(facts::POD_GROUPS.name, Backoff::default());
        let ctx = setup.context(&claims);
        let (caches, informers) = Caches::new(flags.feature_gates);
        let caches = Arc::new(caches);
        let effects =
            QueueEffects { claims: setup.effects(&claims), pods: setup.effects(&pods), groups: setup.effects(&groups) };
        follow(setup, &caches, informers, &effects);
        let metrics = ClaimMetrics::register(setup.metrics());
        let (registry, resource_claims) = (setup.metrics().clone(), Arc::clone(&caches.resource_claims));
        // The leader counts the claims, so that a sum over replicas is their number.
        setup.at_start(move || registry.register_collector(ClaimCounts { resource_claims }));
        let of_pods = UserController::new(setup, &pods, &caches, &metrics, (Caches::observe_pod, plan_pod));
        let of_groups =
            UserController::new(setup, &groups, &caches, &metrics, (Caches::observe_pod_group, plan_pod_group));
        let controller = ResourceClaimController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        let syncs = flags.concurrent_resourceclaim_syncs;
        setup.work(Arc::new(controller), &claims, syncs);
        setup.work(Arc::new(of_pods), &pods, syncs);
        setup.work(Arc::new(of_groups), &groups, syncs);
    }
}

/// The effects of changes on each of the queues.
struct QueueEffects {
    claims: Effects,
    pods: Effects,
    groups: Effects,
}

/// Follow claims and templates, and the pods of their namespaces; and PodGroups, if they have claims.
fn follow(setup: &mut Setup, caches: &Arc<Caches>, informers: Informers, effects: &QueueEffects) {
    let Informers { mut resource_claims, mut resource_claim_templates, mut pods, mut pod_groups } = informers;
    let known = Arc::clone(caches);
    setup.on_restore(move || known.deleted.start_over());

    // A deletion is remembered before it leads to a sync.
    let known = Arc::clone(caches);
    pods.on_change(move |change| known.note_deleted_pod(change));
    pods.on_change(effects.claims.of(caches, Caches::claims_of_ended_pod));
    pods.on_change(effects.pods.with(pod_changed));
    resource_claims.on_change(effects.claims.with(claim_changed));
    resource_claims.on_change(effects.pods.of(caches, Caches::pods_of_changed_claim));
    resource_claim_templates.on_change(effects.pods.of(caches, Caches::pods_of_new_template));

    let need = resource_claims.need(|_| true);
    resource_claim_templates.adds_to(&need, |_| true);
    if caches.gates.workload_resource_claims {
        let known = Arc::clone(caches);
        pod_groups.on_change(move |change| known.note_deleted_group(change));
        pod_groups.on_change(effects.claims.of(caches, Caches::claims_of_deleted_group));
        pod_groups.on_change(effects.pods.of(caches, Caches::pods_of_changed_group));
        pod_groups.on_change(effects.groups.with(group_changed));
        resource_claims.on_change(effects.groups.of(caches, Caches::groups_of_changed_claim));
        resource_claim_templates.on_change(effects.groups.of(caches, Caches::groups_of_new_template));
        let known = Arc::clone(caches);
        setup.watch_as_served(pod_groups, move |served| known.note_served_pod_groups(served));
    }
    setup.watch(resource_claims);
    setup.watch(resource_claim_templates);
    setup.watch_beside(pods, &need);
}

struct ResourceClaimController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for ResourceClaimController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = self.caches.observe(key);
        self.caches.deleted.clear(key);
        let Some(observed) = observed else { return Ok(Requeue::Done) };
        let read = |observed| self.caches.live_users(self.ctx.control(), observed);
        let (_, plan) = self.ctx.decide_in_stages(key, observed, plan, read).await?;
        self.writer.apply(key, plan).await.map(|()| Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&RESOURCE_CLAIMS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let next = self.caches.observe(key).map(|observed| plan(&observed));
        next.iter().map(Next::stage).collect()
    }
}
