//! How a namespace ends: with everything in it, pods first, and saying what it waits for.

use anyhow::{Context, Result, ensure};
use e2e::apply::api;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::tree::{HOLD, config_maps, define};
use crate::support::{DEADLINE, Scene, on_shared_cluster, template, without_kubelets};

/// Waits until this condition of a scene's namespace has this status, reason and message.
pub(super) async fn says(scene: &Scene, type_: &str, expected: [&str; 3]) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    scene
        .wait_until(&format!("{type_} is {expected:?}"), DEADLINE, async || {
            let status = namespaces.get(&scene.namespace).await?.status.unwrap_or_default();
            let mut conditions = status.conditions.unwrap_or_default();
            conditions.retain(|condition| condition.type_ == type_);
            let condition = conditions.pop().context("no such condition")?;
            let (reason, message) = (condition.reason.unwrap_or_default(), condition.message.unwrap_or_default());
            ensure!([&condition.status, &reason, &message] == expected, "{} {reason} {message}", condition.status);
            Ok(())
        })
        .await
}

/// One object of each of twenty-nine kinds; of most nobody makes anything more, so that what is there is what is written
/// here. Left out: volume claims, which wait for a controller that is not at work here.
fn many_kinds() -> Vec<Value> {
    let selector = json!({"matchLabels": {"app": "x"}});
    let pods = template("x");
    let mut job = template("x");
    job["spec"]["restartPolicy"] = json!("Never");
    let run = json!({"template": job, "suspend": true});
    let set = json!({"replicas": 0, "selector": selector, "template": pods});
    let mut stateful = set.clone();
    stateful["serviceName"] = json!("x");
    let device = json!({"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "none"}}]}});
    let http = json!({"paths": [{"path": "/", "pathType": "Prefix", "backend":
        {"service": {"name": "x", "port": {"number": 80}}}}]});
    let rows = [
        ("v1", "ConfigMap", json!({"data": {"a": "b"}})),
        ("v1", "Secret", json!({"stringData": {"a": "b"}})),
        ("v1", "ServiceAccount", json!({})),
        ("v1", "Service", json!({"spec": {"ports": [{"port": 80}]}})),
        ("v1", "Endpoints", json!({"subsets": [{"addresses": [{"ip": "10.1.2.3"}]}]})),
        ("v1", "Pod", json!({"spec": pods["spec"]})),
        ("v1", "PodTemplate", json!({"template": pods})),
        ("v1", "ReplicationController", json!({"spec": {"replicas": 0, "selector": {"app": "x"}, "template": pods}})),
        ("v1", "ResourceQuota", json!({"spec": {"hard": {"services.nodeports": "7"}}})),
        ("v1", "LimitRange", json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "9k"}}]}})),
        ("v1", "Event", json!({"involvedObject": {"kind": "Pod", "name": "x", "namespace": "NAMESPACE"}})),
        ("apps/v1", "Deployment", json!({"spec": set})),
        ("apps/v1", "ReplicaSet", json!({"spec": set})),
        ("apps/v1", "StatefulSet", json!({"spec": stateful})),
        ("apps/v1", "DaemonSet", json!({"spec": {"selector": selector, "template": pods}})),
        ("apps/v1", "ControllerRevision", json!({"revision": 1, "data": {}})),
        ("batch/v1", "Job", json!({"spec": run})),
        ("batch/v1", "CronJob", json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": run}}})),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}),
        ),
        ("policy/v1", "PodDisruptionBudget", json!({"spec": {"maxUnavailable": 1, "selector": selector}})),
        ("networking.k8s.io/v1", "Ingress", json!({"spec": {"rules": [{"http": http}]}})),
        ("networking.k8s.io/v1", "NetworkPolicy", json!({"spec": {"podSelector": selector}})),
        ("rbac.authorization.k8s.io/v1", "Role", json!({"rules": []})),
        (
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}}),
        ),
        ("coordination.k8s.io/v1", "Lease", json!({"spec": {"holderIdentity": "x"}})),
        ("discovery.k8s.io/v1", "EndpointSlice", json!({"addressType": "IPv4", "endpoints": []})),
        ("resource.k8s.io/v1", "ResourceClaim", json!({"spec": device})),
        ("resource.k8s.io/v1", "ResourceClaimTemplate", json!({"spec": {"spec": device}})),
        ("storage.k8s.io/v1", "CSIStorageCapacity", json!({"storageClassName": "none"})),
    ];
    let object = |(api_version, kind, mut object): (&str, &str, Value)| {
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": "x"});
        object
    };
    rows.into_iter().map(object).collect()
}

#[test]
fn a_namespace_takes_thirty_kinds_along() -> Result<()> {
    on_shared_cluster(async |scene| {
        let full = scene.beside("full").await?;
        let mut kinds = many_kinds();
        let custom = define(&full, "Thing").await?;
        kinds.push(custom.object("x", &[]));
        assert_eq!(kinds.len(), 30);
        for object in &mut kinds {
            if object["kind"] == "Event" {
                object["involvedObject"]["namespace"] = json!(full.namespace);
            }
            full.apply(object).await?;
        }
        full.delete_namespace().await?;
        full.namespace_gone().await?;
        for object in &kinds {
            let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
            let api = api(&full.client, api_version, kind, &full.namespace).await?;
            let left = api.list(&ListParams::default()).await?.items;
            assert!(left.is_empty(), "{kind}: {left:?}");
        }
        let definition = super::tree::definition_name(&full, "Thing");
        scene.kubectl(&format!("delete customresourcedefinition/{definition}")).await.map(drop)
    })
}

