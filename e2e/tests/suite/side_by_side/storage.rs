//! Claims and volumes that find each other or do not, are provisioned, attached, expanded, given back, protected and lost:
//! what is left of them, and what people are told.
//!
//! The driver's sidecars are the suite's own. Left out: how often an event is repeated, for upstream's controllers repeat
//! theirs every 15 seconds.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{VolumeAttachment, VolumeAttributesClass};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use super::{FEWEST, compare_on, mask};
use crate::support::Scene;
use crate::support::csi::{
    Driver, VAC_PROTECTION, attached, attributes_class, bound, claim, class, ephemeral, expanded, manage_nodes, named,
    phase, user, volume,
};

const CONTROLLERS: [&str; 4] =
    ["attachdetach-controller", "ephemeral_volume", "persistentvolume-controller", "volume_expand"];
const NODES: [&str; 2] = ["node-0", "node-1"];

fn volumes(scene: &Scene) -> Api<PersistentVolume> {
    Api::all(scene.client.clone())
}

/// Makes a volume of the class of this namespace, and waits until it can be had.
async fn offer(scene: &Scene, name: &str, size: &str, change: impl FnOnce(&mut Value)) -> Result<()> {
    let mut object = volume(&named(scene, name), &scene.namespace, size);
    change(&mut object["spec"]);
    apply(&scene.client, "", &object).await?;
    phase(scene, &named(scene, name), "Available").await
}

/// Makes a claim of the class of this namespace.
async fn ask(scene: &Scene, name: &str, size: &str, change: impl FnOnce(&mut Value)) -> Result<()> {
    let mut object = claim(name, &scene.namespace, size);
    change(&mut object["spec"]);
    scene.apply(&object).await.map(drop)
}

async fn delete_claim(scene: &Scene, name: &str) -> Result<()> {
    let claims = scene.api::<PersistentVolumeClaim>();
    claims.delete(name, &DeleteParams::default()).await.map(drop).context("delete a claim")
}

/// The smallest that fits, those that are reserved or named, and claims that get none.
async fn find(scene: &Scene) -> Result<()> {
    for (name, size) in [("small", "1Gi"), ("middle", "2Gi"), ("large", "5Gi"), ("named", "20Gi")] {
        offer(scene, name, size, |_| {}).await?;
    }
    let reference = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": scene.namespace,
        "name": "reserved"});
    offer(scene, "reserved", "20Gi", |spec| spec["claimRef"] = reference).await?;
    ask(scene, "reserved", "1Gi", |_| {}).await?;
    let name = json!(named(scene, "named"));
    ask(scene, "names", "1Gi", |spec| spec["volumeName"] = name.clone()).await?;
    for claim in ["reserved", "names"] {
        bound(scene, claim).await?;
    }
    ask(scene, "fits", "2Gi", |_| {}).await?;
    bound(scene, "fits").await?;
    ask(scene, "any", "500Mi", |_| {}).await?;
    bound(scene, "any").await?;
    ask(scene, "taken", "1Gi", |spec| spec["volumeName"] = name).await?;
    let large = json!(named(scene, "large"));
    ask(scene, "mismatch", "10Gi", |spec| spec["volumeName"] = large).await?;
    ask(scene, "classless", "1Gi", |spec| spec["storageClassName"] = json!("")).await?;
    ask(scene, "missing", "100Gi", |_| {}).await?;
    scene.apply(&claim("waits", "late", "1Gi")).await?;
    scene.apply(&claim("unheard", "nobodys", "1Gi")).await?;
    for (claim, reason) in [
        ("taken", "FailedBinding"),
        ("mismatch", "VolumeMismatch"),
        ("classless", "FailedBinding"),
        ("missing", "ProvisioningFailed"),
        ("waits", "WaitForFirstConsumer"),
        ("unheard", "ExternalProvisioning"),
    ] {
        scene.told_about(claim, reason).await?;
    }
    Ok(())
}

