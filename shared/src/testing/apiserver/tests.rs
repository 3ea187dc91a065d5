use super::*;
use crate::api::json as to_json;
use crate::api::object::{Key, Object};
use crate::testing::{object, pod, uid};
use crate::transport::api_error::ApiError;
use crate::transport::client::{Accept, PatchType};
use crate::working::consistency::{Consistency, Watched};
use crate::working::control::{Control, DeleteOptions, Propagation, Written};
use crate::working::decisions::Decisions;

fn client(server: &Server) -> Client {
    server.client(&Connection::default())
}

async fn create(client: &Client, value: &Value) -> Result<Written, ApiError> {
    client.create(&PODS.collection_path("default"), Accept::Metadata, to_json(value)).await
}

async fn patch(client: &Client, target: &str, kind: PatchType, patch: Value) -> Result<Written, String> {
    let path = PODS.object_path("default", "a", target);
    let patched = client.patch(&path, Accept::Metadata, kind, to_json(&patch)).await;
    patched.map_err(|error: ApiError| error.status().map_or_else(|| error.to_string(), |status| status.reason.clone()))
}

async fn delete(client: &Client, resource: &Resource, options: &DeleteOptions) -> Result<Value, ApiError> {
    client.delete(&resource.object_path("default", "a", ""), Accept::Metadata, to_json(options)).await
}

#[tokio::test]
async fn an_object_gets_what_the_server_gives_and_nothing_of_its_own() {
    let server = Server::new();
    let sent = json!({ "metadata": { "generateName": "a-", "uid": "mine" }, "status": { "phase": "Running" } });
    let written = create(&client(&server), &sent).await.unwrap();
    let stored = &server.list("pods")[0];
    assert_eq!(stored["metadata"]["name"], written.meta().name());
    assert_eq!(stored["metadata"]["uid"], written.meta().uid.to_string());
    assert_eq!((&stored["kind"], &stored["status"]["phase"]), (&json!("Pod"), &json!("Pending")));
    assert_eq!(server.requests(), ["create pods default/a-"]);
    let named = json!({ "metadata": { "name": written.meta().name() } });
    assert!(create(&client(&server), &named).await.unwrap_err().is_already_exists());
}

#[tokio::test]
async fn a_patch_has_its_preconditions_and_a_subresource_its_own_fields() {
    let server = Server::new();
    server.add(&pod("a").label("app", "web"));
    let client = client(&server);
    let old = json!({ "metadata": { "resourceVersion": "77" } });
    assert_eq!(patch(&client, "", PatchType::Merge, old).await.unwrap_err(), "Conflict");
    let other = json!({ "metadata": { "uid": uid("b") } });
    assert_eq!(patch(&client, "", PatchType::StrategicMerge, other).await.unwrap_err(), "Invalid");
    let both = json!({ "spec": { "nodeName": "other" }, "status": { "phase": "Failed" } });
    patch(&client, "status", PatchType::Merge, both.clone()).await.unwrap();
    let status_only = server.get("pods", "default/a").unwrap();
    assert_eq!((&status_only["spec"]["nodeName"], &status_only["status"]["phase"]), (&json!("node"), &json!("Failed")));
    let written = patch(&client, "", PatchType::Merge, both.clone()).await.unwrap();
    assert_eq!(server.get("pods", "default/a").unwrap()["metadata"]["generation"], 2);
    // A write without a difference is no change.
    assert_eq!(patch(&client, "", PatchType::Merge, both).await.unwrap(), written);
}

#[tokio::test]
async fn an_apply_names_its_manager_and_brings_nothing_back() {
    let server = Server::new();
    server.add(&pod("a").label("app", "web"));
    let client = client(&server);
    let metadata = json!({ "uid": uid("a"), "labels": { "tier": "front" } });
    let configuration = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata });
    assert_eq!(patch(&client, "", PatchType::Apply, configuration.clone()).await.unwrap_err(), "Invalid");
    let path = PODS.object_path("default", "a", "") + "?fieldManager=m&force=true";
    let body = to_json(&configuration);
    let apply = async || client.patch::<Written>(&path, Accept::Metadata, PatchType::Apply, body.clone()).await;
    apply().await.unwrap();
    let labels = &server.get("pods", "default/a").unwrap()["metadata"]["labels"];
    assert_eq!(*labels, json!({ "app": "web", "tier": "front" }));
    server.delete("pods", "default/a");
    assert!(apply().await.unwrap_err().is_conflict());
    assert!(server.get("pods", "default/a").is_none());
}

#[tokio::test]
async fn a_deleted_object_stays_for_its_finalizers_and_a_pod_for_its_kubelet() {
    let server = Server::new();
    let client = client(&server);
    server.add(&pod("a").set(&["metadata", "finalizers"], json!(["test"])));
    assert!(delete(&client, &PODS, &DeleteOptions::of(uid("b"))).await.unwrap_err().is_conflict());
    delete(&client, &PODS, &DeleteOptions::of(uid("a"))).await.unwrap();
    let patched = json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["test"] } });
    patch(&client, "", PatchType::StrategicMerge, patched).await.unwrap();
    assert_eq!(server.get("pods", "default/a").unwrap()["metadata"]["deletionGracePeriodSeconds"], 30);
    server.run_pods();
    assert!(server.get("pods", "default/a").is_none());
    server.add(&object("v1", "ConfigMap", "a"));
    let config_maps = server.state().resource("configmaps");
    let options = DeleteOptions::of(uid("a")).with_dependents(Propagation::Foreground);
    delete(&client, &config_maps, &options).await.unwrap();
    let kept = server.get("configmaps", "default/a").unwrap();
    assert_eq!(kept["metadata"]["finalizers"], json!(["foregroundDeletion"]));
}

