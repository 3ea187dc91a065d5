//! To whom an expansion is handed, and which changes lead to a sync: upstream's cases, and properties of any sizes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use persistentvolume_expander_operator::controller::changes::claim_changed;
use persistentvolume_expander_operator::objects::{Annotations, PersistentVolumeClaim, RESIZER};
use persistentvolume_expander_operator::observe::{Caches, Live, Observed};
use persistentvolume_expander_operator::plan::{Next, Plan, plan};
use proptest::prelude::*;
use serde_json::json;
use shared::api::csi_translation::IN_TREE_PLUGINS;
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::testing::{ObjectBuilder, object, store};
use shared::working::effect::Effect;
use shared::working::queue::Cause;

const EBS: &str = "ebs.csi.aws.com";
const ENOUGH: &str = "nothing (its volume is large enough)";
const NAME: &str = "name the external resizer (volumes of kubernetes.io/aws-ebs are expanded by ebs.csi.aws.com)";
const READ: &str = "read the volume (to grow from 1Gi to 2Gi)";
const WAIT: &str = "wait for an external controller (to grow from 1Gi to 2Gi)";

/// A bound claim that has the first size and asks for the second.
fn claim(has: &str, wants: &str) -> ObjectBuilder {
    let spec = json!({ "volumeName": "disk", "resources": { "requests": { "storage": wants } } });
    let status = json!({ "phase": "Bound", "capacity": { "storage": has } });
    object("v1", "PersistentVolumeClaim", "data").set(&["spec"], spec).set(&["status"], status)
}

/// The volume of this claim, with a source of this kind.
fn volume(claim: &ObjectBuilder, source: &str) -> ObjectBuilder {
    let claim = json!({ "namespace": "default", "name": "data", "uid": claim.json()["metadata"]["uid"] });
    let volume = object("v1", "PersistentVolume", "disk").namespace("").set(&["spec", "claimRef"], claim);
    volume.set(&["spec", source], json!({}))
}

/// The texts of all stages with this volume live, and the last of them.
fn decide(claim: &ObjectBuilder, volume: Option<&ObjectBuilder>) -> (Vec<String>, Next) {
    let (caches, _) = Caches::new();
    store(&caches.persistent_volume_claims, &claim.build());
    let observed = caches.observe(&Key::new("default", "data")).unwrap();
    let mut next = plan(&observed);
    let mut stages = vec![next.stage().text];
    if matches!(next, Next::Ask(_)) {
        let volume = volume.map(|volume| serde_json::from_value(volume.json().clone()).unwrap());
        next = plan(&Observed { volume: volume.map_or(Live::Gone, Live::Read), ..observed });
        stages.push(next.stage().text);
    }
    (stages, next)
}

#[track_caller]
fn check(claim: &ObjectBuilder, volume: Option<&ObjectBuilder>, expected: &[&str]) {
    assert_eq!(decide(claim, volume).0, expected);
}

/// Upstream: `TestSyncHandler`, `pkg/controller/volume/expand/expand_controller_test.go`.
#[test]
fn an_expansion_is_handed_to_whoever_expands_the_volume() {
    // "when pvc has no PV binding"
    check(&claim("1Gi", "1Gi").set(&["spec", "volumeName"], ""), None, &["nothing (not bound to a volume)"]);
    // "when pvc and pv has everything for in-tree plugin"
    let growing = claim("1Gi", "2Gi");
    let disk = volume(&growing, "awsElasticBlockStore");
    check(&growing, Some(&disk), &[READ, NAME]);
    // "if pv has pre-resize capacity annotation, generate expand operation should not be called"
    let annotated = disk.clone().annotation("volume.alpha.kubernetes.io/pre-resize-capacity", "1Gi");
    check(&claim("2Gi", "2Gi"), Some(&annotated), &[ENOUGH]);
    // "for csi plugin without migration path"
    check(&growing, Some(&volume(&growing, "csi")), &[READ, WAIT]);
}

