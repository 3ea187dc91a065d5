//! The operator as a process, and one sync of a pod on one screen.

mod changes;
mod doubts;
mod rules;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::following::informer::Informer;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::flags::gates::FeatureGates;
use crate::metrics;
use crate::objects::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use crate::observe::{Caches, Informers, Observed};
use crate::plan::{Plan, plan};
use doubts::Doubts;
use rules::RuleController;

pub struct DeviceTaintEvictionOperator;

impl Operator for DeviceTaintEvictionOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let FeatureGates { device_taint_rules: has_rules, workload_resource_claims } = flags.feature_gates;
        let of_pods = setup.queue(facts::PODS.name, Backoff::default());
        let of_rules = setup.queue(facts::RULES.name, Backoff::default());
        let ctx = setup.context(&of_pods);
        let (
            caches,
            Informers { mut resource_claims, mut resource_slices, mut device_taint_rules, mut pods, devices, users },
        ) = Caches::new(workload_resource_claims);
        let caches = Arc::new(caches);
        let doubts = Doubts::new(setup, ctx.clone(), flags.mass_deletion_share, &caches);
        note_tainted(&caches, &mut resource_claims, &mut resource_slices, &mut device_taint_rules);
        let effects = setup.effects(&of_pods);
        resource_claims.on_change(effects.of(&caches, Caches::claim_changed));
        let doubting = Arc::clone(&doubts);
        resource_claims.on_change(move |change| doubting.note_allocation(changes::allocated(change)));
        resource_slices.on_change(effects.of(&caches, Caches::slice_changed));
        device_taint_rules.on_change(effects.of(&caches, Caches::rule_changed));
        pods.on_change(effects.of(&caches, Caches::pod_changed));
        device_taint_rules.on_change(setup.effects(&of_rules).with(changes::own_rule_changed));
        setup.watch(resource_claims);
        if has_rules {
            setup.watch_while_served(device_taint_rules);
        }
        setup.watch_while(resource_slices, &devices);
        setup.watch_beside(pods, &users);
        let writer = Writer {
            ctx: ctx.clone(),
            metrics: metrics::register(setup.metrics()),
            caches: Arc::clone(&caches),
            rules: of_rules.clone(),
        };
        let rules = RuleController { caches: Arc::clone(&caches), ctx: setup.context(&of_rules) };
        let workers = flags.concurrent_device_taint_eviction_syncs;
        setup.work(Arc::new(rules), &of_rules, workers);
        setup.work(Arc::new(PodController { caches, writer, doubts, ctx }), &of_pods, workers);
    }
}

/// A standby notes them too, and follows their pods.
fn note_tainted(
    caches: &Arc<Caches>,
    claims: &mut Informer<ResourceClaim>,
    slices: &mut Informer<ResourceSlice>,
    rules: &mut Informer<DeviceTaintRule>,
) {
    let noting = Arc::clone(caches);
    claims.on_change_at_any_time(move |change| noting.note_claim(change));
    let noting = Arc::clone(caches);
    slices.on_change_at_any_time(move |change| noting.note_claims(&noting.claims_of_slice(change)));
    let noting = Arc::clone(caches);
    rules.on_change_at_any_time(move |change| noting.note_rule(change));
}

struct PodController {
    caches: Arc<Caches>,
    writer: Writer,
    doubts: Arc<Doubts>,
    ctx: ControllerContext,
}

impl Controller for PodController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((observed, plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        if let Some(wait) = plan.suspect().and_then(|suspect| self.doubts.hold_back(key, suspect)) {
            self.writer.hold(key, plan);
            return Ok(wait);
        }
        if plan.cancel {
            observed.claims.iter().for_each(|used| self.doubts.withdraw(used.claim.metadata.uid));
        }
        let next = self.writer.apply(&observed, plan).await?;
        Ok(Requeue::earliest([next.map(|left| (left, "the end of its toleration"))]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}

impl PodController {
    fn decide(&self, key: &Key) -> Option<(Observed, Plan)> {
        let observed = self.caches.observe(key)?;
        let plan = plan(&observed, self.ctx.now());
        Some((observed, plan))
    }
}
