//! A CSI driver without nodes: its external provisioner, attacher and resizer, and the disks that they make.
//!
//! It writes what upstream's sidecars write, and counts what happens to each disk. A turn that meets a newer version or an
//! apiserver that is away ends, and the next one goes on.
//! Left out: mounting, for nobody here is a kubelet that mounts, and the finalizer of attached volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttachment};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::attachments::MANAGED;
use super::{DEADLINE, Scene, template};

pub(crate) const DRIVER: &str = "csi.e2e.example";
/// The plugin's in-tree volumes are expanded by this driver, whose resizer is played too.
pub(crate) const IN_TREE: (&str, &str) = ("awsElasticBlockStore", "ebs.csi.aws.com");
/// A class that does not exist: its claims get the volumes that are there.
pub(crate) const NO_CLASS: &str = "e2e-none";
pub(crate) const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The finalizer of a VolumeAttributesClass that a claim or a volume uses.
pub(crate) const VAC_PROTECTION: &str = "kubernetes.io/vac-protection";
pub(crate) const RESIZER: &str = "volume.kubernetes.io/storage-resizer";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const PROVISIONERS_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
const ATTACHERS_FINALIZER: &str = "external-attacher/csi-e2e-example";

/// How often it looks for something to do.
const PERIOD: Duration = Duration::from_millis(50);

/// The disks of the driver, and what has happened to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disks {
    /// Those that were made and not deleted, by their handles.
    pub(crate) there: BTreeSet<String>,
    /// How many were ever made.
    pub(crate) made: usize,
    /// How often a disk was attached to a node.
    pub(crate) attached: usize,
    /// The most nodes that had one disk at a time.
    pub(crate) most_nodes: usize,
    nodes: BTreeMap<String, BTreeSet<String>>,
}

impl Disks {
    fn make(&mut self, handle: &str) {
        self.made += usize::from(self.there.insert(handle.to_owned()));
    }

    fn attach(&mut self, handle: &str, node: &str) {
        let nodes = self.nodes.entry(handle.to_owned()).or_default();
        self.attached += usize::from(nodes.insert(node.to_owned()));
        self.most_nodes = self.most_nodes.max(nodes.len());
    }

    fn detach(&mut self, handle: &str, node: &str) {
        if let Some(nodes) = self.nodes.get_mut(handle) {
            nodes.remove(node);
        }
    }
}

/// The driver at work, until it is dropped.
pub(crate) struct Driver {
    disks: Arc<Mutex<Disks>>,
    turn: Arc<tokio::sync::Mutex<()>>,
    _working: JoinSet<()>,
}

impl Driver {
    pub(crate) fn start(client: &Client) -> Self {
        let (disks, turn, mut working) = (Arc::default(), Arc::default(), JoinSet::new());
        let sidecars = Sidecars { client: client.clone(), disks: Arc::clone(&disks) };
        let turns: Arc<tokio::sync::Mutex<()>> = Arc::clone(&turn);
        working.spawn(async move {
            let mut ticks = interval(PERIOD);
            loop {
                ticks.tick().await;
                let _turn = turns.lock().await;
                let _ = sidecars.turn().await;
            }
        });
        Self { disks, turn, _working: working }
    }

    /// It does nothing until this is dropped.
    pub(crate) async fn pause(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    pub(crate) fn disks(&self) -> Disks {
        lock(&self.disks).clone()
    }
}

fn lock(disks: &Mutex<Disks>) -> MutexGuard<'_, Disks> {
    disks.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Sidecars {
    client: Client,
    disks: Arc<Mutex<Disks>>,
}

impl Sidecars {
    async fn turn(&self) -> Result<()> {
        let volumes = self.all::<PersistentVolume>().await?;
        let attachments = self.all::<VolumeAttachment>().await?;
        for attachment in &attachments {
            self.answer(attachment).await?;
        }
        for volume in &volumes {
            let is_of = |found: &VolumeAttachment| found.spec.source.persistent_volume_name == volume.metadata.name;
            if !attachments.iter().any(is_of) {
                self.reclaim(volume).await?;
            }
        }
        let classes = self.all::<StorageClass>().await?;
        for claim in self.all::<PersistentVolumeClaim>().await? {
            let bound_to = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
            match volumes.iter().find(|volume| volume.metadata.name.as_deref() == bound_to) {
                Some(volume) => self.resize(&claim, volume).await?,
                None => self.provision(&claim, &classes, &volumes).await?,
            }
        }
        Ok(())
    }

