//! Informers without a cache, started and stopped while the operator runs.
//!
//! For an operator that keeps objects in a structure of its own, and learns the kinds by discovery.
//! Left out: handlers and read-your-writes, which need a cache.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::anyhow;
use futures::FutureExt;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::api::intern::Text;
use crate::api::object::{Key, ResourceVersion, Versioned};
use crate::api::resource::Resource;
use crate::following::cache::Progress;
use crate::following::collection::Collection;
use crate::following::health::Health;
use crate::following::reflector::{self, Store, Watches};
use crate::following::source::{Follow, Source};
use crate::transport::api_error::ApiError;
use crate::transport::client::Accept;
use crate::transport::discovery::Discovery;

/// Discovers resources and follows them; cheap to clone.
#[derive(Clone)]
pub struct Feeder {
    watches: Watches,
    feeds: Arc<Mutex<Vec<Collection>>>,
    broken: UnboundedSender<anyhow::Error>,
}

impl Feeder {
    /// `broken` receives an error when following a resource has panicked: its objects may be half changed, and nobody
    /// else would ever notice that it stands still.
    pub(crate) fn new(watches: Watches, broken: UnboundedSender<anyhow::Error>) -> Self {
        Self { watches, feeds: Arc::default(), broken }
    }

    /// The resources that the apiserver serves at the moment.
    pub async fn discover(&self) -> Result<Discovery, ApiError> {
        Discovery::read(&self.watches.client).await
    }

    /// Changes each time the server answers again after it could not be reached for a while.
    pub fn came_back(&self) -> watch::Receiver<u64> {
        self.watches.client.came_back()
    }

    /// Follows the metadata of all objects of a resource, until the returned [`Running`] is dropped.
    pub fn follow_metadata<T: Versioned>(&self, resource: Resource, store: impl Store<T>) -> Running {
        self.follow_metadata_in_part(resource, "", store)
    }

    /// As [`Self::follow_metadata`], but watches only the objects that this field selector leaves; the others are known
    /// as of the last list.
    pub fn follow_metadata_in_part<T: Versioned>(
        &self,
        resource: Resource,
        watched: &'static str,
        store: impl Store<T>,
    ) -> Running {
        self.follow(Source { watch_fields: Cow::Borrowed(watched), ..source(resource, "", Accept::Metadata) }, store)
    }

    /// Follows the objects of a resource that a field selector leaves, in one namespace (`""` for all) and in this
    /// form, until the returned [`Running`] is dropped.
    pub fn follow_in<T: Versioned>(
        &self,
        resource: Resource,
        namespace: &str,
        accept: Accept,
        fields: &'static str,
        store: impl Store<T>,
    ) -> Running {
        self.follow(Source { field_selector: Cow::Borrowed(fields), ..source(resource, namespace, accept) }, store)
    }

    fn follow<T: Versioned>(&self, source: Source, store: impl Store<T>) -> Running {
        let progress = watch::Sender::default();
        let follow = source.follow_as(progress.subscribe(), Arc::new(|_| None));
        self.feeds().push(Collection::new(&source, follow.clone()));
        let following = reflector::run(source, Tracked { store, progress }, self.watches.clone());
        let task = tokio::spawn(report(following, follow.health.resource.clone(), self.broken.clone()));
        Running { task: task.abort_handle(), follow }
    }

    fn feeds(&self) -> MutexGuard<'_, Vec<Collection>> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.retain(|feed| feed.follow.is_running());
        feeds
    }

    pub(crate) fn collections(&self) -> Vec<Collection> {
        self.feeds().clone()
    }

    /// The resources that cannot be listed or watched at the moment, and why.
    pub(crate) fn failing(&self) -> Result<(), String> {
        let failing: Vec<String> = self
            .feeds()
            .iter()
            .filter_map(|Collection { follow: Follow { progress, health, .. }, .. }| {
                let not_listed = || (!progress.borrow().synced).then(|| "not listed yet".to_owned());
                Some(format!("{}: {}", health.resource, health.failing().or_else(not_listed)?))
            })
            .collect();
        if failing.is_empty() { Ok(()) } else { Err(failing.join("; ")) }
    }
}

/// All objects of a resource in one namespace, or with `""` in all.
fn source(resource: Resource, namespace: &str, accept: Accept) -> Source {
    let none = Cow::Borrowed("");
    Source {
        health: Arc::new(Health::new(resource.to_string())),
        resource,
        namespace: Text::new(namespace),
        streams_list: false,
        accept,
        field_selector: none.clone(),
        label_selector: none.clone(),
        watch_fields: none,
    }
}

/// Runs to its end, and tells if that was a panic.
async fn report(following: impl Future<Output = ()>, resource: String, broken: UnboundedSender<anyhow::Error>) {
    if AssertUnwindSafe(following).catch_unwind().await.is_err() {
        // Nobody listens any more when the process ends anyway.
        let _ = broken.send(anyhow!("what follows {resource} has panicked"));
    }
}

/// A resource that is followed; dropping this ends it.
pub struct Running {
    task: AbortHandle,
    follow: Follow,
}

impl Running {
    pub fn is_synced(&self) -> bool {
        self.follow.progress.borrow().synced
    }

    /// The newest version seen in an event, a bookmark or a list.
    pub fn resource_version(&self) -> ResourceVersion {
        self.follow.progress.borrow().resource_version
    }

    /// Waits until the resource was listed.
    pub fn synced(&self) -> impl Future<Output = ()> + use<> {
        let mut progress = self.follow.progress.clone();
        async move {
            // A watch that ends before it was listed has nothing to wait for.
            let _ = progress.wait_for(|progress| progress.synced).await;
        }
    }

    /// How this fares, and to list it anew.
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.follow.health)
    }

    /// Tries at once a request that has failed and would be sent again later; a watch that works goes on.
    pub fn retry(&self) {
        if self.follow.health.failing().is_some() {
            self.follow.health.retry();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Notes how far a store has come.
struct Tracked<S> {
    store: S,
    progress: watch::Sender<Progress>,
}

impl<T, S: Store<T>> Store<T> for Tracked<S> {
    fn apply(&self, object: Arc<T>) {
        self.store.apply(object);
    }

    fn delete(&self, last: Arc<T>) {
        self.store.delete(last);
    }

    fn delete_unread(&self, key: &Key) {
        self.store.delete_unread(key);
    }

    fn reset(&self, live: Vec<Arc<T>>, unreadable: &std::collections::BTreeMap<Key, String>) {
        self.store.reset(live, unreadable);
    }

    fn listed(&self, version: ResourceVersion, list: u64) {
        Progress::listed(&self.progress, version, list);
        self.store.listed(version, list);
    }

    fn advance(&self, version: ResourceVersion) {
        Progress::advance(&self.progress, version);
        self.store.advance(version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;

    #[tokio::test]
    async fn a_panic_is_told_and_an_orderly_end_is_none() {
        let (broken, mut reports) = unbounded_channel();
        report(async {}, "pods".to_owned(), broken.clone()).await;
        report(async { panic!("on purpose") }, "nodes".to_owned(), broken).await;
        assert_eq!(reports.recv().await.unwrap().to_string(), "what follows nodes has panicked");
        assert!(reports.recv().await.is_none());
    }
}
