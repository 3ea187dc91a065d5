//! Classes, provisioners, and the drivers that replace in-tree plugins. Upstream: `pv_controller_test.go` and
//! `provision_test.go`.

use serde_json::{Value, json};
use shared::testing::ObjectBuilder;

use super::fixtures::{
    BETA_STORAGE_PROVISIONER, BIND_COMPLETED, BOUND_BY_CONTROLLER, EXTERNAL_FINALIZER, HOST_PATH, IN_TREE_FINALIZER,
    MIGRATED_TO, Objects, PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER, SyncOf, World, annotated, claim,
    claim_in, class, csi_volume, finalized, row, volume,
};

fn default_class(name: &str) -> ObjectBuilder {
    class(name, "csi.example.com", "Immediate").annotation("storageclass.kubernetes.io/is-default-class", "true")
}

/// Upstream: `TestRetroactiveStorageClassAssignment`.
#[test]
fn default_classes_are_given_as_upstreams() {
    const BETA: &str = "volume.beta.kubernetes.io/storage-class";
    let plain = |name| class(name, "csi.example.com", "Immediate");
    let row = |name, before, after| row(name, SyncOf::Claim, (Vec::new(), Vec::new()), (before, after), &[]);
    let without = || claim("c", "c", "1Gi", "", "Pending", None, &[]);
    row("15-1 - no default storage class", without(), without()).check(&[], &[]);
    let of = |volume, phase, annotations: &[&str]| claim("c", "c", "1Gi", volume, phase, Some("copper"), annotations);
    let annotations = [BOUND_BY_CONTROLLER, BIND_COMPLETED];
    row("15-3 - claim is already bound", of("test", "Bound", &annotations), of("test", "Lost", &annotations))
        .check(&[default_class("gold"), plain("silver")], &[]);
    row("15-4 - already bound but annotations are missing", of("test", "Bound", &[]), of("test", "Pending", &[]))
        .check(&[default_class("gold"), plain("silver")], &[]);
    let given = || claim("c", "c", "1Gi", "", "Pending", Some("gold"), &[]);
    row("15-5 - there is a default", without(), given()).check(&[default_class("gold"), plain("silver")], &[]);
    row("15-2 - multiple defaults", without(), given()).check(&[default_class("silver"), default_class("gold")], &[]);
    let named = |class: Option<&str>, annotations: &[&str]| claim("c", "c", "1Gi", "", "Pending", class, annotations);
    let provisioned = |objects| {
        annotated(
            STORAGE_PROVISIONER,
            "csi.example.com",
            annotated(BETA_STORAGE_PROVISIONER, "csi.example.com", objects),
        )
    };
    row("15-6 - already has a storage class", named(Some("copper"), &[]), provisioned(named(Some("copper"), &[])))
        .check(&[default_class("gold"), plain("copper")], &[]);
    row("15-7 - annotation", named(None, &[BETA]), named(None, &[BETA])).check(&[default_class("gold")], &[]);
}

#[test]
fn of_several_default_classes_the_newest_is_given() {
    let newer = default_class("silver").set(&["metadata", "creationTimestamp"], "2037-01-01T00:00:00Z");
    let before = claim("c", "c", "1Gi", "", "Pending", None, &[]);
    let after = claim("c", "c", "1Gi", "", "Pending", Some("silver"), &[]);
    let none = || (Vec::new(), Vec::new());
    row("newest", SyncOf::Claim, none(), (before, after), &[]).check(&[default_class("gold"), newer], &[]);
}

