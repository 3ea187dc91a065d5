//! How far pods and ReplicaSets went while a test did something, from watches: bounds that hold throughout.
//!
//! Both are in one etcd, so a revision is one moment for both, whichever watch told of it first. A watch that ends goes on
//! where it was; one that cannot is an error, as there would be a gap in what was seen.
//! Left out: minReadySeconds. A pod counts as ready when it says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use tokio::task::JoinSet;

use super::objects::{is_active, is_ready, node_of, replicas_of, uid};
use super::scene::{DEADLINE, Namespaced, Scene};

/// The extremes of all moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The most replicas that all ReplicaSets together were told to have.
    pub(crate) most_specified: i32,
    /// The most pods that a ReplicaSet had beyond the replicas that it was ever told to have.
    ///
    /// Upstream bounds ReplicaSets' specs, not pods: the old ReplicaSet's pod that must go and the new one's that
    /// must come are two steps of another controller, which may happen in either order.
    pub(crate) most_excess: usize,
    /// The fewest pods that were ready and not being deleted.
    pub(crate) least_ready: usize,
    /// The most templates that pods existed of at a time, pods being deleted counted.
    pub(crate) most_templates: usize,
    /// The most pods of one owner that took up one node, pods being deleted counted.
    pub(crate) most_on_a_node: usize,
    /// Every pod there was, by uid.
    pub(crate) pods: BTreeSet<String>,
}

/// Samples until it is finished or dropped.
pub(crate) struct Sampler {
    changes: Arc<Mutex<Changes>>,
    /// The revision of the first moment.
    from: u64,
    selector: String,
    watches: JoinSet<Result<()>>,
}

/// At each revision, the uid of the object that changed, and its new state.
type Changes = BTreeMap<u64, (String, State)>;

#[derive(Clone, Debug)]
enum State {
    /// `owner` is the uid of its controller.
    Pod {
        owner: Option<String>,
        template: Option<String>,
        node: Option<String>,
        active: bool,
        ready: bool,
    },
    ReplicaSet {
        specified: i32,
    },
    Gone,
}

impl Sampler {
    pub(super) async fn start(scene: &Scene, selector: &str) -> Result<Self> {
        let changes = Arc::default();
        let mut watches = JoinSet::new();
        let pods = follow::<Pod>(scene.api(), selector, pod, &changes, &mut watches).await?;
        let sets = follow::<ReplicaSet>(scene.api(), selector, replica_set, &changes, &mut watches).await?;
        Ok(Self { changes, from: pods.max(sets), selector: selector.to_owned(), watches })
    }

    /// All changes up to the present state.
    pub(crate) async fn finish(mut self, scene: &Scene) -> Result<Seen> {
        let what = "the sampler has seen the last pods and ReplicaSets";
        scene
            .wait_until(what, DEADLINE, async || {
                let mut now = versions(&scene.list::<Pod>(&self.selector).await?)?;
                now.extend(versions(&scene.list::<ReplicaSet>(&self.selector).await?)?);
                let last = last(&lock(&self.changes));
                ensure!(last == now, "{last:?} instead of {now:?}");
                Ok(())
            })
            .await?;
        if let Some(ended) = self.watches.try_join_next() {
            ended.context("a watch of the sampler panicked")??;
            bail!("a watch of the sampler has ended");
        }
        Ok(extremes(&lock(&self.changes), self.from))
    }
}

/// The revisions of the present objects, as far as they have been seen.
fn last(changes: &Changes) -> BTreeMap<String, u64> {
    let mut last = BTreeMap::new();
    for (revision, (uid, state)) in changes {
        match state {
            State::Gone => last.remove(uid),
            State::Pod { .. } | State::ReplicaSet { .. } => last.insert(uid.clone(), *revision),
        };
    }
    last
}

fn versions<K: Namespaced>(objects: &[K]) -> Result<BTreeMap<String, u64>> {
    objects.iter().map(|object| Ok((uid(object), number(object.resource_version().as_deref())?))).collect()
}

fn extremes(changes: &Changes, from: u64) -> Seen {
    let mut seen = Seen { least_ready: usize::MAX, ..Seen::default() };
    let mut moment = BTreeMap::new();
    let mut ever = BTreeMap::new();
    moment.extend(changes.range(..=from).map(|(_, (uid, state))| (uid.as_str(), state)));
    note(&mut seen, &mut ever, &moment);
    for (uid, state) in changes.range(from + 1..).map(|(_, change)| change) {
        moment.insert(uid, state);
        note(&mut seen, &mut ever, &moment);
    }
    seen
}

