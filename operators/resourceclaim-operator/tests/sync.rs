//! The operator as it is, against an apiserver in the test's process: its informers, its syncs, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use resourceclaim_operator::controller::ResourceClaimOperator;
use resourceclaim_operator::objects::PROTECTION;
use serde_json::{Value, json};
use shared::api::resource::{POD_GROUPS, Resource};
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, the_first_one_waits};
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{LARGE_BYTES, ObjectBuilder, object, pod};

const CLAIMS: &str = "resourceclaims";
const TEMPLATES: &str = "resourceclaimtemplates";
const CREATE: &str = "create resourceclaims";
const WEB: &str = "default/web";
const SHARED: &str = "default/shared";
const GATE: &[&str] = &["--feature-gates=DRAWorkloadResourceClaims=true"];

/// By then it has noticed in any case whether the kind is served.
const NOTICED: Duration = Duration::from_secs(301);

fn template() -> ObjectBuilder {
    let requests = json!([{ "name": "gpu", "exactly": { "deviceClassName": "gpu.example.com" } }]);
    object("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu").set(&["spec", "spec", "devices", "requests"], requests)
}

fn templated(entry: &str) -> Value {
    json!({ "name": entry, "resourceClaimTemplateName": "gpu" })
}

fn given(claim: &str) -> Value {
    json!({ "name": "given", "resourceClaimName": claim })
}

/// A pod without a node, with these entries.
fn user(name: &str, entries: &[Value]) -> ObjectBuilder {
    pod(name).phase("Pending").node("").set(&["spec", "resourceClaims"], json!(entries))
}

fn claim(name: &str) -> ObjectBuilder {
    object("resource.k8s.io/v1", "ResourceClaim", name)
}

/// A claim that has devices.
fn allocated(name: &str) -> ObjectBuilder {
    claim(name)
        .set(&["metadata", "finalizers"], json!([PROTECTION.finalizer]))
        .set(&["status", "allocation"], json!({}))
}

fn consumer(server: &Server, pod: &str) -> Value {
    let metadata = server.get("pods", pod).unwrap()["metadata"].clone();
    json!({ "resource": "pods", "name": metadata["name"], "uid": metadata["uid"] })
}

/// The names of the claims that the status of a pod or PodGroup records.
fn recorded(server: &Server, resource: &str, user: &str) -> Vec<String> {
    let statuses = server.get(resource, user).unwrap()["status"]["resourceClaimStatuses"].clone();
    let name = |status: &Value| status["resourceClaimName"].as_str().unwrap().to_owned();
    statuses.as_array().into_iter().flatten().map(name).collect()
}

/// Plays the scheduler: allocates the claims of a pod, reserves them, and binds the pod.
fn schedule(server: &Server, pod: &str) {
    schedule_for(server, pod, &consumer(server, pod));
}

fn schedule_for(server: &Server, pod: &str, consumer: &Value) {
    for name in recorded(server, "pods", pod) {
        server.change(CLAIMS, &format!("default/{name}"), |claim| {
            claim["metadata"]["finalizers"] = json!([PROTECTION.finalizer]);
            claim["status"] = json!({ "allocation": {}, "reservedFor": [consumer] });
        });
    }
    server.change("pods", pod, |pod| {
        pod["spec"]["nodeName"] = json!("node");
        pod["status"]["phase"] = json!("Running");
    });
}

fn set_phase(server: &Server, pod: &str, phase: &str) {
    server.change("pods", pod, |pod| pod["status"]["phase"] = json!(phase));
}

fn users(server: &Server, claim: &str) -> Vec<String> {
    let users = server.get(CLAIMS, claim).unwrap()["status"]["reservedFor"].clone();
    users.as_array().into_iter().flatten().map(|user| user["name"].as_str().unwrap().to_owned()).collect()
}

/// What is left of a claim that was freed: neither devices nor the finalizer.
fn is_free(server: &Server, claim: &str) -> bool {
    let claim = server.get(CLAIMS, claim).unwrap();
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    claim["status"]["allocation"].is_null()
        && is_empty(&claim["status"]["reservedFor"])
        && is_empty(&claim["metadata"]["finalizers"])
}

async fn start(server: &Server) -> Running {
    start_at_rest::<ResourceClaimOperator>(server, &[]).await
}

