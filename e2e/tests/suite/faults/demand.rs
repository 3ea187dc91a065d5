//! Pods that are followed only while there is a ReplicationController: the first one comes while their lists and watches
//! are refused, late or cut, its operator dies, or another replica takes over before it has seen them.
//!
//! Left out: what happens after minutes without any, which the operator's own tests show in paused time.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule};
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use serde_json::{Value, json};

use super::{on_quiet_cluster, with_operators};
use crate::support::behind::{Behind, Gate, nth_work};
use crate::support::{DEADLINE, Scene, template};

const OPERATOR: &str = "replicationcontroller-operator";
const PODS: &str = "/api/v1/namespaces/*/pods";

fn controller(replicas: i32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"replicas": replicas, "selector": {"app": "web"}, "template": template("web")},
    })
}

/// A pod that the first ReplicationController adopts, if it sees it.
fn stray() -> Value {
    let mut pod = template("web");
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("stray");
    pod
}

async fn complete(scene: &Scene, replicas: i32) -> Result<()> {
    scene
        .wait_until("the ReplicationController is complete", DEADLINE, async || {
            let web: ReplicationController = scene.fetch("web").await?;
            let status = web.status.unwrap_or_default();
            let pods = scene.list::<Pod>("app=web").await?.len();
            ensure!((status.replicas, status.ready_replicas) == (replicas, Some(replicas)), "{status:?}");
            ensure!(i32::try_from(pods)? == replicas, "{pods} pods");
            Ok(())
        })
        .await
}

/// Requests for pods that read.
fn reads(behind: &Behind) -> usize {
    let requests = behind.proxy.requests();
    requests.iter().filter(|it| it.method == Method::GET && it.path.ends_with("/pods")).count()
}

#[test]
fn the_first_one_makes_no_pod_too_many_while_pods_are_refused_or_late() -> Result<()> {
    with_operators([OPERATOR], async |scene, [behind]| {
        ensure!(reads(&behind) == 0, "pods are followed although nobody needs them");
        scene.apply(&stray()).await?;
        for status in [StatusCode::FORBIDDEN, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::GONE] {
            behind.proxy.add(Rule::new(Action::reply(status)).method(Method::GET).path(PODS).times(1));
        }
        behind.proxy.add(Rule::new(Action::Delay(Duration::from_millis(500))).method(Method::GET).path(PODS).always());
        scene.apply(&controller(4)).await?;
        complete(scene, 4).await?;
        let creates = behind.count(&Method::POST, "**/pods");
        ensure!(creates == 3, "{creates} creates beside a pod that was there");
        behind.proxy.cut_watches(PODS);
        scene.patch::<ReplicationController>("web", &json!({"spec": {"replicas": 6}})).await?;
        complete(scene, 6).await?;
        let creates = behind.count(&Method::POST, "**/pods");
        ensure!(creates == 5, "{creates} creates for five pods");
        Ok(())
    })
}

#[test]
fn the_first_one_has_its_pods_when_its_operator_is_killed_at_each_write() -> Result<()> {
    with_operators([OPERATOR], async |scene, [mut victim]| {
        scene.apply(&stray()).await?;
        for write in 0..5 {
            let gate = Gate::new();
            victim.proxy.add(nth_work(gate.after(), write + 1));
            if write == 0 {
                scene.apply(&controller(4)).await?;
            } else {
                let replicas = json!({"spec": {"replicas": 4 + write}});
                scene.patch::<ReplicationController>("web", &replicas).await?;
            }
            tokio::select! {
                () = gate.reached() => {}
                done = complete(scene, i32::try_from(4 + write)?) => done?,
            }
            victim.kill_and_restart()?;
            complete(scene, i32::try_from(4 + write)?).await?;
        }
        ensure!(scene.list::<Pod>("app=web").await?.len() == 8, "a pod too many or too few");
        Ok(())
    })
}

#[test]
fn a_standby_whose_first_list_is_late_makes_no_pod_twice() -> Result<()> {
    on_quiet_cluster(async |scene| {
        let flags = [
            "--leader-elect-retry-period=500ms",
            "--leader-elect-renew-deadline=2s",
            "--leader-elect-lease-duration=3s",
        ];
        let mut first = Behind::start(scene, OPERATOR, "first", &flags).await?;
        let second = Behind::start(scene, OPERATOR, "second", &flags).await?;
        // The standby lists before there is a pod, and hears of it when it leads already.
        let gate = Gate::new();
        second.proxy.add(Rule::new(gate.after()).method(Method::GET).path(PODS).times(1));
        scene.apply(&controller(5)).await?;
        gate.reached().await;
        complete(scene, 5).await?;
        first.operator.process().send_terminate();
        let status = first.operator.process().wait(DEADLINE).await?;
        ensure!(status.success(), "{status}");
        scene.patch::<ReplicationController>("web", &json!({"spec": {"replicas": 6}})).await?;
        complete(scene, 6).await?;
        gate.let_go();
        let creates = second.count(&Method::POST, "**/pods");
        ensure!(creates == 1, "{creates} creates where one pod was missing");
        Ok(())
    })
}
