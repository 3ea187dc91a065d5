//! From one template to the next: bounds, stalls, pauses, `Recreate`, and what arrives in pods.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{observed, pods, sizes};
use crate::support::objects::condition;
use crate::support::{DEADLINE, deployment, image, on_shared_cluster};

const NEW_IMAGE: &str = "registry.k8s.io/pause:3.9";

#[test]
fn a_rolling_update_keeps_its_bounds_and_can_be_undone() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&deployment("web", 20)).await?;
        scene.rolled_out("web").await?;
        let first = observed(scene, "web").await?;
        let status = first.status.clone().unwrap_or_default();
        assert_eq!((status.replicas, status.ready_replicas, status.available_replicas), (Some(20), Some(20), Some(20)));
        assert_eq!(condition(&first, "Available"), Some(("True", "MinimumReplicasAvailable")));

        let sampler = scene.sample("app=web").await?;
        scene.kubectl(&format!("set image deployment/web main={NEW_IMAGE}")).await?;
        scene.rolled_out("web").await?;
        let seen = sampler.finish(scene).await?;
        assert!(seen.most_specified > 20 && seen.most_specified <= 25, "{} replicas", seen.most_specified);
        assert!(seen.least_ready >= 15, "only {} pods were ready", seen.least_ready);
        assert!(seen.pods.len() >= 40, "{} pods were seen", seen.pods.len());
        assert_eq!(sizes(scene, "web").await?, [(1, 0), (2, 20)]);

        let history = scene.kubectl("rollout history deployment/web").await?;
        let revisions: Vec<&str> = history.lines().skip(2).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(revisions, ["1", "2"], "{history}");
        scene.kubectl("rollout undo deployment/web --to-revision=1").await?;
        scene.rolled_out("web").await?;
        let undone: Deployment = scene.fetch("web").await?;
        assert_eq!(image(&undone), image(&first));
        assert_eq!(sizes(scene, "web").await?, [(2, 0), (3, 20)]);
        Ok(())
    })
}

#[test]
fn a_rollout_that_stalls_says_so_and_recovers() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut web = deployment("web", 4);
        web["spec"]["progressDeadlineSeconds"] = json!(2);
        scene.apply(&web).await?;
        scene.rolled_out("web").await?;
        let before = pods(scene, "web").await?;

        scene.patch::<Deployment>("web", &never_started()).await?;
        scene
            .wait_until("the deadline is reported", DEADLINE, async || {
                let seen = observed(scene, "web").await?;
                let progressing = condition(&seen, "Progressing");
                ensure!(progressing == Some(("False", "ProgressDeadlineExceeded")), "{progressing:?}");
                Ok(())
            })
            .await?;
        let error = scene.rolled_out("web").await.unwrap_err();
        assert!(format!("{error:#}").contains("exceeded its progress deadline"), "{error:#}");
        let kept = pods(scene, "web").await?;
        assert_eq!(before.iter().filter(|pod| kept.contains(pod)).count(), 3, "25 % of 4 may go");

        scene.kubectl("rollout undo deployment/web").await?;
        scene.rolled_out("web").await?;
        let recovered = observed(scene, "web").await?;
        assert_eq!(condition(&recovered, "Progressing"), Some(("True", "NewReplicaSetAvailable")));
        Ok(())
    })
}

/// A template whose image cannot be pulled: kwok goes by the annotation, a kubelet by the name.
fn never_started() -> Value {
    json!({"spec": {"template": {
        "metadata": {"annotations": {"pods.e2e/becomes": "never-started"}},
        "spec": {"containers": [{"name": "main", "image": "registry.invalid/none:1"}]},
    }}})
}

#[test]
fn a_paused_deployment_scales_and_does_not_roll_out() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&deployment("web", 3)).await?;
        scene.rolled_out("web").await?;
        scene.kubectl("rollout pause deployment/web").await?;
        scene.kubectl(&format!("set image deployment/web main={NEW_IMAGE}")).await?;
        scene.kubectl("scale deployment/web --replicas=5").await?;
        scene
            .wait_until("five pods of the first template", DEADLINE, async || {
                let seen = observed(scene, "web").await?;
                let progressing = condition(&seen, "Progressing");
                ensure!(progressing == Some(("Unknown", "DeploymentPaused")), "{progressing:?}");
                let available = seen.status.and_then(|status| status.available_replicas);
                ensure!(available == Some(5), "{available:?} are available");
                Ok(())
            })
            .await?;
        assert_eq!(sizes(scene, "web").await?, [(1, 5)]);

        scene.kubectl("rollout resume deployment/web").await?;
        scene.rolled_out("web").await?;
        assert_eq!(sizes(scene, "web").await?, [(1, 0), (2, 5)]);
        Ok(())
    })
}

