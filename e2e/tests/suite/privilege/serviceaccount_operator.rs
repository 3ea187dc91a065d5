//! A namespace gets its ServiceAccount, again when somebody has deleted it.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ServiceAccount;

use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let first = scene.fetch::<ServiceAccount>("default").await?.metadata.uid.context("no uid")?;
    scene.kubectl("delete serviceaccount/default --wait=false").await?;
    scene
        .wait_until("there is a new one", DEADLINE, async || {
            let now = scene.fetch::<ServiceAccount>("default").await?.metadata.uid;
            ensure!(now.as_ref().is_some_and(|uid| *uid != first), "still {first}");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.cluster.kubectl("--namespace shadow-0 delete serviceaccount/default".split(' ')).await?;
    Ok("create serviceaccounts shadow-0/default: ".to_owned())
}
