//! Nothing works for a while: the apiserver is away, its etcd is restored from a backup, it accepts no token, or a webhook
//! that it must ask does not answer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::Part;
use e2e::proxy::{Action, Exchange, Rule};
use http::StatusCode;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::{
    DEPLOYMENT, PODS, REPLICA_SET, complete, complete_set, deploy, on_quiet_cluster, pods, replica_set, roll_out,
    start_rollout, stays, stays_set, with_operators,
};
use crate::support::behind::Behind;
use crate::support::clusters::PATIENT;
use crate::support::{DEADLINE, Scene, template};

#[test]
fn a_rollout_goes_on_when_the_apiserver_is_back() -> Result<()> {
    with_operators([DEPLOYMENT, REPLICA_SET], async |scene, mut operators| {
        deploy(scene).await?;
        start_rollout(scene, 1).await?;
        scene
            .wait_until("it has begun", DEADLINE, async || {
                let sets = scene.list::<ReplicaSet>("app=web").await?.len();
                ensure!(sets == 2, "{sets} ReplicaSets");
                Ok(())
            })
            .await?;
        scene.cluster.kill(Part::Apiserver)?;
        for behind in &operators {
            behind.proxy.forget_requests();
        }
        scene
            .wait_until("both have asked in vain", DEADLINE, async || {
                for behind in &mut operators {
                    behind.operator.process().check_running()?;
                    let asked = behind.proxy.requests().len();
                    ensure!(asked >= 3, "{} has asked {asked} times", behind.operator.name());
                }
                Ok(())
            })
            .await?;
        scene.cluster.run(Part::Apiserver)?;
        complete(scene).await?;
        stays(scene).await
    })
}

/// From the apiserver's return until everything watches again.
const RETURN: Duration = Duration::from_secs(5);
/// After so many failures the next try is 13 to 26 s away.
const LONG_BACKOFF: usize = 5;

#[test]
fn everything_is_watched_again_soon_after_an_outage_however_long_it_was() -> Result<()> {
    with_operators([REPLICA_SET], async |scene, [behind]| {
        scene.apply(&replica_set(3)).await?;
        complete_set(scene).await?;
        scene.cluster.kill(Part::Apiserver)?;
        behind.proxy.forget_requests();
        let watches = || {
            let mut requests = behind.proxy.requests();
            requests.retain(|request| request.path == PODS);
            requests
        };
        scene
            .wait_until("it backs off", DEADLINE, async || {
                let asked = watches().len();
                ensure!(asked >= LONG_BACKOFF, "it has asked {asked} times");
                Ok(())
            })
            .await?;
        scene.cluster.run(Part::Apiserver)?;
        scene
            .wait_until("the apiserver is back", DEADLINE, async || scene.fetch::<ReplicaSet>("web").await.map(drop))
            .await?;
        scene
            .wait_until("pods are watched again", RETURN, async || {
                let is_answered = |status: StatusCode| status.is_success();
                ensure!(watches().iter().any(|watch| watch.status.is_some_and(is_answered)), "{:?}", watches());
                Ok(())
            })
            .await?;
        stays_set(scene).await
    })
}

/// How long work may rest after etcd was restored.
const RESTORED: Duration = Duration::from_secs(10);

/// With these flags, an operator goes on with what etcd had in the backup.
fn goes_on_after_a_restore(flags: &[&str]) -> Result<()> {
    on_quiet_cluster(async |scene| {
        let mut behind = Behind::start(scene, REPLICA_SET, REPLICA_SET, flags).await?;
        scene.apply(&replica_set(3)).await?;
        complete_set(scene).await?;
        scene.cluster.back_up().await?;
        scene.patch::<ReplicaSet>("web", &json!({"spec": {"replicas": 10}})).await?;
        complete_set(scene).await?;
        // So many versions will be missing that watches which go on from the last one would be silent for long.
        for step in 0..500 {
            scene.patch::<ReplicaSet>("web", &json!({"metadata": {"annotations": {"step": step.to_string()}}})).await?;
        }
        scene.cluster.restore().await?;
        scene.patch::<ReplicaSet>("web", &json!({"spec": {"replicas": 5}})).await?;
        // Kubelets and the scheduler would have to be started anew: pods need not become ready.
        scene
            .wait_until("work goes on", RESTORED, async || {
                let pods = scene.list::<Pod>("app=web").await?.len();
                ensure!(pods == 5, "{pods} pods");
                Ok(())
            })
            .await?;
        behind.operator.process().check_running()
    })
}