#[test]
fn recreate_never_runs_two_templates_at_once() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut web = deployment("web", 4);
        web["spec"]["strategy"] = json!({"type": "Recreate"});
        web["spec"]["template"]["metadata"]["annotations"] =
            json!({"pods.e2e/goes": "later", "pods.e2e/goes-after": "300ms"});
        scene.apply(&web).await?;
        scene.rolled_out("web").await?;
        let sampler = scene.sample("app=web").await?;
        scene.kubectl(&format!("set image deployment/web main={NEW_IMAGE}")).await?;
        scene.rolled_out("web").await?;
        let seen = sampler.finish(scene).await?;
        assert_eq!((seen.most_templates, seen.least_ready, seen.pods.len()), (1, 0, 8));
        Ok(())
    })
}

#[test]
fn every_field_of_the_template_arrives_in_pods() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut rich = deployment("rich", 1);
        let template = &mut rich["spec"]["template"];
        template["metadata"]["annotations"] = json!({"example.com/note": "kept", "pods.e2e/becomes": "running"});
        template["metadata"]["labels"]["tier"] = json!("front");
        template["spec"] = rich_pod_spec();
        scene.apply(&rich).await?;
        let pod = scene
            .wait_until("a pod", DEADLINE, async || {
                let pods: Vec<Pod> = scene.list("app=rich,tier=front").await?;
                pods.into_iter().next().ok_or_else(|| anyhow::anyhow!("there is none"))
            })
            .await?;
        let pod = serde_json::to_value(pod)?;
        let stored: Value = serde_json::to_value(scene.fetch::<Deployment>("rich").await?)?;
        assert_eq!(
            missing(&rich["spec"]["template"]["spec"], &stored["spec"]["template"]["spec"]),
            Vec::<String>::new()
        );
        assert_eq!(missing(&stored["spec"]["template"]["spec"], &pod["spec"]), Vec::<String>::new());
        assert_eq!(pod["metadata"]["annotations"]["example.com/note"], "kept");
        Ok(())
    })
}

fn rich_pod_spec() -> Value {
    json!({
        "automountServiceAccountToken": false,
        "dnsConfig": {"nameservers": ["192.0.2.1"], "options": [{"name": "ndots", "value": "2"}]},
        "dnsPolicy": "None",
        "enableServiceLinks": false,
        "hostAliases": [{"ip": "192.0.2.7", "hostnames": ["a.example"]}],
        "hostname": "front",
        "initContainers": [{"name": "side", "image": "registry.k8s.io/pause:3.10", "restartPolicy": "Always"}],
        "readinessGates": [{"conditionType": "example.com/gate"}],
        "resourceClaims": [{"name": "claim", "resourceClaimName": "none"}],
        "schedulingGates": [{"name": "example.com/wait"}],
        "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "supplementalGroupsPolicy": "Merge",
            "seccompProfile": {"type": "RuntimeDefault"}, "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]},
        "terminationGracePeriodSeconds": 7,
        "tolerations": [{"key": "example.com/old", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "rich"}},
            "matchLabelKeys": ["pod-template-hash"], "nodeTaintsPolicy": "Honor"}],
        "volumes": [
            {"name": "made", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token", "audience": "a", "expirationSeconds": 3600}},
                {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            ]}},
            {"name": "code", "image": {"reference": "example.com/code:1", "pullPolicy": "IfNotPresent"}},
        ],
        "containers": [{
            "name": "main", "image": "registry.k8s.io/pause:3.10",
            "command": ["/pause"], "args": ["-v"],
            "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}}],
            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
            "livenessProbe": {"grpc": {"port": 8080, "service": "s"}, "terminationGracePeriodSeconds": 3},
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "20m"},
                "claims": [{"name": "claim"}]},
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "made", "mountPath": "/made", "readOnly": true, "recursiveReadOnly": "IfPossible"}],
        }],
    })
}

/// The paths that `expected` has and `got` lacks. A list may have grown: admission adds tolerations and volumes.
fn missing(expected: &Value, got: &Value) -> Vec<String> {
    let within = |key: String, paths: Vec<String>| paths.into_iter().map(move |path| format!("{key}{path}"));
    match (expected, got) {
        (Value::Object(expected), Value::Object(_)) => {
            expected.iter().flat_map(|(key, value)| within(format!(".{key}"), missing(value, &got[key]))).collect()
        }
        (Value::Array(expected), Value::Array(_)) => {
            let items = expected.iter().enumerate();
            items.flat_map(|(at, value)| within(format!("[{at}]"), missing(value, &got[at]))).collect()
        }
        _ if expected == got => Vec::new(),
        _ => vec![format!(": {got} instead of {expected}")],
    }
}

#[test]
fn a_slow_pod_counts_once_it_has_been_ready_long_enough() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut web = deployment("web", 2);
        web["spec"]["minReadySeconds"] = json!(3);
        scene.apply(&web).await?;
        let ready = scene
            .wait_until("both pods are ready", DEADLINE, async || {
                let status = observed(scene, "web").await?.status.unwrap_or_default();
                ensure!(status.ready_replicas == Some(2), "{:?} are ready", status.ready_replicas);
                Ok(status)
            })
            .await?;
        assert_eq!(ready.available_replicas.unwrap_or(0), 0, "none can be available yet");
        let started = std::time::Instant::now();
        scene.rolled_out("web").await?;
        assert!(started.elapsed() < Duration::from_secs(10), "{:?} for three seconds", started.elapsed());
        Ok(())
    })
}
