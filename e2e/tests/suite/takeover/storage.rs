//! The controllers of volumes handed over in the middle of provisioning, binding, attaching, expanding and deleting, and
//! back: each volume ends where it was going, and none is made, attached or detached twice.
//!
//! The driver's sidecars are the suite's own and pause while everything is half done. What a killed binder leaves between two
//! of its writes is written by the test while nobody works.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{VolumeAttachment, VolumeAttributesClass};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::attachments::{attachment_of, bound_to};
use crate::support::csi::{
    DRIVER, Driver, IN_TREE, NO_CLASS, PROVISIONER, RESIZER, SELECTED_NODE, VAC_PROTECTION, attached, attributes_class,
    bound, claim, class, ephemeral, expanded, manage_nodes, named, phase, user, volume,
};
use crate::support::{DEADLINE, Scene, start_operators, uid, with_cluster};

const OPERATORS: [&str; 7] = [
    "ephemeral-volume-operator",
    "persistentvolume-attach-detach-operator",
    "persistentvolume-binder-operator",
    "persistentvolume-expander-operator",
    "persistentvolume-protection-operator",
    "persistentvolumeclaim-protection-operator",
    "volumeattributesclass-protection-operator",
];
/// The nodes of what is at rest, and of what moves.
const NODES: [&str; 2] = ["node-0", "node-1"];
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

fn volumes(scene: &Scene) -> Api<PersistentVolume> {
    Api::all(scene.client.clone())
}

fn classes(scene: &Scene) -> Api<VolumeAttributesClass> {
    Api::all(scene.client.clone())
}

/// Volumes that have nothing to gain from anybody: provisioned and attached, of a pod's own, found, released, and free.
async fn finish(scene: &Scene) -> Result<Vec<String>> {
    scene.apply(&claim("made", "fast", "1Gi")).await?;
    scene.apply(&user("made", "made", NODES[0])).await?;
    scene.apply(&ephemeral("own", "fast", NODES[0])).await?;
    for name in ["found", "released", "free"] {
        offer(scene, name).await?;
        if name != "free" {
            ask(scene, name).await?;
        }
    }
    scene.api::<PersistentVolumeClaim>().delete("released", &DeleteParams::default()).await?;
    scene.gone::<PersistentVolumeClaim>("released").await?;
    attributes_class(scene, &named(scene, "used")).await?;
    scene.protected(&classes(scene), &named(scene, "used"), VAC_PROTECTION).await?;
    for name in ["made", "own-data"] {
        attached(scene, &bound(scene, name).await?.name_any(), &NODES[..1]).await?;
    }
    phase(scene, &named(scene, "released"), "Released").await?;
    phase(scene, &named(scene, "free"), "Available").await?;
    versions(scene).await
}

/// Makes a volume of a class of its own.
async fn offer(scene: &Scene, name: &str) -> Result<()> {
    let name = named(scene, name);
    apply(&scene.client, "", &volume(&name, &name, "1Gi")).await.map(drop)
}

/// Makes the claim of this name that gets it.
async fn ask(scene: &Scene, name: &str) -> Result<()> {
    scene.apply(&claim(name, &named(scene, name), "1Gi")).await?;
    bound(scene, name).await.map(drop)
}

/// The versions of all that concerns the volumes of this namespace: equal if nobody has written anything.
async fn versions(scene: &Scene) -> Result<Vec<String>> {
    fn line<K: ResourceExt<DynamicType = ()>>(object: &K) -> String {
        format!("{} {} {:?}", K::kind(&()), object.name_any(), object.resource_version())
    }
    let claims: Vec<PersistentVolumeClaim> = scene.list("").await?;
    let mut all: Vec<String> = claims.iter().map(line).collect();
    let mut own = volumes(scene).list(&ListParams::default()).await?.items;
    own.retain(|volume| {
        let of = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()?.namespace.as_deref());
        of.map_or_else(|| volume.name_any() == named(scene, "free"), |of| of == scene.namespace)
    });
    all.extend(own.iter().map(line));
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let attachments = attachments.list(&ListParams::default()).await?.items;
    all.extend(attachments.iter().filter(|attachment| attachment.spec.node_name == NODES[0]).map(line));
    // Not the node's version: upstream writes its volumes once more when it starts, in an order of chance.
    let node = Api::<Node>::all(scene.client.clone()).get(NODES[0]).await?;
    let mut reported = node.status.and_then(|status| status.volumes_attached).unwrap_or_default();
    reported.sort_by(|a, b| a.name.cmp(&b.name));
    all.push(format!("{reported:?}"));
    all.push(line(&classes(scene).get(&named(scene, "used")).await?));
    Ok(all)
}

/// All that is in its middle, with what must not change on the way.
struct Middle {
    step: u32,
    attachment: String,
    /// Disks that exist in the end.
    disks: usize,
}

