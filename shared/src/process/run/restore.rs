//! After etcd was restored from a backup: versions have fallen, watches that go on from the old ones stay silent, and
//! what this process remembers of its writes is of a history that is no more.
//!
//! Left out: noticing a restore while the apiserver goes on running, without a Lease or of what was written since the last
//! renewal; its watches must be cut for that.

use std::future::pending;

use tokio::sync::watch::Receiver;

use crate::following::followed::Followed;
use crate::transport::client::{Client, RETURN_SPREAD};
use crate::working::queue::Queue;
use crate::working::worker::Syncing;

/// Forgets what is remembered of versions and of objects under way.
pub(super) type OnRestore = Box<dyn Fn() + Send + Sync>;

pub(crate) struct StartOver {
    pub(super) followed: Followed,
    pub(super) on_restore: Vec<OnRestore>,
    pub(super) queues: Vec<Queue>,
    pub(super) syncing: Syncing,
}

impl StartOver {
    /// Starts over each time the Lease shows a restore, if there is a Lease, or the server's versions are below those that
    /// are known. These are compared once it answers after anything has failed, because in a restore every watch breaks.
    /// The Lease shows it sooner, and does not show that only what was written since its last renewal is lost.
    pub(super) async fn run(self, client: Client, mut restores: Option<Receiver<u64>>) {
        let mut gaps = client.gaps();
        loop {
            tokio::select! {
                () = shown_by_lease(restores.as_mut()) => {}
                () = self.shown_by_versions(&client, &mut gaps) => {}
            }
            self.start_over().await;
        }
    }

    /// Ends once the server's versions have fallen.
    async fn shown_by_versions(&self, client: &Client, gaps: &mut Receiver<u64>) {
        // The sender is the client's own: it does not go away.
        while gaps.changed().await.is_ok() {
            if self.followed.is_ahead_of(client).await {
                return;
            }
        }
    }

    /// Lists everything anew, forgets, and lets no key wait for what may never come.
    ///
    /// No sync runs meanwhile: it would compare the restored objects with the memory of what was undone. Running syncs
    /// end first, so that the lists show what they wrote, and nothing needs to be remembered of it.
    pub(crate) async fn start_over(&self) {
        tracing::warn!("etcd was restored from a backup; relisting everything");
        let _none_syncs = self.syncing.write().await;
        self.followed.relist().await;
        for forget in &self.on_restore {
            forget();
        }
        for queue in &self.queues {
            queue.add_all_spread(RETURN_SPREAD);
        }
        tracing::info!("caches match the restored etcd");
    }
}