/// Upstream: `TestAnnealMigrationAnnotations`.
#[test]
fn annotations_of_migrated_plugins_are_upstreams() {
    let (gce, gce_driver) = ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io");
    let (rbd, rbd_driver) = ("kubernetes.io/rbd", "rbd.csi.ceph.com");
    for (name, plugin, key, before, after) in [
        ("migration on", gce, STORAGE_PROVISIONER, None, Some(gce_driver)),
        ("migration on with Beta storage provisioner", gce, BETA_STORAGE_PROVISIONER, None, Some(gce_driver)),
        ("migration off", rbd, STORAGE_PROVISIONER, None, None),
        ("migration off removes migrated to (rollback)", rbd, STORAGE_PROVISIONER, Some(rbd_driver), None),
        (
            "migration off removes migrated to (rollback) with Beta",
            rbd,
            BETA_STORAGE_PROVISIONER,
            Some(rbd_driver),
            None,
        ),
        ("migration on, other plugin not affected", "non-migrated-plugin", STORAGE_PROVISIONER, None, None),
        ("not dynamically provisioned", "", "other", None, None),
    ] {
        let with = |objects: Objects, key: &str, driver: Option<&str>| {
            let objects = annotated(key, plugin, objects);
            driver.map_or(objects.clone(), |driver| annotated(MIGRATED_TO, driver, objects))
        };
        let claimed = |driver| with(claim("c", "c", "1Gi", "v", "Bound", None, &[BIND_COMPLETED]), key, driver);
        let of_volume = if key == "other" { key } else { PROVISIONED_BY };
        let volume = |driver| {
            let volume = volume("v", "1Gi", "c", "c", "Bound", "Retain", "", &[]);
            with(volume, of_volume, driver)
        };
        row(name, SyncOf::All, (volume(before), volume(after)), (claimed(before), claimed(after)), &[]).check(&[], &[]);
    }
}

/// Upstream: `TestModifyDeletionFinalizers`. No plugin of upstream's tests is left; host-path stands for it.
#[test]
fn finalizers_of_volumes_are_upstreams() {
    const OTHER: &str = "test.volume.kubernetes.io/finalizer";
    let external = |name: &'static str, before: &[&str], after: &[&str]| {
        let volume =
            || csi_volume("v", "1Gi", "c", "c", "Bound", "Delete", "copper", "rbd.csi.ceph.com", &[PROVISIONED_BY]);
        (name, finalized(before, volume()), finalized(after, volume()))
    };
    let in_tree = |name: &'static str, policy: &str, before: &[&str], after: &[&str]| {
        let volume = || volume("v", "1Gi", "c", "c", "Bound", policy, "copper", &[PROVISIONED_BY]);
        (name, finalized(before, volume()), finalized(after, volume()))
    };
    let fixed = |name: &'static str, finalizers: &[&str]| {
        let volume = || volume("v", "1Gi", "c", "c", "Bound", "Delete", "copper", &[]);
        (name, finalized(finalizers, volume()), finalized(finalizers, volume()))
    };
    let migrated = |finalizers: &[&str]| {
        let volume =
            csi_volume("v", "1Gi", "c", "c", "Bound", "Delete", "copper", "kubernetes.io/gce-pd", &[PROVISIONED_BY]);
        finalized(finalizers, annotated(MIGRATED_TO, "pd.csi.storage.gke.io", volume))
    };
    for (name, before, after) in [
        external("13-1 migration was never enabled", &[EXTERNAL_FINALIZER], &[EXTERNAL_FINALIZER]),
        external("13-2 migration was never enabled, no finalizer", &[], &[]),
        in_tree("13-3 custom finalizer", "Delete", &[OTHER], &[OTHER, IN_TREE_FINALIZER]),
        in_tree("13-4 no finalizers", "Delete", &[], &[IN_TREE_FINALIZER]),
        in_tree("13-5 external finalizer", "Delete", &[EXTERNAL_FINALIZER], &[IN_TREE_FINALIZER]),
        in_tree("13-6 multiple finalizers", "Delete", &[EXTERNAL_FINALIZER, OTHER], &[OTHER, IN_TREE_FINALIZER]),
        ("13-7 migrated", migrated(&[EXTERNAL_FINALIZER, IN_TREE_FINALIZER]), migrated(&[EXTERNAL_FINALIZER])),
        fixed("13-10 missing annotations but finalizers exist", &[EXTERNAL_FINALIZER]),
        fixed("13-11 missing annotations and finalizers", &[]),
        in_tree("13-12 Retain", "Retain", &[], &[]),
        in_tree("13-13 Recycle", "Recycle", &[], &[]),
        in_tree("13-14 Retain with finalizer", "Retain", &[IN_TREE_FINALIZER], &[]),
    ] {
        let claim = || claim("c", "c", "1Gi", "v", "Bound", Some("copper"), &[BIND_COMPLETED]);
        row(name, SyncOf::Volume, (before, after), (claim(), claim()), &[]).check(&[], &[]);
    }
}

