//! A Job, its pods, and what a process sees of them: writes happen one by one, a process may end between any two, and a
//! cache may be behind, but never behind the process's own writes.
//!
//! Every status that is written is checked: counters never fall, and no pod is counted twice.
//!
//! Left out: `apply` itself, which `tests/sync.rs` runs as it is. There a life of sixty events takes 0.2 s; here
//! hundreds of them are drawn, and caches lag write by write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use job_operator::memory::backoff::BackoffRecord;
use job_operator::objects::Job;
use job_operator::objects::pod::Pod;
use job_operator::objects::status::JobStatus;
use job_operator::observe::{Observed, OrphanPod};
use job_operator::plan::ending::JobResult;
use job_operator::plan::indexed::OrderedIntervals;
use job_operator::plan::new_pod::NewPod;
use job_operator::plan::orphan::{OrphanPlan, plan_orphan};
use job_operator::plan::tracking::{Executed, plan_tracking};
use job_operator::plan::{Plan, Pods, plan};
use job_operator::status::next_status;
use serde_json::{Value, json};
use shared::api::object::Uid;
use shared::api::pod::{Phase, PodView};
use shared::testing::{NOW, ObjectBuilder, uid};
use shared::working::expectations::Outstanding;

use crate::fixtures::{INDEX, Spec, all_released, pod};

/// Why a sync did not come to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The process has ended.
    Crash,
    /// The Job was changed by somebody else.
    Conflict,
}

#[derive(Clone)]
struct State {
    job: ObjectBuilder,
    version: u64,
    pods: BTreeMap<String, Arc<Made>>,
}

/// A pod, and what it is to a Job.
struct Made {
    json: ObjectBuilder,
    pod: Arc<Pod>,
}

impl Made {
    fn new(json: ObjectBuilder) -> Arc<Self> {
        Arc::new(Self { pod: json.build(), json })
    }
}

impl State {
    fn pods(&self) -> Vec<Arc<Pod>> {
        self.pods.values().map(|made| Arc::clone(&made.pod)).collect()
    }

    fn update(&mut self, name: &str, update: impl FnOnce(ObjectBuilder) -> ObjectBuilder) {
        if let Some(made) = self.pods.get_mut(name) {
            *made = Made::new(update(made.json.clone()));
        }
    }
}

pub(crate) struct World {
    /// Every state there was; the last is what is.
    states: Vec<State>,
    /// Which state the caches have reached, and which they must have reached.
    seen: usize,
    own: usize,
    /// States that began with a deletion of ours.
    deletions: Vec<usize>,
    released: BTreeSet<Uid>,
    backoff: BackoffRecord,
    writes_left: usize,
    pub(crate) writes: usize,
    now: Timestamp,
    made: usize,
    /// Pods that were deleted as too many, or let go while they ran because the Job had succeeded: they need not be
    /// counted.
    surplus: BTreeSet<Uid>,
    /// How pods ended that waited to be counted then.
    ended: BTreeMap<Uid, Phase>,
    counted: BTreeMap<Uid, Phase>,
}

impl World {
    pub(crate) fn new(job: ObjectBuilder) -> Self {
        Self {
            states: vec![State { job, version: 1, pods: BTreeMap::new() }],
            seen: 0,
            own: 0,
            deletions: Vec::new(),
            released: BTreeSet::new(),
            backoff: BackoffRecord::default(),
            writes_left: usize::MAX,
            writes: 0,
            now: NOW,
            made: 0,
            surplus: BTreeSet::new(),
            ended: BTreeMap::new(),
            counted: BTreeMap::new(),
        }
    }

    fn live(&self) -> &State {
        self.states.last().unwrap()
    }

    fn change(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.live().clone();
        change(&mut state);
        self.states.push(state);
    }