/// Starts the operator where a sync fails again and again.
async fn start_failing(server: &Server) -> Running {
    let running = Running::start::<ResourceClaimOperator>(server, &[]);
    running.pass(Duration::from_secs(5)).await;
    running
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&template());
                server.add(&user("web", &[templated("a"), templated("b")]));
                server.add(&user("other", &[templated("a")]));
                server.add(&allocated("shared"));
            }),
            Do(|server| [WEB, "default/other"].iter().for_each(|pod| schedule(server, pod))),
            Do(|server| {
                for name in ["first", "second"] {
                    server.add(&user(name, &[given("shared")]).node("node"));
                }
            }),
            Do(|server| set_phase(server, WEB, "Succeeded")),
            Do(|server| server.delete("pods", "default/first")),
            Do(|server| server.delete(CLAIMS, SHARED)),
            Do(|server| server.delete("pods", "default/second")),
        ];
        let server = survives_kills::<ResourceClaimOperator>(&[], &life).await;
        assert_eq!(server.keys(CLAIMS).len(), 1, "that of the other pod: {:?}", server.keys(CLAIMS));
        assert_eq!(users(&server, &server.keys(CLAIMS)[0]), ["other"]);
    });
}

#[test]
fn a_pod_gets_its_claims_and_their_names_in_one_record() {
    test(async {
        let server = Server::new();
        server.add(&template());
        server.add(&user("web", &[templated("a"), given("shared"), templated("b")]));
        start(&server).await;
        let claims = server.keys(CLAIMS);
        assert!(claims[0].starts_with("default/web-a-") && claims[1].starts_with("default/web-b-"), "{claims:?}");
        let names = recorded(&server, "pods", WEB);
        assert_eq!(names.iter().map(|name| format!("default/{name}")).collect::<Vec<_>>(), claims);
        assert_eq!(server.writes().len(), 3, "{:?}", server.writes());
        let owner = server.get(CLAIMS, &claims[0]).unwrap()["metadata"]["ownerReferences"].clone();
        let uid = server.get("pods", WEB).unwrap()["metadata"]["uid"].clone();
        assert_eq!(
            owner,
            json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true }])
        );
    });
}

#[test]
fn a_creation_whose_answer_is_lost_is_found_and_not_repeated() {
    test(async {
        let server = Server::new();
        server.add(&template());
        server.on("create", CLAIMS).once().lose();
        server.add(&user("web", &[templated("a"), templated("b")]));
        start(&server).await;
        assert_eq!((server.count(CREATE), server.keys(CLAIMS).len()), (2, 2));
        assert_eq!(recorded(&server, "pods", WEB).len(), 2);
    });
}

#[test]
fn a_record_whose_answer_is_lost_is_written_no_more() {
    test(async {
        let server = Server::new();
        server.add(&template());
        server.on("patch", "pods/status").once().lose();
        server.add(&user("web", &[templated("a")]));
        start(&server).await;
        assert_eq!((server.count(CREATE), recorded(&server, "pods", WEB).len()), (1, 1));
    });
}

/// Upstream: `TestSyncHandler`, "create-conflict", `pkg/controller/resourceclaim/controller_test.go`.
#[test]
fn a_creation_that_fails_is_reported_and_tried_again() {
    test(async {
        let server = Server::new();
        server.add(&template());
        server.on("create", CLAIMS).times(2).answer(409, "Conflict", "fake conflict");
        server.add(&user("web", &[templated("a")]));
        start(&server).await;
        assert_eq!((server.count(CREATE), server.keys(CLAIMS).len()), (3, 1));
        let event = "Warning FailedResourceClaimCreation: PodResourceClaim a: create ResourceClaim : ";
        assert!(server.events().iter().all(|shown| shown.starts_with(event)), "{:?}", server.events());
        assert!(!server.events().is_empty());
    });
}

#[test]
fn a_missing_template_is_reported_and_waited_for() {
    test(async {
        let server = Server::new();
        // Another one, or nobody would follow the pods.
        server.add(&template().set(&["metadata", "name"], "another"));
        server.add(&user("web", &[templated("a")]));
        let running = start_failing(&server).await;
        let message = "PodResourceClaim a: resource claim template \"gpu\": resourceclaimtemplate.resource.k8s.io \
                       \"gpu\" not found";
        let event = format!("Warning FailedResourceClaimCreation: {message}");
        assert_eq!(server.events(), [event]);
        server.add(&template());
        running.at_rest().await;
        assert_eq!(recorded(&server, "pods", WEB).len(), 1);
    });
}

