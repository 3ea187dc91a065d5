//! Properties over whole rollouts: a model of the apiserver and of the ReplicaSets' own controller, driven in any order.

use std::collections::BTreeMap;
use std::sync::Arc;

use deployment_operator::objects::{self, annotations};
use deployment_operator::observe::Observed;
use deployment_operator::plan::limits::{max_replicas, max_unavailable};
use deployment_operator::plan::live_read::plan_live_read;
use deployment_operator::plan::reasons::Reason;
use deployment_operator::plan::{Plan, Step, plan};
use deployment_operator::status::{NextStatus, calculate_status};
use proptest::prelude::*;
use shared::api::condition;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};

use crate::builders::{self, at};

/// The objects in the apiserver, and the pods that run.
#[derive(Clone)]
struct World {
    deployment: objects::Deployment,
    sets: Vec<objects::ReplicaSet>,
    /// Of each ReplicaSet the pods it has, and whether they are available.
    pods: BTreeMap<Uid, Vec<bool>>,
    /// Of each ReplicaSet the pods that terminate.
    terminating: BTreeMap<Uid, usize>,
    /// Whether statuses say how many pods terminate.
    says_terminating: bool,
    second: i64,
}

impl World {
    fn new(deployment: objects::Deployment) -> Self {
        let (pods, terminating) = (BTreeMap::new(), BTreeMap::new());
        Self { deployment, sets: Vec::new(), pods, terminating, says_terminating: true, second: 1 }
    }

    fn observe(&self) -> Observed {
        let sets = self.sets.iter().cloned().map(Arc::new).collect();
        let observed = Observed::new(Arc::new(self.deployment.clone()), sets);
        if plan_live_read(&observed, at(self.second)).is_some() {
            return observed.with_live_pods(self.sets_with_pods().map(|uid| (uid, None)).collect());
        }
        observed
    }

    /// The ReplicaSets whose pods run, terminating ones included.
    fn sets_with_pods(&self) -> impl Iterator<Item = Uid> {
        let terminates = |uid: &Uid| self.terminating.get(uid).is_some_and(|pods| *pods > 0);
        self.pods.iter().filter(move |(uid, pods)| !pods.is_empty() || terminates(uid)).map(|(uid, _)| *uid)
    }

    /// One sync, as `controller.rs` does it. Gives the plans.
    fn sync(&mut self) -> Vec<Plan> {
        self.second += 1;
        let mut plans = Vec::new();
        loop {
            let now = at(self.second);
            let before = self.observe();
            let planned = plan(&before, now);
            let creates = matches!(planned.steps.last(), Some(Step::CreateReplicaSet(_)));
            for step in &planned.steps {
                self.apply(step);
            }
            // The status counts the sets as they were, and a new one as it was created.
            let status_of = if creates { self.observe() } else { before };
            let observed = status_of.decided(planned.revision.clone(), planned.progressing.clone());
            if !creates {
                let next = calculate_status(&observed, planned.status, now);
                if NextStatus::new(&observed, next.clone()).is_some() {
                    self.write(&observed, next);
                }
            }
            plans.push(planned);
            if !creates {
                return plans;
            }
        }
    }