    /// A write of ours, if the process is still there.
    fn write(&mut self, change: impl FnOnce(&mut State)) -> Result<(), Stopped> {
        self.writes_left = self.writes_left.checked_sub(1).ok_or(Stopped::Crash)?;
        self.writes += 1;
        self.change(change);
        Ok(())
    }

    pub(crate) fn job(&self) -> Arc<Job> {
        self.live().job.build()
    }

    fn pods(&self) -> Vec<Arc<Pod>> {
        self.live().pods()
    }

    pub(crate) fn edit(&mut self, field: &str, value: impl Into<Value>) {
        let value = value.into();
        self.change(|state| {
            state.job = state.job.clone().with(field, value);
            state.version += 1;
        });
    }

    /// The caches see some more.
    pub(crate) fn see(&mut self, states: usize) {
        self.seen = (self.seen + states).min(self.states.len() - 1);
    }

    /// The process ends, and another one lists everything.
    pub(crate) fn restart(&mut self) {
        (self.released, self.backoff) = (BTreeSet::new(), BackoffRecord::default());
        self.seen = self.states.len() - 1;
        self.deletions.clear();
    }

    fn nth(&self, number: usize, is_meant: impl Fn(&Pod) -> bool) -> Option<String> {
        let pods = self.pods();
        let meant: Vec<&str> = pods.iter().filter(|pod| is_meant(pod)).map(|pod| pod.metadata.name()).collect();
        (!meant.is_empty()).then(|| meant[number % meant.len()].to_owned())
    }

    /// A pod that runs comes to its end.
    pub(crate) fn end(&mut self, number: usize, phase: Phase) {
        let Some(name) = self.nth(number, |pod| !pod.phase.is_terminal()) else { return };
        if self.live().pods[&name].pod.has_tracking_finalizer() {
            self.ended.insert(uid(&name), phase);
        }
        self.change(|state| state.update(&name, |pod| pod.phase(&format!("{phase:?}"))));
    }

    /// Somebody deletes a pod.
    pub(crate) fn evict(&mut self, number: usize) {
        if let Some(name) = self.nth(number, |pod| !pod.metadata.is_being_deleted()) {
            self.change(|state| state.update(&name, ObjectBuilder::terminating));
        }
    }

    /// A pod that was deleted is gone, if its finalizer is.
    pub(crate) fn gone(&mut self, number: usize) {
        if let Some(name) = self.nth(number, |pod| pod.metadata.is_being_deleted() && !pod.has_tracking_finalizer()) {
            self.change(|state| drop(state.pods.remove(&name)));
        }
    }

    /// One sync, which ends after so many writes if it has more.
    pub(crate) fn sync(&mut self, writes_max: usize) -> Result<(), Stopped> {
        self.writes_left = writes_max;
        self.now += SignedDuration::from_secs(601);
        let cached = self.seen.max(self.own);
        self.seen = cached;
        let state = self.states[cached].clone();
        self.deletions.retain(|at| *at > cached);
        let pods = state.pods();
        let tracked: BTreeSet<Uid> =
            pods.iter().filter(|pod| pod.has_tracking_finalizer()).map(|pod| pod.metadata.uid).collect();
        self.released.retain(|pod| tracked.contains(pod));
        let outstanding = (!self.deletions.is_empty()).then_some(Outstanding {
            creations: 0,
            deletions: self.deletions.len(),
            expires: Timestamp::MAX,
        });
        let (released, backoff) = (self.released.clone(), self.backoff);
        let observed = Observed { job: state.job.build(), pods, outstanding, released, backoff };
        let Plan { claim: _, pods, reason: _, ending, outstanding: _, wake: _, counts } = plan(&observed, self.now);
        let executed = Executed { counts, ending, ..self.execute(&pods)? };

        let Some(tracking) = plan_tracking(&observed, &executed, self.now) else { return Ok(()) };
        let mut version = state.version;
        if tracking.is_news {
            version = self.say(version, &tracking.status)?;
            self.backoff = tracking.backoff;
        }
        self.released.extend(tracking.release.iter().map(|pod| pod.uid));
        let has_succeeded = tracking.end.as_ref().is_some_and(|end| end.ending.result == JobResult::Succeeded);
        for pod in &tracking.release {
            if has_succeeded && !state.pods[pod.key.name()].pod.phase.is_terminal() {
                self.surplus.insert(pod.uid);
            }
            self.release(pod.key.name())?;
        }
        if let Some(last) = next_status(&all_released(tracking), self.now) {
            self.say(version, &last.status)?;
        }
        Ok(())
    }

