//! Checks from time to time in which version the apiserver serves a resource, if it does. A resource that is off by default
//! can be turned on and off while this process runs, and an upgrade of the apiserver replaces its version.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::api::resource::Resource;
use crate::api::versions::versions;
use crate::following::cache::Progress;
use crate::transport::api_error::ApiError;
use crate::transport::client::{Client, soon_after};
use crate::transport::discovery::GroupVersion;

/// The time between two checks. A restart of the apiserver turns resources on, and leads to a check of its own; but with
/// several apiservers the restart of one goes unnoticed.
const PERIOD: Duration = Duration::from_mins(5);
/// The time until the next check after one that failed.
const RETRY: Duration = Duration::from_secs(5);

/// The repeated check.
pub(crate) struct Served<F> {
    client: Client,
    resource: Resource,
    follow: F,
    ready: watch::Sender<Progress>,
}

impl<F: FnMut(Option<&Resource>)> Served<F> {
    /// The task, and the progress of its first check. `follow` gets the resource in the preferred version that is served,
    /// after the first check and after each change.
    pub(crate) fn new(client: Client, resource: Resource, follow: F) -> (Self, watch::Receiver<Progress>) {
        let (ready, is_ready) = watch::channel(Progress::default());
        (Self { client, resource, follow, ready }, is_ready)
    }

    /// Checks for as long as the future is polled.
    pub(crate) async fn run(mut self) {
        let mut came_back = self.client.came_back();
        let mut known = None;
        loop {
            let pause = match find(&self.client, &self.resource).await {
                Ok(served) => {
                    if known.as_ref() != Some(&served) {
                        self.note(served.as_ref());
                        known = Some(served);
                    }
                    PERIOD
                }
                Err(error) => {
                    tracing::warn!(resource = %self.resource, %error, "cannot discover the served resource");
                    RETRY
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = soon_after(&mut came_back) => {}
            }
        }
    }

    fn note(&mut self, served: Option<&Resource>) {
        let version = served.map_or_else(|| "none".to_owned(), Resource::api_version);
        tracing::debug!(resource = %self.resource, version, "served resource changed");
        if let Some(served) = served {
            self.client.speak(served);
        }
        (self.follow)(served);
        self.ready.send_if_modified(|progress| !std::mem::replace(&mut progress.synced, true));
    }
}

async fn find(client: &Client, resource: &Resource) -> Result<Option<Resource>, ApiError> {
    for version in versions(resource) {
        let served = GroupVersion::read(client, &version.api_version()).await?;
        if served.resource_of(&version.kind).is_some() {
            return Ok(Some(version));
        }
    }
    Ok(None)
}
