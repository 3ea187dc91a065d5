//! Which claims a pod or a PodGroup gets, and which claims are reserved for a pod that the scheduler has not bound.
//!
//! Upstream: `syncPod` and `syncPodGroup`, `pkg/controller/resourceclaim/controller.go`.

use std::fmt;

use shared::api::object::{Key, ObjectReference};
use shared::api::resource::{POD_GROUPS, PODS};
use shared::controllers::live_spec::Abridged;
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use super::creation::{NewClaim, Standing, standing};
use super::reasons::{Failure, UserReason, Wait};
use crate::objects::claim::{Consumer, ResourceClaim};
use crate::objects::pod::Pod;
use crate::objects::pod_group::PodGroup;
use crate::objects::{ClaimUser, Entry, Source};
use crate::observe::users::{Group, ObservedUser};

pub type UserNext = decisions::Next<UserReason, UserPlan>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserPlan {
    Nothing(UserReason),
    Act(Box<Steps>),
}

/// What is done for a pod or PodGroup, in this order. A step that fails ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    pub create: Vec<NewClaim>,
    /// The first entry for which no claim can be made. Those after it wait.
    pub failure: Option<(Box<str>, Failure)>,
    /// The names of all claims that were made from templates, if one of them is not in the status.
    pub record: Vec<Record>,
    pub reserve: Vec<Reservation>,
    pub user: ObjectReference,
    pub reason: UserReason,
}

/// An entry and the claim that was made for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub entry: Box<str>,
    pub claim: RecordedClaim,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedClaim {
    Known(Box<str>),
    /// The claim of this place among those that are created.
    Created(usize),
}

/// One more user of an allocated claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub claim: Key,
    pub consumer: Consumer,
    pub preconditions: Preconditions,
}

impl Reasoned for UserPlan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => reason.clone(),
            Self::Act(steps) => steps.reason.clone(),
        }
    }
}

/// Plans the next stage of a pod. One that has ended, or is being deleted, gets nothing more.
pub fn plan_pod(observed: &ObservedUser<Pod>) -> UserNext {
    let ObservedUser { user: pod, kind: _, group, gates, entries: _ } = observed;
    let nothing = |reason| UserNext::Execute(UserPlan::Nothing(reason));
    if pod.entries.is_empty() {
        return nothing(UserReason::NoClaims);
    }
    if pod.metadata.is_being_deleted() {
        return nothing(UserReason::BeingDeleted);
    }
    if pod.is_done() {
        return nothing(UserReason::Done);
    }
    if let Group::Missing(group) = group {
        let wait = |entry: &Entry| (entry.name.to_string(), Wait::PodGroup { group: group.name().to_owned() });
        return nothing(UserReason::Waits { entries: pod.entries.iter().map(wait).collect() });
    }
    plan_claims(observed, |entry, claim| use_by_pod(pod, group, entry, claim, gates.workload_resource_claims))
}

/// Plans the next stage of a PodGroup.
pub fn plan_pod_group(observed: &ObservedUser<PodGroup>) -> UserNext {
    let group = &observed.user;
    let nothing = |reason| UserNext::Execute(UserPlan::Nothing(reason));
    if group.entries.is_empty() {
        return nothing(UserReason::NoClaims);
    }
    if group.metadata.is_being_deleted() {
        return nothing(UserReason::BeingDeleted);
    }
    // Its claims are allocated and reserved together with its pods.
    plan_claims(observed, |_, _| Use::Settled)
}

/// Whether a user can use a claim that is there.
enum Use {
    Settled,
    Reserve(Reservation),
    Waits(Wait),
}

/// The scheduler reserves a claim before it binds a pod, so a pod with a node and without a reservation was bound by
/// somebody else. Such a pod never allocates a claim.
fn use_by_pod(pod: &Pod, group: &Group, entry: &Entry, claim: &ResourceClaim, accepts_groups: bool) -> Use {
    let (metadata, name) = (&claim.metadata, claim.metadata.name().to_owned());
    if pod.has_reserved(claim, accepts_groups) {
        return Use::Settled;
    }
    if metadata.is_being_deleted() {
        return Use::Waits(Wait::Deletion { claim: name });
    }
    if !claim.is_allocated {
        return Use::Waits(Wait::Allocation { claim: name });
    }
    if !pod.is_scheduled {
        return Use::Waits(Wait::Scheduling { claim: name });
    }
    let consumer = match group {
        Group::Found(group) if group.has_entry(entry) => {
            Consumer::of(&POD_GROUPS, group.metadata.name(), group.metadata.uid)
        }
        Group::Found(_) | Group::Missing(_) | Group::None => Consumer::of(&PODS, pod.metadata.name(), pod.metadata.uid),
    };
    Use::Reserve(Reservation { claim: metadata.key.clone(), consumer, preconditions: Preconditions::of(metadata) })
}

