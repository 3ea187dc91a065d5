//! Carries out what was decided, stage by stage: claims, the revision, the pods, the end of old revisions, the status.
//!
//! Left out: deciding anything. Failures are told by events and given back as errors; the queue tries again.

mod bodies;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, bail};
use shared::api::intern::Text;
use shared::api::object::{Key, Kind, ObjectReference};
use shared::api::owner::Claim;
use shared::api::resource::{CONTROLLER_REVISIONS, PODS};
use shared::controllers::pod_control::PodControl;
use shared::controllers::revisions::apply::{Creation, create, delete, label, renumber};
use shared::controllers::revisions::truncation::Truncation;
use shared::controllers::revisions::{ControllerRevision, DEFAULTED_LABEL, NewRevision, REVISION_LABEL};
use shared::controllers::status_writer::{NewStatus, StatusWrite, StatusWriter};
use shared::working::context::ControllerContext;
use shared::working::control::{Claimed, KeyControl, Patch, Preconditions, SlowStart, aggregate, slow_start, together};
use shared::working::events::PlannedEvent;
use shared::working::expectations::Expectations;

use crate::memory::Failures;
use crate::objects::pod::Pod;
use crate::objects::{DAEMON_SETS, DaemonSet, DaemonSetStatus};
use crate::observe::Observed;
use crate::plan::reasons::Why;
use crate::plan::revisions::{RevisionPlan, Revisions, Update};
use crate::plan::{Deletion, NewPod, Plan};
use bodies::PodMaker;

/// The reason of the event about a selector that selects everything.
const SELECTING_ALL: &str = "SelectingAll";
/// The reason of the event about a pod that has failed.
const FAILED_DAEMON_POD: &str = "FailedDaemonPod";
/// The reason of the event about a pod that has ended well.
const SUCCEEDED_DAEMON_POD: &str = "SucceededDaemonPod";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) pods: PodControl,
    pub(crate) statuses: StatusWriter,
    /// The creations and deletions that are not seen yet.
    pub(crate) expectations: Arc<Expectations>,
    pub(crate) failures: Arc<Failures>,
}

impl Writer {
    fn control_of<'a>(&'a self, set: &'a DaemonSet) -> KeyControl<'a> {
        self.ctx.for_key(&set.metadata.key, set.metadata.uid)
    }

    /// Adopts and releases revisions; gives those that are the DaemonSet's own then.
    pub(crate) async fn claim_revisions(
        &self,
        observed: &Observed,
        claim: Claim<ControllerRevision>,
    ) -> anyhow::Result<Vec<Arc<ControllerRevision>>> {
        let set = &*observed.set;
        let Claimed { objects, errors } =
            self.control_of(set).claim(&set.owner(), &CONTROLLER_REVISIONS, claim, &[]).await;
        aggregate(errors)?;
        Ok(objects)
    }

    /// Adopts and releases pods; gives those that are the DaemonSet's own then.
    pub(crate) async fn claim_pods(&self, observed: &Observed, claim: Claim<Pod>) -> anyhow::Result<Vec<Arc<Pod>>> {
        let set = &*observed.set;
        let Claimed { objects, errors } = self.control_of(set).claim(&set.owner(), &PODS, claim, &[]).await;
        aggregate(errors)?;
        Ok(objects)
    }

    /// Makes the revision of the template of now the last one, and the only one with its data.
    pub(crate) async fn revise(&self, observed: &Observed, plan: RevisionPlan) -> anyhow::Result<Revisions> {
        let revisions = plan.revisions(observed);
        let RevisionPlan { label: unlabelled, update, relabel, delete: duplicates, reason: _ } = plan;
        let control = self.control_of(&observed.set);
        for revision in unlabelled {
            let name = revision.metadata.name();
            label(control, &revision, REVISION_LABEL, name)
                .await
                .with_context(|| format!("cannot label revision {name}"))?;
        }
        for pod in relabel {
            self.relabel(&observed.set, &pod, &revisions.hash).await?;
        }
        for revision in duplicates {
            let deleted = delete(control, &revision).await;
            deleted.with_context(|| format!("cannot delete revision {}", revision.metadata.key))?;
        }
        match update {
            Update::Keep(_) => {}
            Update::Renumber { revision, to } => {
                // If its label was written just now, this meets another version, and the next try does it.
                let name = revision.metadata.name();
                let numbered = renumber(control, &revision, to).await;
                numbered.with_context(|| format!("cannot number revision {name} {to}"))?;
            }
            Update::Label { revision, data } => {
                let name = revision.metadata.name();
                let labelled = label(control, &revision, DEFAULTED_LABEL, &data.label()).await;
                labelled.with_context(|| format!("cannot label revision {name}"))?;
            }
            Update::Create { new, hash: _ } => return self.create_revision(observed, &new, revisions).await,
        }
        Ok(revisions)
    }