    async fn all<K>(&self) -> Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let all: Api<K> = Api::all(self.client.clone());
        Ok(all.list(&ListParams::default()).await?.items)
    }

    /// Upstream: sigs.k8s.io/sig-storage-lib-external-provisioner, `shouldProvision` and `provisionClaimOperation`.
    async fn provision(
        &self,
        claim: &PersistentVolumeClaim,
        classes: &[StorageClass],
        volumes: &[PersistentVolume],
    ) -> Result<()> {
        let spec = claim.spec.clone().unwrap_or_default();
        let annotation = |name: &str| claim.annotations().get(name).map(String::as_str);
        let class = classes.iter().find(|class| class.metadata.name == spec.storage_class_name);
        let waits = class.is_none_or(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
        let is_mine = annotation(PROVISIONER) == Some(DRIVER) && spec.volume_name.is_none();
        if !is_mine || claim.metadata.deletion_timestamp.is_some() || (waits && annotation(SELECTED_NODE).is_none()) {
            return Ok(());
        }
        let uid = claim.uid().context("a claim without a uid")?;
        let name = format!("pvc-{uid}");
        if volumes.iter().any(|volume| volume.name_any() == name) {
            return Ok(());
        }
        lock(&self.disks).make(&name);
        let claim_ref = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.namespace(),
            "name": claim.name_any(), "uid": uid});
        let volume = serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: DRIVER}, "finalizers": [PROVISIONERS_FINALIZER]},
            "spec": {"accessModes": spec.access_modes, "capacity": spec.resources.and_then(|resources| resources.requests),
                "claimRef": claim_ref, "csi": {"driver": DRIVER, "volumeHandle": name},
                "persistentVolumeReclaimPolicy": "Delete", "storageClassName": spec.storage_class_name,
                "volumeMode": spec.volume_mode},
        }))?;
        let all: Api<PersistentVolume> = Api::all(self.client.clone());
        all.create(&PostParams::default(), &volume).await.map(drop).context("create a volume")
    }

    /// Upstream: `shouldDelete` and `deleteVolumeOperation` of the same. The disk goes with the finalizer, a turn after the
    /// deletion.
    async fn reclaim(&self, volume: &PersistentVolume) -> Result<()> {
        let is_released = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released");
        let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        let is_held = volume.finalizers().iter().any(|finalizer| finalizer == PROVISIONERS_FINALIZER);
        if !(is_released && is_held && policy == Some("Delete")) {
            return Ok(());
        }
        let (all, name): (Api<PersistentVolume>, _) = (Api::all(self.client.clone()), volume.name_any());
        if volume.metadata.deletion_timestamp.is_none() {
            return all.delete(&name, &DeleteParams::default()).await.map(drop).context("delete a volume");
        }
        lock(&self.disks).there.remove(&name);
        set_finalizer(&all, volume, PROVISIONERS_FINALIZER, false).await
    }

    /// Upstream: kubernetes-csi/external-attacher, pkg/controller/csi_handler.go. Each volume is named after its handle.
    async fn answer(&self, attachment: &VolumeAttachment) -> Result<()> {
        let Some(handle) = &attachment.spec.source.persistent_volume_name else { return Ok(()) };
        if attachment.spec.attacher != DRIVER {
            return Ok(());
        }
        let node = &attachment.spec.node_name;
        let (all, name): (Api<VolumeAttachment>, _) = (Api::all(self.client.clone()), attachment.name_any());
        let is_held = attachment.finalizers().iter().any(|finalizer| finalizer == ATTACHERS_FINALIZER);
        if attachment.metadata.deletion_timestamp.is_some() {
            if is_held {
                lock(&self.disks).detach(handle, node);
                set_finalizer(&all, attachment, ATTACHERS_FINALIZER, false).await?;
            }
            return Ok(());
        }
        if attachment.status.as_ref().is_some_and(|status| status.attached) {
            return Ok(());
        }
        if !is_held {
            return set_finalizer(&all, attachment, ATTACHERS_FINALIZER, true).await;
        }
        lock(&self.disks).attach(handle, node);
        let attached = Patch::Merge(json!({"status": {"attached": true}}));
        all.patch_status(&name, &PatchParams::default(), &attached).await.map(drop).context("attach a volume")
    }

    /// Upstream: kubernetes-csi/external-resizer, pkg/controller/controller.go, for a driver whose nodes need not expand.
    async fn resize(&self, claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<()> {
        let driver = volume.spec.as_ref().and_then(|spec| Some(spec.csi.as_ref()?.driver.as_str()));
        let is_handed_over = claim.annotations().get(RESIZER).is_some_and(|driver| driver == IN_TREE.1);
        let is_bound = claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
        if !is_bound || !(driver == Some(DRIVER) || is_handed_over) {
            return Ok(());
        }
        let asked = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref()?.get("storage"));
        let had = claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage"));
        let Some(asked) = asked.filter(|asked| Some(*asked) != had) else { return Ok(()) };
        let (params, capacity) = (PatchParams::default(), json!({"storage": asked}));
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let larger = Patch::Merge(json!({"spec": {"capacity": capacity}}));
        volumes.patch(&volume.name_any(), &params, &larger).await.context("expand a volume")?;
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &claim.namespace().unwrap_or_default());
        let larger = Patch::Merge(json!({"status": {"capacity": capacity}}));
        claims.patch_status(&claim.name_any(), &params, &larger).await.map(drop).context("expand a claim")
    }
}

