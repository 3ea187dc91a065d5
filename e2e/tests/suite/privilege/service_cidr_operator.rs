//! A range that becomes ready once nobody refuses that, and goes once its last Service has gone.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

const NAME: &str = "e2e-range";
const RANGE: &str = "10.250.0.0/24";
const ADDRESS: &str = "10.250.0.10";
/// The name of a policy and of its binding.
const POLICY: &str = "e2e-range-is-never-ready";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let ranges: Api<ServiceCIDR> = Api::all(scene.client.clone());
    refuse_readiness(scene).await?;
    let range = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": NAME}});
    apply(&scene.client, "", &with_spec(range, json!({"cidrs": [RANGE]}))).await?;
    told(scene).await?;
    allow_readiness(scene).await?;
    has_condition(scene, &ranges, "True", "").await?;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "in-range"}});
    let service = with_spec(service, json!({"clusterIP": ADDRESS, "ports": [{"port": 80}]}));
    // The apiserver has to see the range first.
    scene.wait_until("a Service has its address", DEADLINE, async || scene.apply(&service).await.map(drop)).await?;
    ranges.delete(NAME, &DeleteParams::default()).await.context("delete the range")?;
    has_condition(scene, &ranges, "False", "Terminating").await?;
    scene.kubectl("delete service/in-range").await?;
    scene.gone_from(&ranges, NAME).await
}

fn with_spec(mut object: Value, spec: Value) -> Value {
    object["spec"] = spec;
    object
}

/// Of any ServiceCIDR the policy refuses dry runs, which shows when it is in force.
async fn refuse_readiness(scene: &Scene) -> Result<()> {
    let of = |kind: &str, spec: Value| {
        let object =
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": POLICY}});
        with_spec(object, spec)
    };
    let rule = json!({"apiGroups": ["networking.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": ["servicecidrs/status"]});
    let validation = json!({"expression": format!("object.metadata.name != '{NAME}' && !request.dryRun")});
    let policy = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]});
    apply(&scene.client, "", &of("ValidatingAdmissionPolicy", policy)).await?;
    let binding = json!({"policyName": POLICY, "validationActions": ["Deny"]});
    apply(&scene.client, "", &of("ValidatingAdmissionPolicyBinding", binding)).await?;
    let dry_run = "patch servicecidr/kubernetes --subresource=status --type=merge --dry-run=server --patch={}";
    scene
        .wait_until("the policy is in force", DEADLINE, async || {
            let refused = scene.kubectl(dry_run).await.is_err_and(|error| format!("{error:#}").contains(POLICY));
            ensure!(refused, "it is not yet");
            Ok(())
        })
        .await
}

async fn allow_readiness(scene: &Scene) -> Result<()> {
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(scene.client.clone());
    bindings.delete(POLICY, &DeleteParams::default()).await.context("delete the binding")?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(scene.client.clone());
    policies.delete(POLICY, &DeleteParams::default()).await.map(drop).context("delete the policy")
}

/// Events about an object without a namespace are in `default`.
async fn told(scene: &Scene) -> Result<()> {
    let events: Api<Event> = Api::namespaced(scene.client.clone(), "default");
    let of_range = ListParams::default().fields(&format!("involvedObject.name={NAME}"));
    scene
        .wait_until("an event tells that the range is not ready", DEADLINE, async || {
            let events = events.list(&of_range).await?.items;
            let is_told = events.iter().any(|event| event.reason.as_deref() == Some("KubernetesServiceCIDRError"));
            ensure!(is_told, "{events:?}");
            Ok(())
        })
        .await
}

async fn has_condition(scene: &Scene, ranges: &Api<ServiceCIDR>, status: &str, reason: &str) -> Result<()> {
    scene
        .wait_until(&format!("{NAME} has Ready={status}"), DEADLINE, async || {
            let conditions = ranges.get(NAME).await?.status.and_then(|status| status.conditions).unwrap_or_default();
            let is_so = conditions.iter().any(|condition| {
                condition.type_ == "Ready" && condition.status == status && condition.reason == reason
            });
            ensure!(is_so, "{conditions:?}");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let ranges: Api<ServiceCIDR> = Api::all(scene.client.clone());
    let unprotected = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    ranges.patch("kubernetes", &PatchParams::default(), &unprotected).await?;
    Ok("patch servicecidrs.networking.k8s.io kubernetes: metadata.finalizers".to_owned())
}