#[test]
fn a_large_template_is_copied_whole() {
    test(async {
        let server = Server::new();
        let large = "x".repeat(LARGE_BYTES);
        server.add(&template().set(&["spec", "spec", "devices", "config"], json!([{ "opaque": large }])));
        server.add(&user("web", &[templated("a")]));
        start(&server).await;
        let claim = server.get(CLAIMS, &server.keys(CLAIMS)[0]).unwrap();
        assert_eq!(claim["spec"]["devices"]["config"][0]["opaque"].as_str().map(str::len), Some(LARGE_BYTES));
        assert_eq!(server.count("get resourceclaimtemplates default/gpu"), 1);
    });
}

#[test]
fn a_claim_that_was_deleted_comes_again_while_its_pod_needs_it() {
    test(async {
        let server = Server::new();
        server.add(&template());
        server.add(&user("web", &[templated("a"), templated("b")]));
        let running = start(&server).await;
        let [first, second] = recorded(&server, "pods", WEB).try_into().unwrap();
        server.delete(CLAIMS, &format!("default/{first}"));
        running.at_rest().await;
        let names = recorded(&server, "pods", WEB);
        assert_eq!((server.count(CREATE), names.len()), (3, 2));
        assert!(names[0] != first && names[1] == second, "{names:?}");
        set_phase(&server, WEB, "Failed");
        running.at_rest().await;
        assert_eq!((server.count(CREATE), server.keys(CLAIMS).len()), (3, 0), "a pod that has ended needs none");
    });
}

#[test]
fn claims_of_pods_that_ended_while_nobody_worked_are_freed_at_the_start() {
    test(async {
        let server = Server::new();
        server.add(&template());
        for name in ["web", "gone", "running"] {
            server.add(&user(name, &[templated("a")]));
        }
        let running = start(&server).await;
        for name in ["web", "gone", "running"] {
            schedule(&server, &format!("default/{name}"));
        }
        running.at_rest().await;
        let of = |name: &str| format!("default/{}", recorded(&server, "pods", &format!("default/{name}"))[0]);
        let [web, gone, kept] = ["web", "gone", "running"].map(of);
        drop(running);
        set_phase(&server, WEB, "Succeeded");
        server.delete("pods", "default/gone");
        // Made before the process ended, and recorded nowhere.
        let unrecorded = user("late", &[templated("a")]).phase("Failed");
        server.add(&unrecorded);
        let uid = server.get("pods", "default/late").unwrap()["metadata"]["uid"].clone();
        let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "late", "uid": uid, "controller": true }]);
        server.add(&claim("late-a-x").set(&["metadata", "ownerReferences"], owner));
        let _running = start(&server).await;
        // The garbage collector deletes the claim of a pod that is gone.
        assert_eq!(server.keys(CLAIMS), [gone.clone(), kept.clone()]);
        assert!(is_free(&server, &gone), "{:?}", server.get(CLAIMS, &gone));
        assert_eq!((users(&server, &kept), server.get(CLAIMS, &web)), (vec!["running".to_owned()], None));
        assert_eq!(server.count("get pods"), 1, "the one that is gone");
    });
}

#[test]
fn a_claim_stays_with_a_pod_that_the_cache_does_not_show_yet() {
    test(async {
        let server = Server::new();
        server.add(&allocated("shared"));
        server.add(&user("web", &[given("shared")]));
        let running = start(&server).await;
        server.hold_watches("pods");
        server.delete("pods", WEB);
        server.add(&user("web", &[given("shared")]).uid_of("another").node("node"));
        let consumer = consumer(&server, WEB);
        server.change(CLAIMS, SHARED, |claim| claim["status"]["reservedFor"] = json!([consumer]));
        running.at_rest().await;
        assert_eq!((users(&server, SHARED), server.count("get pods default/web")), (vec!["web".to_owned()], 1));
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!((users(&server, SHARED), server.writes().len()), (vec!["web".to_owned()], 0));
    });
}

#[test]
fn nothing_is_freed_while_the_live_read_fails() {
    test(async {
        let server = Server::new();
        let nobody = json!([{ "resource": "pods", "name": "web", "uid": "00000000-0000-4000-8000-000000000000" }]);
        server.add(&allocated("shared").set(&["status", "reservedFor"], nobody));
        let refused = server.on("get", "pods").answer(500, "InternalError", "no");
        let running = start_failing(&server).await;
        assert_eq!(server.writes(), [""; 0]);
        refused.times(0);
        running.at_rest().await;
        assert!(is_free(&server, SHARED));
    });
}

