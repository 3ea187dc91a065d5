//! A request about a pool of devices, which is answered.
//!
//! Left out: a request that goes, for which a test would have to wait for an hour.

use anyhow::{Context, Result, ensure};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::json;

use crate::support::{DEADLINE, Scene};

const API_VERSION: &str = "resource.k8s.io/v1alpha3";
const KIND: &str = "ResourcePoolStatusRequest";
const DRIVER: &str = "e2e-pools.example";
const NAME: &str = "e2e-pools";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let requests: Api<DynamicObject> = e2e::apply::api(&scene.client, API_VERSION, KIND, "").await?;
    let slices: Api<DynamicObject> = e2e::apply::api(&scene.client, "resource.k8s.io/v1", "ResourceSlice", "").await?;
    let pool = json!({"name": "pool", "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": DRIVER, "pool": pool, "allNodes": true, "devices": [{"name": "a"}, {"name": "b"}]});
    let slice =
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": NAME}, "spec": spec});
    e2e::apply::apply(&scene.client, "", &slice).await?;
    let request =
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": NAME}, "spec": {"driver": DRIVER}});
    e2e::apply::apply(&scene.client, "", &request).await?;
    scene
        .wait_until("the request is answered", DEADLINE, async || {
            let status = requests.get(NAME).await?.data["status"].clone();
            ensure!(status["pools"][0]["totalDevices"] == json!(2), "{status}");
            Ok(())
        })
        .await?;
    requests.delete(NAME, &DeleteParams::default()).await.map(drop).context("delete the request")?;
    slices.delete(NAME, &DeleteParams::default()).await.map(drop).context("delete the slice")
}
