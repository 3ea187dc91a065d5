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
        row("A Service matches no pod", "svc/web", "web: no endpoints: no pod matches selector app=web", |scene| {
            async move { service(scene, &json!({})).await }.boxed_local()
        }),
        row(
            "A Service almost matches pods",
            "svc/web",
            "web: no endpoints: no pod matches selector app=web,tier=front; closest match: pod/web-* with tier=back",
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
            "web: no ready endpoints: 0 of 1 pod ready: web-*: cannot pull image `registry.k8s.io/pause:3.10` (ImagePullBackOff)",
            |scene| {
                async move {
                    scene.apply(&web(1, &json!({"metadata": becoming("never-started")}))).await?;
                    service(scene, &json!({})).await
                }
                .boxed_local()
            },
        ),
        row(
            "A Service's target port has an unknown name",
            "svc/web",
            "web: no endpoints: no container of pod/web-* has a port named `http`",
            |scene| {
                async move {
                    scene.apply(&deployment("web", 1)).await?;
                    scene.rolled_out("web").await?;
                    service(scene, &json!({"ports": [{"port": 80, "targetPort": "http"}]})).await
                }
                .boxed_local()
            },
        ),
        row("A Service has no selector", "svc/web", "web: no selector and no endpoints", |scene| {
            async move { service(scene, &json!({"selector": null})).await }.boxed_local()
        }),
        row(
            "A Service is an ExternalName",
            "svc/web",
            "web: alias for `db.e2e.example` (ExternalName); has no endpoints",
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