fn plan_claims<U: ClaimUser>(observed: &ObservedUser<U>, use_of: impl Fn(&Entry, &ResourceClaim) -> Use) -> UserNext {
    let ObservedUser { user, kind: _, entries, group, gates: _ } = observed;
    let group = if let Group::Found(group) = group { Some(group.metadata.name()) } else { None };
    let mut draft = Draft::default();
    for (entry, seen) in user.entries().iter().zip(entries) {
        match standing(observed, entry, seen, group) {
            Standing::NotNeeded => {}
            Standing::There { claim, is_known } => draft.use_claim(entry, claim, is_known, use_of(entry, claim)),
            Standing::Create(new) => draft.create(entry, new),
            Standing::Waits(wait) => draft.waits.push((entry.name.to_string(), wait)),
            Standing::Fails(failure) => return draft.failed(user.reference(), entry, failure),
            Standing::Read { template } => {
                let (bytes, template) = (template.left_out(), template.metadata.name().to_owned());
                let reason = UserReason::LargeTemplate { template, bytes };
                return UserNext::Ask(LiveRead { step: "read the template", reason });
            }
        }
    }
    draft.finished(user.reference())
}

/// The steps for the entries so far.
#[derive(Default)]
struct Draft {
    create: Vec<NewClaim>,
    /// All claims that were made from templates.
    made: Vec<Record>,
    /// Whether one of them is not in the status.
    is_new: bool,
    reserve: Vec<Reservation>,
    due: Vec<String>,
    waits: Vec<(String, Wait)>,
}

impl Draft {
    fn use_claim(&mut self, entry: &Entry, claim: &ResourceClaim, is_known: bool, used: Use) {
        let name = || entry.name.to_string();
        if let Source::Template(_) = entry.source {
            let claim = RecordedClaim::Known(claim.metadata.name().into());
            self.made.push(Record { entry: entry.name.clone(), claim });
        }
        self.is_new |= !is_known;
        let mut is_due = !is_known;
        match used {
            Use::Settled => {}
            Use::Waits(wait) => self.waits.push((name(), wait)),
            Use::Reserve(reservation) => {
                is_due = true;
                // Several entries may name one claim.
                if self.reserve.iter().all(|other| other.claim != reservation.claim) {
                    self.reserve.push(reservation);
                }
            }
        }
        self.due.extend(is_due.then(name));
    }

    fn create(&mut self, entry: &Entry, new: NewClaim) {
        self.is_new = true;
        self.due.push(entry.name.to_string());
        self.made.push(Record { entry: entry.name.clone(), claim: RecordedClaim::Created(self.create.len()) });
        self.create.push(new);
    }

    /// Creates the claims of the entries before, as upstream does, and reports this one.
    fn failed(self, user: ObjectReference, entry: &Entry, failure: Failure) -> UserNext {
        let reason = UserReason::Failed { entry: entry.name.to_string(), failure: failure.clone() };
        let failure = Some((entry.name.clone(), failure));
        let (record, reserve) = (Vec::new(), Vec::new());
        let steps = Steps { create: self.create, failure, record, reserve, user, reason };
        UserNext::Execute(UserPlan::Act(Box::new(steps)))
    }

    fn finished(self, user: ObjectReference) -> UserNext {
        let Self { create, made, is_new, reserve, due, waits } = self;
        UserNext::Execute(if !due.is_empty() {
            let record = if is_new { made } else { Vec::new() };
            let reason = UserReason::Due { entries: due };
            UserPlan::Act(Box::new(Steps { create, failure: None, record, reserve, user, reason }))
        } else if waits.is_empty() {
            UserPlan::Nothing(UserReason::Complete)
        } else {
            UserPlan::Nothing(UserReason::Waits { entries: waits })
        })
    }
}

impl fmt::Display for UserPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(reason) => write!(f, "nothing ({reason})"),
            Self::Act(steps) => {
                let Steps { create, failure, record, reserve, user: _, reason } = &**steps;
                let counted = |verb: &str, count: usize| (count > 0).then(|| format!("{verb} {count}"));
                let steps = [
                    counted("create", create.len()),
                    failure.as_ref().map(|_| "report a failure".to_owned()),
                    counted("record", record.len()),
                    counted("reserve", reserve.len()),
                ];
                let steps: Vec<String> = steps.into_iter().flatten().collect();
                write!(f, "{} ({reason})", steps.join(", "))
            }
        }
    }
}