    async fn relabel(&self, set: &DaemonSet, pod: &Pod, hash: &Text) -> anyhow::Result<()> {
        let (key, uid) = (&pod.metadata.key, pod.metadata.uid);
        let patch = Patch::merge(&serde_json::json!({ "metadata": { "labels": { REVISION_LABEL: hash } } }));
        let patched = self.control_of(set).patch(&PODS, key, uid, patch).await;
        patched.map(drop).with_context(|| format!("cannot label pod {key}"))
    }

    /// Upstream: `snapshot`, `pkg/controller/daemon/update.go`.
    async fn create_revision(
        &self,
        observed: &Observed,
        new: &NewRevision,
        revisions: Revisions,
    ) -> anyhow::Result<Revisions> {
        let set = &*observed.set;
        let created = create(self.control_of(set), &set.owner(), set.metadata.annotations.json(), new).await;
        match created.with_context(|| format!("cannot create revision {}", new.name))? {
            Creation::Made(revision) => Ok(Revisions { hash: Text::new(revision.pod_hash()), ..revisions }),
            Creation::Taken => {
                self.count_collision(set).await?;
                bail!("the name of revision {} is taken", new.name)
            }
        }
    }

    /// The next try makes the name with another count. It is raised only if it is the one that the name was made with.
    async fn count_collision(&self, set: &DaemonSet) -> anyhow::Result<()> {
        let (key, known) = (&set.metadata.key, set.status.collision_count);
        let live: DaemonSet = self.ctx.get(&DAEMON_SETS, key).await.context("cannot read the collision count")?;
        if live.status.collision_count != known {
            bail!(
                "found a stale collision count ({}, expected {}) of DaemonSet {:?} while processing; will retry until \
                 it is updated",
                known.unwrap_or(0),
                live.status.collision_count.unwrap_or(0),
                set.metadata.name(),
            );
        }
        let next = known.unwrap_or(0).checked_add(1).context("every name of the revision is taken")?;
        let (uid, version) = (set.metadata.uid, live.metadata.resource_version);
        let preconditions = Preconditions { uid, resource_version: Some(version) };
        let status = serde_json::json!({ "collisionCount": next });
        let written = self.control_of(set).patch_status(&DAEMON_SETS, key, preconditions, &status).await;
        written.map(drop).context("cannot count a collision")
    }

    /// Says that nothing is done about a DaemonSet that selects all pods.
    pub(crate) fn refuse_everything(&self, set: &DaemonSet) {
        let message = "This daemon set is selecting all pods. A non-empty selector is required.".to_owned();
        self.ctx.event(PlannedEvent::warning(set.reference(), SELECTING_ALL, message));
    }

