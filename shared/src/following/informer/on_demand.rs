//! The task that follows a resource while something needs it.
//!
//! Left out: what is needed, and what keys wait for, which is [`Demand`]'s.

use std::future::pending;
use std::sync::Arc;

use anyhow::anyhow;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::{Cached, PartStore};
use crate::api::object::Object;
use crate::following::cache::Part;
use crate::following::collection::Collection;
use crate::following::demand::Demand;
use crate::following::reflector::{self, Watches};
use crate::following::source::{Follow, Source};
use crate::following::watched::Watched;

pub(super) struct Follower<T> {
    pub(super) demand: Demand,
    pub(super) source: Source,
    pub(super) cached: Arc<Cached<T>>,
    pub(super) watches: Watches,
    pub(super) watched: Watched,
}

impl<T: Object> Follower<T> {
    /// Ends only with an error, when what follows a part has panicked.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let mut tasks = JoinSet::new();
        let (mut needed, mut changed) = self.demand.subscribe();
        loop {
            needed.mark_unchanged();
            changed.mark_unchanged();
            let due = self.adjust(&mut tasks);
            tokio::select! {
                _ = needed.changed() => {}
                _ = changed.changed() => {}
                () = reached(due) => {}
                Some(ended) = tasks.join_next() => self.check(ended)?,
            }
        }
    }

    /// Starts what is needed and is not followed, and stops what was not needed for long. Gives when to look again.
    fn adjust(&self, tasks: &mut JoinSet<()>) -> Option<Instant> {
        let mut parts = self.demand.parts();
        let (wanted, now) = (self.demand.wanted(&parts), Instant::now());
        for stopped in parts.stop_idle(&wanted, self.cached.cache.len(), now) {
            self.cached.forget(stopped, &self.source.health);
        }
        for namespace in &wanted {
            let Some(number) = parts.free_number(namespace, self.demand.numbers()) else { continue };
            let source = self.demand.part_of(&self.source, namespace);
            let (store, follow) = self.part(number, &source);
            let collection = Collection::new(&source, follow);
            let task = tasks.spawn(reflector::run(source, store, self.watches.clone()));
            parts.start(namespace.clone(), number, collection, task, now);
        }
        parts.next_look(now)
    }

    fn part(&self, number: Part, source: &Source) -> (PartStore<T>, Follow) {
        let progress = watch::Sender::default();
        let follow = source.follow(progress.subscribe(), &self.cached.cache);
        self.watched.add(follow.clone());
        let whole = self.demand.is_of_cluster().then(|| self.cached.cache.progress_sender());
        let (cached, health) = (Arc::clone(&self.cached), Arc::clone(&source.health));
        let demand = Some(self.demand.clone());
        (PartStore { cached, part: number, health, progress, whole, demand }, follow)
    }

    fn check(&self, ended: Result<(), JoinError>) -> anyhow::Result<()> {
        match ended {
            Err(error) if error.is_panic() => {
                Err(anyhow!(error).context(format!("what follows {} has panicked", self.demand.resource())))
            }
            // It was stopped.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

async fn reached(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
