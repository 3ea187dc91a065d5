//! Which entries of a StorageVersion go, what its status says then, and which changes lead to a sync: upstream's cases,
//! and properties of any entries.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::testing::{NOW, ObjectBuilder, ago, object, store};
use shared::working::effect::Effect;
use storageversion_garbage_collector_operator::apply::Outcome;
use storageversion_garbage_collector_operator::objects::{Lease, StorageVersion};
use storageversion_garbage_collector_operator::observe::{Caches, Live, Observed};
use storageversion_garbage_collector_operator::plan::{Next, Plan, plan};
use storageversion_garbage_collector_operator::status::next_status;

const NAME: &str = "k8s.test.resources";

/// An entry in the form `apiserver:version`; it has a field of a newer version too.
fn entry(text: &str) -> Value {
    let (apiserver, version) = text.split_once(':').unwrap();
    json!({ "apiServerID": apiserver, "encodingVersion": version, "decodableVersions": [version], "newer": 1 })
}

fn storage_version(entries: &[&str]) -> ObjectBuilder {
    let entries: Vec<Value> = entries.iter().map(|text| entry(text)).collect();
    let object = object("internal.apiserver.k8s.io/v1alpha1", "StorageVersion", NAME).namespace("");
    object.set(&["status", "storageVersions"], entries).set(&["spec"], json!({}))
}

fn lease(name: &str) -> ObjectBuilder {
    let lease = object("coordination.k8s.io/v1", "Lease", name).namespace("kube-system");
    lease.label("apiserver.kubernetes.io/identity", "kube-apiserver")
}

fn cluster(storage_version: &ObjectBuilder, leases: &[&str]) -> Caches {
    let (caches, _) = Caches::new();
    store(&caches.storage_versions, &storage_version.build());
    for name in leases {
        store(&caches.leases, &lease(name).build());
    }
    caches
}

fn key() -> Key {
    Key::new("", NAME)
}

/// After a live read that found the Leases of the cache.
fn read(storage_version: &ObjectBuilder, leases: &[&str]) -> Observed {
    let observed = cluster(storage_version, leases).observe(&key()).unwrap();
    let dead: BTreeSet<Text> = observed.unseen.iter().cloned().collect();
    Observed { live: Some(Live::Found { object: storage_version.json().clone(), dead }), ..observed }
}

fn executed(observed: &Observed) -> Plan {
    match plan(observed) {
        Next::Execute(plan) => plan,
        Next::Ask(live_read) => unreachable!("{live_read}"),
    }
}

/// The StorageVersion after its sync; none if it is deleted, or stays as it is.
fn written(observed: &Observed) -> Option<Value> {
    let Plan::Shrink { entries, dead: _ } = executed(observed) else { return None };
    next_status(observed, &Outcome { entries: Some(entries) }, NOW)
}

/// Entries, common version, and the condition with whether its time is now.
fn summary(object: &Value) -> String {
    let status = &object["status"];
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let entries = status["storageVersions"].as_array().unwrap().iter();
    let entries: Vec<String> =
        entries.map(|entry| format!("{}:{}", text(&entry["apiServerID"]), text(&entry["encodingVersion"]))).collect();
    let conditions = status["conditions"].as_array().unwrap().iter().map(|condition| {
        let fields = [&condition["type"], &condition["status"], &condition["reason"], &condition["message"]].map(text);
        let is_now = condition["lastTransitionTime"] == NOW.to_string();
        format!("{} ({})", fields.join(" "), if is_now { "now" } else { "then" })
    });
    let common = text(&status["commonEncodingVersion"]);
    format!("{}; common {common}; {}", entries.join(" "), conditions.collect::<Vec<_>>().join(", "))
}

const SET: &str = "AllEncodingVersionsEqual True CommonEncodingVersionSet Common encoding version set";
const UNSET: &str = "AllEncodingVersionsEqual False CommonEncodingVersionUnset Common encoding version unset";

