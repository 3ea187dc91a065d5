//! One Service at a time: created, changed, deleted, and its pods with it.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use super::{complete, listed, marker, members, pod, service, slices, versions};
use crate::support::{DEADLINE, deployment, on_shared_cluster};

const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const OURS: &str = "endpointslice-controller.k8s.io";

#[test]
fn a_service_has_slices_that_follow_it_and_its_pods() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut web = service("web");
        web["metadata"]["labels"] = json!({"tier": "front"});
        scene.apply(&web).await?;
        let placeholder = listed(scene, "web", &[]).await?;
        scene.apply(&deployment("web", 3)).await?;
        let slices_of_three = complete(scene, "web", 3).await?;
        let [slice] = slices_of_three.as_slice() else { panic!("{slices_of_three:?}") };
        assert_eq!(slice.uid(), placeholder[0].uid(), "the placeholder is used");
        assert!(slice.name_any().starts_with("web-"), "{}", slice.name_any());
        assert_eq!(slice.labels()["tier"], "front");
        assert_eq!(slice.labels()[MANAGED_BY], OURS);
        assert!(!slice.labels().contains_key("service.kubernetes.io/headless"));
        assert_eq!(slice.owner_references()[0].name, "web");
        let ports = slice.ports.clone().unwrap_or_default();
        let port = |name: &str, number: i32| (Some(name.to_owned()), Some(number), Some("TCP".to_owned()));
        let found = |ports: Vec<k8s_openapi::api::discovery::v1::EndpointPort>| {
            ports.into_iter().map(|port| (port.name, port.port, port.protocol)).collect::<Vec<_>>()
        };
        assert_eq!(found(ports), [port("http", 8080)]);

        scene.kubectl("scale deployment/web --replicas=5").await?;
        complete(scene, "web", 5).await?;
        web["spec"]["ports"][0]["targetPort"] = 9090.into();
        web["metadata"]["labels"] = json!({"tier": "back"});
        scene.apply(&web).await?;
        let changed = scene
            .wait_until("the slice has the new port and label", DEADLINE, async || {
                let slices = slices(scene, "web").await?;
                let ports = found(slices[0].ports.clone().unwrap_or_default());
                ensure!(slices.len() == 1 && ports == [port("http", 9090)], "{ports:?}");
                ensure!(slices[0].labels()["tier"] == "back", "{:?}", slices[0].labels());
                Ok(slices)
            })
            .await?;
        assert_eq!(changed[0].uid(), slice.uid(), "it is the same slice");
        assert_eq!(members(&changed[0]).len(), 5);

        scene.kubectl("delete service/web").await?;
        scene
            .wait_until("the slices are gone", DEADLINE, async || {
                ensure!(slices(scene, "web").await?.is_empty(), "they are there");
                Ok(())
            })
            .await
    })
}

#[test]
fn a_headless_service_names_its_pods() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut db = service("db");
        db["spec"]["clusterIP"] = "None".into();
        scene.apply(&db).await?;
        let mut named = pod("db-0", "db");
        named["spec"]["hostname"] = "db-0".into();
        named["spec"]["subdomain"] = "db".into();
        let mut elsewhere = pod("db-1", "db");
        elsewhere["spec"]["hostname"] = "db-1".into();
        elsewhere["spec"]["subdomain"] = "other".into();
        scene.apply(&named).await?;
        scene.apply(&elsewhere).await?;
        let slices = complete(scene, "db", 2).await?;
        assert_eq!(slices[0].labels()["service.kubernetes.io/headless"], "");
        let mut names: Vec<_> = members(&slices[0]).iter().map(|endpoint| endpoint.hostname.clone()).collect();
        names.sort();
        assert_eq!(names, [None, Some("db-0".to_owned())]);
        Ok(())
    })
}

