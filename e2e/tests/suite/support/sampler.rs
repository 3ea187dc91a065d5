//! Notes, from watches, how far pods and ReplicaSets went while a test did something: bounds that hold throughout.
//! Left out: reconnecting. A watch that ends is an error, as there would be a gap in what was seen.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::objects::{is_ready, uid};
use super::scene::{DEADLINE, Namespaced, Scene};

/// The extremes seen so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The most replicas that all ReplicaSets together were told to have.
    pub(crate) most_specified: i32,
    /// The fewest pods that were ready and not being deleted.
    pub(crate) least_ready: usize,
    /// The most templates that pods existed of at a time, pods being deleted counted.
    pub(crate) most_templates: usize,
    /// Every pod there was, by uid.
    pub(crate) pods: BTreeSet<String>,
    /// Those there are now.
    living: BTreeSet<String>,
}

/// Samples until it is finished or dropped.
pub(crate) struct Sampler {
    seen: watch::Receiver<Seen>,
    task: JoinHandle<Result<()>>,
    selector: String,
}

struct State {
    pods: BTreeMap<String, Pod>,
    specified: BTreeMap<String, i32>,
    seen: Seen,
}

impl Sampler {
    pub(super) async fn start(scene: &Scene, selector: &str) -> Result<Self> {
        let (pods, pod_version) = snapshot::<Pod>(scene, selector).await?;
        let (replica_sets, replica_set_version) = snapshot::<ReplicaSet>(scene, selector).await?;
        let mut state = State {
            pods: pods.into_iter().map(|pod| (uid(&pod), pod)).collect(),
            specified: replica_sets.iter().map(|set| (uid(set), specified(set))).collect(),
            seen: Seen {
                most_specified: 0,
                least_ready: usize::MAX,
                most_templates: 0,
                pods: BTreeSet::new(),
                living: BTreeSet::new(),
            },
        };
        state.note();
        let params = WatchParams::default().labels(selector).timeout(290);
        let pods = scene.api::<Pod>().watch(&params, &pod_version).await.context("watch pods")?;
        let sets = scene.api::<ReplicaSet>().watch(&params, &replica_set_version).await.context("watch ReplicaSets")?;
        let (sender, seen) = watch::channel(state.seen.clone());
        let task = tokio::spawn(async move {
            let (mut pods, mut sets) = (Box::pin(pods), Box::pin(sets));
            loop {
                tokio::select! {
                    event = pods.next() => state.pod(event.context("the watch of pods ended")??)?,
                    event = sets.next() => state.replica_set(event.context("the watch of ReplicaSets ended")??)?,
                }
                state.note();
                sender.send_replace(state.seen.clone());
            }
        });
        Ok(Self { seen, task, selector: selector.to_owned() })
    }

    /// What was seen, up to the pods there are now.
    pub(crate) async fn finish(self, scene: &Scene) -> Result<Seen> {
        scene
            .wait_until("the sampler has seen the last pods", DEADLINE, async || {
                let now: BTreeSet<String> = scene.list::<Pod>(&self.selector).await?.iter().map(uid).collect();
                ensure!(self.seen.borrow().living == now, "{:?} instead of {now:?}", self.seen.borrow().living);
                Ok(())
            })
            .await?;
        ensure!(!self.task.is_finished(), "the sampler has ended early");
        self.task.abort();
        Ok(self.seen.borrow().clone())
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn pod(&mut self, event: WatchEvent<Pod>) -> Result<()> {
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => drop(self.pods.insert(uid(&pod), pod)),
            WatchEvent::Deleted(pod) => drop(self.pods.remove(&uid(&pod))),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => bail!("the watch of pods failed: {status:?}"),
        }
        Ok(())
    }

    fn replica_set(&mut self, event: WatchEvent<ReplicaSet>) -> Result<()> {
        match event {
            WatchEvent::Added(set) | WatchEvent::Modified(set) => {
                self.specified.insert(uid(&set), specified(&set));
            }
            WatchEvent::Deleted(set) => drop(self.specified.remove(&uid(&set))),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => bail!("the watch of ReplicaSets failed: {status:?}"),
        }
        Ok(())
    }

    fn note(&mut self) {
        let ready = self.pods.values().filter(|pod| is_ready(pod)).count();
        let templates: BTreeSet<_> = self.pods.values().map(|pod| pod.labels().get("pod-template-hash")).collect();
        let seen = &mut self.seen;
        seen.most_specified = seen.most_specified.max(self.specified.values().sum());
        seen.least_ready = seen.least_ready.min(ready);
        seen.most_templates = seen.most_templates.max(templates.len());
        seen.living = self.pods.keys().cloned().collect();
        seen.pods.extend(seen.living.iter().cloned());
    }
}

fn specified(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0)
}

/// A list, and the resourceVersion to watch on from.
async fn snapshot<K: Namespaced + Resource>(scene: &Scene, selector: &str) -> Result<(Vec<K>, String)> {
    let list = scene.api::<K>().list(&ListParams::default().labels(selector)).await?;
    let version = list.metadata.resource_version.context("a list without a resourceVersion")?;
    Ok((list.items, version))
}
