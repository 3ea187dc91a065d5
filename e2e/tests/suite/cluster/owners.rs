//! Owners that nobody would give an object on purpose: in a circle, in another namespace, of no kind, never there.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::tree::{blocking, config_maps, reference, secrets};
use crate::support::{DEADLINE, Scene, on_shared_cluster};

async fn gone(scene: &Scene, names: &[&str]) -> Result<()> {
    for name in names {
        scene.gone::<ConfigMap>(name).await?;
    }
    Ok(())
}

/// Three that own each other in a circle, and wait for each other.
async fn circle(scene: &Scene) -> Result<()> {
    let kind = config_maps();
    let names = ["a", "b", "c"];
    let mut objects = Vec::new();
    for name in names {
        objects.push(scene.apply(&kind.object(name, &[])).await?);
    }
    for (at, name) in names.into_iter().enumerate() {
        let owner = blocking(&objects[(at + 2) % 3]);
        kind.merge(scene, name, &json!({"metadata": {"ownerReferences": [owner]}})).await?;
    }
    Ok(())
}

/// Conformance: `should not be blocked by dependency circle`.
#[test]
fn a_circle_of_owners_goes_as_a_whole() -> Result<()> {
    on_shared_cluster(async |scene| {
        for cascade in ["foreground", "background"] {
            circle(scene).await?;
            scene.kubectl(&format!("delete configmap/a --cascade={cascade} --wait=false")).await?;
            gone(scene, &["a", "b", "c"]).await?;
        }
        Ok(())
    })
}

/// Upstream: `TestCrossNamespaceReferencesWithWatchCache`, test/integration/garbagecollector.
#[test]
fn an_owner_in_another_namespace_is_none_and_that_is_said() -> Result<()> {
    on_shared_cluster(async |scene| {
        let (kind, there) = (config_maps(), scene.beside("there").await?);
        let owner = there.apply(&kind.object("owner", &[])).await?;
        there.apply(&kind.object("its-own", &[reference(&owner)])).await?;
        scene.apply(&kind.object("stranger", &[reference(&owner)])).await?;
        gone(scene, &["stranger"]).await?;
        let events = scene.told("OwnerRefInvalidNamespace").await?;
        let (namespace, uid) = (&scene.namespace, owner.uid().unwrap_or_default());
        let expected = format!(
            "ownerRef [v1/ConfigMap, namespace: {namespace}, name: owner, uid: {uid}] does not exist in namespace \
             \"{namespace}\""
        );
        assert!(events.iter().all(|event| event.message.as_deref() == Some(&expected)), "{events:?}");
        assert!(events.iter().all(|event| event.type_.as_deref() == Some("Warning")), "{events:?}");
        assert_eq!(events[0].involved_object.name.as_deref(), Some("stranger"));
        assert_eq!(events[0].involved_object.kind.as_deref(), Some("ConfigMap"));
        // The claim of a stranger makes nobody's own dependents go.
        assert!(kind.find(&there, "owner").await?.is_some() && kind.find(&there, "its-own").await?.is_some());
        there.kubectl("delete configmap/owner").await?;
        gone(&there, &["owner", "its-own"]).await
    })
}

#[test]
fn who_lives_in_no_namespace_cannot_be_owned_by_who_does_and_that_is_said() -> Result<()> {
    on_shared_cluster(async |scene| {
        let kind = config_maps();
        let owner = scene.apply(&kind.object("owner", &[])).await?;
        scene.apply(&kind.object("its-own", &[reference(&owner)])).await?;
        let (name, uid) = (&scene.namespace, owner.uid().unwrap_or_default());
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "ownerReferences": [reference(&owner)]},
        });
        let created = apply(&scene.client, "", &role).await?;
        // The namespace of events about objects without one.
        let events: Api<Event> = Api::namespaced(scene.client.clone(), "default");
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let event = scene
            .wait_until("the event", DEADLINE, async || {
                let mut found = events.list(&about).await?.items;
                found.retain(|event| event.reason.as_deref() == Some("OwnerRefInvalidNamespace"));
                found.pop().context("there is none")
            })
            .await?;
        let expected =
            format!("ownerRef [v1/ConfigMap, namespace: , name: owner, uid: {uid}] does not exist in namespace \"\"");
        assert_eq!(event.message.as_deref(), Some(expected.as_str()));
        assert_eq!(event.involved_object.kind.as_deref(), Some("ClusterRole"));

        // A faulty reference is no reason to delete the object, not even when the owner is deleted.
        scene.kubectl("delete configmap/owner").await?;
        gone(scene, &["owner", "its-own"]).await?;
        let roles: Api<ClusterRole> = Api::all(scene.client.clone());
        let left = roles.get(name).await?;
        assert_eq!((left.uid(), left.metadata.deletion_timestamp.is_none()), (created.uid(), true));
        roles.delete(name, &DeleteParams::background()).await.map(drop).context("delete the role")
    })
}