/// Upstream: `Test_StorageVersionUpdatedWithAllEncodingVersionsEqualOnLeaseDeletion`.
#[test]
fn the_apiservers_that_are_left_agree_on_a_version() {
    let before = storage_version(&["a-1:v1", "a-2:v2", "a-3:v2"]).set(&["status", "commonEncodingVersion"], "v1");
    let observed = read(&before, &["a-2", "a-3"]);
    assert_eq!(executed(&observed).to_string(), "drop 1 of 3 entries (apiservers without a Lease: a-1)");
    assert_eq!(summary(&written(&observed).unwrap()), format!("a-2:v2 a-3:v2; common v2; {SET} (now)"));
}

/// Upstream: `Test_StorageVersionUpdatedWithDifferentEncodingVersionsOnLeaseDeletion`. No entry names that Lease.
#[test]
fn a_lease_that_no_entry_names_changes_nothing() {
    let before = storage_version(&["a-1:v1", "a-3:v2"]).set(&["status", "commonEncodingVersion"], "v1");
    let caches = cluster(&before, &["a-1", "a-3"]);
    let gone: Arc<Lease> = lease("a-2").build();
    assert_eq!(caches.lease_changed(Change::Deleted(&gone)), []);
    assert_eq!(plan(&caches.observe(&key()).unwrap()).to_string(), "keep (apiservers with a Lease: 2)");
}

/// Upstream: `Test_StorageVersionContainsInvalidLeaseID`.
#[test]
fn an_entry_without_a_lease_goes() {
    let entries = ["a-1:v1", "a-2:v2", "a-3:v2", "a-4:v2"];
    let before = storage_version(&entries).set(&["status", "commonEncodingVersion"], "v1");
    let observed = read(&before, &["a-1", "a-2", "a-3"]);
    let expected = format!("a-1:v1 a-2:v2 a-3:v2; common none; {UNSET} (now)");
    assert_eq!(summary(&written(&observed).unwrap()), expected);
}

/// Upstream: `Test_StorageVersionDeletedOnLeaseDeletion`.
#[test]
fn a_storage_version_without_a_living_apiserver_goes() {
    let observed = read(&storage_version(&["a-1:v1"]), &[]);
    assert_eq!(executed(&observed).to_string(), "delete (no apiserver has a Lease: a-1)");
    let Plan::Delete { preconditions, dead: _ } = executed(&observed) else { unreachable!("as it says") };
    let metadata = &observed.storage_version.metadata;
    assert_eq!(preconditions.uid, metadata.uid.to_string());
    assert_eq!(preconditions.resource_version, Some(metadata.resource_version.to_string()));
}

#[test]
fn a_lease_that_the_cache_lacks_is_read_before_an_entry_goes() {
    let before = storage_version(&["a-1:v1", "a-2:v1"]);
    let observed = cluster(&before, &["a-1"]).observe(&key()).unwrap();
    let expected = "reread it and the Leases of its apiservers (no Lease in the cache: a-2)";
    assert_eq!(plan(&observed).to_string(), expected);
    let alive = Live::Found { object: before.json().clone(), dead: BTreeSet::new() };
    let alive = Observed { live: Some(alive), ..observed.clone() };
    assert_eq!(executed(&alive).to_string(), "keep (each apiserver has a Lease)");
    let gone = Observed { live: Some(Live::Gone), ..observed };
    assert_eq!(executed(&gone).to_string(), "keep (deleted already)");
}

