//! A start among many kinds, of which one quota limits a few.
//! Left out: kinds that cannot be listed. With one of them upstream never starts, which the e2e suite shows of this one.

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde_json::json;

use super::usage::{create_quota, uses};
use crate::measure::{Bench, NAMESPACE, create, in_parallel};
use crate::sizes::QuotaSizes;

pub(super) const STEP: &str = "restart among many kinds";
const GROUP: &str = "bench.example";
const LATE: &str = "late";
/// How many objects are made at a time, one after the other.
const BATCH: u32 = 100;

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let &QuotaSizes { kinds, kept_objects, .. } = &bench.options.quota;
    bench.stop().await?;
    define(bench, kinds).await?;
    // One half are ConfigMaps, and the kinds share the other.
    let half = kept_objects / 2;
    let config_maps = bench.api::<ConfigMap>();
    in_parallel(half.div_ceil(BATCH), async |batch| {
        for at in batch * BATCH..half.min((batch + 1) * BATCH) {
            create::<ConfigMap>(&config_maps, json!({"metadata": {"name": format!("kept-{at}")}})).await?;
        }
        Ok(())
    })
    .await?;
    in_parallel(kinds, async |kind| {
        let objects: Api<DynamicObject> = Api::namespaced_with(bench.client.clone(), NAMESPACE, &resource(kind));
        for at in 0..half / kinds {
            let metadata = json!({"name": format!("kept-{at}")});
            let object = json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": format!("Kind{kind}"), "metadata": metadata,
            });
            create(&objects, object).await?;
        }
        Ok(())
    })
    .await?;
    let of_a_kind = format!("count/kind0s.{GROUP}");
    let limit = kept_objects.to_string();
    let mut hard = json!({"configmaps": limit, "pods": limit, "services": limit});
    hard[&of_a_kind] = json!(limit);
    create_quota(bench, NAMESPACE, LATE, &hard).await?;
    let expected = [("configmaps".to_owned(), half), (of_a_kind, half / kinds)];
    let restart = async |bench: &mut Bench<'_>| {
        bench.begin().await?;
        let quotas = bench.api::<ResourceQuota>();
        bench
            .wait_until("counted", async || {
                let quota = quotas.get(LATE).await?;
                Ok(expected.iter().all(|(name, used)| uses(&quota, name, *used)))
            })
            .await
    };
    bench.measure(STEP, restart).await
}

fn resource(kind: u32) -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(GROUP, "v1", &format!("Kind{kind}")),
        &format!("kind{kind}s"),
    )
}

/// Defines so many kinds, all of them served once this returns.
async fn define(bench: &Bench<'_>, kinds: u32) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(bench.client.clone());
    in_parallel(kinds, async |kind| {
        let names = json!({"plural": format!("kind{kind}s"), "kind": format!("Kind{kind}")});
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
        let definition = json!({
            "metadata": {"name": format!("kind{kind}s.{GROUP}")},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
        });
        create::<CustomResourceDefinition>(&definitions, definition).await.map(drop)
    })
    .await?;
    let all = ListParams::default();
    bench
        .wait_until("established", async || {
            let definitions = definitions.list(&all).await?.items;
            Ok(definitions.iter().all(|definition| {
                let mut conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
                conditions.any(|of| of.type_ == "Established" && of.status == "True")
            }))
        })
        .await?;
    // The last one is served a moment after that.
    for kind in [0, kinds.saturating_sub(1)] {
        let objects: Api<DynamicObject> = Api::namespaced_with(bench.client.clone(), NAMESPACE, &resource(kind));
        bench.wait_until("served", async || Ok(objects.list(&all).await.is_ok())).await?;
    }
    Ok(())
}
