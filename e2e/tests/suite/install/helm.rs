//! The chart, installed by Helm on nodes that kwok plays.
//! Left out: other values, which change what is rendered and nothing about installing.

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;

use super::played::Played;
use super::{FAMILIES, OPERATORS, nothing_left, pods_of, scale, script};
use crate::chart::chart;
use crate::support::{Scene, deployment, with_cluster};

const NAMESPACE: &str = "--namespace=kube-system";

async fn helm(scene: &Scene, played: &mut Played, words: &[&str]) -> Result<String> {
    played.while_doing(scene.cluster.helm(words.iter().copied().chain([NAMESPACE]))).await
}

#[test]
fn a_chart_is_installed_moves_to_another_form_and_goes_without_a_trace() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 2, ..ClusterOptions::default() }, async |scene| {
        let mut played = Played::new(&scene.cluster).await?;
        let played = &mut played;
        let chart = chart()?.to_str().context("the chart's folder")?;
        let operators = format!("operators={{{}}}", OPERATORS.join(","));
        helm(scene, played, &["install", "x", chart, "--set", &operators]).await?;
        script(scene, played, "bootstrap.sh", true).await?;
        pods_of(scene, played, &OPERATORS).await?;
        scene.apply(&deployment("web", 1)).await?;
        scale(scene, played, 2).await?;

        let family = ["upgrade", "x", chart, "--set", "form=families,families={workloads}"];
        helm(scene, played, &family).await?;
        script(scene, played, "bootstrap.sh", true).await?;
        pods_of(scene, played, &FAMILIES[..1]).await?;
        scale(scene, played, 3).await?;
        let deployments = ["get", "deployments", NAMESPACE, "--output=name"];
        let deployments = scene.cluster.kubectl(deployments).await?;
        ensure!(deployments.trim() == "deployment.apps/workloads-group-operator", "{deployments}");

        script(scene, played, "uninstall.sh --all", true).await?;
        helm(scene, played, &["uninstall", "x"]).await?;
        nothing_left(scene).await?;
        let releases = helm(scene, played, &["list", "--short"]).await?;
        ensure!(releases.trim().is_empty(), "{releases}");
        Ok(())
    })
}
