//! Watches the kinds that quotas count. Discovery runs only while a counted kind has no working watch.
//!
//! Upstream: `Sync`, `pkg/controller/resourcequota/resource_quota_controller.go`, and `SyncMonitors`,
//! `resource_quota_monitor.go`, which follow every kind that is served.

mod plan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use shared::api::resource::Resource;
use shared::following::cache::Progress;
use shared::following::informer::Feeder;
use shared::transport::client::soon_after;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use crate::objects::Evaluator;
use crate::observe::facts::Waker;
use crate::observe::{Caches, Wanted};
use plan::{Found, find, targets};

/// The period of discovery, while it is needed; upstream's.
const PERIOD: Duration = Duration::from_secs(30);
/// The pause between two reads of all quotas, because they are often created in bulk.
const REST: Duration = Duration::from_millis(50);

pub(super) struct Monitors {
    feeder: Feeder,
    caches: Arc<Caches>,
    waker: Waker,
    changed: Arc<Notify>,
    ready: watch::Sender<Progress>,
}

impl Monitors {
    /// The task, and the progress of its first pass.
    pub(super) fn new(
        feeder: Feeder,
        caches: Arc<Caches>,
        waker: Waker,
        changed: Arc<Notify>,
    ) -> (Self, watch::Receiver<Progress>) {
        let (ready, is_ready) = watch::channel(Progress::default());
        (Self { feeder, caches, waker, changed, ready }, is_ready)
    }

    /// Watches counted kinds for as long as the future is polled.
    pub(super) async fn run(self) {
        let (mut quotas, mut came_back) = (self.caches.quotas.cache.subscribe(), self.feeder.came_back());
        let _ = quotas.wait_for(|progress| progress.synced).await;
        loop {
            self.follow(self.caches.quotas.wanted(&self.caches.feeds.device_classes())).await;
            self.ready.send_if_modified(|progress| !std::mem::replace(&mut progress.synced, true));
            let is_needed = self.caches.feeds.is_needed();
            sleep(REST).await;
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep(PERIOD), if is_needed => {}
                () = soon_after(&mut came_back), if is_needed => {}
            }
        }
    }

    async fn follow(&self, wanted: BTreeMap<Evaluator, Wanted>) {
        let mut served: BTreeMap<Evaluator, Resource> = BTreeMap::new();
        let mut unknown: Vec<&Evaluator> = Vec::new();
        for evaluator in wanted.keys() {
            match evaluator.resource().or_else(|| self.caches.feeds.resource_of(evaluator)) {
                Some(resource) => {
                    served.insert(evaluator.clone(), resource);
                }
                None => unknown.push(evaluator),
            }
        }
        let mut unfound: BTreeMap<Evaluator, Option<String>> = BTreeMap::new();
        for (evaluator, found) in self.find(&unknown).await {
            match found {
                Found::Served(resource) => {
                    served.insert(evaluator, resource);
                }
                Found::Unserved => {
                    unfound.insert(evaluator, None);
                }
                Found::Unknown(error) => {
                    unfound.insert(evaluator, Some(error));
                }
            }
        }
        let targets = targets(&wanted, &served);
        self.caches.feeds.adjust(&self.feeder, &self.waker, targets, unfound);
    }

    async fn find(&self, unknown: &[&Evaluator]) -> Vec<(Evaluator, Found)> {
        if unknown.is_empty() {
            return Vec::new();
        }
        let discovery = self.feeder.discover().await.map_err(|error| {
            tracing::warn!(%error, "discovery failed");
            error.to_string()
        });
        let found = |evaluator: &&Evaluator| {
            let found = match &discovery {
                Ok(discovery) => find(evaluator, discovery),
                Err(error) => Found::Unknown(error.clone()),
            };
            ((*evaluator).clone(), found)
        };
        unknown.iter().map(found).collect()
    }
}
