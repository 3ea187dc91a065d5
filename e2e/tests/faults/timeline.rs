//! Pods and ReplicaSets as they were at every revision of the cluster, seen past the proxies.
//!
//! Both are in one etcd, so their revisions say what was true at the same moment, whichever watch told it first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::scene::{DEADLINE, poll};

/// What is kept of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// A pod that exists and is not terminating.
    Pod { owner: String, available: bool },
    /// A ReplicaSet that asks for so many pods.
    ReplicaSet { replicas: i32 },
    /// It is gone, or going.
    Gone,
}

/// All at one revision.
#[derive(Clone, Debug, Default)]
struct Moment {
    revision: u64,
    /// Pods that are not terminating, by the name of their ReplicaSet (empty for orphans).
    pods: BTreeMap<String, usize>,
    /// Those of them that are ready.
    available: usize,
    /// How many pods each ReplicaSet asks for.
    asked: BTreeMap<String, i32>,
}

impl Moment {
    fn at(revision: u64, objects: &BTreeMap<String, Seen>) -> Self {
        let mut moment = Self { revision, ..Self::default() };
        for (key, object) in objects {
            match object {
                Seen::Pod { owner, available } => {
                    *moment.pods.entry(owner.clone()).or_default() += 1;
                    moment.available += usize::from(*available);
                }
                Seen::ReplicaSet { replicas } => {
                    moment.asked.insert(key.trim_start_matches("ReplicaSet/").to_owned(), *replicas);
                }
                Seen::Gone => {}
            }
        }
        moment
    }
}

/// Everything that happened in the namespace `default`.
pub(crate) struct Timeline {
    client: Client,
    told: Told,
    _watches: JoinSet<()>,
}

impl Timeline {
    /// Follows from now on; there must be no pods yet.
    pub(crate) async fn start(client: &Client) -> Result<Self> {
        let told = Arc::default();
        let mut watches = JoinSet::new();
        follow::<Pod>(client, &told, &mut watches, seen_pod).await?;
        follow::<ReplicaSet>(client, &told, &mut watches, seen_replica_set).await?;
        Ok(Self { client: client.clone(), told, _watches: watches })
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<u64, (String, Seen)>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has been told of all there is now; gives the revision of that.
    pub(crate) async fn catch_up(&self) -> Result<u64> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let sets: Api<ReplicaSet> = Api::default_namespaced(self.client.clone());
        let list = pods.list(&ListParams::default()).await.context("list pods")?;
        let revision = number(list.metadata.resource_version.as_deref());
        let sets = sets.list(&ListParams::default()).await.context("list replica sets")?.items;
        let pods = list.items.iter().map(|pod| number(pod.metadata.resource_version.as_deref()));
        let sets = sets.iter().map(|set| number(set.metadata.resource_version.as_deref()));
        let newest = pods.chain(sets).max().unwrap_or_default();
        poll("the timeline catches up", DEADLINE, async || {
            let told = self.told().last_key_value().map_or(0, |(revision, _)| *revision);
            Ok((told >= newest).then_some(()))
        })
        .await?;
        Ok(revision)
    }

    /// The state at `since`, and after each change from then on.
    fn since(&self, since: u64) -> Vec<Moment> {
        let mut objects = BTreeMap::new();
        let mut moments = Vec::new();
        for (revision, (key, seen)) in &*self.told() {
            if *revision > since && moments.is_empty() {
                moments.push(Moment::at(since, &objects));
            }
            objects.insert(key.clone(), seen.clone());
            if *revision > since {
                moments.push(Moment::at(*revision, &objects));
            }
        }
        if moments.is_empty() {
            moments.push(Moment::at(since, &objects));
        }
        moments
    }

    /// An error unless a rollout kept its bounds at every moment since: ReplicaSets never ask for more than `most` pods
    /// together, no ReplicaSet has more pods than it was asked for, and at least `least` pods are available.
    ///
    /// Upstream bounds what ReplicaSets ask for, too, not pods: the old ReplicaSet's pod that must go and the new one's
    /// that must come are two controllers' steps which may happen in either order.
    pub(crate) fn check_bounds(&self, since: u64, most: i32, least: usize) -> Result<()> {
        let mut highest: BTreeMap<String, i32> = BTreeMap::new();
        let moments = self.since(since);
        for moment in &moments {
            for (name, asked) in &moment.asked {
                let high = highest.entry(name.clone()).or_insert(*asked);
                *high = (*high).max(*asked);
            }
            let asked: i32 = moment.asked.values().sum();
            if asked > most {
                bail!("more than {most} pods are asked for at revision {}: {moment:?}", moment.revision);
            }
            if moment.available < least {
                bail!("fewer than {least} pods are available: {moment:?}");
            }
            for (owner, count) in &moment.pods {
                let high = highest.get(owner).copied().unwrap_or(0);
                if i32::try_from(*count)? > high {
                    bail!("{owner} has more pods than the {high} it was ever asked for: {moment:?}");
                }
            }
        }
        Ok(())
    }
}

type Told = Arc<Mutex<BTreeMap<u64, (String, Seen)>>>;

async fn follow<K>(client: &Client, told: &Told, watches: &mut JoinSet<()>, seen: fn(&K) -> Seen) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<K> = Api::default_namespaced(client.clone());
    let list = api.list(&ListParams::default()).await.context("list what will be followed")?;
    let mut version = list.metadata.resource_version.unwrap_or_default();
    let told = Arc::clone(told);
    watches.spawn(async move {
        loop {
            let Ok(stream) = api.watch(&WatchParams::default().timeout(290), &version).await else { continue };
            let mut stream = Box::pin(stream);
            while let Some(Ok(event)) = stream.next().await {
                let (object, seen) = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        let seen = seen(&object);
                        (object, seen)
                    }
                    WatchEvent::Deleted(object) => (object, Seen::Gone),
                    WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                };
                version = object.resource_version().unwrap_or_default();
                let key = format!("{}/{}", K::kind(&()), object.name_any());
                told.lock().unwrap_or_else(PoisonError::into_inner).insert(number(Some(&version)), (key, seen));
            }
        }
    });
    Ok(())
}

fn number(version: Option<&str>) -> u64 {
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

fn seen_pod(pod: &Pod) -> Seen {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
    if pod.metadata.deletion_timestamp.is_some() || ["Succeeded", "Failed"].contains(&phase) {
        return Seen::Gone;
    }
    let conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
    let available = conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    Seen::Pod { owner: owner.map(|owner| owner.name.clone()).unwrap_or_default(), available }
}

fn seen_replica_set(set: &ReplicaSet) -> Seen {
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
    Seen::ReplicaSet { replicas }
}
