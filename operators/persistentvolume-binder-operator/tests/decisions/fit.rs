//! Which volume fits a claim. Upstream: `index_test.go`.

use persistentvolume_binder_operator::objects::claim::PersistentVolumeClaim;
use persistentvolume_binder_operator::objects::volume::PersistentVolume;
use persistentvolume_binder_operator::plan::fit::{Wanted, unsatisfied};
use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, object};

use super::fixtures::World;

const RWO: &[&str] = &["ReadWriteOnce"];
const ROX: &[&str] = &["ReadOnlyMany"];
const RWX: &[&str] = &["ReadWriteMany"];
const TWO: &[&str] = &["ReadWriteOnce", "ReadOnlyMany"];
const ALL: &[&str] = &["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"];

fn volume(name: &str, size: &str, modes: &[&str], class: &str, phase: &str) -> ObjectBuilder {
    let spec = json!({ "capacity": { "storage": size }, "accessModes": modes, "storageClassName": class });
    object("v1", "PersistentVolume", name).namespace("").set(&["spec"], spec).phase(phase)
}

fn reserved(volume: ObjectBuilder, claim: &str) -> ObjectBuilder {
    volume.set(&["spec", "claimRef"], json!({ "namespace": "default", "name": claim }))
}

fn claim(size: &str, modes: &[&str]) -> ObjectBuilder {
    let spec = json!({ "accessModes": modes, "resources": { "requests": { "storage": size } } });
    object("v1", "PersistentVolumeClaim", "claim01").set(&["spec"], spec).phase("Pending")
}

fn of_class(claim: ObjectBuilder, class: &str) -> ObjectBuilder {
    claim.set(&["spec", "storageClassName"], class)
}

fn with_attributes(object: ObjectBuilder, class: &str) -> ObjectBuilder {
    object.set(&["spec", "volumeAttributesClassName"], class)
}

fn selecting(claim: ObjectBuilder, label: &str) -> ObjectBuilder {
    claim.set(&["spec", "selector"], json!({ "matchLabels": { label: "true" } }))
}

/// Upstream: `createTestVolumes`. Their names are upstream's uids.
fn volumes() -> Vec<ObjectBuilder> {
    let free = |name, size, modes, class| volume(name, size, modes, class, "Available");
    let labelled = |volume: ObjectBuilder| volume.label("should-exist", "true");
    vec![
        free("gce-pd-10", "10G", TWO, ""),
        reserved(volume("gce-pd-20", "20G", TWO, "", "Bound"), "def456"),
        free("nfs-5", "5G", ALL, ""),
        reserved(volume("gce-pd-1", "1G", TWO, "", "Bound"), "abc123"),
        free("nfs-10", "10G", ALL, ""),
        free("gce-pd-5", "5G", TWO, ""),
        free("nfs-1", "1G", ALL, ""),
        labelled(free("gce-pd-2", "20000G", RWO, "")),
        labelled(free("gce-pd-silver1", "10000G", RWO, "silver")),
        free("gce-pd-silver2", "100G", RWO, "silver"),
        free("gce-pd-gold", "50G", RWO, "gold"),
        free("local-pd-very-large", "200E", ALL, "large"),
        free("local-pd-extremely-large", "800E", ALL, "large"),
        free("affinity-pv", "100G", TWO, "wait"),
        free("affinity-pv2", "150G", TWO, "wait"),
        reserved(free("affinity-prebound", "100G", TWO, "wait"), "claim02"),
        free("affinity-pv3", "200G", TWO, "wait"),
        volume("affinity-pv4-pending", "200G", TWO, "wait", "Pending"),
        volume("affinity-pv4-failed", "200G", TWO, "wait", "Failed"),
        volume("affinity-pv4-released", "200G", TWO, "wait", "Released"),
        volume("affinity-pv4-empty", "200G", TWO, "wait", ""),
        with_attributes(free("gce-pd-vac-silver1", "100G", TWO, ""), "silver"),
    ]
}