/// Adds or removes a finalizer of the state that was read.
async fn set_finalizer<K>(all: &Api<K>, object: &K, finalizer: &str, is_wanted: bool) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let mut finalizers = object.finalizers().to_vec();
    finalizers.retain(|found| found != finalizer);
    if is_wanted {
        finalizers.push(finalizer.to_owned());
    }
    let meta = json!({"resourceVersion": object.resource_version(), "finalizers": finalizers});
    let patch = Patch::Merge(json!({"metadata": meta}));
    all.patch(&object.name_any(), &PatchParams::default(), &patch).await.map(drop).context("set a finalizer")
}

/// Makes the class `name`, whose volumes the driver provisions; its name must be the cluster's only one.
pub(crate) async fn class(scene: &Scene, name: &str, mode: &str) -> Result<()> {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": mode, "allowVolumeExpansion": true});
    apply(&scene.client, "", &class).await.map(drop)
}

/// A claim of this class for so much.
pub(crate) fn claim(name: &str, class: &str, size: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": claim_spec(class, size)})
}

fn claim_spec(class: &str, size: &str) -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": class})
}

/// A volume of the driver that nobody has provisioned, for claims of this class.
pub(crate) fn volume(name: &str, class: &str, size: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Retain", "csi": {"driver": DRIVER, "volumeHandle": name}}})
}

/// A pod with the volume of this claim, which may run on this node only.
pub(crate) fn user(name: &str, claim: &str, node: &str) -> Value {
    with_volume(name, node, &json!({"persistentVolumeClaim": {"claimName": claim}}))
}

/// As [`user`], with a volume of its own.
pub(crate) fn ephemeral(name: &str, class: &str, node: &str) -> Value {
    let template = json!({"spec": claim_spec(class, "1Gi")});
    with_volume(name, node, &json!({"ephemeral": {"volumeClaimTemplate": template}}))
}

fn with_volume(name: &str, node: &str, source: &Value) -> Value {
    let mut volume = source.clone();
    volume["name"] = json!("data");
    let mut spec = template(name)["spec"].clone();
    spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    spec["volumes"] = json!([volume]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
}

/// Says of each node that its volumes are attached for it, as kubelets do.
pub(crate) async fn manage_nodes(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let managed = Patch::Merge(json!({"metadata": {"annotations": {MANAGED: "true"}}}));
    for node in nodes.list(&ListParams::default()).await.context("list nodes")? {
        nodes.patch(&node.name_any(), &PatchParams::default(), &managed).await.context("annotate a node")?;
    }
    Ok(())
}

/// A name for what is in no namespace, of its own in the cluster.
pub(crate) fn named(scene: &Scene, name: &str) -> String {
    format!("{}-{name}", scene.namespace)
}

/// Makes a VolumeAttributesClass of the driver.
pub(crate) async fn attributes_class(scene: &Scene, name: &str) -> Result<()> {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": name},
        "driverName": DRIVER, "parameters": {"iops": "100"}});
    apply(&scene.client, "", &class).await.map(drop)
}

