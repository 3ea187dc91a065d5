//! PersistentVolumeClaims and ResourceClaims. Upstream: `TestPersistentVolumeClaimEvaluatorUsage` and
//! `TestPersistentVolumeClaimEvaluatorMatchingScopes`, `persistent_volume_claims_test.go`;
//! `TestResourceClaimEvaluatorUsage`, `resource_claims_test.go`, all in `pkg/quota/v1/evaluator/core`.

use resourcequota_operator::objects::{Claim, ResourceClaim};
use resourcequota_operator::observe::Objects;
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, object};

use crate::fixtures::{facts, scope, used};

fn claim(storage: &str) -> ObjectBuilder {
    let claim = object("v1", "PersistentVolumeClaim", "c");
    claim.set(&["spec", "resources", "requests", "storage"], storage)
}

fn claims(claims: &[ObjectBuilder]) -> Objects {
    Objects::Claims(claims.iter().map(facts::<Claim>).collect())
}

const ALL: &str = "persistentvolumeclaims count/persistentvolumeclaims requests.storage";
const GOLD: &str =
    "gold.storageclass.storage.k8s.io/persistentvolumeclaims gold.storageclass.storage.k8s.io/requests.storage";
const NONE: &[&str] = &[];

#[track_caller]
fn check(claim: &ObjectBuilder, names: &str, expected: &str) {
    assert_eq!(used(&claims(std::slice::from_ref(claim)), names, &[]), expected);
}

#[test]
fn a_claim_counts_for_all_and_for_its_class() {
    // "pvc-usage", "pvc-usage-by-class"
    let all = "count/persistentvolumeclaims=1 persistentvolumeclaims=1 requests.storage=10Gi";
    check(&claim("10Gi"), ALL, all);
    let of_gold = |number: &str, storage: &str| {
        format!(
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims={number} \
             gold.storageclass.storage.k8s.io/requests.storage={storage}"
        )
    };
    check(&claim("10Gi"), GOLD, &of_gold("0", "0"));
    let gold = claim("10Gi").set(&["spec", "storageClassName"], "gold");
    check(&gold, ALL, all);
    check(&gold, GOLD, &of_gold("1", "10Gi"));
    let beta = |class: &str| gold.clone().annotation("volume.beta.kubernetes.io/storage-class", class);
    check(&beta("silver"), GOLD, &of_gold("0", "0"));
    check(&beta("gold"), GOLD, &of_gold("1", "10Gi"));
    check(&beta(""), GOLD, &of_gold("0", "0"));
}

#[test]
fn storage_is_counted_in_whole_bytes_and_where_it_was_expanded_by_what_it_has() {
    // "pvc-usage-rounded", "pvc-usage-higher-allocated-resource", "pvc-usage-lower-allocated-resource"
    check(&claim("10000m"), "requests.storage", "requests.storage=10");
    check(&claim("0.5"), "requests.storage", "requests.storage=1");
    let allocated = |storage: &str| claim("5G").set(&["status", "allocatedResources", "storage"], storage);
    check(&allocated("10G"), "requests.storage", "requests.storage=10G");
    check(&allocated("4G"), "requests.storage", "requests.storage=5G");
    let without = object("v1", "PersistentVolumeClaim", "c").set(&["status", "allocatedResources", "storage"], "1G");
    check(&without, ALL, "count/persistentvolumeclaims=1 persistentvolumeclaims=1 requests.storage=0");
    let both = claims(&[claim("1Gi"), claim("500M")]);
    assert_eq!(used(&both, "requests.storage", &[]), "requests.storage=1573741824");
}

#[test]
fn a_claim_is_in_a_scope_by_any_of_its_volume_attributes_classes() {
    let plain = claim("1Gi");
    let asked = claim("1Gi").set(&["spec", "volumeAttributesClassName"], "fast");
    let moving = asked
        .clone()
        .set(&["status", "currentVolumeAttributesClassName"], "slow")
        .set(&["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"], "faster");
    let count = |claim: &ObjectBuilder, operator: &str, values: &[&str]| {
        let scope = scope("VolumeAttributesClass", operator, values);
        let used = used(&claims(std::slice::from_ref(claim)), "persistentvolumeclaims", &[scope]);
        used.replace("persistentvolumeclaims=", "")
    };
    let rows: [(&str, &[&str], [&str; 3]); 8] = [
        ("Exists", NONE, ["0", "1", "1"]),
        ("DoesNotExist", NONE, ["1", "0", "0"]),
        ("In", &["fast"], ["0", "1", "1"]),
        ("In", &["slow", "other"], ["0", "0", "1"]),
        ("In", &["faster"], ["0", "0", "1"]),
        ("NotIn", &["fast"], ["1", "0", "1"]),
        ("NotIn", NONE, ["0", "0", "0"]),
        ("Like", &["fast"], ["0", "0", "0"]),
    ];
    for (operator, values, expected) in rows {
        let found = [&plain, &asked, &moving].map(|claim| count(claim, operator, values));
        assert_eq!(found, expected, "{operator} {values:?}");
    }
    let of_pods = scope("BestEffort", "Exists", &[]);
    assert_eq!(used(&claims(&[moving]), "requests.storage", &[of_pods]), "requests.storage=0");
}

#[track_caller]
fn check_devices(requests: &Value, names: &str, expected: &str) {
    let claim = object("resource.k8s.io/v1", "ResourceClaim", "c");
    let claim = claim.set(&["spec", "devices", "requests"], requests.clone());
    assert_eq!(used(&Objects::ResourceClaims(vec![facts::<ResourceClaim>(&claim)]), names, &[]), expected);
}

#[test]
fn a_resource_claim_counts_the_devices_that_it_may_get_at_the_worst() {
    const GPU: &str = "gpu.deviceclass.resource.k8s.io/devices";
    let exactly = |mode: &str, count: i64| json!({ "name": "r", "exactly": { "deviceClassName": "gpu", "allocationMode": mode, "count": count } });
    let gpus = |number: i64| format!("{GPU}={number}");
    let names = format!("count/resourceclaims.resource.k8s.io cpu.deviceclass.resource.k8s.io/devices {GPU}");
    let counted = format!("count/resourceclaims.resource.k8s.io=1 cpu.deviceclass.resource.k8s.io/devices=0 {GPU}=1");
    check_devices(&json!([exactly("ExactCount", 1)]), &names, &counted);
    check_devices(&json!([exactly("ExactCount", 5)]), GPU, &gpus(5));
    check_devices(&json!([exactly("All", 0)]), GPU, &gpus(32));
    check_devices(&json!([exactly("Some", 7)]), GPU, &gpus(0));
    check_devices(&json!([exactly("ExactCount", 1), exactly("ExactCount", 2)]), GPU, &gpus(3));
    check_devices(&json!([{ "name": "future" }]), GPU, &gpus(0));
    let of = |class: &str, mode: &str, count: i64| json!({ "name": "s", "deviceClassName": class, "allocationMode": mode, "count": count });
    let first = |subrequests: Value| json!([{ "name": "r", "firstAvailable": subrequests }, exactly("ExactCount", 1)]);
    check_devices(&first(json!([of("gpu", "ExactCount", 2), of("gpu", "ExactCount", 4)])), GPU, &gpus(5));
    check_devices(&first(json!([of("gpu", "All", 0), of("other", "ExactCount", 4)])), GPU, &gpus(33));
}