/// Prepares what can only be begun when it exists.
async fn prepare(scene: &Scene, step: u32) -> Result<()> {
    let name = |kind: &str| format!("{kind}-{step}");
    scene.apply(&claim(&name("growing"), "fast", "1Gi")).await?;
    scene.apply(&claim(&name("leaving"), "fast", "1Gi")).await?;
    scene.apply(&user(&name("leaving"), &name("leaving"), NODES[1])).await?;
    for kind in ["waiting", "doomed"] {
        offer(scene, &name(kind)).await?;
        ask(scene, &name(kind)).await?;
    }
    attributes_class(scene, &named(scene, &name("class"))).await?;
    let mut with_class = claim(&name("with-class"), &name("nothing"), "1Gi");
    with_class["spec"]["volumeAttributesClassName"] = json!(named(scene, &name("class")));
    scene.apply(&with_class).await?;
    bound(scene, &name("growing")).await?;
    attached(scene, &bound(scene, &name("leaving")).await?.name_any(), &NODES[1..]).await
}

/// Begins everything while the driver pauses, and waits until each waits for the driver or for its user.
async fn begin(scene: &Scene, step: u32, driver: &Driver) -> Result<Middle> {
    let name = |kind: &str| format!("{kind}-{step}");
    scene.apply(&claim(&name("provisioned"), "fast", "1Gi")).await?;
    scene.apply(&claim(&name("late"), "late", "1Gi")).await?;
    scene.apply(&user(&name("late"), &name("late"), NODES[1])).await?;
    scene.apply(&ephemeral(&name("own"), "fast", NODES[1])).await?;
    scene.apply(&user(&name("waiting"), &name("waiting"), NODES[1])).await?;
    let grown = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    scene.patch::<PersistentVolumeClaim>(&name("growing"), &grown).await?;
    bound_to(scene, &name("in-tree"), "2Gi", (IN_TREE.0, json!({"volumeID": name("vol")}))).await?;
    scene.api::<PersistentVolumeClaim>().delete(&name("leaving"), &DeleteParams::default()).await?;
    volumes(scene).delete(&named(scene, &name("doomed")), &DeleteParams::default()).await?;
    classes(scene).delete(&named(scene, &name("class")), &DeleteParams::default()).await?;

    for (claim, annotation, value) in [
        ("provisioned", PROVISIONER, DRIVER),
        ("late", PROVISIONER, DRIVER),
        ("late", SELECTED_NODE, NODES[1]),
        ("in-tree", RESIZER, IN_TREE.1),
    ] {
        annotated(scene, &name(claim), (annotation, value)).await?;
    }
    annotated(scene, &format!("{}-data", name("own")), (PROVISIONER, DRIVER)).await?;
    scene.told_about(&name("growing"), "ExternalExpanding").await?;
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let attachment = attachment_of(scene, &attachments, &named(scene, &name("waiting"))).await?;
    ensure!(attachment.status.as_ref().is_none_or(|status| !status.attached), "{attachment:?}");
    // What grows stays; three come and one goes.
    Ok(Middle { step, attachment: attachment.uid().context("without a uid")?, disks: driver.disks().there.len() + 2 })
}

async fn annotated(scene: &Scene, claim: &str, (annotation, value): (&str, &str)) -> Result<()> {
    scene
        .wait_until(&format!("{claim} has {annotation}"), DEADLINE, async || {
            let claim: PersistentVolumeClaim = scene.fetch(claim).await?;
            ensure!(claim.annotations().get(annotation).is_some_and(|found| found == value), "{claim:?}");
            Ok(())
        })
        .await
}

/// What a binder leaves that is killed after its first, second or third write, and a claim that must wait.
async fn half_bind(scene: &Scene, step: u32) -> Result<()> {
    for writes in 1..=3 {
        let name = format!("half-{step}-{writes}");
        scene.apply(&claim(&name, NO_CLASS, "1Gi")).await?;
        let found: PersistentVolumeClaim = scene.fetch(&name).await?;
        let mut object = volume(&named(scene, &name), NO_CLASS, "1Gi");
        object["metadata"]["annotations"] = json!({BOUND_BY_CONTROLLER: "yes"});
        object["spec"]["claimRef"] = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "namespace": scene.namespace, "name": name, "uid": uid(&found)});
        apply(&scene.client, "", &object).await?;
        let phase = if writes == 1 { "Available" } else { "Bound" };
        let status = Patch::Merge(json!({"status": {"phase": phase}}));
        volumes(scene).patch_status(&named(scene, &name), &PatchParams::default(), &status).await?;
        if writes == 3 {
            let both = json!({BOUND_BY_CONTROLLER: "yes", BIND_COMPLETED: "yes"});
            let half: Value = json!({"metadata": {"annotations": both}, "spec": {"volumeName": named(scene, &name)}});
            scene.patch::<PersistentVolumeClaim>(&name, &half).await?;
        }
    }
    scene.apply(&claim(&format!("rival-{step}"), NO_CLASS, "1Gi")).await.map(drop)
}

