//! Which class gets, keeps or loses its finalizer, and which changes lead to a sync of it: upstream's cases, and properties
//! of any volumes and claims.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use shared::api::object::{Key, ResourceVersion};
use shared::controllers::protection::observe::UserCaches;
use shared::controllers::protection::plan::{Next, Plan, plan};
use shared::following::cache::Change;
use shared::testing::properties::order_is_irrelevant;
use shared::testing::{ObjectBuilder, object, store, uid};
use shared::working::control::Preconditions;
use shared::working::effect::Effect;
use shared::working::queue::Cause;
use volumeattributesclass_protection_operator::controller::changes::class_changed;
use volumeattributesclass_protection_operator::objects::{
    PROTECTION, PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass,
};
use volumeattributesclass_protection_operator::observe::{Caches, Observed, Users};

const ADD: &str = "add the finalizer (lacks the finalizer)";
const ASK: &str = "list claims and volumes (nothing in the caches names it)";
const REMOVE: &str = "remove the finalizer (nothing names it)";

fn class() -> ObjectBuilder {
    object("storage.k8s.io/v1", "VolumeAttributesClass", "vac1").namespace("")
}

fn protected(class: ObjectBuilder) -> ObjectBuilder {
    class.set(&["metadata", "finalizers"], json!(["example.com/hold", PROTECTION.finalizer]))
}

fn deleted() -> ObjectBuilder {
    protected(class()).terminating()
}

fn volume(name: &str, class: &str) -> ObjectBuilder {
    object("v1", "PersistentVolume", name).namespace("").set(&["spec", "volumeAttributesClassName"], class)
}

fn claim(name: &str, class: &str) -> ObjectBuilder {
    object("v1", "PersistentVolumeClaim", name).set(&["spec", "volumeAttributesClassName"], class)
}

fn with_current(claim: ObjectBuilder, class: &str) -> ObjectBuilder {
    claim.set(&["status", "currentVolumeAttributesClassName"], class)
}

fn with_target(claim: ObjectBuilder, class: &str) -> ObjectBuilder {
    claim.set(&["status", "modifyVolumeStatus"], json!({ "targetVolumeAttributesClassName": class }))
}

fn cluster(class: &ObjectBuilder, volumes: &[ObjectBuilder], claims: &[ObjectBuilder]) -> Caches {
    let (caches, _) = Caches::new();
    store(&caches.volume_attributes_classes, &class.build());
    for volume in volumes {
        store(&caches.persistent_volumes, &volume.build());
    }
    for claim in claims {
        store(&caches.persistent_volume_claims, &claim.build());
    }
    caches
}

fn observed(caches: &Caches) -> Observed {
    caches.observe(&Key::new("", "vac1")).unwrap()
}

fn text(observed: &Observed) -> String {
    plan(observed).stage().text
}

/// The stages for the class, where live lists show nothing that the caches lack.
fn stages(class: &ObjectBuilder, volumes: &[ObjectBuilder], claims: &[ObjectBuilder]) -> Vec<String> {
    let observed = observed(&cluster(class, volumes, claims));
    let mut stages = vec![text(&observed)];
    if matches!(plan(&observed), Next::Ask(_)) {
        stages.push(text(&Observed { live: Some(observed.cached.clone()), ..observed }));
    }
    stages
}