/// Waits until the volume is in this phase.
pub(crate) async fn phase(scene: &Scene, volume: &str, expected: &str) -> Result<()> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    scene
        .wait_until(&format!("{volume} is {expected}"), DEADLINE, async || {
            let found = volumes.get(volume).await?.status.and_then(|status| status.phase);
            ensure!(found.as_deref() == Some(expected), "{found:?}");
            Ok(())
        })
        .await
}

/// Ends the pod that empties a volume, once it runs.
pub(crate) async fn recycler_ends(scene: &Scene, volume: &str) -> Result<()> {
    let (pods, name): (Api<Pod>, _) =
        (Api::namespaced(scene.client.clone(), "default"), format!("recycler-for-{volume}"));
    scene
        .wait_until(&format!("{name} runs"), DEADLINE, async || {
            let found = pods.get(&name).await?.status.and_then(|status| status.phase);
            ensure!(found.as_deref() == Some("Running"), "{found:?}");
            Ok(())
        })
        .await?;
    let succeeded = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status(&name, &PatchParams::default(), &succeeded).await.map(drop).context("end the pod")
}

/// Waits until the claim has 2Gi.
pub(crate) async fn expanded(scene: &Scene, claim: &str) -> Result<()> {
    scene
        .wait_until(&format!("{claim} is expanded"), DEADLINE, async || {
            let status = scene.fetch::<PersistentVolumeClaim>(claim).await?.status.unwrap_or_default();
            let size = status.capacity.and_then(|capacity| capacity.get("storage").cloned());
            ensure!(size.as_ref().is_some_and(|size| size.0 == "2Gi"), "{size:?}");
            Ok(())
        })
        .await
}

/// Waits until the claim is bound, and its volume to it; gives the volume.
pub(crate) async fn bound(scene: &Scene, name: &str) -> Result<PersistentVolume> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    scene
        .wait_until(&format!("{name} is bound"), DEADLINE, async || {
            let claim: PersistentVolumeClaim = scene.fetch(name).await?;
            let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
            ensure!(phase == Some("Bound"), "{claim:?}");
            let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).context("without a volume")?;
            let volume = volumes.get(&volume).await?;
            let is_of = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()?.uid.clone()) == claim.uid();
            let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
            ensure!(is_of && phase == Some("Bound"), "{volume:?}");
            Ok(volume)
        })
        .await
}

/// Waits until the volume is attached to these nodes, and they and no others say so.
pub(crate) async fn attached(scene: &Scene, volume: &str, to: &[&str]) -> Result<()> {
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let nodes: Api<Node> = Api::all(scene.client.clone());
    scene
        .wait_until(&format!("{volume} is attached to {to:?}"), DEADLINE, async || {
            let mut found = attachments.list(&ListParams::default()).await?.items;
            found.retain(|found| found.spec.source.persistent_volume_name.as_deref() == Some(volume));
            let is_done = |found: &VolumeAttachment| {
                found.metadata.deletion_timestamp.is_none() && found.status.as_ref().is_some_and(|it| it.attached)
            };
            let mut on: Vec<&str> = found.iter().map(|found| found.spec.node_name.as_str()).collect();
            on.sort_unstable();
            ensure!(on == to && found.iter().all(is_done), "{found:?}");
            for node in nodes.list(&ListParams::default()).await? {
                let reported = node.status.as_ref().and_then(|status| status.volumes_attached.as_ref());
                let is_reported =
                    reported.into_iter().flatten().any(|entry| entry.name.ends_with(&format!("^{volume}")));
                let name = node.name_any();
                ensure!(is_reported == to.contains(&name.as_str()), "{name} reports {reported:?}");
            }
            Ok(())
        })
        .await
}
