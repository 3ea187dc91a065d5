//! Brings one cache up to a moment, or lists it again.

use std::time::Duration;

use http::Method;
use tokio::time::{Instant, sleep, timeout};

use crate::api::object::ResourceVersion;
use crate::api::url::with_query;
use crate::following::source::{Follow, Source};
use crate::transport::api_error::ApiError;
use crate::transport::client::page::{Page, PageSize};
use crate::transport::client::{Accept, Client};
use crate::transport::clock::jitter;

/// How long a watch may take to show by itself what the apiserver has; one that has nothing to tell never does.
const PATIENCE: Duration = Duration::from_millis(200);
pub(super) const BACKOFF_FIRST: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// One list and watch of an informer, and how far it has come.
#[derive(Clone)]
pub(crate) struct Collection {
    accept: Accept,
    pub(crate) follow: Follow,
}

impl Collection {
    pub(crate) fn new(source: &Source, follow: Follow) -> Self {
        Self { accept: source.accept, follow }
    }

    pub(crate) fn resource(&self) -> &str {
        &self.follow.health.resource
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.follow.progress.borrow().synced
    }

    /// Why it cannot be listed or watched at the moment.
    pub(crate) fn failing(&self) -> Option<String> {
        self.follow.health.failing()
    }

    /// Ends when the cache knows what the apiserver had at this moment. One that was never listed is not waited for.
    pub(crate) async fn catch_up(&self, client: &Client, moment: Instant) {
        let mut backoff = BACKOFF_FIRST;
        while self.is_listed() && self.follow.is_running() && self.follow.health.listed_from() < Some(moment) {
            match self.reach_server(client).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(resource = self.resource(), %error, "cannot tell whether the cache is up to date");
                }
            }
            wait_out(&mut backoff).await;
        }
    }

    /// Waits until the cache has what the apiserver has now.
    async fn reach_server(&self, client: &Client) -> Result<(), ApiError> {
        let mut progress = self.follow.progress.clone();
        let before = progress.borrow().resource_version;
        let version = self.version(client).await?;
        if is_later(before, version) {
            // A watch that ends meanwhile is not followed any more.
            let reached = progress.wait_for(|now| now.resource_version >= version);
            if timeout(PATIENCE, reached).await.is_ok() {
                return Ok(());
            }
        }
        self.relist().await;
        Ok(())
    }

    pub(crate) async fn relist(&self) {
        tracing::debug!(resource = self.resource(), "lists everything anew");
        let wanted = self.follow.health.relist_now();
        let _ = self.follow.progress.clone().wait_for(|now| now.list >= wanted).await;
    }

    /// The newest version there is, by a consistent read.
    pub(crate) async fn version(&self, client: &Client) -> Result<ResourceVersion, ApiError> {
        let Follow { resource, namespace, field_selector, label_selector, .. } = &self.follow;
        // One object only: what counts is the version of the answer.
        let query = [("limit", "1"), ("fieldSelector", &**field_selector), ("labelSelector", &**label_selector)];
        let path = with_query(&client.spoken(resource).collection_path(namespace), &query);
        let body = client.page(|_| path.clone(), self.accept, resource, &mut { PageSize::ONE }).await?;
        let page = Page::read(&body).map_err(ApiError::unread(&Method::GET, &path))?;
        Ok(page.metadata.resource_version)
    }
}

/// Waits for the next try after a failure, and longer after the next one.
pub(super) async fn wait_out(backoff: &mut Duration) {
    sleep(jitter(*backoff, 1.0)).await;
    *backoff = (*backoff * 2).min(BACKOFF_MAX);
}

/// Whether a cache at `known` can reach `version`, which was read later, by its watch. A version that falls comes from an
/// etcd that was restored from a backup, and one that is no number says nothing.
fn is_later(known: ResourceVersion, version: ResourceVersion) -> bool {
    version >= known && version != ResourceVersion::default()
}