/// Adds a moment; `ever` has the most that each ReplicaSet was told to have.
fn note<'a>(seen: &mut Seen, ever: &mut BTreeMap<&'a str, usize>, moment: &BTreeMap<&'a str, &'a State>) {
    let (mut specified_by_all, mut ready_pods) = (0, 0);
    let mut templates = BTreeSet::new();
    let mut active_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut on_node: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (uid, state) in moment {
        match state {
            State::Pod { owner, template, node, active, ready } => {
                seen.pods.insert((*uid).to_owned());
                if let Some(place) = owner.as_deref().zip(node.as_deref()) {
                    *on_node.entry(place).or_default() += 1;
                }
                templates.insert(template);
                ready_pods += usize::from(*ready);
                if let Some(owner) = owner.as_deref().filter(|_| *active) {
                    *active_of.entry(owner).or_default() += 1;
                }
            }
            State::ReplicaSet { specified } => {
                specified_by_all += specified;
                let ever = ever.entry(uid).or_default();
                *ever = (*ever).max(usize::try_from(*specified).unwrap_or(0));
            }
            State::Gone => {}
        }
    }
    let excess = active_of.iter().map(|(owner, pods)| pods.saturating_sub(ever.get(owner).copied().unwrap_or(0)));
    seen.most_excess = seen.most_excess.max(excess.max().unwrap_or(0));
    seen.most_specified = seen.most_specified.max(specified_by_all);
    seen.least_ready = seen.least_ready.min(ready_pods);
    seen.most_templates = seen.most_templates.max(templates.len());
    seen.most_on_a_node = seen.most_on_a_node.max(on_node.into_values().max().unwrap_or(0));
}

/// Lists, and starts a watch from there; gives the revision of the list.
async fn follow<K: Namespaced + Send + 'static>(
    api: Api<K>,
    selector: &str,
    state: fn(&K) -> State,
    changes: &Arc<Mutex<Changes>>,
    watches: &mut JoinSet<Result<()>>,
) -> Result<u64> {
    let list = api.list(&ListParams::default().labels(selector)).await.context("list what will be sampled")?;
    for object in &list.items {
        let revision = number(object.resource_version().as_deref())?;
        lock(changes).insert(revision, (uid(object), state(object)));
    }
    let version = list.metadata.resource_version.context("a list without a resourceVersion")?;
    let revision = number(Some(&version))?;
    let params = WatchParams::default().labels(selector).timeout(290);
    let changes = Arc::clone(changes);
    watches.spawn(async move {
        let mut version = version;
        loop {
            watch(&api, &params, state, &mut version, &changes).await?;
        }
    });
    Ok(revision)
}

/// One watch until its end; `version` is where the next one begins.
async fn watch<K: Namespaced + 'static>(
    api: &Api<K>,
    params: &WatchParams,
    state: fn(&K) -> State,
    version: &mut String,
    changes: &Mutex<Changes>,
) -> Result<()> {
    let mut events = Box::pin(api.watch(params, version).await.context("watch what is sampled")?);
    while let Some(event) = events.next().await {
        let (object, state) = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                let state = state(&object);
                (object, state)
            }
            Ok(WatchEvent::Deleted(object)) => (object, State::Gone),
            Ok(WatchEvent::Bookmark(bookmark)) => {
                version.clone_from(&bookmark.metadata.resource_version);
                continue;
            }
            Ok(WatchEvent::Error(status)) => bail!("a watch of the sampler failed: {status:?}"),
            // The connection broke; the next watch begins after the last whole event.
            Err(kube::Error::ReadEvents(_) | kube::Error::HyperError(_)) => return Ok(()),
            Err(error) => return Err(error).context("watch what is sampled"),
        };
        *version = object.resource_version().context("an object without a resourceVersion")?;
        lock(changes).insert(number(Some(version))?, (uid(&object), state));
    }
    Ok(())
}

fn pod(pod: &Pod) -> State {
    State::Pod {
        owner: pod.owner_references().iter().find(|owner| owner.controller == Some(true)).map(|it| it.uid.clone()),
        template: pod.labels().get("pod-template-hash").cloned(),
        node: node_of(pod).map(str::to_owned),
        active: is_active(pod),
        ready: is_ready(pod),
    }
}

fn replica_set(set: &ReplicaSet) -> State {
    State::ReplicaSet { specified: replicas_of(set) }
}

fn number(version: Option<&str>) -> Result<u64> {
    let version = version.context("no resourceVersion")?;
    version.parse().with_context(|| format!("resourceVersion {version} is not a number"))
}

fn lock(changes: &Mutex<Changes>) -> MutexGuard<'_, Changes> {
    changes.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, active: bool, ready: bool) -> (String, State) {
        let (owner, template) = (Some("set".to_owned()), Some(uid.to_owned()));
        let node = Some(if uid == "c" { "other" } else { "node" }.to_owned());
        (uid.to_owned(), State::Pod { owner, template, node, active, ready })
    }

    fn set(specified: i32) -> (String, State) {
        ("set".to_owned(), State::ReplicaSet { specified })
    }

    #[test]
    fn extremes_are_those_of_all_moments_from_the_first_on() {
        let changes = Changes::from([
            (1, set(9)),
            (2, set(1)),
            (3, pod("a", true, true)),
            // The first moment ends here.
            (5, set(2)),
            (6, pod("b", true, false)),
            (7, pod("c", true, false)),
            (8, pod("a", false, false)),
            (9, ("a".to_owned(), State::Gone)),
            (10, set(1)),
            (11, pod("b", true, true)),
        ]);
        let seen = extremes(&changes, 4);
        assert_eq!((seen.most_specified, seen.most_excess, seen.least_ready, seen.most_templates), (2, 1, 0, 3));
        assert_eq!((seen.pods.len(), seen.most_on_a_node), (3, 2));
        assert_eq!(last(&changes), BTreeMap::from([("b".to_owned(), 11), ("c".to_owned(), 7), ("set".to_owned(), 10)]));
    }
}