/// Volumes whose claims go, by their policies, and a claim whose volume goes.
async fn give_back(scene: &Scene) -> Result<()> {
    let folder = |path: String| {
        move |spec: &mut Value| {
            spec["persistentVolumeReclaimPolicy"] = json!("Delete");
            spec["csi"] = Value::Null;
            spec["hostPath"] = json!({"path": path});
        }
    };
    offer(scene, "kept", "30Gi", |_| {}).await?;
    offer(scene, "recycled", "40Gi", |spec| spec["persistentVolumeReclaimPolicy"] = json!("Recycle")).await?;
    offer(scene, "deleted", "50Gi", folder(format!("/tmp/{}", scene.namespace))).await?;
    offer(scene, "elsewhere", "60Gi", folder("/e2e".to_owned())).await?;
    offer(scene, "lost", "70Gi", |_| {}).await?;
    let all = [("kept", "30Gi"), ("recycled", "40Gi"), ("deleted", "50Gi"), ("elsewhere", "60Gi"), ("lost", "70Gi")];
    for (name, size) in all {
        ask(scene, name, size, |_| {}).await?;
        bound(scene, name).await?;
    }
    for (name, _) in &all[..4] {
        delete_claim(scene, name).await?;
    }
    phase(scene, &named(scene, "kept"), "Released").await?;
    phase(scene, &named(scene, "recycled"), "Failed").await?;
    phase(scene, &named(scene, "elsewhere"), "Failed").await?;
    scene.gone_from(&volumes(scene), &named(scene, "deleted")).await?;
    let (name, finalizers) = (named(scene, "lost"), Patch::Merge(json!({"metadata": {"finalizers": null}})));
    volumes(scene).delete(&name, &DeleteParams::default()).await?;
    volumes(scene).patch(&name, &PatchParams::default(), &finalizers).await?;
    scene.told_about("lost", "ClaimLost").await
}

/// Volumes that are provisioned, expanded and given back, those of pods' own, and one that two nodes want.
async fn use_them(scene: &Scene) -> Result<()> {
    for name in ["made", "unmade"] {
        scene.apply(&claim(name, "fast", "1Gi")).await?;
    }
    bound(scene, "made").await?;
    let unmade = bound(scene, "unmade").await?.name_any();
    delete_claim(scene, "unmade").await?;
    scene.gone_from(&volumes(scene), &unmade).await?;
    let grown = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    scene.patch::<PersistentVolumeClaim>("made", &grown).await?;
    expanded(scene, "made").await?;
    scene.told_about("made", "ExternalExpanding").await?;

    scene.apply(&user("web", "fits", NODES[0])).await?;
    attached(scene, &named(scene, "middle"), &NODES[..1]).await?;
    scene.apply(&user("other", "fits", NODES[1])).await?;
    scene.told_about("web", "SuccessfulAttachVolume").await?;
    scene.told_about("other", "FailedAttachVolume").await?;
    scene.apply(&claim("clash-data", "fast", "1Gi")).await?;
    for pod in ["clash", "own"] {
        scene.apply(&ephemeral(pod, "fast", NODES[0])).await?;
    }
    scene.told_about("clash", "FailedBinding").await?;
    attached(scene, &bound(scene, "own-data").await?.name_any(), &NODES[..1]).await
}

/// What is deleted while it is used, and stays.
async fn protect(scene: &Scene) -> Result<()> {
    let name = named(scene, "class");
    attributes_class(scene, &name).await?;
    ask(scene, "with-class", "90Gi", |spec| spec["volumeAttributesClassName"] = json!(name)).await?;
    let classes: Api<VolumeAttributesClass> = Api::all(scene.client.clone());
    scene.protected(&classes, &name, VAC_PROTECTION).await?;
    classes.delete(&name, &DeleteParams::default()).await?;
    volumes(scene).delete(&named(scene, "small"), &DeleteParams::default()).await?;
    delete_claim(scene, "fits").await?;
    scene.told_about("with-class", "ProvisioningFailed").await
}

async fn live(scene: &Scene) -> Result<()> {
    let driver = Driver::start(&scene.client);
    manage_nodes(scene).await?;
    class(scene, "fast", "Immediate").await?;
    class(scene, "late", "WaitForFirstConsumer").await?;
    let nobodys = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "nobodys"},
        "provisioner": "nobody.e2e.example"});
    apply(&scene.client, "", &nobodys).await?;
    find(scene).await?;
    give_back(scene).await?;
    use_them(scene).await?;
    protect(scene).await?;
    let disks = driver.disks();
    ensure!(disks.most_nodes == 1, "{disks:?}");
    Ok(())
}