#[test]
fn a_claim_is_freed_from_users_whose_names_no_object_can_have() {
    test(async {
        let server = Server::new();
        let user = |name: &str, uid: &str| json!({ "resource": "pods", "name": name, "uid": uid });
        let users = [user("a/status", "00000000-0000-4000-8000-000000000000"), user("..", "odd")];
        server.add(&allocated("shared").set(&["status", "reservedFor"], json!(users)));
        start(&server).await;
        assert!(is_free(&server, SHARED));
        assert_eq!(server.count("get pods"), 0);
    });
}

/// A proxy in between may answer so.
#[test]
fn an_unknown_path_does_not_show_that_a_user_or_a_claim_is_gone() {
    test(async {
        let server = Server::new();
        let nobody = json!([{ "resource": "pods", "name": "web", "uid": "00000000-0000-4000-8000-000000000000" }]);
        server.add(&allocated("shared").set(&["status", "reservedFor"], nobody));
        let unknown = server.on("get", "pods").answer(404, "", "404 page not found");
        server.on("patch", "resourceclaims/status").once().answer(404, "", "404 page not found");
        let running = start_failing(&server).await;
        assert_eq!((unknown.count() > 1, server.writes()), (true, Vec::new()));
        unknown.times(0);
        running.at_rest().await;
        assert!(is_free(&server, SHARED));
    });
}

#[test]
fn a_claim_that_the_scheduler_reserves_meanwhile_stays_allocated() {
    test(async {
        let server = Server::new();
        server.add(&allocated("shared"));
        for name in ["old", "new"] {
            server.add(&user(name, &[given("shared")]));
        }
        let old = consumer(&server, "default/old");
        server.change(CLAIMS, SHARED, |claim| claim["status"]["reservedFor"] = json!([old]));
        let running = start(&server).await;
        let held = server.on("patch", "resourceclaims/status").once().hold();
        server.delete("pods", "default/old");
        held.arrived().await;
        let both = json!([old, consumer(&server, "default/new")]);
        server.change(CLAIMS, SHARED, |claim| claim["status"]["reservedFor"] = both);
        held.release();
        running.at_rest().await;
        assert_eq!((users(&server, SHARED), is_free(&server, SHARED)), (vec!["new".to_owned()], false));
        let finalizers = server.get(CLAIMS, SHARED).unwrap()["metadata"]["finalizers"].clone();
        assert_eq!(finalizers, json!([PROTECTION.finalizer]));
    });
}

#[test]
fn a_claim_that_is_allocated_again_before_its_finalizer_goes_keeps_it() {
    test(async {
        let server = Server::new();
        server.add(&allocated("shared"));
        server.add(&user("old", &[given("shared")]));
        let old = consumer(&server, "default/old");
        server.change(CLAIMS, SHARED, |claim| claim["status"]["reservedFor"] = json!([old]));
        let running = start(&server).await;
        let held = server.on("patch", CLAIMS).once().hold();
        server.delete("pods", "default/old");
        held.arrived().await;
        server.add(&user("new", &[given("shared")]));
        let new = json!({ "allocation": {}, "reservedFor": [consumer(&server, "default/new")] });
        server.change(CLAIMS, SHARED, |claim| claim["status"] = new);
        held.release();
        running.at_rest().await;
        let claim = server.get(CLAIMS, SHARED).unwrap();
        assert_eq!(claim["metadata"]["finalizers"], json!([PROTECTION.finalizer]));
        assert_eq!(users(&server, SHARED), ["new"]);
    });
}

#[test]
fn a_shared_claim_is_reserved_for_pods_that_were_bound_past_the_scheduler_and_never_for_ended_ones() {
    test(async {
        let server = Server::new();
        server.add(&allocated("shared"));
        let running = start(&server).await;
        for name in ["a", "b"] {
            server.add(&user(name, &[given("shared")]).node("node").phase("Running"));
        }
        running.at_rest().await;
        assert_eq!(users(&server, SHARED), ["a", "b"]);
        set_phase(&server, "default/a", "Succeeded");
        running.at_rest().await;
        assert_eq!((users(&server, SHARED), is_free(&server, SHARED)), (vec!["b".to_owned()], false));
        let writes = server.writes().len();
        server.change(CLAIMS, SHARED, |claim| claim["metadata"]["labels"] = json!({ "a": "b" }));
        running.at_rest().await;
        assert_eq!(server.writes().len(), writes);
        set_phase(&server, "default/b", "Failed");
        running.at_rest().await;
        assert!(is_free(&server, SHARED));
        assert_eq!(server.count("get pods"), 0, "the cache shows that they have ended");
    });
}

