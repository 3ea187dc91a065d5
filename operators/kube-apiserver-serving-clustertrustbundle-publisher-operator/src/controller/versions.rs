//! Asks in which version the apiserver serves bundles, if it serves any, and has them followed in that one.
//!
//! They are off by default, and a cluster may turn them on or off while this process runs. Left out: waiting for the
//! first list, which the queue does; and the verbs that are served.
//!
//! Upstream: `clusterTrustBundlesAvailable`, `cmd/kube-controller-manager/app/certificates.go`, which asks at the start
//! alone.

use std::sync::Arc;
use std::time::Duration;

use shared::runtime::api_error::ApiError;
use shared::runtime::cache::Progress;
use shared::runtime::client::soon_after;
use shared::runtime::informer::Feeder;
use shared::runtime::queue::{Cause, Queue};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::objects::{Version, signer_key};
use crate::observe::Caches;

/// Between two questions. Bundles are turned on by a restart of the apiserver, which leads to a question of its own once
/// it was noticed; but where there are several, one of them answers all the time.
const PERIOD: Duration = Duration::from_mins(5);
/// After a question without an answer.
const RETRY: Duration = Duration::from_secs(5);

/// The versions that are served.
pub(super) struct Versions {
    feeder: Feeder,
    caches: Arc<Caches>,
    queue: Queue,
    ready: watch::Sender<Progress>,
}

impl Versions {
    /// Not asked yet; what comes with it says when they are.
    pub(super) fn new(feeder: Feeder, caches: Arc<Caches>, queue: Queue) -> (Self, watch::Receiver<Progress>) {
        let (ready, is_ready) = watch::channel(Progress::default());
        (Self { feeder, caches, queue, ready }, is_ready)
    }

    /// Asks for as long as the future is polled.
    pub(super) async fn run(self) {
        let mut came_back = self.feeder.came_back();
        loop {
            let pause = match self.served().await {
                Ok(version) => {
                    self.follow(version);
                    PERIOD
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot ask in which version ClusterTrustBundles are served");
                    RETRY
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = soon_after(&mut came_back) => {}
            }
        }
    }

    fn follow(&self, version: Option<Version>) {
        if self.caches.follow(version) {
            let resource = version.map(|version| version.resource().api_version());
            tracing::debug!(version = resource.as_deref().unwrap_or("none"), "follows bundles in what is served");
            self.queue.add(&signer_key(), Cause::Event);
        }
        self.ready.send_if_modified(|progress| !std::mem::replace(&mut progress.synced, true));
    }

    /// The first version that has bundles; none if there is none.
    async fn served(&self) -> Result<Option<Version>, ApiError> {
        for version in Version::ALL {
            let resource = version.resource();
            let served = self.feeder.group_version(&resource.api_version()).await?;
            if served.resource_of(&resource.kind).is_some() {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }
}