#[tokio::test]
async fn an_eviction_deletes_a_pod_if_its_budget_and_its_uid_allow_it() {
    let server = Server::new();
    for name in ["a", "b"] {
        server.add(&pod(name).label("app", name));
    }
    let budget = object("policy/v1", "PodDisruptionBudget", "of-b").set(&["status", "disruptionsAllowed"], 0);
    server.add(&budget.set(&["spec", "selector", "matchLabels", "app"], "b"));
    let client = client(&server);
    let consistency = Arc::new(Consistency::new(client.clone(), Watched::default()));
    let control = Control::new(client, consistency, Decisions::default());
    let owner = Key::new("default", "web");
    let evict = async |name: &str, of: &str| control.for_name(&owner).evict(&Key::new("default", name), uid(of)).await;
    assert!(evict("a", "other").await.unwrap_err().is_conflict());
    assert!(evict("c", "c").await.unwrap_err().is_not_found());
    let refused = evict("b", "b").await.unwrap_err();
    assert!(refused.is_too_many_requests() && refused.has_cause("DisruptionBudget"), "{refused}");
    evict("a", "a").await.unwrap();
    let is_going = |key: &str| !server.get("pods", key).unwrap()["metadata"]["deletionTimestamp"].is_null();
    assert!(is_going("default/a") && !is_going("default/b"));
    server.change("pods", "default/b", |pod| pod["status"]["phase"] = "Pending".into());
    evict("b", "b").await.unwrap();
    assert!(is_going("default/b"), "one that does not run is in no budget");
    assert_eq!(server.count("create pods/eviction default/b"), 2);
}

#[tokio::test]
async fn a_list_comes_in_pages_and_narrowed() {
    let server = Server::new();
    for name in ["a", "b", "c"] {
        server.add(&pod(name).label("name", name));
    }
    let client = server.client(&Connection::default());
    let names = async |query: &str| {
        let list: Value = client.get(&format!("/api/v1/pods?{query}")).await.unwrap();
        let names: Vec<Value> =
            list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()).collect();
        (names, list["metadata"]["continue"].clone())
    };
    assert_eq!(names("limit=2").await, (vec![json!("a"), json!("b")], json!("2")));
    assert_eq!(names("limit=2&continue=2").await, (vec![json!("c")], json!("")));
    assert_eq!(
        names("fieldSelector=metadata.name%21%3Db%2Cstatus.phase%3DRunning&labelSelector=name%3Dc").await.0,
        ["c"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_sees_an_object_that_matches_no_more_as_deleted() {
    let server = Server::new();
    server.add(&pod("a"));
    let client = server.client(&Connection::default());
    let path = "/api/v1/pods?watch=1&sendInitialEvents=true&fieldSelector=status.phase%3DRunning";
    let mut watch = client.stream(path, Accept::Metadata).await.unwrap();
    server.change("pods", "default/a", |pod| pod["status"]["phase"] = "Failed".into());
    server.change("pods", "default/a", |pod| pod["status"]["phase"] = "Succeeded".into());
    server.expire_watches("pods");
    let mut seen = Vec::new();
    while let Some(Ok(line)) = watch.next().await {
        let event: Value = serde_json::from_slice(&line).unwrap();
        seen.push(format!("{} {}", text(&event, "/type"), text(&event, "/object/metadata/resourceVersion")));
    }
    assert_eq!(seen, ["ADDED 1", "BOOKMARK 1", "DELETED 2", "BOOKMARK 3", "ERROR "]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_refuses_loses_or_holds_as_many_requests_as_it_says() {
    let server = Server::new();
    let client = client(&server);
    let named = |name: &str| json!({ "metadata": { "name": name } });
    let refusing = server.on("create", "pods").once().answer(500, "InternalError", "failed calling webhook");
    let refused = create(&client, &named("a")).await.unwrap_err();
    assert_eq!((refused.code(), refusing.count(), server.keys("pods").len()), (Some(500), 1, 0));
    server.on("create", "pods").once().lose();
    assert!(create(&client, &named("a")).await.unwrap_err().is_outcome_unknown());
    assert_eq!(server.keys("pods"), ["default/a"]);
    let holding = server.on("create", "pods").hold();
    let writer = client.clone();
    let creating = tokio::spawn(async move { create(&writer, &named("b")).await });
    holding.arrived().await;
    assert_eq!(server.keys("pods").len(), 1);
    holding.release();
    creating.await.unwrap().unwrap();
    server.stop_after_writes(1);
    create(&client, &named("c")).await.unwrap();
    assert!(create(&client, &named("d")).await.is_err());
    assert!(client.get::<Value>(&PODS.object_path("default", "c", "")).await.is_err(), "the connection is cut");
    assert_eq!(server.keys("pods").len(), 3);
}
