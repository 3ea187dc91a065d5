//! Which PersistentVolume gets, keeps or loses its finalizer, and which changes lead to a sync of it: upstream's cases,
//! and properties of any volume.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use persistentvolume_protection_operator::controller::changes::persistent_volume_changed;
use persistentvolume_protection_operator::objects::{LiveVolume, PROTECTION, PersistentVolume};
use persistentvolume_protection_operator::observe::{Live, Observed};
use persistentvolume_protection_operator::plan::{Next, Plan, plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::{Key, ResourceVersion};
use shared::following::cache::Change;
use shared::testing::{ObjectBuilder, object, uid};
use shared::working::control::Preconditions;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

/// The version of the state that is read live.
const LIVE_VERSION: u64 = 7;

fn volume() -> ObjectBuilder {
    object("v1", "PersistentVolume", "disk").namespace("")
}

fn protected(volume: ObjectBuilder) -> ObjectBuilder {
    volume.set(&["metadata", "finalizers"], json!(["example.com/hold", PROTECTION.finalizer]))
}

fn going() -> ObjectBuilder {
    protected(volume()).terminating()
}

fn bound(volume: ObjectBuilder) -> ObjectBuilder {
    let claim = json!({ "namespace": "default", "name": "data" });
    volume.set(&["spec", "claimRef"], claim).set(&["status", "phase"], "Bound")
}

fn observed(cached: &ObjectBuilder, live: Live) -> Observed {
    Observed { volume: cached.build(), live }
}

fn read(live: &ObjectBuilder) -> Live {
    let live = live.clone().set(&["metadata", "resourceVersion"], LIVE_VERSION.to_string());
    let live: Arc<LiveVolume> = live.build();
    Live::Read((*live).clone())
}

fn text(next: &Next) -> String {
    next.stage().text
}

/// The decision about a volume, with what it asks for first.
#[track_caller]
fn check(volume: &ObjectBuilder, expected: &[&str]) {
    let first = plan(&observed(volume, Live::Unread));
    let mut stages = vec![text(&first)];
    if matches!(first, Next::Ask(_)) {
        stages.push(text(&plan(&observed(volume, read(volume)))));
    }
    assert_eq!(stages, expected);
}

/// Upstream: `TestPVProtectionController`. Its failing writes are in `sync.rs`.
#[test]
fn a_volume_is_protected_and_goes_once_it_is_not_bound() {
    let ask = "read its phase (being deleted)";
    // "PV without finalizer -> finalizer is added"
    check(&volume(), &["add the finalizer (lacks the finalizer)"]);
    // "PVC with finalizer -> no action"
    check(&protected(volume()), &["keep (has the finalizer)"]);
    // "deleted PV with finalizer -> finalizer is removed"
    check(&going(), &[ask, "remove the finalizer (has no phase yet)"]);
    // "deleted PVC with finalizer + PV is bound -> finalizer is not removed"
    check(&bound(going()), &[ask, "keep (bound to claim default/data)"]);
    let nameless = going().set(&["status", "phase"], "Bound").set(&["spec"], json!(null));
    check(&nameless, &[ask, "keep (bound to a claim that it does not name)"]);
    // The others of upstream's phases.
    for phase in ["Pending", "Available", "Released", "Failed"] {
        let volume = bound(going()).set(&["status", "phase"], phase);
        check(&volume, &[ask, &format!("remove the finalizer (phase is {phase})")]);
    }
    // Whoever removed it meant that.
    check(&volume().terminating(), &["keep (being deleted without the finalizer)"]);
}

#[test]
fn the_live_state_decides_and_is_the_one_that_the_write_is_about() {
    let (uid, version) = (uid("disk"), |version| Some(ResourceVersion(version)));
    let add = plan(&observed(&volume(), Live::Unread));
    assert_eq!(add, Next::Execute(Plan::Add { preconditions: Preconditions { uid, resource_version: version(1) } }));
    let remove = plan(&observed(&going(), read(&going())));
    let Next::Execute(Plan::Remove { preconditions, .. }) = remove else { panic!("{remove:?}") };
    assert_eq!(preconditions, Preconditions { uid, resource_version: version(LIVE_VERSION) });
    let other = |live| text(&plan(&observed(&going(), live)));
    assert_eq!(other(Live::Gone), "keep (gone already)");
    assert_eq!(other(read(&volume().terminating())), "keep (being deleted without the finalizer)");
}

#[test]
fn a_change_leads_to_a_sync_if_the_finalizer_is_missing_or_may_go() {
    let check = |volume: &ObjectBuilder, is_synced: bool| {
        let volume: Arc<PersistentVolume> = volume.build();
        let effects = if is_synced { vec![Effect::Enqueue(Key::new("", "disk"), Cause::Event)] } else { Vec::new() };
        assert_eq!(persistent_volume_changed(Change::Added(&volume)), effects);
        assert_eq!(persistent_volume_changed(Change::Updated { old: &volume, new: &volume }), effects);
        assert_eq!(persistent_volume_changed(Change::Deleted(&volume)), []);
    };
    check(&volume(), true);
    check(&going(), true);
    check(&protected(volume()), false);
    check(&volume().terminating(), false);
}

fn any_volume() -> impl Strategy<Value = ObjectBuilder> {
    let finalizers = prop::sample::subsequence(vec!["a", PROTECTION.finalizer, "b"], 0..=3);
    let phase = prop::sample::select(vec!["", "Pending", "Available", "Bound", "Released", "Failed", "New"]);
    (any::<bool>(), finalizers, phase).prop_map(|(is_deleted, finalizers, phase)| {
        let volume = volume().set(&["metadata", "finalizers"], json!(finalizers)).set(&["status", "phase"], phase);
        if is_deleted { volume.terminating() } else { volume }
    })
}

/// The volume after a write of its finalizers.
fn applied(volume: &ObjectBuilder, plan: &Plan) -> ObjectBuilder {
    let before = volume.json()["metadata"]["finalizers"].as_array().unwrap().clone();
    let after: Vec<Value> = match plan {
        Plan::Keep(_) => before,
        Plan::Add { .. } => before.into_iter().chain([json!(PROTECTION.finalizer)]).collect(),
        Plan::Remove { .. } => before.into_iter().filter(|finalizer| finalizer != PROTECTION.finalizer).collect(),
    };
    volume.clone().set(&["metadata", "finalizers"], after)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn after_applying_there_is_nothing_left_to_plan_and_no_bound_volume_loses_its_finalizer(volume in any_volume()) {
        let Next::Execute(planned) = plan(&observed(&volume, read(&volume))) else { panic!("it was read") };
        let is_bound = volume.json()["status"]["phase"] == "Bound";
        prop_assert!(!(is_bound && matches!(planned, Plan::Remove { .. })), "{}", planned);
        let then = applied(&volume, &planned);
        let planned = plan(&observed(&then, read(&then)));
        prop_assert!(matches!(planned, Next::Execute(Plan::Keep(_))), "{:?}", planned);
    }

    #[test]
    fn no_finalizer_is_removed_without_a_live_read(volume in any_volume()) {
        for live in [Live::Unread, Live::Gone] {
            let planned = plan(&observed(&volume, live));
            prop_assert!(!matches!(planned, Next::Execute(Plan::Remove { .. })), "{:?}", planned);
        }
    }
}
