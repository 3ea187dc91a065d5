//! The operators' pods on nodes that kwok plays: for each pod that runs a process, as a kubelet would start one.
//! Left out: restarts, probes, and what the manifests say of the container; real nodes show these.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::cluster::Cluster;
use e2e::operator::{Installed, Operator, OperatorSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use tokio::time::sleep;

use crate::support::clusters::program;

const POLL: Duration = Duration::from_millis(100);
const NAME: &str = "app.kubernetes.io/name";
const SELECTOR: &str = "app.kubernetes.io/part-of=kubernetes-operators";
/// A lost Lease is given up sooner than after the usual 15 seconds.
const FLAGS: [&str; 3] =
    ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s"];

/// The processes, by the names of their pods.
pub(super) struct Played {
    cluster: Arc<Cluster>,
    pods: Api<Pod>,
    running: BTreeMap<String, Operator>,
    /// Pods that are gone for whoever plays them, whatever the apiserver says.
    dead: Vec<String>,
}

impl Played {
    pub(super) async fn new(cluster: &Arc<Cluster>) -> Result<Self> {
        let pods = Api::namespaced(cluster.client().await?, "kube-system");
        Ok(Self { cluster: Arc::clone(cluster), pods, running: BTreeMap::new(), dead: Vec::new() })
    }

    /// The operators' pods that run and stay.
    pub(super) async fn pods(&self) -> Result<Vec<Pod>> {
        let listed =
            self.pods.list(&ListParams::default().labels(SELECTOR)).await.context("list the operators' pods")?;
        let runs = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
        };
        Ok(listed.items.into_iter().filter(runs).collect())
    }

    /// Plays until `work` is done.
    pub(super) async fn while_doing<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            done = work => done,
            failed = self.play() => failed.and_then(|()| anyhow::bail!("nobody plays")),
        }
    }

    async fn play(&mut self) -> Result<()> {
        loop {
            self.follow().await?;
            sleep(POLL).await;
        }
    }

    /// Starts what runs as a pod, and ends what no longer does.
    async fn follow(&mut self) -> Result<()> {
        let pods = self.pods().await?;
        let names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        let gone: Vec<String> = self.running.keys().filter(|name| !names.contains(name)).cloned().collect();
        for name in gone {
            if let Some(mut operator) = self.running.remove(&name) {
                operator.terminate().await?;
            }
        }
        for (pod, name) in pods.iter().zip(names) {
            if self.running.contains_key(&name) || self.dead.contains(&name) {
                continue;
            }
            let operator = pod.labels().get(NAME).with_context(|| format!("{name} has no {NAME}"))?;
            let account = Installed { namespace: "kube-system".to_owned(), service_account: operator.clone() };
            let mut spec = OperatorSpec::new(operator, program(), &account);
            spec.name.clone_from(&name);
            spec.flags = FLAGS.map(str::to_owned).to_vec();
            if operator.ends_with("-group-operator") {
                spec.operator = None;
                spec.flags.extend(arguments(pod));
            }
            self.running.insert(name, self.cluster.start_operator(&spec).await?);
        }
        Ok(())
    }

    /// Kills every process at once. Their pods are no more, or seem to run on as those of a node that is gone.
    pub(super) async fn lose_all(&mut self, seem_to_run: bool) -> Result<()> {
        for operator in self.running.values_mut() {
            operator.kill();
        }
        self.dead = std::mem::take(&mut self.running).into_keys().collect();
        if !seem_to_run {
            let all =
                ["delete", "pods", "--namespace=kube-system", "--selector", SELECTOR, "--force", "--grace-period=0"];
            self.cluster.kubectl(all).await?;
        }
        Ok(())
    }
}

/// What the manifest tells the process, except for where it serves: all pods are on one machine here.
fn arguments(pod: &Pod) -> Vec<String> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let all = containers.flat_map(|container| container.args.clone().unwrap_or_default());
    all.filter(|argument| !argument.starts_with("--secure-port=")).collect()
}