    fn execute(&mut self, pods: &Pods) -> Result<Executed, Stopped> {
        let mut executed = Executed::default();
        match pods {
            Pods::Leave => {}
            Pods::Create(new) => {
                for pod in new {
                    self.create(*pod)?;
                    executed.created += 1;
                }
            }
            Pods::Delete(surplus) => {
                for pod in surplus.iter().map(|surplus| &surplus.pod) {
                    self.surplus.insert(pod.uid);
                    if pod.is_tracked {
                        self.release(pod.key.name())?;
                    }
                    self.delete(pod.key.name())?;
                    executed.deleted.insert(pod.uid);
                }
            }
            Pods::End(pods) => {
                for pod in pods {
                    self.delete(pod.key.name())?;
                    executed.deleted.insert(pod.uid);
                }
            }
        }
        Ok(executed)
    }

    fn create(&mut self, new: NewPod) -> Result<(), Stopped> {
        let name = format!("pi-{}", self.made);
        let mut made = pod(&name, "Running").created(self.now);
        if let Some(index) = new.index {
            let of_index = |pod: &Arc<Pod>| pod.is_active() && pod.index() == Some(index);
            assert!(!self.pods().iter().any(of_index), "index {index} runs already");
            let job = self.job();
            let done = OrderedIntervals::parse(&job.status.completed_indexes, i32::MAX);
            assert!(!done.has(index), "index {index} is done already");
            made = made.annotation(INDEX, &index.to_string());
        }
        if let Some(failures) = new.failures {
            made = made.annotation(crate::fixtures::FAILURES, &failures.counted.to_string());
        }
        self.write(|state| drop(state.pods.insert(name, Made::new(made))))?;
        self.made += 1;
        self.own = self.states.len() - 1;
        Ok(())
    }

    fn delete(&mut self, name: &str) -> Result<(), Stopped> {
        self.write(|state| {
            let Some(pod) = state.pods.get(name).map(|made| Arc::clone(&made.pod)) else { return };
            if pod.has_tracking_finalizer() || !pod.phase.is_terminal() {
                state.update(name, ObjectBuilder::terminating);
            } else {
                state.pods.remove(name);
            }
        })?;
        self.deletions.push(self.states.len() - 1);
        Ok(())
    }

    fn release(&mut self, name: &str) -> Result<(), Stopped> {
        self.write(|state| state.update(name, |pod| pod.set(&["metadata", "finalizers"], json!([]))))?;
        self.own = self.states.len() - 1;
        Ok(())
    }

    fn say(&mut self, version: u64, status: &JobStatus) -> Result<u64, Stopped> {
        if self.live().version != version {
            return Err(Stopped::Conflict);
        }
        self.check(status);
        self.write(|state| {
            state.job = state.job.clone().set(&["status"], serde_json::to_value(status).unwrap());
            state.version += 1;
        })?;
        self.note_counted(status);
        self.own = self.states.len() - 1;
        Ok(version + 1)
    }