#[test]
fn conditions_say_who_serves_and_who_leaves() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&service("web")).await?;
        let mut unready = pod("unready", "web");
        unready["metadata"]["annotations"] = json!({"pods.e2e/becomes": "never-ready"});
        let mut leaving = pod("leaving", "web");
        leaving["metadata"]["annotations"] = json!({"pods.e2e/goes": "later", "pods.e2e/goes-after": "3s"});
        // An external cluster has no such annotations: there is a kubelet.
        leaving["spec"]["terminationGracePeriodSeconds"] = 3.into();
        scene.apply(&unready).await?;
        scene.apply(&leaving).await?;
        scene.apply(&pod("stays", "web")).await?;
        listed(scene, "web", &["leaving rs-", "stays rs-", "unready ---"]).await?;

        scene.api::<Pod>().delete("leaving", &DeleteParams::default()).await?;
        listed(scene, "web", &["leaving -st", "stays rs-", "unready ---"]).await?;
        listed(scene, "web", &["stays rs-", "unready ---"]).await?;

        scene.patch::<Service>("web", &json!({"spec": {"publishNotReadyAddresses": true}})).await?;
        listed(scene, "web", &["stays rs-", "unready r--"]).await?;
        scene.patch::<Service>("web", &json!({"spec": {"publishNotReadyAddresses": false}})).await?;
        listed(scene, "web", &["stays rs-", "unready ---"]).await?;

        scene.patch::<Pod>("stays", &json!({"metadata": {"labels": {"app": "other"}}})).await?;
        listed(scene, "web", &["unready ---"]).await.map(drop)
    })
}

#[test]
fn services_without_a_selector_are_left_alone() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&pod("a", "web")).await?;
        let mut manual = service("manual");
        manual["spec"].as_object_mut().unwrap().remove("selector");
        scene.apply(&manual).await?;
        let name = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "name"},
            "spec": {"type": "ExternalName", "externalName": "example.com", "selector": {"app": "web"}}});
        scene.apply(&name).await?;
        let own = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "own", "labels": {"kubernetes.io/service-name": "manual", MANAGED_BY: "somebody"}},
            "ports": [{"port": 1}], "endpoints": [{"addresses": ["10.1.2.3"]}],
        });
        scene.apply(&own).await?;
        let before = versions(scene, "manual").await?;
        marker(scene, "marker").await?;
        assert_eq!(versions(scene, "manual").await?, before);
        assert_eq!(versions(scene, "name").await?, Vec::<String>::new());

        // With a selector there is a slice, and without one again it stays as it is.
        scene.patch::<Service>("manual", &json!({"spec": {"selector": {"app": "web"}}})).await?;
        let ours = async |wanted: usize| -> Result<_> {
            let mut slices: Vec<EndpointSlice> = scene.list(&format!("{MANAGED_BY}={OURS}")).await?;
            slices.retain(|slice| slice.labels()["kubernetes.io/service-name"] == "manual");
            ensure!(slices.len() == 1 && members(&slices[0]).len() == wanted, "{slices:?}");
            Ok((slices[0].uid(), slices[0].resource_version()))
        };
        let made = scene.wait_until("a slice of the selected pod", DEADLINE, async || ours(1).await).await?;
        scene.patch::<Service>("manual", &json!({"spec": {"selector": null}})).await?;
        scene.patch::<Pod>("a", &json!({"metadata": {"labels": {"app": "other"}}})).await?;
        marker(scene, "marker-2").await?;
        assert_eq!(ours(1).await?, made);
        assert!(versions(scene, "manual").await?.contains(&before[0]), "somebody else's slice is as it was");
        Ok(())
    })
}

#[test]
fn a_slice_that_somebody_edits_or_deletes_is_put_right() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&service("web")).await?;
        scene.apply(&pod("a", "web")).await?;
        let slices = complete(scene, "web", 1).await?;
        let name = slices[0].name_any();
        let edit = json!({
            "metadata": {"annotations": {"kept": "yes"}},
            "endpoints": [{"addresses": ["10.9.9.9"], "conditions": {"ready": true}}],
        });
        scene.patch::<EndpointSlice>(&name, &edit).await?;
        let slices = complete(scene, "web", 1).await?;
        assert_eq!(slices[0].name_any(), name);
        assert_eq!(slices[0].annotations()["kept"], "yes", "what others wrote stays");

        scene.api::<EndpointSlice>().delete(&name, &DeleteParams::default()).await?;
        let slices = complete(scene, "web", 1).await?;
        assert_ne!(slices[0].name_any(), name);

        // Given away, it is no more ours: there is another one.
        let name = slices[0].name_any();
        scene.patch::<EndpointSlice>(&name, &json!({"metadata": {"labels": {MANAGED_BY: "somebody"}}})).await?;
        scene
            .wait_until("a slice of our own", DEADLINE, async || {
                let mut slices = super::slices(scene, "web").await?;
                slices.retain(|slice| slice.labels()[MANAGED_BY] == OURS);
                ensure!(slices.len() == 1 && members(&slices[0]).len() == 1, "{slices:?}");
                Ok(())
            })
            .await
    })
}
