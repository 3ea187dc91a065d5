//! Decides what one sync does about a StatefulSet's pods and their claims, and why.
//!
//! Pods are looked at in four groups, and the writes of a group come after those of the one before: pods that are asked
//! for, claims of those that are not, these pods themselves, and pods of an earlier revision. In order each pod waits
//! for those before it; in parallel none waits.
//! Left out: the status, which is [`crate::status`]'s.
//!
//! Upstream: `updateStatefulSet`, `pkg/controller/statefulset/stateful_set_control.go`.

pub mod claim;
pub mod reason;
pub mod revisions;
pub mod rolling;
pub mod stateful_pod_control;
pub mod stateful_set_utils;
pub mod stuck;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::{Key, ResourceVersion, Uid};
use shared::api::pod::Phase;
use shared::controllers::rejections::Held;
use shared::runtime::decisions::{self, Reasoned};

use crate::flags::gates::FeatureGates;
use crate::objects::pod::Pod;
use crate::objects::{PodManagementPolicy, StatefulSetSpec};
use crate::observe::Observed;
use reason::{Differences, Numbers, Reason, Until, Waiting, Why};
use revisions::Revisions;
use stateful_pod_control::ClaimWork;
use stateful_set_utils::{
    MISSING_MAX, PodIdentity, identity_matches, is_of_current, is_pod_name, is_running_and_ready, ordinal, pod_name,
    storage_matches,
};
use stuck::Eviction;

/// The writes of one sync, group by group. A failure ends them, where pods do not wait for each other after the rest of
/// a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whether the steps of a group are carried out one after the other.
    pub is_ordered: bool,
    /// The steps about pods that are asked for.
    pub replicas: Vec<Step>,
    /// The steps about the claims of pods that are not asked for.
    pub condemned_claims: Vec<Step>,
    /// The steps about pods that are not asked for.
    pub condemned: Vec<Step>,
    /// The pods of an earlier revision that go.
    pub outdated: Vec<Deletion>,
    /// The pod of an earlier revision that is replaced because the update does not get past it.
    pub stuck: Option<Eviction>,
    /// Why.
    pub reason: Reason,
}

/// The writes about one pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The pod goes.
    Delete(Deletion),
    /// The pod comes, and before it the claims that it lacks.
    Create(NewPod),
    /// A pod that waits gets the claims that it lacks, and these the owners of the retention policy.
    CreateClaims(ClaimsOfPod),
    /// The pod's claims get the owners of the retention policy.
    SetClaimOwners(ClaimsOfPod),
    /// The pod or its claims are changed.
    Update(PodUpdate),
}

/// The end of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Its namespace and name.
    pub key: Key,
    /// Its identity: another pod of the same name stays.
    pub uid: Uid,
    /// Why.
    pub why: Why,
}

/// A pod that is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPod {
    /// Its namespace and name.
    pub key: Key,
    /// Its place.
    pub ordinal: i64,
    /// The name of the revision that it is made from.
    pub revision: Text,
    /// The writes that its claims need.
    pub claims: ClaimWork,
    /// Why.
    pub why: Why,
}

/// The writes that the claims of a pod need.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimsOfPod {
    /// The pod's namespace and name.
    pub pod: Key,
    /// The writes.
    pub claims: ClaimWork,
    /// Why.
    pub why: Why,
}

/// A change of a pod, refused by the server if the pod is another one or was changed meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUpdate {
    /// The namespace, and the name that it is to have.
    pub key: Key,
    /// Its identity.
    pub uid: Uid,
    /// The state that was observed.
    pub resource_version: ResourceVersion,
    /// Its place.
    pub ordinal: i64,
    /// The writes that its claims need.
    pub claims: ClaimWork,
    /// The part of it that is changed.
    pub differences: Differences,
    /// Why.
    pub why: Why,
}

impl Deletion {
    fn of(pod: &Pod, why: Why) -> Self {
        Self { key: pod.metadata.key.clone(), uid: pod.metadata.uid, why }
    }
}