#[test]
fn a_claim_is_expanded_only_by_the_volume_that_is_bound_to_it() {
    let growing = claim("1Gi", "2Gi");
    check(&growing, None, &[READ, "check again (its volume disk does not exist)"]);
    let others = "check again (its volume disk is not bound to it)";
    check(&growing, Some(&volume(&growing.clone().uid_of("earlier"), "csi")), &[READ, others]);
    let unbound = object("v1", "PersistentVolume", "disk").namespace("").set(&["spec", "csi"], json!({}));
    check(&growing, Some(&unbound), &[READ, others]);
    let elsewhere = volume(&growing, "csi").set(&["spec", "claimRef", "namespace"], "another");
    check(&growing, Some(&elsewhere), &[READ, others]);
}

#[test]
fn each_in_tree_plugin_leads_to_its_driver_and_is_named_once() {
    for plugin in IN_TREE_PLUGINS {
        let hand_over = |annotate| Next::Execute(Plan::HandOver { plugin, annotate });
        let growing = claim("1Gi", "2Gi");
        let volume = volume(&growing, plugin.source).set(&["spec", "csi"], serde_json::Value::Null);
        assert_eq!(decide(&growing, Some(&volume)).1, hand_over(true));
        let named = growing.clone().annotation(RESIZER, plugin.driver);
        assert_eq!(decide(&named, Some(&volume)).1, hand_over(false));
        let other = growing.annotation(RESIZER, "example.com");
        assert_eq!(decide(&other, Some(&volume)).1, hand_over(true));
    }
}

#[test]
fn the_annotation_that_is_read_is_the_one_that_is_written() {
    let expected = Annotations { resizer: Some(EBS.into()) };
    assert_eq!(serde_json::from_value::<Annotations>(json!({ RESIZER: EBS })).unwrap(), expected);
}

#[test]
fn a_claim_is_synced_if_it_is_to_grow_and_has_another_size() {
    let due = [Effect::Enqueue(Key::new("default", "data"), Cause::Event)];
    let built = |has, wants| -> Arc<PersistentVolumeClaim> { claim(has, wants).build() };
    let (equal, growing, grown, more) =
        (built("1Gi", "1Gi"), built("1Gi", "2Gi"), built("2Gi", "2Gi"), built("1536Mi", "2Gi"));
    assert_eq!(claim_changed(Change::Added(&growing)), due);
    assert_eq!(claim_changed(Change::Added(&equal)), []);
    assert_eq!(claim_changed(Change::Deleted(&growing)), []);
    assert_eq!(claim_changed(Change::Updated { old: &equal, new: &growing }), due);
    assert_eq!(claim_changed(Change::Updated { old: &growing, new: &growing }), []);
    assert_eq!(claim_changed(Change::Updated { old: &growing, new: &more }), due);
    assert_eq!(claim_changed(Change::Updated { old: &growing, new: &grown }), []);
    assert_eq!(claim_changed(Change::Updated { old: &growing, new: &equal }), []);
    let pending: Arc<PersistentVolumeClaim> = claim("1Gi", "2Gi").set(&["status", "phase"], "Pending").build();
    assert_eq!(claim_changed(Change::Added(&pending)), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn only_a_claim_that_is_to_grow_by_its_own_volume_names_a_resizer(has in 1..9_u32, wants in 1..9_u32, is_own: bool) {
        let claim = claim(&format!("{has}Gi"), &format!("{wants}Gi"));
        let of = if is_own { claim.clone() } else { claim.clone().uid_of("another") };
        let (_, plan) = decide(&claim, Some(&volume(&of, "awsElasticBlockStore")));
        prop_assert_eq!(matches!(plan, Next::Execute(Plan::HandOver { .. })), wants > has && is_own, "{:?}", plan);
        let named = claim.annotation(RESIZER, EBS);
        let (_, again) = decide(&named, Some(&volume(&of, "awsElasticBlockStore")));
        prop_assert!(!matches!(again, Next::Execute(Plan::HandOver { annotate: true, .. })), "it is named twice");
    }
}