    /// Whether what is said may follow on what was said.
    fn check(&self, status: &JobStatus) {
        let job = self.job();
        let before = &job.status;
        assert!(status.failed >= before.failed && status.succeeded >= before.succeeded, "a counter falls: {status:?}");
        let uncounted = status.uncounted_terminated_pods.clone().unwrap();
        for pod in uncounted.succeeded.iter().chain(&uncounted.failed) {
            assert!(!self.counted.contains_key(pod), "{pod} is counted twice");
        }
        assert!(status.ready <= Some(status.active), "more are ready than there are: {status:?}");
        if status.is_finished() {
            let is_settled = uncounted.succeeded.is_empty() && uncounted.failed.is_empty();
            assert!(is_settled && status.active == 0 && status.terminating == Some(0), "not settled: {status:?}");
        }
        if job.is_indexed() {
            let parse = |text: &str| OrderedIntervals::parse(text, i32::MAX);
            let (before, after) = (parse(&before.completed_indexes), parse(&status.completed_indexes));
            assert_eq!(before.common(&after), before.total(), "an index is taken back");
            assert_eq!(after.total(), i64::from(status.succeeded));
        }
    }

    fn note_counted(&mut self, status: &JobStatus) {
        let before = self.states[self.states.len() - 2].job.build::<Job>().status.clone();
        let was = before.uncounted_terminated_pods.unwrap_or_default();
        let is = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let mut note = |was: &[Uid], is: &[Uid], phase: Phase| {
            let gone = was.iter().filter(|pod| !is.contains(pod));
            gone.filter(|pod| self.counted.insert(**pod, phase).is_none()).count()
        };
        let succeeded = note(&was.succeeded, &is.succeeded, Phase::Succeeded);
        let failed = note(&was.failed, &is.failed, Phase::Failed);
        assert_eq!(i64::from(status.failed - before.failed), i64::try_from(failed).unwrap());
        if before.completed_indexes.is_empty() && status.completed_indexes.is_empty() {
            assert_eq!(i64::from(status.succeeded - before.succeeded), i64::try_from(succeeded).unwrap());
        }
    }

    /// Everything that runs succeeds, and everything is seen, until the Job is over.
    pub(crate) fn settle(&mut self) {
        self.edit("suspend", false);
        for _ in 0..60 {
            while self.pods().iter().any(|pod| !pod.phase.is_terminal()) {
                self.end(0, Phase::Succeeded);
            }
            self.remove_gone();
            self.see(usize::MAX / 2);
            let before = self.writes;
            self.sync(usize::MAX).expect("nobody else writes");
            if before == self.writes && self.job().status.is_finished() {
                break;
            }
        }
        self.release_orphans();
    }

    fn remove_gone(&mut self) {
        let gone = |pod: &Arc<Pod>| pod.metadata.is_being_deleted() && !pod.has_tracking_finalizer();
        while self.pods().iter().any(gone) {
            self.gone(0);
        }
    }

    fn release_orphans(&mut self) {
        let job = self.job();
        for pod in self.pods() {
            let observed =
                OrphanPod { pod: Arc::clone(&pod), job: Some(Arc::clone(&job)), is_cached: true, is_job_cached: true };
            if let OrphanPlan::Release(_) = plan_orphan(&observed) {
                self.release(pod.metadata.name()).expect("nothing ends here");
            }
        }
    }

    /// Checks the Job once it is over: each pod that has ended was counted and has lost its finalizer.
    pub(crate) fn check_settled(&self) {
        let job = self.job();
        assert!(job.status.is_finished(), "it does not end: {:?}", job.status);
        assert!(self.pods().iter().all(|pod| !pod.has_tracking_finalizer()), "a pod keeps its finalizer");
        let by_index = job.is_indexed();
        for (pod, phase) in self.ended.iter().filter(|(pod, _)| !self.surplus.contains(pod)) {
            let is_counted = self.counted.contains_key(pod) || (by_index && *phase == Phase::Succeeded);
            assert!(is_counted, "{pod} has ended as {phase:?} and is not counted");
        }
        let failed = self.counted.values().filter(|phase| **phase == Phase::Failed).count();
        assert_eq!(i64::from(job.status.failed), i64::try_from(failed).unwrap());
    }
}
