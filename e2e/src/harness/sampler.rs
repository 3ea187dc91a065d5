//! How many pods there were at every moment, from a watch: no state between two events is missed, as polling would.
//! Left out: minReadySeconds. A pod counts as ready when it says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::wait_until;

const CATCH_UP_DEADLINE: Duration = Duration::from_secs(30);

/// The pods at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodSample {
    pub at: Instant,
    /// Neither being deleted nor ended.
    pub active: usize,
    /// Active and ready.
    pub ready: usize,
    /// Being deleted.
    pub terminating: usize,
}

/// The pods at every moment of a test, the first when it began.
#[derive(Clone, Debug)]
pub struct PodHistory {
    pub samples: Vec<PodSample>,
    /// How many different pods there were.
    pub pods: usize,
}

impl PodHistory {
    pub fn max_active(&self) -> usize {
        self.samples.iter().map(|sample| sample.active).max().unwrap_or(0)
    }

    /// The most pods that existed at once, the ones being deleted included.
    pub fn max_existing(&self) -> usize {
        self.samples.iter().map(|sample| sample.active + sample.terminating).max().unwrap_or(0)
    }

    pub fn min_ready(&self) -> usize {
        self.samples.iter().map(|sample| sample.ready).min().unwrap_or(0)
    }

    pub fn max_terminating(&self) -> usize {
        self.samples.iter().map(|sample| sample.terminating).max().unwrap_or(0)
    }
}

/// Watches pods until it is finished or dropped.
pub struct PodSampler {
    pods: Api<Pod>,
    selector: String,
    record: Arc<Mutex<Record>>,
    watcher: JoinHandle<()>,
}

/// What the watch has said so far.
#[derive(Default)]
struct Record {
    present: BTreeMap<String, Seen>,
    ever: BTreeSet<String>,
    samples: Vec<PodSample>,
    broken: Option<String>,
}

/// What counts of a pod.
struct Seen {
    resource_version: String,
    active: bool,
    ready: bool,
    terminating: bool,
}

impl PodSampler {
    pub(super) async fn start(pods: Api<Pod>, selector: &str) -> Result<Self> {
        let list = pods.list(&ListParams::default().labels(selector)).await.context("list pods")?;
        let version = list.metadata.resource_version.context("a list without a version")?;
        let mut record = Record::default();
        for pod in &list.items {
            record.see(pod);
        }
        record.sample();
        let record = Arc::new(Mutex::new(record));
        let watcher = tokio::spawn(watch(pods.clone(), selector.to_owned(), version, Arc::clone(&record)));
        Ok(Self { pods, selector: selector.to_owned(), record, watcher })
    }

    /// What has been seen, all that has happened until now included.
    pub async fn finish(self) -> Result<PodHistory> {
        wait_until("the pod sampler has seen all events", CATCH_UP_DEADLINE, async || self.check_caught_up().await)
            .await?;
        let record = lock(&self.record);
        Ok(PodHistory { samples: record.samples.clone(), pods: record.ever.len() })
    }

    async fn check_caught_up(&self) -> Result<()> {
        let list = self.pods.list(&ListParams::default().labels(&self.selector)).await.context("list pods")?;
        let record = lock(&self.record);
        if let Some(error) = &record.broken {
            bail!("the watch is broken: {error}");
        }
        let listed: BTreeMap<_, _> = list
            .items
            .iter()
            .map(|pod| (pod.uid().unwrap_or_default(), pod.resource_version().unwrap_or_default()))
            .collect();
        let seen: BTreeMap<_, _> =
            record.present.iter().map(|(uid, seen)| (uid.clone(), seen.resource_version.clone())).collect();
        ensure!(listed == seen, "{} pods are listed, {} seen, or not their last state", listed.len(), seen.len());
        Ok(())
    }
}

impl Drop for PodSampler {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

impl Record {
    fn see(&mut self, pod: &Pod) {
        let status = pod.status.as_ref();
        let ended = matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"));
        let terminating = pod.metadata.deletion_timestamp.is_some();
        let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let active = !ended && !terminating;
        let seen = Seen {
            resource_version: pod.resource_version().unwrap_or_default(),
            active,
            ready: active && ready,
            terminating,
        };
        let uid = pod.uid().unwrap_or_default();
        self.ever.insert(uid.clone());
        self.present.insert(uid, seen);
    }

    fn sample(&mut self) {
        let count = |is: fn(&Seen) -> bool| self.present.values().filter(|seen| is(seen)).count();
        self.samples.push(PodSample {
            at: Instant::now(),
            active: count(|seen| seen.active),
            ready: count(|seen| seen.ready),
            terminating: count(|seen| seen.terminating),
        });
    }

    fn apply(&mut self, event: &WatchEvent<Pod>) -> Result<Option<String>> {
        let version = match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                self.see(pod);
                pod.resource_version()
            }
            WatchEvent::Deleted(pod) => {
                self.present.remove(&pod.uid().unwrap_or_default());
                pod.resource_version()
            }
            WatchEvent::Bookmark(bookmark) => return Ok(Some(bookmark.metadata.resource_version.clone())),
            WatchEvent::Error(status) => bail!("{}: {}", status.reason, status.message),
        };
        self.sample();
        Ok(version)
    }
}

/// A watch that ends (an apiserver ends those that read too slowly) goes on where it was.
async fn watch(pods: Api<Pod>, selector: String, mut version: String, record: Arc<Mutex<Record>>) {
    loop {
        if let Err(error) = watch_once(&pods, &selector, &mut version, &record).await {
            lock(&record).broken = Some(format!("{error:#}"));
            return;
        }
    }
}

async fn watch_once(pods: &Api<Pod>, selector: &str, version: &mut String, record: &Mutex<Record>) -> Result<()> {
    let params = WatchParams::default().labels(selector);
    let events = pods.watch(&params, version).await.context("watch pods")?.into_stream();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let event = match event {
            // Cut short; the next watch begins after the last whole event.
            Err(kube::Error::ReadEvents(_) | kube::Error::HyperError(_)) => return Ok(()),
            event => event.context("watch pods")?,
        };
        if let Some(newer) = lock(record).apply(&event)? {
            *version = newer;
        }
    }
    Ok(())
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(uid: &str, phase: &str, ready: &str, deleted: bool) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "uid": uid, "resourceVersion": "1",
                "deletionTimestamp": deleted.then_some("2026-01-01T00:00:00Z"),
            },
            "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap()
    }

    #[test]
    fn extremes_are_kept() {
        let mut record = Record::default();
        for uid in ["a", "b"] {
            record.see(&pod(uid, "Running", "True", false));
        }
        record.sample();
        for event in [
            WatchEvent::Added(pod("c", "Pending", "False", false)),
            WatchEvent::Modified(pod("a", "Running", "True", true)),
            WatchEvent::Deleted(pod("a", "Running", "True", true)),
            WatchEvent::Modified(pod("b", "Succeeded", "False", false)),
            WatchEvent::Modified(pod("c", "Running", "True", false)),
        ] {
            record.apply(&event).unwrap();
        }
        let history = PodHistory { samples: record.samples, pods: record.ever.len() };
        assert_eq!((history.max_active(), history.min_ready(), history.pods), (3, 0, 3));
        assert_eq!((history.max_existing(), history.max_terminating()), (3, 1));
    }
}