/// Waits until all that was begun is done, and then lets it go.
async fn end(scene: &Scene, Middle { step, attachment, disks: wanted }: Middle, driver: &Driver) -> Result<()> {
    let name = |kind: &str| format!("{kind}-{step}");
    let own = format!("{}-data", name("own"));
    let mut all = ["provisioned", "late", "growing", "waiting", "doomed"].map(name).to_vec();
    all.push(own.clone());
    all.extend((1..=3).map(|writes| format!("half-{step}-{writes}")));
    let mut made = Vec::new();
    for claim in &all {
        made.push(bound(scene, claim).await?.name_any());
    }
    for (claim, volume) in all.iter().zip(&made).filter(|(claim, _)| claim.starts_with("half")) {
        ensure!(*volume == named(scene, claim), "{claim} has {volume}");
    }
    let rival: PersistentVolumeClaim = scene.fetch(&name("rival")).await?;
    ensure!(rival.spec.is_some_and(|spec| spec.volume_name.is_none()), "the rival has a volume that was another's");
    for claim in [&name("growing"), &name("in-tree")] {
        expanded(scene, claim).await?;
    }
    for claim in [name("late"), name("waiting"), own.clone()] {
        attached(scene, &bound(scene, &claim).await?.name_any(), &NODES[1..]).await?;
    }
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let found = attachment_of(scene, &attachments, &named(scene, &name("waiting"))).await?;
    ensure!(found.uid() == Some(attachment), "it was attached once more: {found:?}");

    // The last users of what was being deleted.
    for pod in [name("leaving"), name("late"), name("waiting"), name("own")] {
        scene.delete_pod(&pod).await?;
    }
    scene.gone::<PersistentVolumeClaim>(&name("leaving")).await?;
    scene
        .wait_until("its disk is gone", DEADLINE, async || {
            let disks = driver.disks();
            ensure!(disks.there.len() <= wanted, "{disks:?}");
            Ok(())
        })
        .await?;
    // The garbage collector deletes the claim of the pod's own.
    for claim in all.iter().chain([&name("in-tree"), &name("with-class"), &name("rival")]) {
        scene.api::<PersistentVolumeClaim>().delete(claim, &DeleteParams::default()).await.map(drop).or_else(absent)?;
        scene.gone::<PersistentVolumeClaim>(claim).await?;
    }
    scene.gone_from(&classes(scene), &named(scene, &name("class"))).await?;
    scene.gone_from(&volumes(scene), &named(scene, &name("doomed"))).await?;
    for volume in made.iter().filter(|volume| volume.starts_with("pvc-")) {
        scene.gone_from(&volumes(scene), volume).await?;
    }
    for half in all.iter().filter(|claim| claim.starts_with("half")) {
        phase(scene, &named(scene, half), "Released").await?;
    }
    Ok(())
}

fn absent(error: kube::Error) -> Result<()> {
    if matches!(&error, kube::Error::Api(status) if status.code == 404) {
        Ok(())
    } else {
        Err(error).context("delete a claim")
    }
}

#[test]
fn volumes_change_hands_in_the_middle_of_binding_attaching_and_expanding_and_back() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        let rest = ControllerManager::without(OPERATORS.map(upstream_controller));
        let (driver, moves) = (Driver::start(&scene.client), scene.beside("moves").await?);
        manage_nodes(scene).await?;
        class(scene, "fast", "Immediate").await?;
        class(scene, "late", "WaitForFirstConsumer").await?;
        let finished = finish(scene).await?;
        let nodes: Api<Node> = Api::all(scene.client.clone());
        let node = nodes.get(NODES[0]).await?.resource_version();

        prepare(&moves, 1).await?;
        let paused = driver.pause().await;
        let middle = begin(&moves, 1, &driver).await?;
        scene.cluster.stop_controller_manager().await?;
        half_bind(&moves, 1).await?;
        scene.cluster.start_controller_manager(rest).await?;
        let mut operators = start_operators(&scene.cluster, OPERATORS).await?;
        drop(paused);
        Box::pin(end(&moves, middle, &driver)).await?;
        assert_eq!(versions(scene).await?, finished, "the operators wrote what needed no write");
        assert_eq!(nodes.get(NODES[0]).await?.resource_version(), node, "the operators wrote a node without need");

        prepare(&moves, 2).await?;
        let paused = driver.pause().await;
        let middle = begin(&moves, 2, &driver).await?;
        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.stop_controller_manager().await?;
        half_bind(&moves, 2).await?;
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        drop(paused);
        Box::pin(end(&moves, middle, &driver)).await?;
        assert_eq!(versions(scene).await?, finished, "what the operators left was not what upstream expects");
        let disks = driver.disks();
        // Two at rest, and five in each of the two halves.
        assert_eq!((disks.made, disks.there.len(), disks.most_nodes), (12, 2, 1), "{disks:?}");
        Ok(())
    })
}