/// The best one of these volumes, as the caches give them; `""` if none fits.
fn best(volumes: &[ObjectBuilder], claim: &ObjectBuilder, waits: bool) -> String {
    let claims = [claim.clone()];
    let world = World::of(volumes, &claims, &[]);
    let read = claim.build::<PersistentVolumeClaim>();
    let observed = world.caches().observe_claim(&read.metadata.key).unwrap();
    let wanted = Wanted::new(&read, waits).unwrap();
    let best = wanted.best(&observed.candidates).map(|volume| volume.metadata.name().to_owned());
    assert!(best.is_some() || volumes.is_empty() || !wanted.nearest(&observed.candidates).is_empty());
    best.unwrap_or_default()
}

/// Upstream: `TestMatchVolume`.
#[test]
fn the_smallest_volume_that_fits_is_the_best() {
    for (name, expected, claim) in [
        ("successful-match-gce-10", "gce-pd-10", claim("8G", TWO)),
        ("successful-match-nfs-5", "nfs-5", claim("5G", ALL)),
        ("successful-skip-1g-bound-volume", "gce-pd-5", claim("1G", TWO)),
        ("successful-no-match", "", claim("999G", TWO)),
        ("successful-no-match-due-to-label", "", selecting(claim("999G", TWO), "should-not-exist")),
        (
            "successful-no-match-due-to-size-constraint-with-label-selector",
            "",
            selecting(claim("20000G", TWO), "should-exist"),
        ),
        (
            "successful-match-due-with-constraint-and-label-selector",
            "gce-pd-2",
            selecting(claim("20000G", RWO), "should-exist"),
        ),
        ("successful-match-with-empty-vac", "gce-pd-10", with_attributes(claim("8G", TWO), "")),
        ("successful-match-with-vac", "gce-pd-vac-silver1", with_attributes(claim("1G", TWO), "silver")),
        ("successful-no-match-vac-nonexisting", "", with_attributes(claim("1G", TWO), "non-existing")),
        (
            "successful-match-with-class",
            "gce-pd-silver1",
            of_class(selecting(claim("1G", RWO), "should-exist"), "silver"),
        ),
        ("successful-match-with-class-and-labels", "gce-pd-silver2", of_class(claim("1G", RWO), "silver")),
        ("successful-match-very-large", "local-pd-very-large", of_class(claim("1E", RWO), "large")),
        ("successful-match-exact-extremely-large", "local-pd-extremely-large", of_class(claim("800E", RWO), "large")),
        ("successful-no-match-way-too-large", "", of_class(claim("950E", RWO), "large")),
    ] {
        assert_eq!(best(&volumes(), &claim, false), expected, "{name}");
    }
}

/// Upstream: `TestMatchingWithBoundVolumes`.
#[test]
fn a_volume_of_another_claim_does_not_fit() {
    let volumes =
        [reserved(volume("gce001", "1G", TWO, "", "Bound"), "abc123"), volume("gce002", "1G", TWO, "", "Available")];
    assert_eq!(best(&volumes, &claim("1G", TWO), false), "gce002");
}

/// Upstream: `TestFindingVolumeWithDifferentAccessModes`, and `TestAllPossibleAccessModes`.
#[test]
fn volumes_with_the_fewest_access_modes_come_first() {
    let free = |name, modes| volume(name, "10G", modes, "", "Available");
    let (gce, ebs, nfs) = (free("gce", TWO), free("ebs", RWO), free("nfs", ALL));
    let all = [gce.clone(), ebs.clone(), nfs.clone()];
    for (modes, expected) in
        [(RWO, "ebs"), (TWO, "gce"), (&["ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany"][..], "nfs"), (RWX, "nfs")]
    {
        assert_eq!(best(&all, &claim("1G", modes), false), expected, "{modes:?}");
    }
    let ebs = reserved(ebs, "another");
    assert_eq!(best(&[gce.clone(), ebs.clone(), nfs.clone()], &claim("1G", RWO), false), "gce");
    assert_eq!(best(&[reserved(gce.clone(), "another"), ebs.clone(), nfs.clone()], &claim("1G", RWO), false), "nfs");
    assert_eq!(best(&[gce, ebs, nfs], &claim("1G", ROX), false), "gce");
}

