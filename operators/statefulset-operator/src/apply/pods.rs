//! The writes of one StatefulSet's pods and claims, and the events that tell of them.
//!
//! Left out: the order of groups, which is [`super`]'s.
//!
//! Upstream: `pkg/controller/statefulset/stateful_pod_control.go`.

use anyhow::{Context, anyhow};
use shared::api::intern::Text;
use shared::api::object::{Key, Kind};
use shared::api::resource::{CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS};
use shared::api::template::PodTemplate;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::control::{DeleteOptions, KeyControl, Patch, Preconditions, SlowStart, slow_start};
use shared::working::events::{EventType, PlannedEvent};

use super::Writer;
use super::bodies::{claim_body, owners_patch, pod_body, pod_patch};
use crate::objects::StatefulSet;
use crate::objects::revision::StoredRevision;
use crate::plan::claim_owners::OwnerChange;
use crate::plan::claim_work::{ClaimWork, NewClaim};
use crate::plan::reasons::{Differences, Reason};
use crate::plan::revisions::Revisions;
use crate::plan::stuck::{Eviction, Refused};
use crate::plan::{ClaimsOfPod, Deletion, NewPod, PodUpdate, Step};

/// The reason of the event about a claim that another controller manages.
const CONFLICTING_CONTROLLER: &str = "ConflictingController";
/// The cause of a refusal by a disruption budget.
///
/// Upstream: `DisruptionBudgetCause`, `staging/src/k8s.io/api/policy/v1/types.go`.
const DISRUPTION_BUDGET: &str = "DisruptionBudget";

/// The reason of the event about a pod that could not be created.
pub(super) const FAILED_CREATE: &str = "FailedCreate";

#[derive(Clone, Copy, Debug)]
enum Verb {
    Create,
    Update,
    Delete,
    Evict,
}

impl Verb {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
            Self::Evict => "Evict",
        }
    }

    const fn successful(self) -> &'static str {
        match self {
            Self::Create => "SuccessfulCreate",
            Self::Update => "SuccessfulUpdate",
            Self::Delete => "SuccessfulDelete",
            Self::Evict => "SuccessfulEvict",
        }
    }

    const fn failed(self) -> &'static str {
        match self {
            Self::Create => FAILED_CREATE,
            Self::Update => "FailedUpdate",
            Self::Delete => "FailedDelete",
            Self::Evict => "FailedEvict",
        }
    }
}

pub(super) struct OfSet<'a> {
    writer: &'a Writer,
    set: &'a StatefulSet,
    revisions: &'a Revisions,
    /// The template of the current revision, where a pod is made of it.
    current: Option<PodTemplate>,
}

impl<'a> OfSet<'a> {
    /// Reads the template of the current revision, if one of these steps makes a pod of it and it is another one than
    /// that of now.
    pub(super) async fn new(
        writer: &'a Writer,
        set: &'a StatefulSet,
        revisions: &'a Revisions,
        steps: &[Step],
    ) -> anyhow::Result<Self> {
        let is_needed = |step: &Step| matches!(step, Step::Create(new) if new.revision != revisions.update);
        let mut current = None;
        if steps.iter().any(is_needed) {
            let key = Key::new(set.metadata.namespace(), &revisions.current);
            let stored = writer.ctx.get::<StoredRevision>(&CONTROLLER_REVISIONS, &key).await;
            current = Some(stored.with_context(|| format!("cannot read revision {key}"))?.template);
        }
        Ok(Self { writer, set, revisions, current })
    }

    /// About how long the body of a pod is.
    fn body_bytes(&self) -> usize {
        self.set.spec.template.bytes().max(self.current.as_ref().map_or(0, PodTemplate::bytes))
    }

