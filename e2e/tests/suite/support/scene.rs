//! A test's namespace, and how it looks at the cluster and acts on it.

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use std::{panic, thread};

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::cluster::{Cluster, ClusterKind};
use futures::FutureExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};

use super::dump::dump;
use super::objects::is_ready;
use super::{clusters, sampler};

/// How long anything may take that is expected to happen. Far more than it takes: only failures wait so long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// How often a test looks again.
const POLL: Duration = Duration::from_millis(30);
/// How often it looks at what takes minutes: more often would keep a processor busy for all that time.
const SLOW_POLL: Duration = Duration::from_secs(1);

/// A namespace in a cluster.
pub(crate) struct Scene {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// Kinds of Kubernetes that live in a namespace.
pub(crate) trait Namespaced:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

impl<K> Namespaced for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

/// Runs a test in a namespace of the shared cluster.
pub(crate) fn on_shared_cluster(test: impl AsyncFnOnce(&Scene) -> Result<()>) -> Result<()> {
    let cluster = clusters::shared()?;
    runtime()?.block_on(play(cluster, test))
}

/// As [`on_shared_cluster`], for a test that writes what only a kubelet writes: not where there are kubelets.
pub(crate) fn without_kubelets(test: impl AsyncFnOnce(&Scene) -> Result<()>) -> Result<()> {
    if clusters::is_external() {
        eprintln!("passed over: a kubelet would contradict it");
        return Ok(());
    }
    on_shared_cluster(test)
}

pub(crate) fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("start a runtime")
}

/// Runs a test in a new namespace; if it fails, what is in there and the end of each log is printed.
pub(crate) async fn play(cluster: Arc<Cluster>, test: impl AsyncFnOnce(&Scene) -> Result<()>) -> Result<()> {
    let client = cluster.client().await?;
    let scene = Scene { cluster, client, namespace: namespace_name() };
    scene.create_namespace().await?;
    let ended = AssertUnwindSafe(test(&scene)).catch_unwind().await;
    if !matches!(ended, Ok(Ok(()))) {
        // Before the dump too: where a long output is cut, its end is lost.
        if let Ok(Err(error)) = &ended {
            eprintln!("{error:?}");
        }
        eprintln!("{}", dump(&scene).await);
        scene.cluster.keep_logs();
    }
    match ended {
        Ok(result) => {
            let _ = scene.delete_namespace().await;
            result.map_err(|error| with_dead_parts(&scene.cluster, error))
        }
        Err(panicked) => panic::resume_unwind(panicked),
    }
}

/// A part that died is why the test waited in vain, which no error of the test can tell.
fn with_dead_parts(cluster: &Cluster, error: anyhow::Error) -> anyhow::Error {
    match cluster.check_parts() {
        Err(dead) if cluster.kind() == ClusterKind::Local => error.context(format!("{dead:#}")),
        _ => error,
    }
}

/// The test's own name, so that logs and dumps tell which test they are about.
fn namespace_name() -> String {
    let test = thread::current().name().unwrap_or("test").replace("::", "-").replace('_', "-");
    let start = test.len().saturating_sub(50);
    format!("{}-{}", test[start..].trim_matches('-'), std::process::id() % 100_000)
}

