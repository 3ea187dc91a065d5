//! Writes that the apiserver refuses, for a reason that passes.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::proxy::Action;
use http::StatusCode;
use k8s_openapi::api::apps::v1::Deployment;

use crate::scene::{DEPLOYMENT, REPLICA_SET, Scene, deployment, each_work, new_image};

#[tokio::test]
async fn a_rollout_keeps_its_bounds_when_every_other_write_is_refused() -> Result<()> {
    let scene = Scene::start(&[REPLICA_SET, DEPLOYMENT]).await?;
    scene.apply(&deployment(4)).await?;
    scene.wait_rollout("web").await?;
    let refusals = [
        (StatusCode::CONFLICT, None),
        (StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_secs(1))),
        (StatusCode::INTERNAL_SERVER_ERROR, None),
        (StatusCode::SERVICE_UNAVAILABLE, None),
        (StatusCode::GATEWAY_TIMEOUT, None),
    ];
    for (number, (status, retry_after)) in refusals.into_iter().enumerate() {
        let from = scene.timeline.catch_up().await?;
        for behind in &scene.operators {
            behind.proxy.forget_requests();
            behind.proxy.add(each_work(Action::Reply { status, retry_after }, 2));
        }
        scene.patch_spec::<Deployment>("web", &new_image(number + 1)).await?;
        scene.wait_rollout("web").await?;
        for behind in &scene.operators {
            behind.proxy.clear();
            let refused = behind.proxy.requests().iter().filter(|it| it.status == Some(status)).count();
            ensure!(refused >= 3, "{} was refused {refused} writes with {status}", behind.operator.name());
        }
        scene.check_bounds(from, 5, 3).await?;
    }
    scene.stays_deployment("web").await
}
