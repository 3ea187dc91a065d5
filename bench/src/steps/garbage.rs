//! Objects that go with what owns them, or with their namespace. Nobody creates dependents here but the bench itself.

use anyhow::Result;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use super::workloads::deployment;
use crate::about::{About, nodes_for};
use crate::measure::{Bench, NAMESPACE, PROBE, create, in_parallel, small};
use crate::options::BenchOptions;
use crate::sizes::GarbageSizes;

const FULL: &str = "bench-full";
/// How many objects each owner stands for, itself and its dependents.
const OF_ONE_OWNER: u32 = 100;

pub(crate) fn about(options: &BenchOptions) -> About {
    let GarbageSizes { trees, tree_pods, namespace_objects, owned } = &options.garbage;
    About {
        operators: ["garbage-collector-operator", "namespace-operator"].map(str::to_owned).to_vec(),
        helpers: &[],
        upstream: "kube-controller-manager",
        controllers: "the garbage-collector and namespace controllers",
        reaction: None,
        steps: format!(
            "{trees} Deployments with a ReplicaSet of {tree_pods} pods each, deleted at once in the background, until \
             the\nlast pod is gone; the same in the foreground, until the last Deployment is; a namespace of \
             {namespace_objects} objects;\na restart with {owned} owners and dependents present until an object whose \
             owner never was is gone"
        ),
        nodes: nodes_for(trees * tree_pods),
        zones: 3,
        gated: false,
        flags: &[],
        page: "docs/benchmarks/garbage.md",
        targets: None,
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let GarbageSizes { namespace_objects, owned, .. } = bench.options.garbage;
    bench.create_namespace(NAMESPACE).await?;
    // It is at work before it is measured.
    bench.create_orphan().await?;
    bench.wait_no_orphan().await?;

    bench.create_trees().await?;
    let background = async |bench: &mut Bench<'_>| bench.delete_trees(&DeleteParams::background()).await;
    bench.measure("delete Deployments in the background", background).await?;
    bench.create_trees().await?;
    let foreground = async |bench: &mut Bench<'_>| bench.delete_trees(&DeleteParams::foreground()).await;
    bench.measure("delete Deployments in the foreground", foreground).await?;

    bench.create_full_namespace(namespace_objects).await?;
    bench.measure("delete a namespace", async |bench| bench.delete_full_namespace().await).await?;

    bench.stop().await?;
    bench.create_owned(owned).await?;
    bench.create_orphan().await?;
    let restart = async |bench: &mut Bench<'_>| {
        bench.begin().await?;
        bench.wait_no_orphan().await
    };
    bench.measure("restart among many objects", restart).await
}

impl Bench<'_> {
    /// Deployments with a ReplicaSet and pods each, as their controllers would have left them; these are not there.
    async fn create_trees(&self) -> Result<()> {
        let &GarbageSizes { trees, tree_pods, .. } = &self.options.garbage;
        in_parallel(trees, async |at| self.create_tree(&small(at), tree_pods).await).await?;
        self.wait_running().await
    }

    async fn create_tree(&self, name: &str, pods: u32) -> Result<()> {
        let described = deployment(name, i32::try_from(pods)?);
        let selector = described["spec"]["selector"].clone();
        let template = described["spec"]["template"].clone();
        let root: Deployment = create(&self.api(), described).await?;
        let set = json!({
            "metadata": {"name": name, "ownerReferences": [owner(&root)]},
            "spec": {"replicas": pods, "selector": selector, "template": template},
        });
        let set: ReplicaSet = create(&self.api(), set).await?;
        for at in 0..pods {
            let mut pod = template.clone();
            pod["metadata"]["name"] = json!(format!("{name}-{at}"));
            pod["metadata"]["ownerReferences"] = json!([owner(&set)]);
            create::<Pod>(&self.api(), pod).await?;
        }
        Ok(())
    }

    async fn delete_trees(&self, policy: &DeleteParams) -> Result<()> {
        self.api::<Deployment>().delete_collection(policy, &ListParams::default()).await?;
        self.wait_none::<Pod>().await?;
        self.wait_none::<ReplicaSet>().await?;
        self.wait_none::<Deployment>().await
    }

    /// Half of them of one kind, half of another.
    async fn create_full_namespace(&self, objects: u32) -> Result<()> {
        create::<Namespace>(&Api::all(self.client.clone()), json!({"metadata": {"name": FULL}})).await?;
        let config_maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), FULL);
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), FULL);
        in_parallel(objects, async |at| {
            let object = json!({"metadata": {"name": format!("object-{at}")}});
            if at.is_multiple_of(2) {
                create(&config_maps, object).await.map(drop)
            } else {
                create(&secrets, object).await.map(drop)
            }
        })
        .await
    }

    async fn delete_full_namespace(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.delete(FULL, &DeleteParams::default()).await?;
        self.wait_until("gone", async || Ok(namespaces.get_opt(FULL).await?.is_none())).await
    }

    /// Owners and their dependents, all of them there to stay.
    async fn create_owned(&self, count: u32) -> Result<()> {
        let objects = self.api::<ConfigMap>();
        in_parallel(count.div_ceil(OF_ONE_OWNER), async |at| {
            let one: ConfigMap = create(&objects, json!({"metadata": {"name": format!("owner-{at}")}})).await?;
            for dependent in 1..OF_ONE_OWNER.min(count - at * OF_ONE_OWNER) {
                let metadata = json!({"name": format!("owned-{at}-{dependent}"), "ownerReferences": [owner(&one)]});
                create::<ConfigMap>(&objects, json!({"metadata": metadata})).await?;
            }
            Ok(())
        })
        .await
    }

    /// An object whose owner never was.
    async fn create_orphan(&self) -> Result<()> {
        let never = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "never",
            "uid": "00000000-0000-4000-8000-000000000000"});
        let orphan = json!({"metadata": {"name": PROBE, "ownerReferences": [never]}});
        create::<ConfigMap>(&self.api(), orphan).await.map(drop)
    }

    async fn wait_no_orphan(&self) -> Result<()> {
        self.wait_until("gone", async || Ok(self.api::<ConfigMap>().get_opt(PROBE).await?.is_none())).await
    }
}

fn owner<K: Resource<DynamicType = ()>>(object: &K) -> Value {
    json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()), "name": object.name_any(), "uid": object.uid(),
        "controller": true, "blockOwnerDeletion": true,
    })
}