impl Scene {
    async fn create_namespace(&self) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        apply(&self.client, "", &namespace).await?;
        // A pod is admitted only once its namespace has a service account; not every cluster has someone to create it.
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        self.apply(&account).await?;
        self.wait_until("the namespace has a service account", DEADLINE, async || {
            self.fetch::<ServiceAccount>("default").await.map(drop)
        })
        .await
    }

    /// Another namespace of the same cluster, if this one may be broken.
    pub(crate) async fn beside(&self, suffix: &str) -> Result<Self> {
        let mut namespace = self.namespace.clone();
        namespace.truncate(50);
        let beside = Self {
            cluster: Arc::clone(&self.cluster),
            client: self.client.clone(),
            namespace: format!("{namespace}-{suffix}"),
        };
        beside.create_namespace().await?;
        Ok(beside)
    }

    pub(crate) async fn delete_namespace(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.delete(&self.namespace, &DeleteParams::background()).await.map(drop).context("delete the namespace")
    }

    /// Waits until the namespace is gone.
    pub(crate) async fn namespace_gone(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        self.wait_until(&format!("{} is gone", self.namespace), DEADLINE, async || {
            let left = namespaces.get_opt(&self.namespace).await?;
            ensure!(left.is_none(), "{:?}", left.and_then(|left| left.status));
            Ok(())
        })
        .await
    }

    /// Waits until an object of this namespace is gone.
    pub(crate) async fn gone<K: Namespaced>(&self, name: &str) -> Result<()> {
        self.gone_from(&self.api::<K>(), name).await
    }

    /// Waits until an object is gone.
    pub(crate) async fn gone_from<K>(&self, objects: &Api<K>, name: &str) -> Result<()>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
    {
        self.wait_until(&format!("{}/{name} is gone", objects.resource_url()), DEADLINE, async || {
            let left = objects.get_opt(name).await?;
            ensure!(left.is_none(), "{left:?}");
            Ok(())
        })
        .await
    }

    pub(crate) fn api<K: Namespaced>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) async fn fetch<K: Namespaced>(&self, name: &str) -> Result<K> {
        self.api().get(name).await.with_context(|| format!("get {} {name}", K::kind(&())))
    }

    /// The objects that `selector` selects; all if it is empty.
    pub(crate) async fn list<K: Namespaced>(&self, selector: &str) -> Result<Vec<K>> {
        let list = self.api().list(&ListParams::default().labels(selector)).await;
        Ok(list.with_context(|| format!("list {}", K::plural(&())))?.items)
    }

    /// Server-side apply.
    pub(crate) async fn apply(&self, object: &Value) -> Result<DynamicObject> {
        apply(&self.client, &self.namespace, object).await
    }

    /// A merge patch.
    pub(crate) async fn patch<K: Namespaced>(&self, name: &str, patch: &Value) -> Result<K> {
        let patched = self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.with_context(|| format!("patch {} {name}", K::kind(&())))
    }

    /// A merge patch of the status.
    pub(crate) async fn patch_status<K: Namespaced>(&self, name: &str, patch: &Value) -> Result<K> {
        let patched = self.api().patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.with_context(|| format!("patch the status of {} {name}", K::kind(&())))
    }

    /// Runs a command that a person would type, in this namespace; words are split at blanks.
    pub(crate) async fn kubectl(&self, line: &str) -> Result<String> {
        let namespace = ["--namespace", &self.namespace];
        let done = self.cluster.kubectl(namespace.into_iter().chain(line.split_whitespace()));
        timeout(2 * DEADLINE, done).await.with_context(|| format!("kubectl {line} does not end"))?
    }

    /// Looks until `look` finds what it wants. Its error says what it saw instead; it is the test's once time is up.
    pub(crate) async fn wait_until<T>(
        &self,
        what: &str,
        deadline: Duration,
        look: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        poll(POLL, what, deadline, look).await
    }

    /// As [`Self::wait_until`], for what takes minutes.
    pub(crate) async fn wait_for_minutes<T>(
        &self,
        what: &str,
        deadline: Duration,
        look: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        poll(SLOW_POLL, what, deadline, look).await
    }

    /// Waits as a person does, by `kubectl rollout status`.
    pub(crate) async fn rolled_out(&self, deployment: &str) -> Result<()> {
        self.kubectl(&format!("rollout status deployment/{deployment} --timeout=60s")).await.map(drop)
    }

    /// Waits until a DaemonSet is for so many nodes and has one ready pod for each of them, of which so many are updated.
    pub(crate) async fn covered(&self, daemon_set: &str, (nodes, updated): (i32, i32)) -> Result<()> {
        self.wait_until(
            &format!("{daemon_set} covers {nodes} nodes, {updated} of them updated"),
            DEADLINE,
            async || {
                let set: DaemonSet = self.fetch(daemon_set).await?;
                let status = set.status.unwrap_or_default();
                let is_seen = status.observed_generation == set.metadata.generation;
                let counts =
                    [status.desired_number_scheduled, status.number_ready, status.number_available.unwrap_or_default()];
                ensure!(is_seen && counts == [nodes; 3], "{status:?}");
                ensure!(status.updated_number_scheduled.unwrap_or_default() == updated, "{status:?}");
                let pods: Vec<Pod> = self.list(&format!("app={daemon_set}")).await?;
                let ready = pods.iter().filter(|pod| is_ready(pod)).count();
                ensure!(
                    i32::try_from(ready)? == nodes && ready == pods.len(),
                    "{ready} of {} pods are ready",
                    pods.len()
                );
                Ok(())
            },
        )
        .await
    }

    /// The events of this namespace with this reason.
    pub(crate) async fn events(&self, reason: &str) -> Result<Vec<Event>> {
        let mut events: Vec<Event> = self.list("").await?;
        events.retain(|event| event.reason.as_deref() == Some(reason));
        Ok(events)
    }

    /// As [`Self::events`], once there are some: they are posted after the fact.
    pub(crate) async fn told(&self, reason: &str) -> Result<Vec<Event>> {
        self.wait_until(&format!("an event {reason}"), DEADLINE, async || {
            let events = self.events(reason).await?;
            ensure!(!events.is_empty(), "there is none");
            Ok(events)
        })
        .await
    }

    /// Waits until an event with this reason is about an object of this name.
    pub(crate) async fn told_about(&self, name: &str, reason: &str) -> Result<()> {
        self.wait_until(&format!("{name} is told {reason}"), DEADLINE, async || {
            let events = self.events(reason).await?;
            ensure!(events.iter().any(|event| event.involved_object.name.as_deref() == Some(name)), "{events:?}");
            Ok(())
        })
        .await
    }

    /// Waits until an object has the finalizer.
    pub(crate) async fn protected<K>(&self, objects: &Api<K>, name: &str, finalizer: &str) -> Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.wait_until(&format!("{} {name} is protected", K::kind(&())), DEADLINE, async || {
            let object = objects.get(name).await?;
            ensure!(object.finalizers().iter().any(|known| known == finalizer), "{object:?}");
            Ok(())
        })
        .await
    }

    /// Deletes a pod at once, as a kubelet does after it has ended.
    pub(crate) async fn delete_pod(&self, name: &str) -> Result<()> {
        let at_once = DeleteParams::default().grace_period(0);
        self.api::<Pod>().delete(name, &at_once).await.map(drop).context("delete a pod")
    }

    /// Starts noting what pods and ReplicaSets with these labels there are.
    pub(crate) async fn sample(&self, selector: &str) -> Result<sampler::Sampler> {
        sampler::Sampler::start(self, selector).await
    }
}

async fn poll<T>(
    period: Duration,
    what: &str,
    deadline: Duration,
    mut look: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let end = Instant::now() + deadline;
    loop {
        match look().await {
            Ok(found) => return Ok(found),
            Err(seen) if Instant::now() >= end => {
                return Err(seen).with_context(|| format!("not within {} s: {what}", deadline.as_secs_f32()));
            }
            Err(_) => sleep(period).await,
        }
    }
}