#[test]
fn only_who_has_no_owner_left_goes() -> Result<()> {
    on_shared_cluster(async |scene| {
        let kind = config_maps();
        let owner = scene.apply(&secrets().object("owner", &[])).await?;
        let never = json!({"apiVersion": "v1", "kind": "Secret", "name": "never",
            "uid": "00000000-0000-4000-8000-000000000000"});
        let mut another = reference(&owner);
        another["uid"] = never["uid"].clone();
        let mut unknown = never.clone();
        unknown["apiVersion"] = json!("nobody.example/v1");
        scene.apply(&kind.object("owned", &[reference(&owner)])).await?;
        scene.apply(&kind.object("half-owned", &[never.clone(), reference(&owner)])).await?;
        scene.apply(&kind.object("of-an-unknown-kind", &[unknown])).await?;
        // Whether an owner is gone is also a question of who it was.
        scene.apply(&kind.object("of-its-successor", &[another])).await?;
        scene.apply(&kind.object("never-owned", &[never])).await?;
        gone(scene, &["never-owned", "of-its-successor"]).await?;
        scene
            .wait_until("who has one owner left has only that one", DEADLINE, async || {
                let owners = scene.fetch::<ConfigMap>("half-owned").await?.metadata.owner_references;
                let owners: Vec<String> = owners.into_iter().flatten().map(|owner| owner.name).collect();
                ensure!(owners == ["owner"], "{owners:?}");
                Ok(())
            })
            .await?;
        for stays in ["owned", "of-an-unknown-kind"] {
            let left: ConfigMap = scene.fetch(stays).await?;
            assert_eq!(left.metadata.deletion_timestamp, None, "{stays}");
        }
        scene.kubectl("delete secret/owner").await?;
        gone(scene, &["owned", "half-owned"]).await
    })
}

/// Names of RBAC's objects may have nearly every character.
#[test]
fn an_owner_whose_name_no_url_can_have_as_it_is_keeps_its_dependents_and_goes_after_them() -> Result<()> {
    on_shared_cluster(async |scene| {
        let (roles, name): (Api<Role>, _) = (scene.api(), "dev?x y#z&a=b+c;d");
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let role = roles.create(&PostParams::default(), &Role { metadata, rules: None }).await?;
        let owner = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "name": name,
            "uid": role.uid(), "blockOwnerDeletion": true});
        let never = json!({"apiVersion": "v1", "kind": "Secret", "name": "never",
            "uid": "00000000-0000-4000-8000-000000000001"});
        scene.apply(&config_maps().object("half-owned", &[never, owner])).await?;
        scene
            .wait_until("only the role is left of its owners", DEADLINE, async || {
                let left: ConfigMap = scene.fetch("half-owned").await?;
                let owners: Vec<String> = left.owner_references().iter().map(|owner| owner.name.clone()).collect();
                ensure!(owners == [name] && left.metadata.deletion_timestamp.is_none(), "{owners:?}");
                Ok(())
            })
            .await?;
        // A deletion of all that there is has no name in its URL.
        roles.delete_collection(&DeleteParams::foreground(), &ListParams::default()).await?;
        gone(scene, &["half-owned"]).await?;
        scene
            .wait_until("the role is gone", DEADLINE, async || {
                let left = roles.list(&ListParams::default()).await?.items;
                ensure!(left.is_empty(), "{left:?}");
                Ok(())
            })
            .await
    })
}

/// Upstream's client refuses to ask for such a name, again and again.
#[test]
fn a_reference_by_a_name_that_no_object_can_have_lets_its_dependent_be() -> Result<()> {
    on_shared_cluster(async |scene| {
        let kind = config_maps();
        let called = |name: &str, uid: u8| {
            json!({"apiVersion": "v1", "kind": "Secret", "name": name,
                "uid": format!("00000000-0000-4000-8000-0000000000{uid:02}")})
        };
        for (at, name) in [(10, ".."), (11, "../configmaps/other"), (12, "50%")] {
            scene.apply(&kind.object(&format!("odd-{at}"), &[called(name, at)])).await?;
        }
        scene.apply(&kind.object("never-owned", &[called("never", 13)])).await?;
        gone(scene, &["never-owned"]).await?;
        for at in 10..13 {
            let left: ConfigMap = scene.fetch(&format!("odd-{at}")).await?;
            assert_eq!(left.metadata.deletion_timestamp, None, "{at}");
        }
        Ok(())
    })
}