/// Upstream: `TestVolumeModeCheck` and `TestFilteringVolumeModes`.
#[test]
fn volumes_of_another_mode_do_not_fit() {
    let modes = [Value::Null, json!("Filesystem"), json!("Block")];
    for of_volume in &modes {
        for of_claim in &modes {
            let volume = volume("local-1", "10G", RWO, "", "Available").set(&["spec", "volumeMode"], of_volume.clone());
            let claim = claim("8G", RWO).set(&["spec", "volumeMode"], of_claim.clone());
            let fits = (of_volume == "Block") == (of_claim == "Block");
            assert_eq!(best(&[volume], &claim, false).is_empty(), !fits, "{of_volume} {of_claim}");
        }
    }
}

/// Upstream: `TestStorageObjectInUseProtectionFiltering`.
#[test]
fn a_volume_that_is_being_deleted_does_not_fit() {
    let there = volume("pv1", "1G", RWO, "", "Available");
    let going = there.clone().terminating();
    let claim = claim("1G", RWO);
    assert_eq!(best(std::slice::from_ref(&there), &claim, false), "pv1");
    assert_eq!(best(std::slice::from_ref(&going), &claim, false), "");
    let claim = claim.build::<PersistentVolumeClaim>();
    assert_eq!(unsatisfied(&there.build::<PersistentVolume>(), &claim), None);
    let why = unsatisfied(&going.build::<PersistentVolume>(), &claim);
    assert_eq!(why.as_deref(), Some("the volume is marked for deletion \"pv1\""));
}

/// Upstream: `TestFindingPreboundVolumes`.
#[test]
fn a_volume_that_is_reserved_for_the_claim_comes_first_if_it_fits() {
    let free = |name, size| volume(name, size, RWO, "", "Available");
    let all = || {
        [
            free("pv1", "1Gi"),
            free("pv5", "5Gi"),
            free("pv8", "8Gi"),
            free("pvBadSize", "1Mi"),
            volume("pvBadMode", "1Gi", ROX, "", "Available"),
        ]
    };
    let best_with = |at: usize, claim_name: &str| {
        let mut all = all();
        all[at] = reserved(all[at].clone(), claim_name);
        best(&all, &claim("1Gi", RWO), false)
    };
    assert_eq!(best(&all(), &claim("1Gi", RWO), false), "pv1");
    assert_eq!(best_with(0, "foo"), "pv5");
    assert_eq!(best_with(2, "claim01"), "pv8");
    assert_eq!(best_with(3, "claim01"), "pv1");
    assert_eq!(best_with(4, "claim01"), "pv1");
}

/// Upstream: `TestBestMatchDelayed`.
#[test]
fn where_a_class_waits_only_a_volume_that_is_reserved_fits() {
    assert_eq!(best(&volumes(), &claim("8G", TWO), true), "");
    let ours = reserved(volume("ours", "10G", TWO, "", "Available"), "claim01");
    assert_eq!(best(&[ours], &claim("8G", TWO), true), "ours");
}

/// Upstream: `TestCheckAccessModes`.
#[test]
fn a_named_volume_must_have_all_access_modes() {
    let named =
        volume("named", "100G", &["ReadWriteOnce", "ReadWriteMany"], "", "Available").build::<PersistentVolume>();
    for (modes, fits) in [
        (RWX, true),
        (&["ReadWriteMany", "ReadWriteOnce"][..], true),
        (ROX, false),
        (&["ReadWriteMany", "ReadOnlyMany"][..], false),
    ] {
        let why = unsatisfied(&named, &claim("100G", modes).build::<PersistentVolumeClaim>());
        assert_eq!(why.as_deref(), (!fits).then_some("incompatible accessMode"), "{modes:?}");
    }
}