    fn write(&mut self, observed: &Observed, next: objects::DeploymentStatus) {
        self.deployment.status = next;
        if let Some(revision) = observed.decided_revision() {
            let others: Vec<(String, String)> = pairs(&self.deployment.metadata.annotations, annotations::REVISION);
            let with = others.into_iter().chain([(annotations::REVISION.to_owned(), revision.to_string())]);
            self.deployment.metadata.annotations = objects::Annotations::new(with);
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::CreateReplicaSet(new) => {
                assert!(self.sets.iter().all(|set| set.metadata.name() != new.name), "{} exists", new.name);
                let mut set = builders::set("v0", new.replicas).status("observedGeneration", 0).build();
                set.metadata.key = Key::new("ns", &new.name);
                set.metadata.uid = Uid::parse(&new.name);
                set.metadata.creation = Some(shared::api::time::Time::from_second(self.second));
                set.metadata.annotations = new.annotations.clone();
                set.spec.template = new.template.clone();
                set.spec.min_ready_seconds = new.min_ready_seconds;
                set.status = objects::ReplicaSetStatus::default();
                self.pods.insert(set.metadata.uid, Vec::new());
                self.sets.push(set);
            }
            Step::UpdateReplicaSet(update) => {
                let set =
                    self.sets.iter_mut().find(|set| set.metadata.uid == update.uid).expect("only what was observed");
                let set_keys: Vec<&str> = update.annotations.keys().map(Text::as_str).collect();
                let kept = set.metadata.annotations.iter().filter(|(key, _)| !set_keys.contains(key));
                let set_now = update.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str()));
                set.metadata.annotations = objects::Annotations::new(kept.chain(set_now));
                set.metadata.generation += 1;
                if let Some(scale) = update.scale {
                    assert_eq!(set.spec.replicas, scale.from);
                    set.spec.replicas = scale.to;
                }
                set.spec.min_ready_seconds = update.min_ready_seconds.unwrap_or(set.spec.min_ready_seconds);
            }
            Step::DeleteReplicaSet(deletion) => {
                assert_eq!(self.pods.remove(&deletion.uid), Some(Vec::new()), "deleted with pods");
                self.sets.retain(|set| set.metadata.uid != deletion.uid);
            }
            Step::RollBack(_) | Step::Event(_) | Step::Fail(_) => panic!("{step}"),
        }
    }

    /// The ReplicaSet's own controller: as many pods as wanted; unavailable ones go first.
    fn sync_set(&mut self, index: usize) {
        let Some(set) = self.sets.get_mut(index) else { return };
        let pods = self.pods.entry(set.metadata.uid).or_default();
        let wanted = usize::try_from(set.spec.replicas).unwrap();
        pods.sort_by_key(|available| !available);
        let terminating = self.terminating.entry(set.metadata.uid).or_default();
        *terminating += pods.len().saturating_sub(wanted);
        pods.resize(wanted, false);
        let count = |pods: usize| i32::try_from(pods).unwrap();
        let available = count(pods.iter().filter(|available| **available).count());
        set.status.replicas = count(pods.len());
        (set.status.ready_replicas, set.status.available_replicas) = (available, available);
        set.status.observed_generation = set.metadata.generation;
        set.status.terminating_replicas = self.says_terminating.then(|| count(*terminating));
    }

    fn sync_all_sets(&mut self) {
        for index in 0..self.sets.len() {
            self.sync_set(index);
        }
    }

    fn become_available(&mut self, index: usize) {
        let Some(set) = self.sets.get(index) else { return };
        if let Some(pod) = self.pods.get_mut(&set.metadata.uid).and_then(|pods| pods.iter_mut().find(|pod| !**pod)) {
            *pod = true;
        }
    }

    /// The last terminating pod of a ReplicaSet is gone.
    fn end(&mut self, index: usize) {
        let Some(set) = self.sets.get(index) else { return };
        self.terminating.remove(&set.metadata.uid);
    }

    /// Everything its controllers can do, until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..200 {
            let before = (self.deployment.status.clone(), self.sets.clone());
            self.terminating.clear();
            self.sync();
            self.sync_all_sets();
            self.pods.values_mut().flatten().for_each(|available| *available = true);
            self.sync_all_sets();
            if (&self.deployment.status, &self.sets) == (&before.0, &before.1) {
                return;
            }
        }
        panic!("does not settle");
    }

    fn wanted_pods(&self) -> i64 {
        self.sets.iter().map(|set| i64::from(set.spec.replicas)).sum()
    }

    fn available_pods(&self) -> usize {
        self.pods.values().flatten().filter(|available| **available).count()
    }

    fn set_template(&mut self, version: usize) {
        let template = builders::template(&format!("v{version}"));
        self.deployment.spec.template = serde_json::from_value(template).unwrap();
        self.deployment.metadata.generation += 1;
    }
}

fn pairs(annotations: &objects::Annotations, without: &str) -> Vec<(String, String)> {
    let kept = annotations.iter().filter(|(key, _)| *key != without);
    kept.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[derive(Clone, Debug)]
enum Event {
    Sync,
    SyncSet(usize),
    BecomeAvailable(usize),
    End(usize),
    /// The template of this version.
    Template(usize),
}

/// A person's requests in the middle of a rollout.
#[derive(Clone, Debug)]
enum Asked {
    Events(Vec<Event>),
    Size(i32),
    Recreate(bool),
    Pause(bool),
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        (0..12_i32).prop_map(Asked::Size),
        any::<bool>().prop_map(Asked::Recreate),
        any::<bool>().prop_map(Asked::Pause),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => Just(Event::Sync),
        4 => (0..4_usize).prop_map(Event::SyncSet),
        4 => (0..4_usize).prop_map(Event::BecomeAvailable),
        2 => (0..4_usize).prop_map(Event::End),
        1 => (1..4_usize).prop_map(Event::Template),
    ];
    prop::collection::vec(event, 0..60)
}

fn rolling_deployment() -> impl Strategy<Value = builders::Deployment> {
    let share =
        || prop_oneof![(0..4_i32).prop_map(Into::into), (0..100_i32).prop_map(|percent| format!("{percent}%").into())];
    (0..12_i32, share(), share()).prop_map(
        |(replicas, surge, unavailable): (i32, serde_json::Value, serde_json::Value)| {
            builders::deployment("v1", replicas)
                .rolling(surge, unavailable)
                .deadline(600)
                .spec("revisionHistoryLimit", 2)
        },
    )
}

fn run(world: &mut World, event: &Event) -> Vec<Plan> {
    match event {
        Event::Sync => return world.sync(),
        Event::SyncSet(index) => world.sync_set(*index),
        Event::BecomeAvailable(index) => world.become_available(*index),
        Event::End(index) => world.end(*index),
        Event::Template(version) => world.set_template(*version),
    }
    Vec::new()
}