#[test]
fn the_claim_of_extended_resources_goes_with_its_pod() {
    test(async {
        let server = Server::new();
        server.add(&pod("web"));
        let uid = server.get("pods", WEB).unwrap()["metadata"]["uid"].clone();
        let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true }]);
        let extended = allocated("web-extended-resources-x")
            .annotation("resource.kubernetes.io/extended-resource-claim", "true")
            .set(&["metadata", "ownerReferences"], owner)
            .set(&["status", "reservedFor"], json!([consumer(&server, WEB)]));
        server.add(&extended);
        server.change("pods", WEB, |pod| {
            pod["status"]["extendedResourceClaimStatus"] = json!({ "resourceClaimName": "web-extended-resources-x" });
        });
        let running = start(&server).await;
        assert_eq!(server.writes(), [""; 0]);
        set_phase(&server, WEB, "Succeeded");
        running.at_rest().await;
        assert_eq!(server.keys(CLAIMS), [""; 0]);
    });
}

#[test]
fn a_pod_that_was_replaced_gets_no_record_of_the_former_ones_claims() {
    test(async {
        let server = Server::new();
        server.add(&template());
        let running = start(&server).await;
        let held = server.on("create", CLAIMS).once().hold();
        server.add(&user("web", &[templated("a")]));
        held.arrived().await;
        server.hold_watches("pods");
        server.delete("pods", WEB);
        server.add(&user("web", &[templated("a")]).uid_of("another"));
        held.release();
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(recorded(&server, "pods", WEB), [""; 0]);
        server.release_watches("pods");
        running.at_rest().await;
        let name = format!("default/{}", recorded(&server, "pods", WEB)[0]);
        let uid = server.get("pods", WEB).unwrap()["metadata"]["uid"].clone();
        assert_eq!(server.get(CLAIMS, &name).unwrap()["metadata"]["ownerReferences"][0]["uid"], uid);
        server.delete("pods", WEB);
        running.at_rest().await;
        assert_eq!(server.count(CREATE), 2);
    });
}

fn group() -> ObjectBuilder {
    with_entry(object("scheduling.k8s.io/v1alpha2", "PodGroup", "train"))
}

fn with_entry(group: ObjectBuilder) -> ObjectBuilder {
    group.set(&["spec", "resourceClaims"], json!([templated("a")]))
}

fn member(name: &str) -> ObjectBuilder {
    user(name, &[templated("a")]).set(&["spec", "schedulingGroup", "podGroupName"], "train")
}

/// Upstream: `TestSyncHandler`, "create-conflict-podgroup".
#[test]
fn the_pods_of_a_pod_group_share_its_claim() {
    test(async {
        let server = Server::new();
        server.add(&template());
        server.on("create", CLAIMS).once().answer(409, "Conflict", "fake conflict");
        let running = start_at_rest::<ResourceClaimOperator>(&server, GATE).await;
        for name in ["web", "other"] {
            server.add(&member(name));
        }
        running.at_rest().await;
        assert_eq!(server.writes(), [""; 0]);
        server.add(&group());
        running.at_rest().await;
        let [claim] = recorded(&server, "podgroups", "default/train").try_into().unwrap();
        assert!(claim.starts_with("train-a-"), "{claim}");
        let event = "Warning FailedResourceClaimCreation: PodGroupResourceClaim a: create ResourceClaim : ";
        assert!(server.events().iter().all(|shown| shown.starts_with(event)), "{:?}", server.events());
        assert_eq!(server.keys(CLAIMS), [format!("default/{claim}")]);
        for name in ["default/web", "default/other"] {
            assert_eq!(recorded(&server, "pods", name), std::slice::from_ref(&claim));
        }
        let key = format!("default/{claim}");
        let uid = server.get("podgroups", "default/train").unwrap()["metadata"]["uid"].clone();
        let consumer = json!({ "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": uid });
        server.change(CLAIMS, &key, |claim| {
            claim["metadata"]["finalizers"] = json!([PROTECTION.finalizer]);
            claim["status"] = json!({ "allocation": {}, "reservedFor": [consumer] });
        });
        for name in ["default/web", "default/other"] {
            server.change("pods", name, |pod| pod["spec"]["nodeName"] = json!("node"));
            server.delete("pods", name);
        }
        running.at_rest().await;
        assert_eq!(users(&server, &key), ["train"]);
        server.delete("podgroups", "default/train");
        running.at_rest().await;
        assert!(is_free(&server, &key));
        assert_eq!(server.count("get podgroups"), 0);
    });
}

