//! Which event wakes which namespace, and one sync on one screen.
//!
//! Left out: ServiceAccounts that appear or change. None of that gives a namespace anything to do.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::runtime::cache::Change;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::Decisions;
use shared::runtime::informer::InformerBuilder;
use shared::runtime::queue::{Backoff, Cause, Queue};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::flags::Flags;
use crate::objects::{Namespace, ServiceAccount};
use crate::observe::Sources;
use crate::plan::plan;

/// Upstream's.
const WORKERS: usize = 1;

/// The operator as a process.
pub struct ServiceAccountOperator;

impl Operator for ServiceAccountOperator {
    const NAMES: Names = Names {
        operator: "serviceaccount-operator",
        controller: "serviceaccount-controller",
        event_source: "serviceaccount-controller",
    };
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue("serviceaccount", Backoff::default());
        let mut namespaces = InformerBuilder::<Namespace>::new().metadata_only().fields("status.phase=Active").build();
        let mut accounts =
            InformerBuilder::<ServiceAccount>::new().metadata_only().fields("metadata.name=default").build();
        namespaces.on_change(enqueue_namespace(queue.clone()));
        accounts.on_change(enqueue_namespace_of_deleted(queue.clone()));
        let controller = ServiceAccountController {
            sources: Sources { namespaces: namespaces.cache(), accounts: accounts.cache() },
            writer: Writer { control: setup.control(&queue) },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.watch(namespaces);
        setup.watch(accounts);
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

/// Upstream: `namespaceAdded` and `namespaceUpdated`, `pkg/controller/serviceaccount/serviceaccounts_controller.go`.
fn enqueue_namespace(queue: Queue) -> impl Fn(Change<'_, Namespace>) {
    move |change| match change {
        Change::Added(namespace) | Change::Updated { new: namespace, .. } => {
            queue.add(&namespace.metadata.key, Cause::Event);
        }
        Change::Deleted(_) => {}
    }
}

/// Upstream: `serviceAccountDeleted`, `pkg/controller/serviceaccount/serviceaccounts_controller.go`.
fn enqueue_namespace_of_deleted(queue: Queue) -> impl Fn(Change<'_, ServiceAccount>) {
    move |change| match change {
        Change::Deleted(account) => queue.add(&Key::new("", account.metadata.namespace()), Cause::Event),
        Change::Added(_) | Change::Updated { .. } => {}
    }
}

/// Syncs namespaces.
struct ServiceAccountController {
    sources: Sources,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for ServiceAccountController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let plan = plan(self.sources.observe(key));
        self.decisions.record(self.clock.now(), key, &plan);
        self.writer.apply(key, plan).await.context("create the default ServiceAccount")?;
        Ok(Requeue::Done)
    }
}