/// The event and the annotations of a claim that no volume fits.
fn provisioned(provisioner: &str, mode: &str, change: impl Fn(Objects) -> Objects) -> (String, Value) {
    let claims = change(claim("c", "c", "1Gi", "", "Pending", Some("fast"), &[]));
    let class = class("fast", provisioner, mode).set(&["mountOptions"], json!(["foo"]));
    let mut world = World::of(&[], &claims, &[class]);
    let plan = world.plan_claim(&claim_in(&world, "c").metadata.key);
    world.apply(&plan);
    let named = world.claims[0]["metadata"]["annotations"].get(STORAGE_PROVISIONER).cloned();
    (world.events[0].clone(), named.unwrap_or_default())
}

/// Upstream: 11-2, 11-13, 11-14, 11-15, 11-16, 11-21 and 11-22 of `TestProvisionSync`.
#[test]
fn who_provisions_a_volume_is_upstreams() {
    let same = |objects: Objects| objects;
    let external = |name: &str| {
        format!(
            "Normal ExternalProvisioning: Waiting for a volume to be created either by the external provisioner '{name}' or \
             manually by the system administrator. If volume creation is delayed, please verify that the provisioner is \
             running and correctly registered."
        )
    };
    let failed = |why: &str| format!("Warning ProvisioningFailed: {why}");
    for (provisioner, named, event) in [
        ("vendor.com/my-volume", json!("vendor.com/my-volume"), external("vendor.com/my-volume")),
        ("kubernetes.io/gce-pd", json!("pd.csi.storage.gke.io"), external("pd.csi.storage.gke.io")),
        ("kubernetes.io/unknown", Value::Null, failed("no volume plugin matched name: kubernetes.io/unknown")),
        ("kubernetes.io/nfs", Value::Null, failed("no provisionable volume plugin matched")),
        (
            HOST_PATH,
            json!(HOST_PATH),
            failed(
                "Mount options are not supported by the provisioner but StorageClass \"fast\" has mount options [foo]",
            ),
        ),
    ] {
        assert_eq!(provisioned(provisioner, "Immediate", same), (event, named), "{provisioner}");
    }
    let sourced = |objects: Objects| {
        objects.into_iter().map(|claim| claim.set(&["spec", "dataSource"], json!({ "kind": "Snapshot" }))).collect()
    };
    let why = "plugin \"kubernetes.io/host-path\" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource";
    assert_eq!(provisioned(HOST_PATH, "Immediate", sourced), (failed(why), Value::Null));
    let waits = "Normal WaitForFirstConsumer: waiting for first consumer to be created before binding".to_owned();
    assert_eq!(provisioned("vendor.com/a", "WaitForFirstConsumer", same), (waits, Value::Null));
    let on_node = |objects| annotated(SELECTED_NODE, "node1", objects);
    let expected = (external("vendor.com/a"), json!("vendor.com/a"));
    assert_eq!(provisioned("vendor.com/a", "WaitForFirstConsumer", on_node), expected);
}

#[test]
fn a_missing_class_is_named_as_upstreams() {
    let mut world = World::of(&[], &claim("c", "c", "1Gi", "", "Pending", Some("none"), &[]), &[]);
    let plan = world.plan_claim(&claim_in(&world, "c").metadata.key);
    world.apply(&plan);
    let expected = "Warning ProvisioningFailed: storageclass.storage.k8s.io \"none\" not found";
    assert_eq!(world.events, [expected]);
}

#[test]
fn a_claim_that_waits_names_the_pods_that_wait_for_it() {
    for (pods, expected) in
        [(&["a"][..], "waiting for pod a to be scheduled"), (&["a", "b"][..], "waiting for pods a,b to be scheduled")]
    {
        let class = class("slow", "vendor.com/a", "WaitForFirstConsumer");
        let mut world = World::of(&[], &claim("c", "c", "1Gi", "", "Pending", Some("slow"), &[]), &[class]);
        let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "c" } }]);
        let pod = |name: &&str| shared::testing::pod(name).node("").set(&["spec", "volumes"], volumes.clone());
        world.pods = pods.iter().map(pod).collect();
        let plan = world.plan_claim(&claim_in(&world, "c").metadata.key);
        world.apply(&plan);
        assert_eq!(world.events, [format!("Normal WaitForPodScheduled: {expected}")]);
    }
}