    fn control(&self) -> KeyControl<'a> {
        self.writer.control_of(self.set)
    }

    /// Carries out steps: one after the other up to the first failure, or in batches up to one with a failure.
    pub(super) async fn carry_out(&self, steps: &[Step], is_ordered: bool) -> anyhow::Result<()> {
        if !is_ordered {
            let SlowStart { succeeded: _, failed, skipped: _ } =
                slow_start(steps.len(), self.body_bytes(), |at| self.step(&steps[at])).await;
            return all_of(failed);
        }
        for step in steps {
            self.step(step).await?;
        }
        Ok(())
    }

    async fn step(&self, step: &Step) -> anyhow::Result<()> {
        match step {
            Step::Delete(deletion) => self.delete(deletion).await,
            Step::Create(new) => self.create(new).await,
            Step::CreateClaims(ClaimsOfPod { pod, claims, why: _ }) => {
                self.create_claims(pod, claims).await?;
                match self.set_claim_owners(claims).await {
                    Ok(()) => Ok(()),
                    Err(error) => self.tell(Verb::Update, pod, Err(error)),
                }
            }
            Step::SetClaimOwners(ClaimsOfPod { pod: _, claims, why: _ }) => self.set_claim_owners(claims).await,
            Step::Update(update) => self.update(update).await,
        }
    }

    /// Deletes a pod. One that is gone is deleted.
    ///
    /// Upstream: `DeleteStatefulPod`.
    pub(super) async fn delete(&self, deletion: &Deletion) -> anyhow::Result<()> {
        let Deletion { key, uid, why: _ } = deletion;
        let deleted = self.control().delete(&PODS, key, &DeleteOptions::of(*uid)).await.unless_gone();
        self.tell(Verb::Delete, key, deleted.map(drop).map_err(anyhow::Error::from))
    }

    /// Deletes a pod as far as disruption budgets let it go. One that they keep is no failure, and no event tells of
    /// it: there would be one for each try.
    pub(super) async fn evict(&self, eviction: &Eviction) -> anyhow::Result<Option<Refused>> {
        let Eviction { key, uid, why } = eviction;
        let Err(error) = self.control().evict(key, *uid).await.unless_gone() else {
            let (pod, set) = (key.name(), self.set.metadata.name());
            let message = format!("Evict Pod {pod} in StatefulSet {set} successful: {why}");
            self.event(EventType::Normal, Verb::Evict.successful(), message);
            return Ok(None);
        };
        if let Some(message) = words_of_budget(&error) {
            return Ok(Some(Refused { reason: Reason::Budget { pod: Text::new(key.name()), message } }));
        }
        self.tell(Verb::Evict, key, Err(error.into())).map(|()| None)
    }

    /// Creates a pod. If there is one of its name, the next sync sees it.
    ///
    /// Upstream: `CreateStatefulPod`.
    async fn create(&self, new: &NewPod) -> anyhow::Result<()> {
        let NewPod { key, ordinal, revision, claims, why: _ } = new;
        if let Err(error) = self.create_claims(key, claims).await {
            return self.tell(Verb::Create, key, Err(error));
        }
        let of_update = *revision == self.revisions.update;
        let template = self.current.as_ref().filter(|_| !of_update).unwrap_or(&self.set.spec.template);
        let created = match pod_body(self.set, template, *ordinal, revision) {
            Ok(body) => match self.control().create(&PODS, key.namespace(), body).await {
                Err(error) if error.is_already_exists() => return Err(error.into()),
                created => created.map(drop).map_err(anyhow::Error::from),
            },
            Err(error) => Err(error).context("cannot read the pod template"),
        };
        if let Err(error) = self.set_claim_owners(claims).await {
            return self.tell(Verb::Update, key, Err(error));
        }
        self.tell(Verb::Create, key, created)
    }

    /// Upstream: `UpdateStatefulPod`.
    async fn update(&self, update: &PodUpdate) -> anyhow::Result<()> {
        let PodUpdate { key, uid, resource_version, ordinal, claims, differences, why: _ } = update;
        let Differences { identity, storage, claim_owners: _ } = *differences;
        if let Err(error) = self.create_claims(key, claims).await {
            return self.tell(Verb::Update, key, Err(error));
        }
        if let Err(error) = self.set_claim_owners(claims).await {
            return self.tell(Verb::Update, key, Err(error));
        }
        // Upstream puts the pod as it is where only its claims were changed.
        let updated = if identity || storage {
            let preconditions = Preconditions { uid: *uid, resource_version: Some(*resource_version) };
            let patch = Patch::strategic(&pod_patch(self.set, *ordinal, identity, storage));
            self.control().patch(&PODS, key, preconditions, patch).await.map(drop).map_err(anyhow::Error::from)
        } else {
            Ok(())
        };
        self.tell(Verb::Update, key, updated)
    }

    /// Creates the claims that a pod lacks. All are tried.
    ///
    /// Upstream: `createPersistentVolumeClaims`.
    async fn create_claims(&self, pod: &Key, claims: &ClaimWork) -> anyhow::Result<()> {
        let ClaimWork { create, being_deleted, conflicting: _, owners: _ } = claims;
        let mut errors = Vec::new();
        for claim in create {
            errors.extend(self.create_claim(pod, claim).await.err());
        }
        errors.extend(being_deleted.iter().map(|claim| anyhow!("pvc {} is being deleted", claim.name())));
        all_of(errors)
    }

    async fn create_claim(&self, pod: &Key, claim: &NewClaim) -> anyhow::Result<()> {
        let NewClaim { key, template } = claim;
        let (set, pod, claim) = (self.set.metadata.name(), pod.name(), key.name());
        let template = self.set.spec.volume_claim_templates.get(*template).context("no such claim template")?;
        let body = claim_body(self.set, template, claim);
        let body = body.with_context(|| format!("cannot read claim template {}", template.name))?;
        let created = self.control().create(&PERSISTENT_VOLUME_CLAIMS, key.namespace(), body).await;
        match &created {
            Ok(_) => {
                let message = format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success");
                self.event(EventType::Normal, Verb::Create.successful(), message);
            }
            Err(error) if error.is_already_exists() => {}
            Err(error) => {
                let message = format!("Create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}");
                self.event(EventType::Warning, Verb::Create.failed(), message);
            }
        }
        created.map(drop).with_context(|| format!("failed to create PVC {claim}"))
    }

    /// Gives claims the owners of the retention policy, up to the first failure.
    ///
    /// Upstream: `UpdatePodClaimForRetentionPolicy`.
    async fn set_claim_owners(&self, claims: &ClaimWork) -> anyhow::Result<()> {
        let ClaimWork { create: _, being_deleted: _, conflicting, owners } = claims;
        for claim in conflicting {
            // Upstream's word.
            let message = format!(
                "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a manging controller, the \
                 retention policy is ignored for this claim",
                claim.name()
            );
            self.event(EventType::Warning, CONFLICTING_CONTROLLER, message);
        }
        for change in owners {
            let patch = Patch::strategic(&owners_patch(change));
            let OwnerChange { claim, uid, resource_version, remove: _, add: _ } = change;
            let preconditions = Preconditions { uid: *uid, resource_version: Some(*resource_version) };
            let changed = self.control().patch(&PERSISTENT_VOLUME_CLAIMS, claim, preconditions, patch).await;
            changed.with_context(|| format!("could not update claim {} for delete policy ownerRefs", claim.name()))?;
        }
        Ok(())
    }

    /// Tells of a write of a pod, and gives its result back.
    ///
    /// Upstream: `recordPodEvent`.
    fn tell(&self, verb: Verb, pod: &Key, result: anyhow::Result<()>) -> anyhow::Result<()> {
        let (pod, set, did) = (pod.name(), self.set.metadata.name(), verb.as_str());
        match &result {
            Ok(()) => {
                let message = format!("{did} Pod {pod} in StatefulSet {set} successful");
                self.event(EventType::Normal, verb.successful(), message);
            }
            Err(error) => {
                let message = format!("{did} Pod {pod} in StatefulSet {set} failed error: {error:#}");
                self.event(EventType::Warning, verb.failed(), message);
            }
        }
        result
    }

    fn event(&self, kind: EventType, reason: &'static str, message: String) {
        self.writer.ctx.event(PlannedEvent { about: self.set.reference(), kind, reason, message });
    }
}

/// The words of the disruption budget that has refused an eviction; none where it was refused for another reason.
fn words_of_budget(error: &ApiError) -> Option<String> {
    let details = error.status()?.details.as_ref()?;
    let cause = details.causes.iter().find(|cause| cause.reason == DISRUPTION_BUDGET)?;
    Some(if cause.message.is_empty() { error.to_string() } else { cause.message.clone() })
}

/// One error that says all of these as upstream does, or none.
fn all_of(mut errors: Vec<anyhow::Error>) -> anyhow::Result<()> {
    match (errors.pop(), errors.is_empty()) {
        (None, _) => Ok(()),
        (Some(only), true) => Err(only),
        (Some(last), false) => {
            errors.push(last);
            let texts: Vec<String> = errors.iter().map(|error| format!("{error:#}")).collect();
            Err(anyhow!("[{}]", texts.join(", ")))
        }
    }
}