/// Decides what one sync does.
pub fn plan(observed: &Observed, revisions: &Revisions, gates: FeatureGates, now: Timestamp) -> Plan {
    let set = &*observed.set;
    if let Err(invalid) = &set.spec.selector {
        return Plan::nothing(Reason::InvalidSelector { error: invalid.clone() });
    }
    if set.metadata.is_being_deleted() {
        return Plan::nothing(Reason::BeingDeleted);
    }
    let places = Places::of(observed);
    let mut draft = Draft::new(observed, revisions, &places, gates, now);
    match set.spec.pod_management_policy {
        PodManagementPolicy::OrderedReady => {
            if draft.plan_in_order().is_continue() {
                rolling::plan_update(&mut draft);
            }
        }
        PodManagementPolicy::Parallel => {
            draft.plan_in_parallel();
            rolling::plan_update(&mut draft);
            stuck::plan_in_parallel(&mut draft);
        }
    }
    draft.finish()
}

/// How many pods of a StatefulSet are unavailable, and how many may be.
pub fn unavailability(observed: &Observed, now: Timestamp) -> rolling::Unavailability {
    rolling::unavailability(&observed.set.spec, &Places::of(observed), now)
}

/// The pods of a StatefulSet by their ordinals.
struct Places<'a> {
    /// Those that are asked for.
    replicas: BTreeMap<i64, &'a Arc<Pod>>,
    /// The others, the highest ordinal first.
    condemned: Vec<&'a Arc<Pod>>,
}

impl<'a> Places<'a> {
    fn of(observed: &'a Observed) -> Self {
        let set = &*observed.set;
        let (wanted, mut replicas, mut condemned) = (set.spec.ordinals(), BTreeMap::new(), Vec::new());
        for pod in &observed.pods {
            let ordinal = ordinal(pod);
            if wanted.contains(&ordinal) {
                match replicas.entry(ordinal) {
                    Entry::Vacant(free) => {
                        free.insert(pod);
                    }
                    // Of `web-1` and `web-01` the first one has the place.
                    Entry::Occupied(mut taken) if is_pod_name(set.metadata.name(), pod.metadata.name()) => {
                        taken.insert(pod);
                    }
                    Entry::Occupied(_) => {}
                }
            } else if ordinal >= 0 {
                condemned.push(pod);
            }
        }
        condemned.sort_by(|a, b| ordinal(b).cmp(&ordinal(a)).then_with(|| a.metadata.key.cmp(&b.metadata.key)));
        Self { replicas, condemned }
    }

    /// Whether the pod of this ordinal is missing, on its way out, or does not run yet.
    fn is_under_way(&self, ordinal: i64) -> bool {
        let Some(pod) = self.replicas.get(&ordinal) else { return true };
        if pod.phase.is_terminal() { pod.metadata.is_being_deleted() } else { pod.phase != Phase::Running }
    }

    /// The first pod that is not available: by ordinals, and of those that are asked for before the others.
    fn first_unavailable(&self, spec: &StatefulSetSpec, now: Timestamp) -> Option<Uid> {
        let in_order = self.replicas.values().chain(self.condemned.iter().rev());
        let mut unavailable = in_order.filter(|pod| !is_available(pod, spec, now));
        unavailable.next().map(|pod| pod.metadata.uid)
    }
}

/// Whether a pod is ready for long enough, and stays.
fn is_available(pod: &Pod, spec: &StatefulSetSpec, now: Timestamp) -> bool {
    pod.readiness.is_available(spec.min_ready_seconds, now) && !pod.metadata.is_being_deleted()
}

/// A plan in the making.
struct Draft<'a> {
    observed: &'a Observed,
    revisions: &'a Revisions,
    places: &'a Places<'a>,
    gates: FeatureGates,
    now: Timestamp,
    replicas: Vec<Step>,
    condemned_claims: Vec<Step>,
    condemned: Vec<Step>,
    outdated: Vec<Deletion>,
    stuck: Option<Eviction>,
    deleted: BTreeSet<Uid>,
    /// How many pods come in parallel and do not run yet, those included whose places this plan frees.
    under_way: usize,
    waiting: Option<(Text, Until)>,
}

impl<'a> Draft<'a> {
    fn new(
        observed: &'a Observed,
        revisions: &'a Revisions,
        places: &'a Places<'a>,
        gates: FeatureGates,
        now: Timestamp,
    ) -> Self {
        Self {
            observed,
            revisions,
            places,
            gates,
            now,
            replicas: Vec::new(),
            condemned_claims: Vec::new(),
            condemned: Vec::new(),
            outdated: Vec::new(),
            stuck: None,
            deleted: BTreeSet::new(),
            under_way: 0,
            waiting: None,
        }
    }

