//! A Job that goes once it is over.

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use crate::batch;
use crate::support::Scene;

pub(super) const NEEDS: &[&str] = &["garbage-collector-operator", "job-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let mut brief = batch::job("brief", 1, 1);
    brief["spec"]["ttlSecondsAfterFinished"] = json!(0);
    scene.apply(&brief).await?;
    scene.gone::<Job>("brief").await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.patch::<Job>("job-0", &json!({"spec": {"ttlSecondsAfterFinished": 0}})).await?;
    Ok(format!("delete jobs.batch {}/job-0: ", scene.namespace))
}