/// The events of the namespace, and those about its volumes, which are in another one.
async fn events(scene: &Scene) -> Result<Vec<Event>> {
    let mut events: Vec<Event> = scene.list("").await?;
    let others: Api<Event> = Api::namespaced(scene.client.clone(), "default");
    let is_own =
        |event: &Event| event.involved_object.name.as_deref().is_some_and(|name| name.starts_with(&named(scene, "")));
    events.extend(others.list(&ListParams::default()).await?.items.into_iter().filter(is_own));
    Ok(events)
}

/// The name of each claim in the place of its uid, after which its volume is named.
async fn without_names(scene: &Scene, text: &str) -> Result<String> {
    let claims: Vec<PersistentVolumeClaim> = scene.list("").await?;
    let text = text.replace(&scene.namespace, "<namespace>");
    Ok(claims
        .iter()
        .fold(text, |text, claim| text.replace(&claim.uid().unwrap_or_default(), &format!("<{}>", claim.name_any()))))
}

async fn words(scene: &Scene) -> Result<Vec<String>> {
    let mut lines = BTreeSet::new();
    for event in events(scene).await? {
        let component = event.source.clone().and_then(|source| source.component).unwrap_or_default();
        if CONTROLLERS.contains(&component.as_str()) {
            let about = &event.involved_object;
            let line = format!(
                "{component} {:?} {:?} {:?} {:?} {}",
                about.kind,
                about.name,
                event.type_,
                event.reason,
                event.message.unwrap_or_default()
            );
            lines.insert(without_names(scene, &line).await?);
        }
    }
    Ok(lines.into_iter().collect())
}

/// A line for each of what is left.
async fn left(scene: &Scene) -> Result<Vec<String>> {
    fn add<K: Serialize>(all: &mut Vec<Value>, objects: impl IntoIterator<Item = K>) -> Result<()> {
        for object in objects {
            let mut object = serde_json::to_value(object)?;
            let is_going = !object["metadata"]["deletionTimestamp"].is_null();
            mask(&mut object);
            if is_going {
                object["metadata"]["deletionTimestamp"] = json!("now");
            }
            if let Some(status) = object["status"].as_object_mut() {
                status.remove("lastPhaseTransitionTime");
            }
            all.push(object);
        }
        Ok(())
    }
    let mut all = Vec::new();
    add(&mut all, scene.list::<PersistentVolumeClaim>("").await?)?;
    let mut own = volumes(scene).list(&ListParams::default()).await?.items;
    own.retain(|volume| {
        let of = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()?.namespace.as_deref());
        of == Some(&scene.namespace) || volume.name_any().starts_with(&named(scene, ""))
    });
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let mut attachments = attachments.list(&ListParams::default()).await?.items;
    attachments.retain(|attachment| {
        let volume = attachment.spec.source.persistent_volume_name.as_deref();
        own.iter().any(|own| own.metadata.name.as_deref() == volume)
    });
    for attachment in &mut attachments {
        // It is a hash of names that differ, and of the node.
        attachment.metadata.name = Some(attachment.spec.node_name.clone());
    }
    add(&mut all, own)?;
    add(&mut all, attachments)?;
    let classes: Api<VolumeAttributesClass> = Api::all(scene.client.clone());
    add(&mut all, [classes.get(&named(scene, "class")).await?])?;
    let mut lines = Vec::new();
    for object in all {
        lines.push(without_names(scene, &serde_json::to_string_pretty(&object)?).await?);
    }
    for pod in scene.list::<Pod>("").await? {
        lines.push(format!("Pod {} {:?}", pod.name_any(), pod.status.and_then(|status| status.phase)));
    }
    lines.sort();
    Ok(lines)
}

#[test]
fn the_operators_leave_of_claims_and_volumes_what_upstream_leaves() -> Result<()> {
    compare_on(ClusterOptions::with_controller_manager(), FEWEST, &live, &left, &words)
}
