//! The answers under `/why/…` and `/debug/status`, made from the queues, decisions and caches of this process when a
//! request comes. Until then they cost nothing.
//!
//! Left out: who may ask, which is [`crate::process::serving`]'s.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::explain::{
    CacheState, Explanation, Held, KeyState, OperatorStatus, QueueState, Role, Standing, Subject, Timer,
};
use crate::api::facts::Names;
use crate::api::object::Key;
use crate::following::followed::Followed;
use crate::following::source::Follow;
use crate::process::flags::Mode;
use crate::process::leader::Term;
use crate::transport::clock::Clock;
use crate::transport::identity::{KUBERNETES_VERSION, VERSION};
use crate::working::consistency::Consistency;
use crate::working::decisions::Decisions;
use crate::working::queue::{self, Queue};
use crate::working::worker::Controller;

pub(crate) struct KeyExplainer {
    queue: Queue,
    decisions: Decisions,
    explain: Box<Explain>,
}

/// The state of the object's key, where the queue has one for it.
type Explain = dyn Fn(&Subject, &Clock) -> Option<KeyState> + Send + Sync;

impl KeyExplainer {
    pub(crate) fn new<C: Controller>(
        controller: Arc<C>,
        queue: Queue,
        consistency: Arc<Consistency>,
        decisions: Decisions,
    ) -> Self {
        let (asked, noted) = (queue.clone(), decisions.clone());
        let explain = move |object: &Subject, clock: &Clock| {
            let key = controller.key_of(object)?;
            Some(KeyState {
                queue: asked.name().to_owned(),
                now: controller.preview(&key),
                last: noted.of_key(&key),
                standing: standing(asked.standing(&key), held(&consistency, &key), clock.now()),
                key: key.to_string(),
            })
        };
        Self { queue, decisions, explain: Box::new(explain) }
    }

    fn state(&self, now: Timestamp) -> QueueState {
        let queue::Summary { waiting, oldest, processing, failing } = self.queue.summary();
        QueueState {
            name: self.queue.name().to_owned(),
            waiting,
            oldest: oldest.map(|ago| before(now, ago)),
            processing,
            failing,
            last_error: self.decisions.last_error(),
        }
    }
}

/// What the controllers of a process say about an object: its only one, or of several those that act on it.
#[derive(Serialize)]
pub(crate) struct Explanations(pub(crate) Vec<Explanation>);

impl fmt::Display for Explanations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "No controller of this process acts on it.");
        }
        for (at, explanation) in self.0.iter().enumerate() {
            let gap = if at > 0 { "\n" } else { "" };
            write!(f, "{gap}{explanation}")?;
        }
        Ok(())
    }
}

/// Explains the objects of this process, and the process itself.
pub(crate) struct Explainer {
    pub(crate) names: Names,
    pub(crate) mode: Mode,
    /// None without an election.
    pub(crate) term: Option<Term>,
    /// In the Lease; `""` without an election.
    pub(crate) identity: String,
    pub(crate) clock: Clock,
    pub(crate) followed: Followed,
    pub(crate) explainers: Vec<KeyExplainer>,
}

impl Explainer {
    pub(crate) fn explain(&self, object: Subject) -> Explanation {
        let now = self.clock.now();
        let namespace = object.namespace.clone();
        let is_near = |key: &Key| key.namespace() == namespace;
        Explanation {
            operator: self.names.operator.to_owned(),
            version: VERSION.to_owned(),
            role: self.role(),
            time: now,
            keys: self.explainers.iter().filter_map(|keys| (keys.explain)(&object, &self.clock)).collect(),
            caches: self.caches(now, is_near),
            object,
        }
    }

    pub(crate) fn status(&self) -> OperatorStatus {
        let now = self.clock.now();
        OperatorStatus {
            operator: self.names.operator.to_owned(),
            controller: self.names.controller.to_owned(),
            version: VERSION.to_owned(),
            kubernetes: KUBERNETES_VERSION.to_owned(),
            role: self.role(),
            identity: self.identity.clone(),
            time: now,
            caches: self.caches(now, |_| true),
            queues: self.explainers.iter().map(|keys| keys.state(now)).collect(),
        }
    }

    pub(crate) fn role(&self) -> Role {
        match self.mode {
            Mode::Shadow => Role::Shadow,
            Mode::Operate if self.term.as_ref().is_some_and(Term::is_over) => Role::Standby,
            Mode::Operate => Role::Leader,
        }
    }

    fn caches(&self, now: Timestamp, is_meant: impl Fn(&Key) -> bool) -> Vec<CacheState> {
        self.followed.follows().map(|follow| cache(&follow, now, &is_meant)).collect()
    }
}

fn cache(follow: &Follow, now: Timestamp, is_meant: impl Fn(&Key) -> bool) -> CacheState {
    let Follow { namespace, field_selector, label_selector, progress, health, .. } = follow;
    let progress = *progress.borrow();
    let of = [("namespace", namespace.as_str()), ("fields", field_selector), ("labels", label_selector)];
    let of: Vec<String> =
        of.into_iter().filter(|(_, what)| !what.is_empty()).map(|(kind, what)| format!("{kind} {what}")).collect();
    let unhandled = health.unhandled().into_iter().map(|key| (key, "a handler of its change panicked".to_owned()));
    let unreadable = health.unreadable().into_iter().chain(unhandled).filter(|(key, _)| is_meant(key));
    CacheState {
        resource: health.resource.clone(),
        of: of.join(", "),
        synced: progress.synced,
        version: progress.resource_version.0,
        heard: health.silent_for().map(|ago| before(now, ago)),
        failing: health.failing(),
        unreadable: unreadable.map(|(key, error)| (key.to_string(), error)).collect(),
    }
}

fn held(consistency: &Arc<Consistency>, key: &Key) -> Vec<Held> {
    let Some(behind) = consistency.behind(key) else { return Vec::new() };
    let held = |resource: &str, until: &str| Held { resource: resource.to_owned(), until: until.to_owned() };
    let lists = behind.unlisted().map(|resource| held(resource, "the first list"));
    lists.chain(behind.writes().map(|(resource, what)| held(resource, what))).collect()
}

fn standing(standing: queue::Standing, held: Vec<Held>, now: Timestamp) -> Standing {
    let queue::Standing { queued, processing, failures, next_try, timer } = standing;
    Standing {
        queued: queued.map(|ago| before(now, ago)),
        processing: processing.map(|ago| before(now, ago)),
        held,
        failures,
        next_try: next_try.map(|delay| after(now, delay)),
        timer: timer.map(|(delay, purpose)| Timer { due: after(now, delay), purpose: purpose.to_owned() }),
    }
}

fn before(now: Timestamp, ago: Duration) -> Timestamp {
    now.saturating_sub(ago).unwrap_or(Timestamp::MIN)
}

fn after(now: Timestamp, delay: Duration) -> Timestamp {
    now.saturating_add(delay).unwrap_or(Timestamp::MAX)
}
