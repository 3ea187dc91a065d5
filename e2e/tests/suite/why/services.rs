//! Services that lead nowhere.
//!
//! Left out: what becomes of packets.

use anyhow::Result;
use futures::FutureExt;
use serde_json::{Value, json};

use super::workloads::of;
use super::{Row, becoming, play_family, row, web};
use crate::support::{Scene, deployment};

#[test]
fn services_say_why_they_lead_nowhere() -> Result<()> {
    play_family(&rows())
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("A Service selects no pod", "svc/web", "web: it leads nowhere: no pod has the labels app=web", |scene| {
            async move { service(scene, &json!({})).await }.boxed_local()
        }),
        row(
            "A Service nearly selects pods",
            "svc/web",
            "web: it leads nowhere: no pod has the labels app=web,tier=front; there is pod/web-* with tier=back",
            |scene| {
                async move {
                    scene.apply(&web(1, &json!({"metadata": {"labels": {"tier": "back"}}}))).await?;
                    scene.rolled_out("web").await?;
                    service(scene, &json!({"selector": {"app": "web", "tier": "front"}})).await
                }
                .boxed_local()
            },
        ),
        row(
            "None of a Service's pods is ready",
            "svc/web",
            "web: it leads nowhere: none of its 1 pod is ready: web-*: image `registry.k8s.io/pause:3.10` cannot be pulled (ImagePullBackOff)",
            |scene| {
                async move {
                    scene.apply(&web(1, &json!({"metadata": becoming("never-started")}))).await?;
                    service(scene, &json!({})).await
                }
                .boxed_local()
            },
        ),
        row(
            "A Service's port has a name that no container knows",
            "svc/web",
            "web: it leads nowhere: no container of pod/web-* has a port called `http`",
            |scene| {
                async move {
                    scene.apply(&deployment("web", 1)).await?;
                    scene.rolled_out("web").await?;
                    service(scene, &json!({"ports": [{"port": 80, "targetPort": "http"}]})).await
                }
                .boxed_local()
            },
        ),
        row(
            "A Service has no selector",
            "svc/web",
            "web: it has no selector, and nobody has written endpoints for it",
            |scene| async move { service(scene, &json!({"selector": null})).await }.boxed_local(),
        ),
        row(
            "A Service is only a name",
            "svc/web",
            "web: it is a name for `db.e2e.example` (ExternalName), and has no endpoints",
            |scene| {
                let name = json!({"type": "ExternalName", "externalName": "db.e2e.example"});
                async move { service(scene, &name).await }.boxed_local()
            },
        ),
    ]
}

async fn service(scene: &Scene, spec: &Value) -> Result<()> {
    let service = json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let service = super::with(of("v1", "Service", "web", &service), &json!({"spec": spec}));
    scene.apply(&service).await.map(drop)
}