#[test]
fn survives_a_kill_before_any_write_for_a_pod_group() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&template());
                server.add(&group());
                for name in ["web", "other"] {
                    server.add(&member(name));
                }
            }),
            Do(|server| {
                let uid = server.get("podgroups", "default/train").unwrap()["metadata"]["uid"].clone();
                let group =
                    json!({ "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": uid });
                schedule_for(server, WEB, &group);
            }),
            Do(|server| ["default/web", "default/other"].iter().for_each(|pod| server.delete("pods", pod))),
            Do(|server| server.delete("podgroups", "default/train")),
            // As the garbage collector does.
            Do(|server| server.keys(CLAIMS).iter().for_each(|claim| server.delete(CLAIMS, claim))),
        ];
        let server = survives_kills::<ResourceClaimOperator>(GATE, &life).await;
        assert_eq!((server.keys(CLAIMS), server.count(CREATE)), (vec![], 1));
    });
}

/// Upstream's controller of 1.37 reads the first of these, and that of 1.36 the last.
#[test]
fn a_pod_group_gets_its_claim_in_each_version_in_which_apiservers_serve_it() {
    for version in ["v1beta1", "v1alpha3", "v1alpha2"] {
        test(async {
            let server = Server::new();
            server.withdraw("podgroups");
            server.serve(Resource { version: version.into(), ..POD_GROUPS });
            server.add(&template());
            let api_version = format!("scheduling.k8s.io/{version}");
            server.add(&with_entry(object(&api_version, "PodGroup", "train")));
            start_at_rest::<ResourceClaimOperator>(&server, GATE).await;
            let [claim] = recorded(&server, "podgroups", "default/train").try_into().unwrap();
            let claim = server.get(CLAIMS, &format!("default/{claim}")).unwrap();
            let owner = &claim["metadata"]["ownerReferences"][0];
            assert_eq!((&owner["apiVersion"], &owner["kind"]), (&json!(api_version), &json!("PodGroup")));
        });
    }
}

/// The feature gate may be on in this process alone.
#[test]
fn pods_get_their_claims_where_pod_groups_are_not_served() {
    test(async {
        let server = Server::new();
        server.withdraw("podgroups");
        server.add(&template());
        server.add(&user("web", &[templated("a")]));
        let running = start_at_rest::<ResourceClaimOperator>(&server, GATE).await;
        assert_eq!((recorded(&server, "pods", WEB).len(), server.count("list podgroups")), (1, 0));
        server.serve(POD_GROUPS);
        server.add(&group());
        running.pass(NOTICED).await;
        assert_eq!(recorded(&server, "podgroups", "default/train").len(), 1);
    });
}

#[test]
fn a_pod_group_that_is_not_served_any_more_keeps_its_claim() {
    test(async {
        let server = Server::new();
        server.add(&object("scheduling.k8s.io/v1alpha2", "PodGroup", "train"));
        let uid = server.get("podgroups", "default/train").unwrap()["metadata"]["uid"].clone();
        let train = json!({ "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": uid });
        server.add(&allocated("shared").set(&["status", "reservedFor"], json!([train])));
        let running = start_at_rest::<ResourceClaimOperator>(&server, GATE).await;
        server.withdraw("podgroups");
        // The cache keeps its objects a while longer.
        running.pass(Duration::from_mins(15)).await;
        server.change(CLAIMS, SHARED, |claim| claim["metadata"]["labels"] = json!({ "a": "b" }));
        running.pass(Duration::from_mins(1)).await;
        let path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/shared";
        let reads = "read its users (not in the caches: podgroups.scheduling.k8s.io/train)";
        assert_eq!(running.why(path).keys[0].now[0].text, reads);
        assert_eq!(server.writes(), [""; 0]);
    });
}

