//! Brings caches up to a moment: what another process wrote before this one began to lead must be in them before this
//! one works, or it would do the same once more.
//!
//! Left out: kinds that are followed only after that moment; their first list has seen it all.

use std::cmp::Reverse;
use std::time::Duration;

use futures::future::{join, join_all};
use tokio::time::{Instant, timeout};

use crate::api::object::ResourceVersion;
use crate::following::collection::{BACKOFF_FIRST, Collection, wait_out};
use crate::following::demand::Demand;
use crate::following::feed::Feeder;
use crate::following::source::Follow;
use crate::transport::client::Client;

/// How long work waits for kinds that discovery has found: one that cannot be listed holds up no other.
const FEEDS_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Default)]
pub(crate) struct Followed {
    caches: Vec<Collection>,
    demands: Vec<Demand>,
    feeders: Vec<Feeder>,
}

impl Followed {
    pub(crate) fn add(&mut self, cache: Collection) {
        self.caches.push(cache);
    }

    pub(crate) fn add_demand(&mut self, demand: Demand) {
        self.demands.push(demand);
    }

    pub(crate) fn add_feeder(&mut self, feeder: Feeder) {
        self.feeders.push(feeder);
    }

    /// Those that are followed at the moment and whose first list is in.
    fn caches(&self) -> impl Iterator<Item = Collection> {
        let demanded = self.demands.iter().flat_map(Demand::collections).filter(Collection::is_listed);
        self.caches.iter().cloned().chain(demanded)
    }

    /// Every cache that is there, listed or not.
    pub(crate) fn follows(&self) -> impl Iterator<Item = Follow> {
        let demanded = self.demands.iter().flat_map(Demand::collections);
        self.caches.iter().cloned().chain(demanded).chain(self.feeds()).map(|collection| collection.follow)
    }

    fn feeds(&self) -> Vec<Collection> {
        self.feeders.iter().flat_map(Feeder::collections).collect()
    }

    /// Ends when everything that was listed knows what the apiserver had at this moment.
    pub(crate) async fn catch_up(&self, client: &Client, moment: Instant) {
        // Keys wait for these by themselves.
        self.demands.iter().for_each(|demand| demand.restart_first_lists(moment));
        let (caches, feeds): (Vec<_>, Vec<_>) = (self.caches().collect(), self.feeds());
        let caches = join_all(caches.iter().map(|cache| cache.catch_up(client, moment)));
        let feeds = join_all(feeds.iter().map(|feed| async move {
            if timeout(FEEDS_MAX, feed.catch_up(client, moment)).await.is_err() {
                tracing::warn!(resource = feed.resource(), "cannot be listed in time; work begins without");
            }
        }));
        join(caches, feeds).await;
    }

    /// Whether a cache knows a version that the apiserver does not have yet. Asks until it is answered: an apiserver that
    /// has just started refuses what it will allow within seconds. What is listed again meanwhile counts as it was.
    pub(crate) async fn is_ahead_of(&self, client: &Client) -> bool {
        let (known, mut backoff) = (self.known(), BACKOFF_FIRST);
        loop {
            if let Some(is_ahead) = compare(&known, client).await {
                return is_ahead;
            }
            wait_out(&mut backoff).await;
        }
    }

    /// The versions that the caches know, the newest first: one that was just listed knows no more than the server.
    fn known(&self) -> Vec<(ResourceVersion, Collection)> {
        let known = |collection: Collection| (collection.follow.progress.borrow().resource_version, collection.clone());
        let mut all: Vec<_> = self.caches().chain(self.feeds()).map(known).collect();
        all.retain(|(known, _)| *known > ResourceVersion::default());
        all.sort_by_key(|(known, _)| Reverse(*known));
        all
    }

    /// Lists everything anew, and ends when the lists of all caches are in.
    pub(crate) async fn relist(&self) {
        for feed in self.feeds() {
            feed.follow.health.relist_now();
        }
        self.demands.iter().for_each(|demand| demand.restart_first_lists(Instant::now()));
        let caches: Vec<Collection> = self.caches().collect();
        join_all(caches.iter().map(Collection::relist)).await;
    }
}

/// Whether the first of these that can be read is ahead of the apiserver; none where none could be read.
async fn compare(known: &[(ResourceVersion, Collection)], client: &Client) -> Option<bool> {
    let mut failed = false;
    for (known, collection) in known {
        match collection.version(client).await {
            // No number: another resource tells more.
            Ok(ResourceVersion(0)) => {}
            Ok(version) => return Some(version < *known),
            Err(error) => {
                failed = true;
                tracing::warn!(resource = collection.resource(), %error, "cannot be read");
            }
        }
    }
    (!failed).then_some(false)
}

#[cfg(test)]
mod tests;