/// Ends once the Lease's version has fallen; never without a Lease.
async fn shown_by_lease(restores: Option<&mut Receiver<u64>>) {
    let Some(restores) = restores else { return pending().await };
    if restores.changed().await.is_err() {
        // The election has ended, and the process with it.
        pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use tokio::sync::{Notify, watch};
    use tokio::time::timeout;

    use super::*;
    use crate::api::explain::{Stage, Subject};
    use crate::api::object::{Key, Object};
    use crate::api::resource::PODS;
    use crate::following::cache::Cache;
    use crate::following::informer::InformerBuilder;
    use crate::testing::apiserver::{Connection, Server};
    use crate::testing::pod;
    use crate::transport::clock::Clock;
    use crate::working::consistency::{Consistency, Watched};
    use crate::working::control::Written;
    use crate::working::decisions::Decisions;
    use crate::working::queue::{Backoff, Cause};
    use crate::working::worker::{Controller, Requeue, Work};

    /// Waits until exactly these pods are cached.
    async fn cached(cache: &Cache<Written>, names: &[&str]) {
        let mut progress = cache.subscribe();
        let as_wanted = progress.wait_for(|_| {
            let mut found: Vec<String> = cache.all().iter().map(|pod| pod.meta().name().to_owned()).collect();
            found.sort();
            found == names
        });
        timeout(Duration::from_secs(10), as_wanted).await.expect("the cache has them in time").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_restore_all_is_forgotten_and_keys_that_wait_are_looked_at() {
        let (queue, forgotten) = (Queue::new("test", Backoff::default(), None), Arc::new(AtomicU64::new(0)));
        let key = Key::new("ns", "web");
        Queue::start(std::slice::from_ref(&queue), || {});
        queue.add_after(&key, Duration::from_secs(300), "");
        let counted = Arc::clone(&forgotten);
        let forget = move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let start_over = StartOver {
            followed: Followed::default(),
            on_restore: vec![Box::new(forget)],
            queues: vec![queue.clone()],
            syncing: Syncing::default(),
        };
        let (lease, restores) = watch::channel(0_u64);
        let client = Server::new().client(&Connection::default());
        tokio::spawn(start_over.run(client, Some(restores)));
        tokio::task::yield_now().await;
        assert_eq!(forgotten.load(Ordering::Relaxed), 0);
        lease.send_modify(|restores| *restores += 1);
        let soon = timeout(Duration::from_secs(2), queue.next()).await;
        assert_eq!(soon.unwrap(), Some(key));
        assert_eq!(forgotten.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_lease_a_restore_is_noticed_although_every_request_was_answered() {
        notices_a_restore(None).await;
    }

    /// What was written since the Lease was renewed is lost, and the Lease's version does not fall.
    #[tokio::test(start_paused = true)]
    async fn a_restore_is_noticed_although_the_backup_has_the_newest_version_of_the_lease() {
        let (_lease, restores) = watch::channel(0_u64);
        notices_a_restore(Some(restores)).await;
    }

    async fn notices_a_restore(restores: Option<Receiver<u64>>) {
        let server = Server::new();
        server.add(&pod("a"));
        let backup = server.back_up();
        server.add(&pod("b"));
        let client = server.client(&Connection::default());
        let informer = InformerBuilder::<Written>::of(PODS).build();
        let (cache, mut followed) = (informer.cache(), Followed::default());
        followed.add(informer.collection());
        tokio::spawn(informer.run(client.clone()).0);
        let (on_restore, queues, syncing) = (Vec::new(), Vec::new(), Syncing::default());
        let start_over = StartOver { followed, on_restore, queues, syncing };
        tokio::spawn(start_over.run(client, restores));
        cached(&cache, &["a", "b"]).await;

        server.cut_watches("pods");
        server.add(&pod("c"));
        cached(&cache, &["a", "b", "c"]).await;
        server.restore(backup);
        cached(&cache, &["a"]).await;
        server.add(&pod("d"));
        cached(&cache, &["a", "d"]).await;
    }

    /// Notes when syncs begin and end; that of `slow` ends when it is told to.
    #[derive(Clone, Default)]
    struct Noting {
        noted: Arc<Mutex<Vec<String>>>,
        end: Arc<Notify>,
    }

    impl Noting {
        fn note(&self, what: impl Into<String>) {
            self.noted.lock().unwrap().push(what.into());
        }

        fn noted(&self) -> Vec<String> {
            self.noted.lock().unwrap().clone()
        }
    }

    impl Controller for Noting {
        async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
            self.note(format!("{} begins", key.name()));
            if key.name() == "slow" {
                self.end.notified().await;
            }
            self.note(format!("{} ends", key.name()));
            Ok(Requeue::Done)
        }

        fn key_of(&self, object: &Subject) -> Option<Key> {
            Some(object.key())
        }

        fn preview(&self, _: &Key) -> Vec<Stage> {
            Vec::new()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_key_is_synced_before_all_is_listed_and_forgotten_and_running_syncs_end_first() {
        const A_WHILE: Duration = Duration::from_secs(1);
        let server = Server::new();
        let client = server.client(&Connection::default());
        let informer = InformerBuilder::<Written>::of(PODS).build();
        let mut followed = Followed::default();
        followed.add(informer.collection());
        let mut progress = informer.cache().subscribe();
        tokio::spawn(informer.run(client.clone()).0);
        progress.wait_for(|progress| progress.synced).await.unwrap();

        let (queue, controller, syncing) =
            (Queue::new("test", Backoff::default(), None), Noting::default(), Syncing::default());
        let work = Work {
            controller: Arc::new(controller.clone()),
            queue: queue.clone(),
            syncing: Arc::clone(&syncing),
            consistency: Arc::new(Consistency::new(client, Watched::default())),
            on_held: None,
            decisions: Decisions::default(),
            clock: Clock::system(),
            panics: Arc::default(),
        };
        tokio::spawn(work.run(2));
        let noting = controller.clone();
        let on_restore: Vec<OnRestore> = vec![Box::new(move || noting.note("forgotten"))];
        let start_over = StartOver { followed, on_restore, queues: vec![queue.clone()], syncing };
        Queue::start(std::slice::from_ref(&queue), || {});
        queue.add(&Key::new("ns", "slow"), Cause::Event);
        tokio::time::sleep(A_WHILE).await;

        let list = server.on("list", "pods").once().hold();
        let started_over = tokio::spawn(async move { start_over.start_over().await });
        tokio::time::sleep(A_WHILE).await;
        queue.add(&Key::new("ns", "next"), Cause::Edit);
        tokio::time::sleep(A_WHILE).await;
        assert_eq!((list.count(), controller.noted()), (0, vec!["slow begins".to_owned()]));
        controller.end.notify_one();
        list.arrived().await;
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(controller.noted(), ["slow begins", "slow ends"]);
        list.release();
        started_over.await.unwrap();
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(controller.noted(), ["slow begins", "slow ends", "forgotten", "next begins", "next ends"]);
    }
}