#[test]
fn a_condition_keeps_its_time_while_status_and_version_stay() {
    let known = |status: &str| {
        json!([
            { "type": "Other", "status": "True" },
            { "type": "AllEncodingVersionsEqual", "status": status, "lastTransitionTime": ago(60).to_string() },
        ])
    };
    let condition = |entries: &[&str], common: &str, status: &str| {
        let before = storage_version(entries).set(&["status", "commonEncodingVersion"], common);
        let observed = read(&before.set(&["status", "conditions"], known(status)), &["a-1", "a-2"]);
        let summary = summary(&written(&observed).unwrap());
        summary.rsplit_once("(then), ").unwrap().1.to_owned()
    };
    assert_eq!(condition(&["a-1:v1", "a-2:v1", "x:v1"], "v1", "True"), format!("{SET} (then)"));
    assert_eq!(condition(&["a-1:v2", "a-2:v2", "x:v2"], "v1", "True"), format!("{SET} (now)"), "another version");
    assert_eq!(condition(&["a-1:v1", "a-2:v2", "x:v2"], "v1", "True"), format!("{UNSET} (now)"));
    assert_eq!(condition(&["a-1:v1", "a-2:v2", "x:v2"], "", "False"), format!("{UNSET} (then)"));
}

#[test]
fn fields_that_this_build_does_not_know_stay() {
    let before = storage_version(&["a-1:v1", "x:v1"]).set(&["status", "newer"], "kept").label("mine", "yes");
    let written = written(&read(&before, &["a-1"])).unwrap();
    assert_eq!((&written["status"]["newer"], &written["metadata"]["labels"]["mine"]), (&json!("kept"), &json!("yes")));
    assert_eq!(written["status"]["storageVersions"], json!([entry("a-1:v1")]));
}

#[test]
fn a_storage_version_is_synced_if_a_lease_is_missing_or_goes() {
    let entries = storage_version(&["a-1:v1", "a-2:v1"]);
    let (new, gone): (Arc<StorageVersion>, Arc<Lease>) = (entries.build(), lease("a-2").build());
    let keys = |effects: Vec<Effect>| effects.iter().filter(|effect| matches!(effect, Effect::Enqueue(..))).count();
    let caches = cluster(&entries, &["a-1", "a-2"]);
    assert_eq!(keys(caches.storage_version_changed(Change::Added(&new))), 0);
    assert_eq!(keys(caches.lease_changed(Change::Added(&gone))), 0);
    assert_eq!(keys(caches.lease_changed(Change::Deleted(&gone))), 1);
    let caches = cluster(&entries, &["a-1"]);
    assert_eq!(keys(caches.storage_version_changed(Change::Added(&new))), 1);
    assert_eq!(keys(caches.storage_version_changed(Change::Updated { old: &new, new: &new })), 1);
    assert_eq!(keys(caches.storage_version_changed(Change::Deleted(&new))), 0);
}

proptest! {
    /// No entry of a living apiserver goes, none of a dead one stays, and a second sync finds nothing to do.
    #[test]
    fn exactly_the_entries_of_dead_apiservers_go(
        entries in proptest::collection::btree_map("[a-e]", "v[12]", 0..5),
        alive in proptest::collection::btree_set("[a-e]", 0..5),
    ) {
        let texts: Vec<String> = entries.iter().map(|(apiserver, version)| format!("{apiserver}:{version}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let leases: Vec<&str> = alive.iter().map(String::as_str).collect();
        let observed = read(&storage_version(&texts), &leases);
        let kept: Vec<&String> = entries.keys().filter(|apiserver| alive.contains(*apiserver)).collect();
        match executed(&observed) {
            Plan::Keep(_) => prop_assert_eq!(kept.len(), entries.len()),
            Plan::Delete { .. } => prop_assert!(kept.is_empty() && !entries.is_empty()),
            Plan::Shrink { entries: left, dead } => {
                let names: Vec<&str> = left.iter().map(|entry| entry["apiServerID"].as_str().unwrap()).collect();
                prop_assert_eq!(&names, &kept);
                prop_assert_eq!(dead.len() + left.len(), entries.len());
                let texts: Vec<&str> = texts.iter().copied().filter(|text| names.contains(&&text[..1])).collect();
                prop_assert!(matches!(executed(&read(&storage_version(&texts), &leases)), Plan::Keep(_)));
            }
        }
    }
}
