//! Finds out in which version the apiserver serves bundles, if it does, and watches them in that version.
//!
//! Bundles are off by default, and a cluster may turn them on or off while this process runs.
//!
//! Upstream: `clusterTrustBundlesAvailable`, `cmd/kube-controller-manager/app/certificates.go`, which asks once at the
//! start.

use std::sync::Arc;
use std::time::Duration;

use shared::following::cache::Progress;
use shared::following::informer::Feeder;
use shared::transport::api_error::ApiError;
use shared::transport::client::soon_after;
use shared::working::queue::{Cause, Queue};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::objects::{Version, signer_key};
use crate::observe::Caches;

/// The time between two checks. A restart of the apiserver turns bundles on, and leads to a check of its own; but with
/// several apiservers the restart of one goes unnoticed.
const PERIOD: Duration = Duration::from_mins(5);
/// The time until the next check after one that failed.
const RETRY: Duration = Duration::from_secs(5);

pub(super) struct Versions {
    feeder: Feeder,
    caches: Arc<Caches>,
    queue: Queue,
    ready: watch::Sender<Progress>,
}

impl Versions {
    /// The task, and the progress of its first check.
    pub(super) fn new(feeder: Feeder, caches: Arc<Caches>, queue: Queue) -> (Self, watch::Receiver<Progress>) {
        let (ready, is_ready) = watch::channel(Progress::default());
        (Self { feeder, caches, queue, ready }, is_ready)
    }

    /// Checks for as long as the future is polled.
    pub(super) async fn run(self) {
        let mut came_back = self.feeder.came_back();
        loop {
            let pause = match self.served().await {
                Ok(version) => {
                    self.follow(version);
                    PERIOD
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot discover the served version of ClusterTrustBundles");
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
            tracing::debug!(
                version = resource.as_deref().unwrap_or("none"),
                "served version of ClusterTrustBundles changed"
            );
            self.queue.add(&signer_key(), Cause::Event);
        }
        self.ready.send_if_modified(|progress| !std::mem::replace(&mut progress.synced, true));
    }

    /// The preferred version that is served; none if there is none.
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