#[test]
fn a_namespace_says_what_it_waits_for_and_goes_once_that_is_gone() -> Result<()> {
    on_shared_cluster(async |scene| {
        let stuck = scene.beside("stuck").await?;
        let config_map = |name: &str, finalizers: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "finalizers": finalizers}});
        stuck.apply(&config_map("held", json!([HOLD]))).await?;
        stuck.apply(&config_map("free", json!([]))).await?;
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": template("pod")["spec"]});
        stuck.apply(&pod).await?;
        stuck.delete_namespace().await?;
        let held = "Some content in the namespace has finalizers remaining: e2e.example/hold in 1 resource instances";
        says(&stuck, "NamespaceFinalizersRemaining", ["True", "SomeFinalizersRemain", held]).await?;
        let remains = "Some resources are remaining: configmaps. has 1 resource instances";
        says(&stuck, "NamespaceContentRemaining", ["True", "SomeResourcesRemain", remains]).await?;
        // The others say that all is well.
        let deleted = "All content successfully deleted, may be waiting on finalization";
        says(&stuck, "NamespaceDeletionContentFailure", ["False", "ContentDeleted", deleted]).await?;
        let discovered = "All resources successfully discovered";
        says(&stuck, "NamespaceDeletionDiscoveryFailure", ["False", "ResourcesDiscovered", discovered]).await?;
        let parsed = "All legacy kube types successfully parsed";
        says(&stuck, "NamespaceDeletionGroupVersionParsingFailure", ["False", "ParsedGroupVersions", parsed]).await?;
        let left: Vec<ConfigMap> = stuck.list("").await?;
        assert_eq!(left.len(), 1, "{left:?}");
        stuck.patch::<ConfigMap>("held", &json!({"metadata": {"finalizers": null}})).await?;
        stuck.namespace_gone().await
    })
}

#[test]
fn nothing_else_goes_before_the_last_pod_has_had_its_grace() -> Result<()> {
    without_kubelets(async |scene| {
        let ordered = scene.beside("ordered").await?;
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "slow"}});
        pod["metadata"]["annotations"] = json!({"pods.e2e/goes": "later", "pods.e2e/goes-after": "2s"});
        pod["spec"] = template("slow")["spec"].clone();
        // More than what is waited for others to learn of the deletion, which counts.
        pod["spec"]["terminationGracePeriodSeconds"] = json!(9);
        ordered.apply(&pod).await?;
        ordered.apply(&config_maps().object("needed", &[])).await?;
        scene
            .wait_until("the pod runs", DEADLINE, async || {
                let slow: Pod = ordered.fetch("slow").await?;
                let phase = slow.status.and_then(|status| status.phase);
                ensure!(phase.as_deref() == Some("Running"), "{phase:?}");
                Ok(())
            })
            .await?;
        ordered.delete_namespace().await?;
        // A round that has looked at the pods says so, and has touched nothing else.
        let well = ["False", "ContentRemoved", "All content successfully removed"];
        says(&ordered, "NamespaceContentRemaining", well).await?;
        let slow: Pod = ordered.fetch("slow").await?;
        assert_eq!(slow.metadata.deletion_grace_period_seconds, Some(9));
        let needed: ConfigMap = ordered.fetch("needed").await?;
        assert_eq!(needed.metadata.deletion_timestamp, None);
        // Grace is no failure.
        let deleted = "All content successfully deleted, may be waiting on finalization";
        says(&ordered, "NamespaceDeletionContentFailure", ["False", "ContentDeleted", deleted]).await?;
        ordered.namespace_gone().await
    })
}

#[test]
fn a_pod_that_outstays_its_grace_keeps_everything_else_and_is_told_of() -> Result<()> {
    without_kubelets(async |scene| {
        let ordered = scene.beside("ordered").await?;
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stuck"}});
        pod["metadata"]["annotations"] = json!({"pods.e2e/goes": "never"});
        pod["spec"] = template("stuck")["spec"].clone();
        ordered.apply(&pod).await?;
        ordered.apply(&config_maps().object("needed", &[])).await?;
        ordered.delete_namespace().await?;
        let failed = format!(
            "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: {} for gvr: \
             /v1, Resource=pods",
            ordered.namespace
        );
        says(&ordered, "NamespaceDeletionContentFailure", ["True", "ContentDeletionFailed", &failed]).await?;
        let needed: ConfigMap = ordered.fetch("needed").await?;
        assert_eq!(needed.metadata.deletion_timestamp, None);
        ordered.kubectl("delete pod/stuck --force --grace-period=0").await?;
        ordered.namespace_gone().await
    })
}