/// Complete, nothing left to write, and old ReplicaSets within the limit.
fn check_settled(world: &mut World) {
    let wanted = world.deployment.spec.replicas;
    let observed = world.observe();
    let again = plan(&observed, at(world.second));
    assert!(again.steps.is_empty() && again.revision.is_none() && again.progressing.is_none(), "{again}");
    let next = calculate_status(&observed, again.status, at(world.second));
    assert_eq!(NextStatus::new(&observed, next), None);
    let status = &world.deployment.status;
    let counts = [status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas];
    assert_eq!((counts, status.unavailable_replicas), ([wanted; 4], 0));
    let reason = |type_: &str| condition::find(&status.conditions, type_).map(|condition| condition.reason.to_string());
    assert_eq!(reason("Progressing").as_deref(), Some("NewReplicaSetAvailable"));
    assert_eq!(reason("Available").as_deref(), Some("MinimumReplicasAvailable"));
    assert!(world.sets.len() <= 3, "{} sets", world.sets.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_rolling_update_keeps_its_bounds_whatever_happens_when(deployment in rolling_deployment(), events in events()) {
        let mut world = World::new(deployment.build());
        world.settle();
        check_settled(&mut world);
        let spec = world.deployment.spec.clone();
        let min_available = usize::try_from(spec.replicas - max_unavailable(&spec)).unwrap();
        for event in &events {
            for planned in run(&mut world, event) {
                prop_assert!(matches!(planned.reason, Reason::RollingUpdate(_) | Reason::Complete { .. }), "{planned}");
            }
            prop_assert!(world.wanted_pods() <= i64::from(max_replicas(&spec)), "{:?}: {} pods", event, world.wanted_pods());
            prop_assert!(world.available_pods() >= min_available, "{:?}: {} available", event, world.available_pods());
        }
        world.settle();
        check_settled(&mut world);
    }

    #[test]
    fn recreate_never_runs_two_versions_at_once(replicas in 0..6_i32, says_terminating: bool, events in events()) {
        let mut world = World::new(builders::deployment("v1", replicas).recreate().deadline(600).spec("revisionHistoryLimit", 2).build());
        world.says_terminating = says_terminating;
        world.settle();
        for event in &events {
            run(&mut world, event);
            let running = world.sets_with_pods().count();
            prop_assert!(running <= 1, "{:?}: pods of {} sets", event, running);
        }
        world.settle();
        check_settled(&mut world);
    }

    #[test]
    fn the_order_of_what_is_read_makes_no_difference(deployment in rolling_deployment(), events in events(), seed in any::<u64>()) {
        let mut world = World::new(deployment.build());
        for event in &events {
            run(&mut world, event);
        }
        let mut shuffled = world.clone();
        let count = u64::try_from(shuffled.sets.len().max(1)).unwrap();
        shuffled.sets.rotate_left(usize::try_from(seed % count).unwrap());
        if seed % 2 == 0 {
            shuffled.sets.reverse();
        }
        let now = at(world.second);
        prop_assert_eq!(plan(&world.observe(), now), plan(&shuffled.observe(), now));
    }

    #[test]
    fn whatever_is_asked_for_in_the_middle_it_settles_at_what_is_asked_for_last(
        deployment in rolling_deployment(),
        events in prop::collection::vec(prop_oneof![events().prop_map(Asked::Events), asked()], 0..20),
    ) {
        let mut world = World::new(deployment.build());
        let strategy = world.deployment.spec.strategy.clone();
        for asked in &events {
            match asked {
                Asked::Events(events) => {
                    for event in events.iter().take(6) {
                        run(&mut world, event);
                    }
                }
                Asked::Size(replicas) => world.deployment.spec.replicas = *replicas,
                Asked::Recreate(true) => world.deployment.spec.strategy = objects::Strategy::Recreate,
                Asked::Recreate(false) => world.deployment.spec.strategy = strategy.clone(),
                Asked::Pause(paused) => world.deployment.spec.paused = *paused,
            }
            world.deployment.metadata.generation += 1;
            let scales = world.sync().iter().any(|planned| matches!(planned.reason, Reason::Scaling { .. }));
            if scales && matches!(world.deployment.spec.strategy, objects::Strategy::RollingUpdate { .. }) {
                // No scaling goes beyond the size that is asked for now, even if more was asked for before.
                let most = i64::from(max_replicas(&world.deployment.spec));
                prop_assert!(world.wanted_pods() <= most, "{} pods, at most {}", world.wanted_pods(), most);
            }
        }
        world.deployment.spec.paused = false;
        world.settle();
        check_settled(&mut world);
    }

    #[test]
    fn a_status_never_goes_back_to_an_older_generation(deployment in rolling_deployment(), events in events()) {
        let mut world = World::new(deployment.build());
        let mut generation = 0;
        for event in &events {
            run(&mut world, event);
            prop_assert!(world.deployment.status.observed_generation >= generation);
            generation = world.deployment.status.observed_generation;
        }
    }
}