/// Upstream: `TestVACProtectionController`: what is decided after each of its events. Its failing writes are in `sync.rs`.
#[test]
fn a_class_is_protected_and_goes_once_nothing_names_it() {
    let check = |class: &ObjectBuilder, volumes: &[ObjectBuilder], claims: &[ObjectBuilder], expected: &[&str]| {
        assert_eq!(stages(class, volumes, claims), expected);
    };
    // "VAC without finalizer -> finalizer is added"
    check(&class(), &[], &[], &[ADD]);
    // "VAC with finalizer -> no action"
    check(&protected(class()), &[], &[], &["keep (has the finalizer)"]);
    // "deleted VAC with finalizer -> finalizer is removed"
    check(&deleted(), &[], &[], &[ASK, REMOVE]);
    // "deleted VAC with finalizer but it's referenced by a PV -> finalizer is not removed"
    check(&deleted(), &[volume("pv1", "vac1")], &[], &["keep (named by volumes: pv1)"]);
    // "deleted VAC with finalizer but it's referenced by a PVC -> finalizer is not removed"
    check(&deleted(), &[], &[claim("pvc1", "vac1")], &["keep (named by claims: default/pvc1)"]);
    // "pv changes vac and deleted VAC with finalizer -> finalizer is removed"
    check(&deleted(), &[volume("pv1", "vac2")], &[], &[ASK, REMOVE]);
    // "pv is deleted and deleted VAC with finalizer -> finalizer is removed" is as without a volume.
    // "pv is deleted but other pv still holds terminating vac -> finalizer is not removed"
    check(&deleted(), &[volume("pv2", "vac1")], &[], &["keep (named by volumes: pv2)"]);
    // "pv is deleted but pvc still holds terminating vac -> finalizer is not removed"
    check(&deleted(), &[], &[claim("pvc1", "vac1")], &["keep (named by claims: default/pvc1)"]);
    // "pvc changes vac and deleted VAC with finalizer -> finalizer is removed"
    check(&deleted(), &[], &[claim("pvc1", "vac2")], &[ASK, REMOVE]);
    // "pvc changes vac but its status still holds terminating vac  -> finalizer is not removed"
    let current = with_current(claim("pvc1", "vac2"), "vac1");
    check(&deleted(), &[], &[current], &["keep (named by claims: default/pvc1)"]);
    // "pvc changes vac but its target status still holds terminating vac  -> finalizer is not removed"
    let target = with_target(claim("pvc1", "vac2"), "vac1");
    check(&deleted(), &[], &[target], &["keep (named by claims: default/pvc1)"]);
    // "pvc is deleted but other pvc still holds terminating vac -> finalizer is not removed"
    check(&deleted(), &[], &[claim("pvc2", "vac1")], &["keep (named by claims: default/pvc2)"]);
    // "pvc is deleted but pv still holds terminating vac -> finalizer is not removed"
    check(&deleted(), &[volume("pv1", "vac1")], &[], &["keep (named by volumes: pv1)"]);
    let both = "keep (named by volumes: pv1, pv2; claims: default/pvc1)";
    check(&deleted(), &[volume("pv1", "vac1"), volume("pv2", "vac1")], &[claim("pvc1", "vac1")], &[both]);
    // Whoever removed it meant that.
    check(&class().terminating(), &[], &[], &["keep (being deleted without the finalizer)"]);
}

#[test]
fn what_only_a_live_list_shows_keeps_a_class() {
    let caches = cluster(&deleted(), &[], &[]);
    let live = |volumes: &[&str], claims: &[&str]| {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let live = Some(Users { volumes: texts(volumes), claims: texts(claims) });
        text(&Observed { live, ..observed(&caches) })
    };
    let kept = "keep and check again (named by what is not in the caches:";
    assert_eq!(live(&["pv1"], &[]), format!("{kept} volumes: pv1)"));
    assert_eq!(live(&[], &["default/pvc1"]), format!("{kept} claims: default/pvc1)"));
    assert_eq!(live(&[], &[]), REMOVE);
}

#[test]
fn a_write_is_about_the_state_that_was_observed() {
    let expected = Preconditions { uid: uid("vac1"), resource_version: Some(ResourceVersion(1)) };
    for (class, live) in [(class(), None), (deleted(), Some(Users::default()))] {
        let planned = plan(&Observed { live, ..observed(&cluster(&class, &[], &[])) });
        let Next::Execute(Plan::Add { preconditions } | Plan::Remove { preconditions }) = planned else {
            panic!("{planned:?}")
        };
        assert_eq!(preconditions, expected);
    }
}

#[test]
fn a_claim_names_each_of_its_classes_once_and_an_empty_name_is_none() {
    let classes = |claim: &ObjectBuilder| {
        let claim: Arc<PersistentVolumeClaim> = claim.build();
        claim.classes.join(" ")
    };
    let all = with_target(with_current(claim("a", "gold"), "silver"), "bronze");
    assert_eq!(classes(&all), "bronze gold silver");
    assert_eq!(classes(&with_target(with_current(claim("a", "gold"), "gold"), "")), "gold");
    assert_eq!(classes(&claim("a", "").set(&["status"], json!(null))), "");
    let volume_class = |volume: &ObjectBuilder| volume.build::<PersistentVolume>().class.clone();
    assert_eq!(volume_class(&volume("a", "gold")).as_deref(), Some("gold"));
    assert_eq!(
        [volume_class(&volume("a", "")), volume_class(&volume("a", "").set(&["spec"], json!(null)))],
        [None, None]
    );
}