    /// Creates pods, as far as that goes well, and deletes others, whatever became of the first ones.
    ///
    /// Upstream: `syncNodes`, `pkg/controller/daemon/daemon_controller.go`.
    pub(crate) async fn apply(&self, observed: &Observed, revisions: &Revisions, plan: Plan) -> anyhow::Result<()> {
        let Plan { create, delete, look_again: _, reason: _ } = plan;
        if create.is_empty() && delete.is_empty() {
            return Ok(());
        }
        let set = &*observed.set;
        let (key, about) = (&set.metadata.key, set.reference());
        let maker = PodMaker::new(set, &revisions.hash).context("cannot read the pod template")?;
        for deletion in &delete {
            self.announce(set, &about, deletion);
        }
        self.expectations.expect(key, create.len(), delete.iter().map(|deletion| deletion.uid));
        let SlowStart { succeeded: _, failed, skipped } =
            slow_start(create.len(), set.spec.template.bytes(), |at| self.create(set, &about, &maker, &create[at]))
                .await;
        self.expectations.creations_observed(key, skipped);
        let mut errors: Vec<anyhow::Error> = failed;
        let deleted = together(delete.into_iter().map(|deletion| self.delete(key, &about, deletion))).await;
        errors.extend(deleted.into_iter().filter_map(Result::err));
        aggregate(errors)
    }

    /// Tells why a pod that has ended goes, and notes when the next one may.
    fn announce(&self, set: &DaemonSet, about: &ObjectReference, deletion: &Deletion) {
        let Deletion { key, uid: _, node, why } = deletion;
        match why {
            Why::Failed(pause) => {
                self.failures.remember(set, node, *pause);
                let message = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
                self.ctx.event(PlannedEvent::warning(about.clone(), FAILED_DAEMON_POD, message));
            }
            Why::Succeeded => {
                let message = format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
                self.ctx.event(PlannedEvent::normal(about.clone(), SUCCEEDED_DAEMON_POD, message));
            }
            Why::Missing
            | Why::Surge
            | Why::Duplicate
            | Why::Misplaced(_)
            | Why::NotReady
            | Why::Replaced
            | Why::Outdated
            | Why::NodeGone => {}
        }
    }

    async fn create(
        &self,
        set: &DaemonSet,
        about: &ObjectReference,
        maker: &PodMaker<'_>,
        new: &NewPod,
    ) -> anyhow::Result<()> {
        let NewPod { node, why: _ } = new;
        let key = &set.metadata.key;
        let created = match maker.pod_on(node) {
            Ok(body) => self.pods.create(about, body).await,
            Err(no_labels) => {
                self.expectations.creations_observed(key, 1);
                return Err(no_labels.into());
            }
        };
        match created {
            Ok(_) => Ok(()),
            // Nothing can be created in this namespace ever again, and that is no failure.
            Err(error) if error.is_namespace_terminating() => {
                self.expectations.creations_observed(key, 1);
                Ok(())
            }
            Err(error) => {
                self.expectations.creations_observed(key, 1);
                Err(error.into())
            }
        }
    }

    async fn delete(&self, set: &Key, about: &ObjectReference, deletion: Deletion) -> anyhow::Result<()> {
        let Deletion { key, uid, node: _, why: _ } = deletion;
        let deleted = self.pods.delete(about, &key, uid).await;
        if !matches!(deleted, Ok(true)) {
            // No event will tell of it.
            self.expectations.deletion_observed(set, uid);
        }
        deleted.map(drop).context("unable to delete pods")
    }

    /// Deletes revisions, up to the first failure.
    pub(crate) async fn truncate(&self, observed: &Observed, truncation: Truncation) -> anyhow::Result<()> {
        let Truncation { delete: revisions, reason: _ } = truncation;
        for revision in revisions {
            let deleted = delete(self.control_of(&observed.set), &revision).await;
            deleted.with_context(|| format!("cannot delete revision {}", revision.metadata.key))?;
        }
        Ok(())
    }

    /// Writes the status, unless it can wait and has to.
    ///
    /// Upstream: `storeDaemonSetStatus`, `daemon_controller.go`.
    pub(crate) async fn write_status(
        &self,
        observed: &Observed,
        status: &DaemonSetStatus,
        can_wait: bool,
    ) -> anyhow::Result<StatusWrite> {
        let meta = &observed.set.metadata;
        let patch = Patch::status(&BTreeMap::from([("status", status)]));
        let (uid, version) = (meta.uid, meta.resource_version);
        self.statuses.write(NewStatus { key: &meta.key, uid, version, patch, can_wait }).await
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.expectations.forget(key);
        self.failures.forget(key);
        self.ctx.forget(key, None);
    }
}
