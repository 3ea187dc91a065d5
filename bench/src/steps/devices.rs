//! Pods with a claim of a device each, and objects of a custom kind that are stored in another version.

use anyhow::{Context, Result};
use e2e::apply::{api, apply};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::about::{About, Target, Targets, nodes_for};
use crate::measure::{Bench, NAMESPACE, create, in_parallel};
use crate::options::BenchOptions;
use crate::sizes::DevicesSizes;

const DRIVER: &str = "bench.example";
/// The apiserver takes no more in one slice.
const DEVICES_OF_A_SLICE: u32 = 128;
const CLAIM_STEPS: [&str; 2] = ["create pods with a claim of a device each", "delete them with their claims"];
const MIGRATE: &str = "store objects in another version";
const MIGRATION: (&str, &str) = ("storagemigration.k8s.io/v1beta1", "StorageVersionMigration");

const TARGETS: Targets =
    Targets { ratios: &[Target::TIME, Target::CPU, Target::anonymous("at most 0.33"), Target::WRITES], each: None };

pub(crate) fn about(options: &BenchOptions) -> About {
    let DevicesSizes { claiming_pods, migrated } = options.devices;
    About {
        operators: ["resourceclaim", "storage-version-migrator", "garbage-collector"]
            .map(|name| format!("{name}-operator"))
            .to_vec(),
        helpers: &[],
        upstream: "kube-controller-manager",
        controllers: "the resourceclaim, storage-version-migrator and garbage-collector controllers",
        reaction: None,
        steps: format!(
            "{claiming_pods} pods with a claim from a template each, until all run; their end, until all claims are \
             gone, too;\na migration of {migrated} objects of a custom kind, until it has succeeded. The garbage \
             collector takes part because it\ndeletes the claims, and because upstream's migrator works with its graph"
        ),
        nodes: nodes_for(claiming_pods),
        zones: 3,
        gated: true,
        flags: &[],
        page: "docs/benchmarks/devices.md",
        targets: Some(TARGETS),
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    bench.create_namespace(NAMESPACE).await?;
    bench.wait_ready().await?;
    if bench.wants(&CLAIM_STEPS) {
        run_claims(bench).await?;
    }
    if bench.wants(&[MIGRATE]) {
        run_migration(bench).await?;
    }
    Ok(())
}

async fn run_claims(bench: &mut Bench<'_>) -> Result<()> {
    let DevicesSizes { claiming_pods, .. } = bench.options.devices;
    let [come, go] = CLAIM_STEPS;
    bench.publish_devices(claiming_pods).await?;
    let template = json!({"metadata": {"name": "device"}, "spec": {"spec": {"devices": {"requests": [
        {"name": "device", "exactly": {"deviceClassName": DRIVER}},
    ]}}}});
    create::<ResourceClaimTemplate>(&bench.api(), template).await?;

    let create_all = async |bench: &mut Bench<'_>| {
        in_parallel(claiming_pods, async |at| bench.create_claiming(at).await).await?;
        bench.wait_running().await
    };
    bench.measure(come, create_all).await?;
    let delete_all = async |bench: &mut Bench<'_>| {
        bench.delete_pods().await?;
        bench.wait_none::<ResourceClaim>().await
    };
    bench.measure(go, delete_all).await
}

async fn run_migration(bench: &mut Bench<'_>) -> Result<()> {
    let DevicesSizes { migrated, .. } = bench.options.devices;
    apply(&bench.client, "", &definition("v1")).await?;
    let objects = bench.wait_served().await?;
    in_parallel(migrated, async |at| {
        let object = json!({"apiVersion": "bench.example/v1", "kind": "Widget", "metadata": {"name": widget(at)}});
        objects.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    })
    .await?;
    apply(&bench.client, "", &definition("v2")).await?;
    bench.wait_stored_in_v2(&objects).await?;

    let migrate = async |bench: &mut Bench<'_>| {
        let (api_version, kind) = MIGRATION;
        let spec = json!({"resource": {"group": DRIVER, "resource": "widgets"}});
        let migration = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "widgets"}, "spec": spec});
        apply(&bench.client, "", &migration).await?;
        let migrations = api(&bench.client, api_version, kind, "").await?;
        bench.wait_until("migrated", async || Ok(has_succeeded(&migrations.get("widgets").await?))).await
    };
    bench.measure(MIGRATE, migrate).await
}

fn has_succeeded(migration: &DynamicObject) -> bool {
    let conditions = migration.data["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Succeeded" && one["status"] == "True")
}

/// A kind with two versions that do not differ, stored in `storage`.
fn definition(storage: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str| json!({"name": name, "served": true, "storage": name == storage, "schema": schema});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.bench.example"},
        "spec": {
            "group": DRIVER, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1"), version("v2")],
        },
    })
}

impl Bench<'_> {
    /// A device for each pod, spread over all nodes.
    async fn publish_devices(&self, pods: u32) -> Result<()> {
        create::<DeviceClass>(&Api::all(self.client.clone()), json!({"metadata": {"name": DRIVER}, "spec": {}}))
            .await?;
        let nodes: Api<Node> = Api::all(self.client.clone());
        let nodes = nodes.list_metadata(&ListParams::default()).await?.items;
        let count = u32::try_from(nodes.len())?;
        let slices_of_node = pods.div_ceil(count).div_ceil(DEVICES_OF_A_SLICE);
        in_parallel(count * slices_of_node, async |at| {
            let node = nodes.get(usize::try_from(at / slices_of_node)?).context("there is a node")?.name_any();
            let devices: Vec<Value> =
                (0..DEVICES_OF_A_SLICE).map(|device| json!({"name": format!("device{at}-{device}")})).collect();
            let pool = json!({"name": node, "generation": 1, "resourceSliceCount": slices_of_node});
            let spec = json!({"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices});
            let slice = json!({"metadata": {"name": format!("slice{at}")}, "spec": spec});
            create::<ResourceSlice>(&Api::all(self.client.clone()), slice).await.map(drop)
        })
        .await
    }

    async fn create_claiming(&self, at: u32) -> Result<()> {
        let pod = json!({"metadata": {"name": format!("user{at:04}")}, "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "web", "image": "nginx:1.7.9", "resources": {"claims": [{"name": "device"}]}}],
            "resourceClaims": [{"name": "device", "resourceClaimTemplateName": "device"}],
        }});
        create::<Pod>(&self.api(), pod).await.map(drop)
    }

    async fn wait_served(&self) -> Result<Api<DynamicObject>> {
        let mut objects = None;
        self.wait_until("served", async || {
            objects = api(&self.client, "bench.example/v1", "Widget", NAMESPACE).await.ok();
            Ok(objects.is_some())
        })
        .await?;
        objects.context("the kind is served")
    }

    /// Once the apiserver stores in the second version, a write without a change stores an old object again.
    async fn wait_stored_in_v2(&self, objects: &Api<DynamicObject>) -> Result<()> {
        let old = widget(0);
        self.wait_until("stored in the second version", async || {
            // It answers with errors while it sets up the storage of the changed definition.
            let Ok(stored) = objects.get(&old).await else { return Ok(false) };
            let Ok(again) = objects.replace(&old, &PostParams::default(), &stored).await else { return Ok(false) };
            Ok(again.resource_version() != stored.resource_version())
        })
        .await
    }
}

fn widget(at: u32) -> String {
    format!("widget{at:05}")
}
