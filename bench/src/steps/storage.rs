//! Claims that find a volume, claims that a provisioner makes a volume for, pods that use these, and the end of all.
//! The provisioner and the attacher are the bench's own, and answer at once.

mod drivers;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, StorageClass, VolumeAttachment};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use self::drivers::{DRIVER, driven};
use crate::about::{About, Target, Targets};
use crate::measure::{Bench, NAMESPACE, count, create, in_parallel};
use crate::options::BenchOptions;
use crate::sizes::StorageSizes;

/// The class of volumes that exist before their claims.
const EXISTING: &str = "existing";
/// The class whose volumes the bench provisions.
const PROVISIONED: &str = "provisioned";
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
const STEPS: [&str; 5] = [
    "bind claims to existing volumes",
    "bind claims to provisioned volumes",
    "attach a volume for each pod",
    "detach them",
    "delete the claims with their volumes",
];

const TARGETS: Targets =
    Targets { ratios: &[Target::TIME, Target::CPU, Target::anonymous("at most 0.2"), Target::WRITES], each: None };

pub(crate) fn about(options: &BenchOptions) -> About {
    let StorageSizes { existing_volumes, provisioned, storage_nodes } = options.storage;
    About {
        operators: ["binder", "attach-detach", "protection"]
            .map(|name| format!("persistentvolume-{name}-operator"))
            .into_iter()
            .chain(["persistentvolumeclaim-protection-operator".to_owned()])
            .collect(),
        helpers: &[],
        upstream: "kube-controller-manager",
        controllers: "the binding, attaching and protecting controllers of volumes",
        reaction: None,
        steps: format!(
            "{existing_volumes} claims for as many volumes of one class, until all are bound; {provisioned} claims of \
             a class with a\nprovisioner, until all are bound; as many pods with one of these claims each on \
             {storage_nodes} nodes, until all volumes are\nattached and told in the nodes' statuses; the end of the \
             pods, until all are detached; the end of these claims, until all\ntheir volumes are gone. The provisioner \
             and the attacher are the bench's own and answer at once"
        ),
        nodes: storage_nodes,
        zones: 3,
        gated: false,
        flags: &[],
        page: "docs/benchmarks/storage.md",
        targets: Some(TARGETS),
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let StorageSizes { existing_volumes, provisioned, .. } = bench.options.storage;
    let [bind, provision, attach, detach, delete] = STEPS;
    bench.create_namespace(NAMESPACE).await?;
    bench.wait_ready().await?;
    bench.create_class(EXISTING, "kubernetes.io/no-provisioner").await?;
    bench.create_class(PROVISIONED, DRIVER).await?;
    create::<CSIDriver>(&Api::all(bench.client.clone()), json!({"metadata": {"name": DRIVER}, "spec": {}})).await?;

    bench.manage_nodes().await?;

    in_parallel(existing_volumes, async |at| bench.create_volume(at).await).await?;
    bench.wait_available_volumes(existing_volumes).await?;
    let bind_all = async |bench: &mut Bench<'_>| {
        in_parallel(existing_volumes, async |at| bench.create_claim(EXISTING, at).await).await?;
        bench.wait_bound(existing_volumes).await
    };
    bench.measure(bind, bind_all).await?;

    let client = bench.client.clone();
    let provision_all = async |bench: &mut Bench<'_>| {
        in_parallel(provisioned, async |at| bench.create_claim(PROVISIONED, at).await).await?;
        bench.wait_bound(existing_volumes + provisioned).await
    };
    bench.measure(provision, async |bench| driven(&client, provision_all(bench)).await).await?;

    let attach_all = async |bench: &mut Bench<'_>| {
        in_parallel(provisioned, async |at| bench.create_user(at).await).await?;
        bench.wait_attached(provisioned).await
    };
    bench.measure(attach, async |bench| driven(&client, attach_all(bench)).await).await?;
    bench.wait_running().await?;

    let detach_all = async |bench: &mut Bench<'_>| {
        bench.delete_pods().await?;
        let attachments: Api<VolumeAttachment> = Api::all(bench.client.clone());
        bench.wait_until("detached", async || Ok(count(&attachments).await? == 0)).await
    };
    bench.measure(detach, async |bench| driven(&client, detach_all(bench)).await).await?;

    let delete_all = async |bench: &mut Bench<'_>| {
        let of_class = ListParams::default().labels(&format!("class={PROVISIONED}"));
        bench.api::<PersistentVolumeClaim>().delete_collection(&DeleteParams::default(), &of_class).await?;
        let volumes: Api<PersistentVolume> = Api::all(bench.client.clone());
        bench.wait_until("gone", async || Ok(count(&volumes).await? == i64::from(existing_volumes))).await
    };
    bench.measure(delete, async |bench| driven(&client, delete_all(bench)).await).await
}

fn claim_name(class: &str, at: u32) -> String {
    format!("{class}{at:04}")
}

impl Bench<'_> {
    async fn create_class(&self, name: &str, provisioner: &str) -> Result<()> {
        let class = json!({"metadata": {"name": name}, "provisioner": provisioner});
        create::<StorageClass>(&Api::all(self.client.clone()), class).await.map(drop)
    }

    /// Says what a kubelet says of its node: volumes are attached for it.
    async fn manage_nodes(&self) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let managed = json!({"metadata": {"annotations": {MANAGED: "true"}}});
        for node in nodes.list_metadata(&ListParams::default()).await?.items {
            nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(&managed)).await?;
        }
        Ok(())
    }

    async fn create_volume(&self, at: u32) -> Result<()> {
        let name = claim_name("volume", at);
        let volume = json!({"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": EXISTING,
            "csi": {"driver": DRIVER, "volumeHandle": name},
        }});
        create::<PersistentVolume>(&Api::all(self.client.clone()), volume).await.map(drop)
    }

    async fn create_claim(&self, class: &str, at: u32) -> Result<()> {
        let claim = json!({"metadata": {"name": claim_name(class, at), "labels": {"class": class}}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": class,
        }});
        create::<PersistentVolumeClaim>(&self.api(), claim).await.map(drop)
    }

    async fn create_user(&self, at: u32) -> Result<()> {
        let claim = json!({"claimName": claim_name(PROVISIONED, at)});
        let pod = json!({"metadata": {"name": claim_name("user", at)}, "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "web", "image": "nginx:1.7.9"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": claim}],
        }});
        create::<Pod>(&self.api(), pod).await.map(drop)
    }

    async fn wait_available_volumes(&self, wanted: u32) -> Result<()> {
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        self.wait_until("available", async || {
            let all = volumes.list(&ListParams::default()).await?.items;
            let phases = all.iter().filter_map(|volume| volume.status.as_ref()?.phase.as_deref());
            Ok(phases.filter(|phase| *phase == "Available").count() == usize::try_from(wanted)?)
        })
        .await
    }

    async fn wait_bound(&self, wanted: u32) -> Result<()> {
        self.wait_until("bound", async || {
            let all = self.api::<PersistentVolumeClaim>().list(&ListParams::default()).await?.items;
            let phases = all.iter().filter_map(|claim| claim.status.as_ref()?.phase.as_deref());
            Ok(phases.filter(|phase| *phase == "Bound").count() == usize::try_from(wanted)?)
        })
        .await
    }

    async fn wait_attached(&self, wanted: u32) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        self.wait_until("attached", async || {
            let all = nodes.list(&ListParams::default()).await?.items;
            let attached = all.iter().filter_map(|node| node.status.as_ref()?.volumes_attached.as_ref());
            Ok(attached.map(Vec::len).sum::<usize>() == usize::try_from(wanted)?)
        })
        .await
    }
}