    fn spec(&self) -> &'a StatefulSetSpec {
        &self.observed.set.spec
    }

    /// Whether it is planned that the pod goes.
    fn is_deleted(&self, pod: &Pod) -> bool {
        self.deleted.contains(&pod.metadata.uid)
    }

    /// Notes the first pod that others wait for.
    fn wait(&mut self, pod: &Pod, until: Until) {
        self.waiting.get_or_insert_with(|| (Text::new(pod.metadata.name()), until));
    }

    /// Gives a break where the pods that come next have to wait.
    fn plan_in_order(&mut self) -> ControlFlow<()> {
        let places = self.places;
        for ordinal in self.spec().ordinals() {
            let Some(pod) = places.replicas.get(&ordinal) else {
                self.plan_creation(ordinal);
                return ControlFlow::Break(());
            };
            // Before its claims: one that is on its way out may wait for the end of this very pod.
            stuck::plan_in_order(self, pod)?;
            self.plan_replica_in_order(pod)?;
        }
        self.plan_condemned_claims();
        self.plan_condemned_in_order()
    }

    /// Upstream: `processReplica` of a monotonic set.
    fn plan_replica_in_order(&mut self, pod: &Pod) -> ControlFlow<()> {
        if pod.phase.is_terminal() {
            self.plan_replacement(pod);
            return ControlFlow::Break(());
        }
        if pod.phase == Phase::Pending {
            self.plan_claims_of_pending(pod);
        }
        if let Some(until) = self.obstacle(pod) {
            self.wait(pod, until);
            return ControlFlow::Break(());
        }
        self.plan_repair(pod, false);
        ControlFlow::Continue(())
    }

    /// The state that a pod has to reach before others may come or go.
    fn obstacle(&self, pod: &Pod) -> Option<Until> {
        if pod.metadata.is_being_deleted() {
            Some(Until::Gone)
        } else if !is_running_and_ready(pod) {
            Some(Until::Ready)
        } else if !is_available(pod, self.spec(), self.now) {
            Some(Until::Available)
        } else {
            None
        }
    }

    fn plan_in_parallel(&mut self) {
        let places = self.places;
        let missing = self.spec().ordinals().filter(|at| !places.replicas.contains_key(at));
        let mut ordinals: Vec<i64> = places.replicas.keys().copied().chain(missing.take(MISSING_MAX)).collect();
        ordinals.sort_unstable();
        if !self.observed.rejections.is_empty() {
            self.under_way = ordinals.iter().filter(|at| places.is_under_way(**at)).count();
        }
        for ordinal in ordinals {
            match places.replicas.get(&ordinal) {
                None => self.plan_creation(ordinal),
                Some(pod) if pod.phase.is_terminal() => self.plan_replacement(pod),
                Some(pod) => {
                    let is_pending = pod.phase == Phase::Pending;
                    if is_pending {
                        self.plan_claims_of_pending(pod);
                    }
                    self.plan_repair(pod, is_pending);
                }
            }
        }
        self.plan_condemned_claims();
        for pod in places.condemned.iter().filter(|pod| !pod.metadata.is_being_deleted()) {
            self.plan_condemned(pod);
        }
    }

    /// Another pod is made once this one, which has ended, is gone. One that its node has rejected stays for as long as
    /// its replacement waits; upstream replaces it at once.
    fn plan_replacement(&mut self, pod: &Pod) {
        if pod.metadata.is_being_deleted() {
            self.wait(pod, Until::Gone);
        } else if let Some(held) = self.held_back(pod) {
            self.wait(pod, Until::HeldBack { held });
        } else {
            self.under_way += 1;
            self.deleted.insert(pod.metadata.uid);
            self.replicas.push(Step::Delete(Deletion::of(pod, Why::Ended(pod.phase))));
        }
    }

    /// Why the replacement of a rejected pod waits, if it does.
    fn held_back(&self, pod: &Pod) -> Option<Held> {
        pod.rejection.as_ref()?;
        let revision = self.revision_of(ordinal(pod));
        self.observed.rejections.allow(revision, 1, self.under_way, self.now).1
    }

    /// The revision that a new pod of this ordinal is made from.
    fn revision_of(&self, ordinal: i64) -> &'a Text {
        let Revisions { current, update, collision_count: _ } = self.revisions;
        if is_of_current(&self.observed.set, ordinal) { current } else { update }
    }

    /// Upstream: `newVersionedStatefulSetPod`, and `processReplica` for a pod that was not created.
    fn plan_creation(&mut self, ordinal: i64) {
        let meta = &self.observed.set.metadata;
        let key = Key::new(meta.namespace(), &pod_name(meta.name(), ordinal));
        let pod = PodIdentity { key: key.clone(), uid: None, ordinal };
        if let Some(claim) = self.observed.stale_claim(&pod) {
            let claim = Text::new(claim.metadata.name());
            self.waiting.get_or_insert_with(|| (Text::new(key.name()), Until::ClaimGone { claim }));
            return;
        }
        let mut claims = ClaimWork::default();
        self.observed.plan_missing_claims(&pod, &mut claims);
        self.observed.plan_claim_owners(&pod, &mut claims);
        let (revision, why) = (self.revision_of(ordinal).clone(), Why::Missing);
        self.replicas.push(Step::Create(NewPod { key, ordinal, revision, claims, why }));
    }

    /// Upstream: `createMissingPersistentVolumeClaims`, `pkg/controller/statefulset/stateful_pod_control.go`.
    fn plan_claims_of_pending(&mut self, pod: &Pod) {
        let (identity, mut claims) = (PodIdentity::of(pod), ClaimWork::default());
        self.observed.plan_missing_claims(&identity, &mut claims);
        self.observed.plan_claim_owners(&identity, &mut claims);
        if !claims.is_empty() {
            self.replicas.push(Step::CreateClaims(ClaimsOfPod { pod: identity.key, claims, why: Why::Pending }));
        }
    }

    /// `has_claims` where the claims of the pod are seen to by another step.
    ///
    /// Upstream: the end of `processReplica`, and `UpdateStatefulPod`, `stateful_pod_control.go`.
    fn plan_repair(&mut self, pod: &Pod, has_claims: bool) {
        let (set, identity) = (&*self.observed.set, PodIdentity::of(pod));
        let differences = Differences {
            identity: !identity_matches(set, pod),
            storage: !storage_matches(set, pod),
            claim_owners: !has_claims && !self.observed.claims_match_retention_policy(&identity),
        };
        if differences == Differences::default() {
            return;
        }
        let mut claims = ClaimWork::default();
        if differences.storage && !has_claims {
            self.observed.plan_missing_claims(&identity, &mut claims);
        }
        if differences.claim_owners {
            self.observed.plan_claim_owners(&identity, &mut claims);
        }
        let (meta, ordinal) = (&pod.metadata, identity.ordinal);
        self.replicas.push(Step::Update(PodUpdate {
            key: Key::new(meta.namespace(), &pod_name(set.metadata.name(), ordinal)),
            uid: meta.uid,
            resource_version: meta.resource_version,
            ordinal,
            claims,
            differences,
            why: Why::Differs(differences),
        }));
    }

    /// Before a pod goes its claims get the owners by which they go with it, or stay.
    fn plan_condemned_claims(&mut self) {
        let places = self.places;
        for pod in &places.condemned {
            let identity = PodIdentity::of(pod);
            if !self.observed.claims_match_retention_policy(&identity) {
                let mut claims = ClaimWork::default();
                self.observed.plan_claim_owners(&identity, &mut claims);
                let claims = ClaimsOfPod { pod: identity.key, claims, why: Why::Condemned };
                self.condemned_claims.push(Step::SetClaimOwners(claims));
            }
        }
    }

    /// The highest ordinal goes first, and the next one once it is gone. A pod that is not available goes only if it is
    /// the only such one.
    ///
    /// Upstream: `processCondemned`.
    fn plan_condemned_in_order(&mut self) -> ControlFlow<()> {
        let places = self.places;
        let Some(pod) = places.condemned.first() else { return ControlFlow::Continue(()) };
        let is_first_unavailable = places.first_unavailable(self.spec(), self.now) == Some(pod.metadata.uid);
        match self.obstacle(pod).filter(|until| *until == Until::Gone || !is_first_unavailable) {
            Some(until) => self.wait(pod, until),
            None => self.plan_condemned(pod),
        }
        ControlFlow::Break(())
    }

    fn plan_condemned(&mut self, pod: &Pod) {
        self.deleted.insert(pod.metadata.uid);
        self.condemned.push(Step::Delete(Deletion::of(pod, Why::Condemned)));
    }

    fn numbers(&self) -> Numbers {
        let (spec, Places { replicas, condemned }) = (self.spec(), self.places);
        let count = |counts: &dyn Fn(&Pod) -> bool| replicas.values().filter(|pod| counts(pod)).count();
        Numbers {
            wanted: i64::from(spec.replicas),
            present: replicas.len(),
            available: count(&|pod| is_available(pod, spec, self.now)),
            updated: count(&|pod| pod.revision() == &*self.revisions.update),
            condemned: condemned.len(),
        }
    }

    fn finish(self) -> Plan {
        let (numbers, policy) = (self.numbers(), self.spec().pod_management_policy);
        let Self { replicas, condemned_claims, condemned, outdated, stuck, waiting, .. } = self;
        let reason = match waiting {
            Some((pod, until)) => Reason::Waiting(Waiting { pod, until, numbers }),
            None => Reason::Replicas(numbers),
        };
        let is_ordered = policy == PodManagementPolicy::OrderedReady;
        Plan { is_ordered, replicas, condemned_claims, condemned, outdated, stuck, reason }
    }
}