/// Upstream: `TestEventHandlers`, "new-podgroup-feature-disabled" and "podgroup-claim-status-update-feature-disabled".
#[test]
fn without_the_gate_nobody_asks_for_pod_groups_and_pods_have_claims_of_their_own() {
    test(async {
        let server = Server::new();
        server.add(&template());
        server.add(&group());
        server.add(&member("web"));
        let running = start(&server).await;
        server.change("podgroups", "default/train", |group| group["status"] = json!({ "resourceClaimStatuses": [] }));
        running.at_rest().await;
        assert!(server.requests().iter().all(|request| !request.contains("podgroups")), "{:?}", server.requests());
        assert!(recorded(&server, "pods", WEB)[0].starts_with("web-a-"));
    });
}

#[test]
fn pods_are_followed_only_while_a_claim_or_a_template_is_there() {
    test(async {
        for (resource, object) in [(CLAIMS, claim("gpu")), (TEMPLATES, template())] {
            let server = Server::new();
            server.add(&pod("web"));
            let remove = |server: &Server| server.delete(resource, "default/gpu");
            let add = |server: &Server| server.add(&object);
            is_followed_only_while_needed::<ResourceClaimOperator>(&server, "pods default/", add, remove).await;
        }
    });
}

#[test]
fn no_claim_is_freed_before_the_pods_of_its_namespace_are_known() {
    let first = |server: &Server| {
        server.add(&user("web", &[given("shared")]).node("node"));
        let users = json!([consumer(server, WEB)]);
        server.add(&allocated("shared").set(&["status", "reservedFor"], users));
    };
    let then = |server: &Server| {
        assert_eq!((users(server, SHARED), server.writes().len()), (vec!["web".to_owned()], 0));
    };
    test(the_first_one_waits::<ResourceClaimOperator>(&[], "pods", first, then));
}

/// If it counted for longer, a pod that a restored etcd brings back would lose its claim.
#[test]
fn a_deletion_counts_for_one_sync_without_a_live_read() {
    test(async {
        let server = Server::new();
        for name in ["web", "other"] {
            server.add(&user(name, &[given(name)]).node("node"));
            let users = json!([consumer(&server, &format!("default/{name}"))]);
            server.add(&allocated(name).set(&["status", "reservedFor"], users));
        }
        let running = start(&server).await;
        server.delete("pods", WEB);
        running.at_rest().await;
        assert_eq!((is_free(&server, WEB), server.count("get pods")), (true, 0));
        server.on("patch", "resourceclaims/status").once().answer(500, "InternalError", "no");
        server.delete("pods", "default/other");
        running.at_rest().await;
        assert_eq!((is_free(&server, "default/other"), server.count("get pods default/other")), (true, 1));
    });
}

#[test]
fn why_says_what_a_pod_waits_for_and_who_holds_a_claim() {
    test(async {
        let server = Server::new();
        server.add(&template());
        server.add(&user("web", &[templated("a"), given("shared")]));
        server.add(&pod("plain"));
        let running = start(&server).await;
        let first = |path: &str| running.why(path).keys[0].now.clone();
        let web = || first("/api/v1/namespaces/default/pods/web")[0].clone();
        let name = recorded(&server, "pods", WEB).remove(0);
        let missing = "given: claim shared does not exist, and is not made from a template";
        assert_eq!(web().text, format!("nothing (a: claim {name} is not allocated, {missing})"));
        let waits = json!([["a", { "allocation": { "claim": name } }], ["given", { "claim": { "claim": "shared" } }]]);
        assert_eq!(web().reason, json!({ "waits": { "entries": waits } }));
        assert!(first("/api/v1/namespaces/default/pods/plain").is_empty());
        server.add(&allocated("shared").set(&["status", "reservedFor"], json!([consumer(&server, WEB)])));
        schedule(&server, WEB);
        server.delete(CLAIMS, SHARED);
        running.at_rest().await;
        assert_eq!(web().text, "nothing (each claim is there)");
        let shared = || first("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/shared");
        assert_eq!(shared()[0].text, "keep (reserved for pods/web)");
        assert_eq!(shared()[0].reason, json!({ "reserved": { "users": ["pods/web"] } }));
        server.delete("pods", WEB);
        running.at_rest().await;
        assert!(shared().is_empty());
    });
}
