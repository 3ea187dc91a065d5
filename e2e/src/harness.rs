//! What a test is written with: a namespace of its own, waiting for what must become true, watching pods all along, and on
//! failure the state of everything that matters.
//! Left out: running tests. And sleeping: a test waits for something, or it does not wait.

mod describe;
mod sampler;

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use anyhow::{Context, Error, Result};
use futures::FutureExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::apply::{apply, apply_yaml};
use crate::cluster::Cluster;
pub use sampler::{PodHistory, PodSample, PodSampler};

/// How often [`wait_until`] looks.
const POLL: Duration = Duration::from_millis(50);

/// Waits until `check` succeeds; its last error is why it did not. Every error means "not yet".
pub async fn wait_until<T>(what: &str, deadline: Duration, mut check: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let end = Instant::now() + deadline;
    loop {
        match check().await {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() >= end => {
                return Err(error.context(format!("not within {deadline:?}: {what}")));
            }
            Err(_) => sleep(POLL).await,
        }
    }
}

impl Cluster {
    /// Runs `test` in a new namespace, which is deleted afterwards. If it fails or panics, what was there is printed.
    pub async fn in_namespace<T>(&self, name: &str, test: impl AsyncFnOnce(&Scope<'_>) -> Result<T>) -> Result<T> {
        let scope = Scope::create(self, name).await?;
        let ended = AssertUnwindSafe(test(&scope)).catch_unwind().await;
        if !matches!(ended, Ok(Ok(_))) {
            self.keep_logs();
            eprintln!("{}", scope.describe().await);
        }
        let deleted = scope.delete().await;
        match ended {
            Ok(result) => result.and_then(|value| deleted.map(|()| value)).map_err(|error| scope.at(error)),
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// A test's namespace.
pub struct Scope<'a> {
    cluster: &'a Cluster,
    client: Client,
    namespace: String,
}

impl<'a> Scope<'a> {
    async fn create(cluster: &'a Cluster, name: &str) -> Result<Self> {
        let client = cluster.client().await?;
        let described: Namespace =
            serde_json::from_value(json!({ "metadata": { "generateName": format!("e2e-{name}-") } }))
                .context("describe a namespace")?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let created = namespaces.create(&PostParams::default(), &described).await.context("create a namespace")?;
        let scope = Self { cluster, client, namespace: created.name_any() };
        scope.create_default_account().await?;
        Ok(scope)
    }

    /// Pods are admitted only once it is there; whoever else creates it finds its work done.
    async fn create_default_account(&self) -> Result<()> {
        let account: ServiceAccount =
            serde_json::from_value(json!({ "metadata": { "name": "default" } })).context("describe an account")?;
        match self.api::<ServiceAccount>().create(&PostParams::default(), &account).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            created => created.map(drop).context("create the default service account"),
        }
    }

    async fn delete(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.delete(&self.namespace, &DeleteParams::background()).await.map(drop).context("delete the namespace")
    }

    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The API of a kind in this namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies YAML documents.
    pub async fn apply_yaml(&self, yaml: &str) -> Result<Vec<DynamicObject>> {
        apply_yaml(&self.client, &self.namespace, yaml).await
    }

    /// Applies one object.
    pub async fn apply(&self, object: &Value) -> Result<DynamicObject> {
        apply(&self.client, &self.namespace, object).await
    }

    /// Runs kubectl in this namespace.
    pub async fn kubectl<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String> {
        let namespace = format!("--namespace={}", self.namespace);
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.cluster.kubectl(std::iter::once(namespace.into()).chain(args)).await
    }

    /// The pods that match a label selector.
    pub async fn pods(&self, selector: &str) -> Result<Vec<Pod>> {
        let list = self.api::<Pod>().list(&ListParams::default().labels(selector)).await.context("list pods")?;
        Ok(list.items)
    }

    /// Watches the pods that match a label selector from now on.
    pub async fn sample_pods(&self, selector: &str) -> Result<PodSampler> {
        PodSampler::start(self.api(), selector).await
    }

    /// Makes a running pod ready or not, in place of its kubelet.
    pub async fn set_pod_ready(&self, pod: &str, ready: bool) -> Result<()> {
        let now = now();
        let status = if ready { "True" } else { "False" };
        let conditions = ["Ready", "ContainersReady"]
            .map(|kind| json!({ "type": kind, "status": status, "lastTransitionTime": now }));
        self.patch_pod_status(pod, &json!({ "conditions": conditions })).await
    }

    /// Ends a pod's containers with `exit_code`, in place of its kubelet; the pod then is Succeeded or Failed.
    pub async fn end_pod(&self, pod: &str, exit_code: i32) -> Result<()> {
        let now = now();
        let (phase, reason) = if exit_code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
        let spec = self.api::<Pod>().get(pod).await.context("look at a pod")?.spec.context("a pod without a spec")?;
        let containers: Vec<Value> = spec
            .containers
            .iter()
            .map(|container| {
                json!({
                    "name": container.name, "image": container.image, "imageID": container.image,
                    "ready": false, "started": false, "restartCount": 0,
                    "state": { "terminated":
                        { "exitCode": exit_code, "reason": reason, "startedAt": now, "finishedAt": now } },
                })
            })
            .collect();
        let conditions = ["Ready", "ContainersReady"]
            .map(|kind| json!({ "type": kind, "status": "False", "lastTransitionTime": now }));
        let status = json!({ "phase": phase, "containerStatuses": containers, "conditions": conditions });
        self.patch_pod_status(pod, &status).await
    }

    /// What is in the namespace, and how the operators' logs end.
    pub async fn describe(&self) -> String {
        describe::describe(self).await
    }

    async fn patch_pod_status(&self, pod: &str, status: &Value) -> Result<()> {
        self.api::<Pod>()
            .patch_status(pod, &PatchParams::default(), &Patch::Strategic(json!({ "status": status })))
            .await
            .map(drop)
            .with_context(|| format!("set the status of pod {pod}"))
    }

    fn at(&self, error: Error) -> Error {
        error.context(format!("in namespace {}", self.namespace))
    }
}

/// What a kubelet would write, so it is the real time.
#[expect(clippy::disallowed_methods, reason = "in place of a kubelet, which reads the clock")]
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