#[test]
fn work_goes_on_after_etcd_was_restored_under_a_leader() -> Result<()> {
    goes_on_after_a_restore(&PATIENT)
}

#[test]
fn work_goes_on_after_etcd_was_restored_where_no_leader_is_elected() -> Result<()> {
    goes_on_after_a_restore(&[])
}

#[test]
fn a_rollout_goes_on_when_the_token_is_good_again() -> Result<()> {
    with_operators([DEPLOYMENT, REPLICA_SET], async |scene, mut operators| {
        deploy(scene).await?;
        roll_out(scene, 1, async || {
            for behind in &operators {
                behind.proxy.add(Rule::new(Action::reply(StatusCode::UNAUTHORIZED)).always());
                behind.proxy.cut_watches("**");
            }
            scene
                .wait_until("both say so", DEADLINE, async || {
                    for behind in &mut operators {
                        behind.operator.process().check_running()?;
                        let log = behind.operator.log()?;
                        ensure!(log.contains("Unauthorized"), "{log}");
                    }
                    Ok(())
                })
                .await?;
            for behind in &operators {
                behind.proxy.clear();
            }
            Ok(())
        })
        .await?;
        stays(scene).await
    })
}

/// A webhook for these pods that nobody answers.
fn dead_webhook(namespace: &str, app: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "dead"},
        "webhooks": [{
            "name": "dead.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "objectSelector": {"matchLabels": {"app": app}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
        }],
    })
}

/// Passes once the apiserver asks the webhook before it admits such a pod.
async fn is_refused(scene: &Scene, app: &str) -> Result<()> {
    let mut probe = template(app);
    probe["metadata"]["name"] = json!("probe");
    let probe: Pod = serde_json::from_value(probe).context("describe a pod")?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    scene
        .wait_until("the webhook is in force", DEADLINE, async || {
            ensure!(scene.api::<Pod>().create(&dry_run, &probe).await.is_err(), "the pod was admitted");
            Ok(())
        })
        .await
}

#[test]
fn pods_that_a_dead_webhook_keeps_out_are_tried_ever_more_rarely_and_hold_up_nobody_else() -> Result<()> {
    with_operators([REPLICA_SET], async |scene, [behind]| {
        scene.apply(&replica_set(0)).await?;
        complete_set(scene).await?;
        scene.apply(&dead_webhook(&scene.namespace, "web")).await?;
        is_refused(scene, "web").await?;
        // Pods are followed since the ReplicaSet is there.
        behind.proxy.forget_requests();
        scene.patch::<ReplicaSet>("web", &json!({"spec": {"replicas": 3}})).await?;
        let attempts = scene
            .wait_until("eight attempts", DEADLINE, async || {
                let attempts = behind.proxy.writes("**/pods");
                ensure!(attempts.len() >= 8, "{}", attempts.len());
                Ok(attempts)
            })
            .await?;
        // 5 ms after the first attempt, and twice as long after each further one.
        let took = attempts[7].at.duration_since(attempts[0].at);
        ensure!(took >= Duration::from_millis(5 * 127), "eight attempts in {took:?}");
        let set: ReplicaSet = scene.fetch("web").await?;
        let conditions = set.status.and_then(|status| status.conditions).unwrap_or_default();
        let failure = conditions.iter().find(|condition| condition.type_ == "ReplicaFailure");
        let message = failure.and_then(|failure| failure.message.as_deref()).unwrap_or_default();
        ensure!(message.contains("failed calling webhook"), "{conditions:?}");

        let mut other = replica_set(3);
        other["metadata"]["name"] = json!("other");
        other["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
        other["spec"]["template"] = template("other");
        scene.apply(&other).await?;
        scene
            .wait_until("others get their pods", DEADLINE, async || {
                let pods = scene.list::<Pod>("app=other").await?.len();
                ensure!(pods == 3, "{pods} pods");
                Ok(())
            })
            .await?;
        ensure!(pods(scene).await?.is_empty(), "the webhook let pods pass");
        let lists: Vec<_> = behind.proxy.requests().into_iter().filter(Exchange::is_list).collect();
        ensure!(lists.is_empty(), "what is refused lists nothing anew: {lists:?}");

        let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(scene.client.clone());
        webhooks.delete("dead", &DeleteParams::default()).await?;
        complete_set(scene).await?;
        stays_set(scene).await
    })
}
