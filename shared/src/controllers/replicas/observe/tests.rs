use super::*;
use crate::controllers::replicas::fixtures::{Set, selecting};
use crate::testing::{NOW, pod, store};
use serde_json::json;

/// Caches of these owners.
fn caches(owners: &[&Arc<Set>]) -> Caches<Set> {
    let (caches, _) = Caches::new();
    for owner in owners {
        store(&caches.owners, owner);
    }
    caches
}

/// Upstream: `TestRelatedPodsLookup` and `TestGetReplicaSetsWithSameController`.
#[test]
fn pods_of_owners_under_one_controller_are_related() {
    let under = |controller: &str, app: &str| {
        let controller: Arc<Set> = selecting(controller, "any").build();
        selecting(app, app).owned_by(&*controller).terminating().build::<Set>()
    };
    let (web, canary, other) = (under("one", "web"), under("one", "canary"), under("two", "other"));
    let alone: Arc<Set> = selecting("alone", "alone").build();
    let caches = caches(&[&web, &canary, &other, &alone]);
    for (name, owner, app) in [
        ("a", &web, "web"),
        ("b", &canary, "canary"),
        ("c", &other, "other"),
        ("d", &alone, "alone"),
        ("e", &web, "relabelled"),
    ] {
        store(&caches.pods, &pod(name).label("app", app).owned_by(&**owner).build());
    }
    let names =
        |pods: Vec<Arc<Pod>>| pods.iter().map(|pod| pod.metadata.name().to_owned()).collect::<Vec<_>>().join(",");
    assert_eq!(names(caches.related_pods(&web)), "b,a");
    assert_eq!(names(caches.related_pods(&other)), "c");
    assert_eq!(names(caches.related_pods(&alone)), "");
}

/// Upstream: `TestFilterPodsByOwner`.
#[test]
fn an_owners_pods_are_its_own_and_the_orphans_of_its_namespace() {
    let (web, db): (Arc<Set>, Arc<Set>) = (selecting("web", "web").build(), selecting("db", "db").build());
    let caches = caches(&[&web, &db]);
    let owned = |name: &str, field: &str, value: serde_json::Value| {
        let mut reference = pod("a").owned_by(&*web).json()["metadata"]["ownerReferences"][0].clone();
        reference[field] = value;
        pod(name).set(&["metadata", "ownerReferences"], json!([reference]))
    };
    for pod in [
        pod("owned").owned_by(&*web),
        pod("orphan"),
        pod("elsewhere").namespace("elsewhere"),
        pod("other").owned_by(&*db),
        pod("gone").owned_by(&*web).terminating().created(NOW),
        // These speak of its uid, and are not its own all the same.
        pod("stranger").owned_by(&*web).namespace("elsewhere"),
        owned("of-another-kind", "kind", json!("Job")),
        owned("of-another-name", "name", json!("db")),
    ] {
        store(&caches.pods, &pod.build());
    }
    let names = |pods: &[Arc<Pod>]| pods.iter().map(|pod| pod.metadata.name().to_owned()).collect::<Vec<_>>().join(",");
    assert_eq!(names(&caches.claims.candidates(&web)), "gone,owned,orphan");
    // No controller, so an orphan.
    store(&caches.pods, &owned("owned", "controller", json!(false)).build());
    assert_eq!(names(&caches.claims.candidates(&web)), "gone,orphan,owned");
}
