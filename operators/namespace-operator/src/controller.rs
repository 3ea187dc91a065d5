//! Wiring, and one sync from observation to finalization.
//!
//! Left out: namespaces that nobody deletes. A handler never enqueues them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use shared::api::object::Key;
use shared::runtime::cache::{Cache, Change};
use shared::runtime::clock::Clock;
use shared::runtime::control::Control;
use shared::runtime::decisions::Decisions;
use shared::runtime::informer::{Feeder, InformerBuilder};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{empty, write};
use crate::flags::Flags;
use crate::objects::Namespace;
use crate::observe;
use crate::plan::{Next, Plan, next_step, plan, plan_content};
use crate::status::next_status;

/// Other parts of the control plane learn of the deletion meanwhile, so that less is created after the first round.
/// Upstream: `namespaceDeletionGracePeriod`, `pkg/controller/namespace/namespace_controller.go`.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
/// Upstream's.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), max: Duration::from_secs(60) };

/// The operator as a process.
pub struct NamespaceOperator;

impl Operator for NamespaceOperator {
    const NAMES: Names = Names {
        operator: "namespace-operator",
        controller: "namespace-controller",
        event_source: "namespace-controller",
    };
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue("namespace", BACKOFF);
        let mut informer = InformerBuilder::<Namespace>::new().metadata_only().build();
        let namespaces = informer.cache();
        let deleted = queue.clone();
        informer.on_change(move |change| match change {
            Change::Added(namespace) | Change::Updated { new: namespace, .. } => {
                if namespace.metadata.is_being_deleted() {
                    deleted.add_after(&namespace.metadata.key, GRACE_PERIOD);
                }
            }
            Change::Deleted(_) => {}
        });
        setup.watch(informer);
        let (control, feeder) = (setup.control(&queue), setup.feeder());
        let (clock, decisions) = (setup.clock(), setup.decisions(&queue));
        let sync_period = flags.namespace_sync_period.0;
        let controller = NamespaceController { namespaces, control, feeder, sync_period, clock, decisions };
        setup.work(Arc::new(controller), &queue, flags.concurrent_namespace_syncs);
    }
}

/// Empties namespaces.
pub struct NamespaceController {
    namespaces: Arc<Cache<Namespace>>,
    control: Control,
    feeder: Feeder,
    sync_period: Duration,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for NamespaceController {
    /// Upstream: `syncNamespaceFromKey`, `pkg/controller/namespace/namespace_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        if self.namespaces.get(key).is_none() {
            return Ok(Requeue::Done);
        }
        let Some(mut namespace) = observe::namespace(&self.control, key).await? else { return Ok(Requeue::Done) };
        let planned = plan(&namespace);
        self.decisions.record(self.clock.now(), key, &planned);
        let control = self.control.for_name(key);
        let Plan::Empty { phase, since } = planned else { return Ok(Requeue::Done) };
        if let Some(body) = phase {
            let Some(version) = write(control, key, "status", &body).await? else { return Ok(Requeue::Done) };
            namespace.0 = body;
            namespace.set_version(version);
        }

        let (discovery, failure) = observe::served(&self.feeder).await;
        let now = self.clock.now();
        let round = empty(control, key.name(), plan_content(&discovery), failure, (since, now)).await;
        if let Some(body) = next_status(&namespace, &round, self.clock.now()) {
            match write(control, key, "status", &body).await {
                Ok(Some(version)) => namespace.set_version(version),
                Ok(None) => return Ok(Requeue::Done),
                // The next round writes it.
                Err(error) => tracing::warn!(%key, error = format!("{error:#}"), "cannot write the conditions"),
            }
        }

        let next = next_step(&namespace, &round, self.sync_period);
        self.decisions.record(self.clock.now(), key, &next);
        match next {
            Next::Finalize(body) => {
                write(control, key, "finalize", &body).await?;
                tracing::info!(%key, "the namespace is empty");
                Ok(Requeue::Done)
            }
            Next::After(delay) => Ok(Requeue::After(delay)),
            Next::Failed(errors) => bail!(errors.join("; ")),
        }
    }
}
