//! Decides what one sync does about a DaemonSet's pods, and why.
//!
//! A sync first sees to it that each node has the pods that it should have ([`manage`]), and only if nothing is missing
//! and nothing is too many, it replaces old ones ([`update`]).
//! Left out: the status, which is [`crate::status`]'s.
//!
//! Upstream: `updateDaemonSet`, `pkg/controller/daemon/daemon_controller.go`.

pub mod claim;
pub mod counts;
pub mod ladder;
pub mod manage;
pub mod nodes;
pub mod places;
pub mod reasons;
pub mod revisions;
pub mod update;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::{Key, Uid};
use shared::working::decisions::{self, Reasoned};

use crate::objects::pod::Pod;
use crate::objects::{DaemonSet, UpdateType};
use crate::observe::Observed;
use counts::Counts;
use places::Places;
use reasons::{Reason, Why};

/// The most pods that one sync creates, and the most that it deletes; the next one waits until these were seen.
///
/// Upstream: `BurstReplicas`, `daemon_controller.go`.
pub const BURST: usize = 250;

/// The writes of one sync: first the new pods, then the end of others.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub create: Vec<NewPod>,
    pub delete: Vec<Deletion>,
    /// How long until a failed pod goes that stays for now.
    pub look_again: Option<Duration>,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPod {
    pub node: Text,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub key: Key,
    /// Its identity: another pod of the same name stays.
    pub uid: Uid,
    pub node: Text,
    pub why: Why,
}

/// Why nothing at all is done about a DaemonSet, if that is so.
pub fn refusal(set: &DaemonSet) -> Option<Reason> {
    match &set.spec.selector {
        Err(invalid) => Some(Reason::InvalidSelector { error: invalid.clone() }),
        Ok(_) if set.spec.selects_everything() => Some(Reason::SelectsEverything),
        Ok(_) if set.metadata.is_being_deleted() => Some(Reason::BeingDeleted),
        Ok(_) => None,
    }
}

/// Decides what one sync does; `hash` is that of the revision of the template of now.
pub fn plan(observed: &Observed, hash: &str, now: Timestamp) -> Plan {
    if let Some(reason) = refusal(&observed.set) {
        return Plan::nothing(reason);
    }
    if let Some(outstanding) = observed.outstanding {
        return Plan::nothing(Reason::Waiting(outstanding));
    }
    let places = Places::of(observed);
    let managed = manage::manage(observed, &places, hash, now);
    match observed.set.spec.update_strategy.type_ {
        UpdateType::RollingUpdate if managed.is_empty() => match update::rolling_update(observed, &places, hash, now) {
            Ok(update) => Plan { look_again: managed.look_again, ..update },
            Err(error) => Plan { reason: Reason::InvalidStrategy { error }, ..managed },
        },
        UpdateType::RollingUpdate | UpdateType::OnDelete | UpdateType::Other => managed,
    }
}

pub(crate) struct Draft<'a> {
    observed: &'a Observed,
    places: &'a Places<'a>,
    hash: &'a str,
    now: Timestamp,
    create: Vec<NewPod>,
    delete: Vec<Deletion>,
    look_again: Option<Duration>,
}

impl<'a> Draft<'a> {
    fn new(observed: &'a Observed, places: &'a Places<'a>, hash: &'a str, now: Timestamp) -> Self {
        Self { observed, places, hash, now, create: Vec::new(), delete: Vec::new(), look_again: None }
    }

    fn create(&mut self, node: Text, why: Why) {
        self.create.push(NewPod { node, why });
    }

    fn delete(&mut self, pod: &Arc<Pod>, why: Why) {
        let (key, uid) = (pod.metadata.key.clone(), pod.metadata.uid);
        self.delete.push(Deletion { key, uid, node: pod.node().cloned().unwrap_or_default(), why });
    }

    fn look_after(&mut self, delay: Duration) {
        self.look_again = Some(self.look_again.map_or(delay, |earlier| earlier.min(delay)));
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pod.readiness.is_available(self.observed.set.spec.min_ready_seconds, self.now)
    }

    fn finish(self) -> Plan {
        let Self { observed, places, hash, now, mut create, mut delete, look_again } = self;
        create.truncate(BURST);
        delete.truncate(BURST);
        let numbers = Counts::of(observed, places, hash, now).numbers();
        Plan { create, delete, look_again, reason: Reason::Nodes(numbers) }
    }
}

impl Plan {
    pub fn nothing(reason: Reason) -> Self {
        Self { create: Vec::new(), delete: Vec::new(), look_again: None, reason }
    }

    pub fn is_empty(&self) -> bool {
        let Self { create, delete, look_again: _, reason: _ } = self;
        create.is_empty() && delete.is_empty()
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

/// `create on n1 [missing]; delete web-a [failed] (1 of 2 nodes available, 1 updated)`; `nothing (…)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { create, delete, look_again: _, reason } = self;
        let mut steps = Vec::new();
        if !create.is_empty() {
            let pods = list(create, |NewPod { node, why }| format!("{node} [{why}]"));
            steps.push(format!("create on {pods}"));
        }
        if !delete.is_empty() {
            let pods = list(delete, |Deletion { key, uid: _, node: _, why }| format!("{} [{why}]", key.name()));
            steps.push(format!("delete {pods}"));
        }
        let shown = if steps.is_empty() { "nothing".to_owned() } else { steps.join("; ") };
        write!(f, "{shown} ({reason})")
    }
}