fn enqueued() -> Vec<Effect> {
    vec![Effect::Enqueue(Key::new("", "vac1"), Cause::Event)]
}

#[test]
fn a_change_of_a_class_leads_to_a_sync_if_the_finalizer_is_missing_or_may_go() {
    let check = |class: &ObjectBuilder, is_synced: bool| {
        let class: Arc<VolumeAttributesClass> = class.build();
        let effects = if is_synced { enqueued() } else { Vec::new() };
        assert_eq!(class_changed(Change::Added(&class)), effects);
        assert_eq!(class_changed(Change::Updated { old: &class, new: &class }), effects);
        assert_eq!(class_changed(Change::Deleted(&class)), []);
    };
    check(&class(), true);
    check(&deleted(), true);
    check(&protected(class()), false);
    check(&class().terminating(), false);
}

/// Upstream: `TestVACProtectionController`: which classes are synced after its events of volumes and claims.
#[test]
fn a_change_leads_to_a_sync_of_the_classes_that_it_does_not_name_any_more() {
    let caches = cluster(&deleted(), &[], &[]);
    let [before, after]: [Arc<PersistentVolume>; 2] = ["vac1", "vac2"].map(|class| volume("pv1", class).build());
    // "pv changes vac and …", "pv is deleted …"
    assert_eq!(caches.volume_changed(Change::Updated { old: &before, new: &after }), enqueued());
    assert_eq!(caches.volume_changed(Change::Deleted(&before)), enqueued());
    assert_eq!(caches.volume_changed(Change::Updated { old: &before, new: &before }), []);
    for change in [Change::Added(&before), Change::Updated { old: &after, new: &before }, Change::Deleted(&after)] {
        assert_eq!(caches.volume_changed(change), []);
    }
    let build = |claim: ObjectBuilder| -> Arc<PersistentVolumeClaim> { claim.build() };
    let (before, after) = (build(claim("pvc1", "vac1")), build(claim("pvc1", "vac2")));
    // "pvc changes vac and …", "pvc is deleted …"
    assert_eq!(caches.claim_changed(Change::Updated { old: &before, new: &after }), enqueued());
    assert_eq!(caches.claim_changed(Change::Deleted(&before)), enqueued());
    // "pvc changes vac but its status still holds …", "… its target status …"
    for held in [with_current(claim("pvc1", "vac2"), "vac1"), with_target(claim("pvc1", "vac2"), "vac1")] {
        let held = build(held);
        assert_eq!(caches.claim_changed(Change::Updated { old: &before, new: &held }), []);
        assert_eq!(caches.claim_changed(Change::Updated { old: &held, new: &after }), enqueued());
    }
    for change in [Change::Added(&before), Change::Deleted(&after)] {
        assert_eq!(caches.claim_changed(change), []);
    }
    let staying = cluster(&protected(class()), &[], &[]);
    assert_eq!(staying.claim_changed(Change::Deleted(&before)), [], "it is not being deleted");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_class_goes_if_and_only_if_nothing_names_it(
        volumes in prop::collection::vec(0..3_usize, 0..4),
        claims in prop::collection::vec((0..3_usize, 0..3_usize, 0..3_usize), 0..4),
    ) {
        let names = ["", "vac1", "vac2"];
        let is_named = volumes.contains(&1) || claims.iter().any(|(spec, current, target)| [spec, current, target].contains(&&1));
        let volumes: Vec<ObjectBuilder> =
            volumes.iter().enumerate().map(|(n, class)| volume(&n.to_string(), names[*class])).collect();
        let of = |(n, (spec, current, target)): (usize, &(usize, usize, usize))| {
            with_target(with_current(claim(&n.to_string(), names[*spec]), names[*current]), names[*target])
        };
        let claims: Vec<ObjectBuilder> = claims.iter().enumerate().map(of).collect();
        let stages = stages(&deleted(), &volumes, &claims);
        prop_assert_eq!(stages.last().unwrap() == REMOVE, !is_named, "{:?}", &stages);
        prop_assert!(stages[0] != REMOVE, "nothing was listed");
        order_is_irrelevant(&claims, |claims| self::stages(&deleted(), &volumes, claims));
        order_is_irrelevant(&volumes, |volumes| self::stages(&deleted(), volumes, &claims));
    }
}