impl Plan {
    fn nothing(reason: Reason) -> Self {
        Self {
            is_ordered: true,
            replicas: Vec::new(),
            condemned_claims: Vec::new(),
            condemned: Vec::new(),
            outdated: Vec::new(),
            stuck: None,
            reason,
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let Self { is_ordered: _, replicas, condemned_claims, condemned, outdated, stuck, reason: _ } = self;
        replicas.is_empty()
            && condemned_claims.is_empty()
            && condemned.is_empty()
            && outdated.is_empty()
            && stuck.is_none()
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

/// `create web-1 of web-5d4f, delete web-3 [too many] (1 of 3 available, 1 updated, 1 too many)`; `nothing (…)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_ordered: _, replicas, condemned_claims, condemned, outdated, stuck, reason } = self;
        let steps = replicas.iter().chain(condemned_claims).chain(condemned).map(ToString::to_string);
        let steps = steps.chain(outdated.iter().map(ToString::to_string));
        let steps: Vec<String> = steps.chain(stuck.iter().map(ToString::to_string)).collect();
        let shown = if steps.is_empty() { "nothing".to_owned() } else { list(&steps, Clone::clone) };
        write!(f, "{shown} ({reason})")
    }
}

impl fmt::Display for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, uid: _, why } = self;
        write!(f, "delete {} [{why}]", key.name())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delete(deletion) => write!(f, "{deletion}"),
            Self::Create(NewPod { key, ordinal: _, revision, claims, why: _ }) => {
                write!(f, "create {} of {revision}{claims}", key.name())
            }
            Self::CreateClaims(of_pod) | Self::SetClaimOwners(of_pod) => {
                let ClaimsOfPod { pod, claims, why } = of_pod;
                write!(f, "claims of {} [{why}]{claims}", pod.name())
            }
            Self::Update(PodUpdate { key, claims, why, .. }) => write!(f, "update {} [{why}]{claims}", key.name()),
        }
    }
}

/// ` with data-web-0, owners of logs-web-0`; nothing where there is none.
impl fmt::Display for ClaimWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { create, being_deleted, conflicting: _, owners } = self;
        let create = create.iter().map(|claim| claim.key.name().to_owned());
        let being_deleted = being_deleted.iter().map(|claim| format!("{} once it is gone", claim.name()));
        let owners = owners.iter().map(|change| {
            let owner = change.add.as_ref().map_or("nobody", |owner| owner.key.name());
            format!("{} of {owner}", change.claim.name())
        });
        let all: Vec<String> = create.chain(being_deleted).chain(owners).collect();
        if all.is_empty() { Ok(()) } else { write!(f, " with {}", all.join(", ")) }
    }
}
