//! Volumes that pods empty. Upstream: `recycle_test.go`, and `recycler_client_test.go`.

use serde_json::{Value, json};
use shared::api::object::Key;
use shared::testing::{ObjectBuilder, object, uid};

use super::fixtures::{
    BOUND_BY_CONTROLLER, MIGRATED_TO, Objects, SyncOf, World, annotated, claim, on_host, recyclers, row, saying,
    volume, volume_in,
};

/// Upstream: `TestRecycleSync`.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn recycling_is_upstreams() {
    let classes = [];
    let pods = [using("runningPod", "runningClaim"), using("pendingPod", "pendingClaim")];
    let rows = [
        row(
            "6-1 - successful recycle",
            SyncOf::Recycled(&[Ok(())]),
            (
                on_host(volume(
                    "volume6-1",
                    "1Gi",
                    "uid6-1",
                    "claim6-1",
                    "Bound",
                    "Recycle",
                    "",
                    &[BOUND_BY_CONTROLLER],
                )),
                on_host(volume("volume6-1", "1Gi", "", "", "Available", "Recycle", "", &[])),
            ),
            (Vec::new(), Vec::new()),
            &["Normal VolumeRecycled: Volume recycled"],
        ),
        row(
            "6-2 - successful recycle with prebound volume",
            SyncOf::Recycled(&[Ok(())]),
            (
                on_host(volume("volume6-2", "1Gi", "uid6-2", "claim6-2", "Bound", "Recycle", "", &[])),
                on_host(volume("volume6-2", "1Gi", "", "claim6-2", "Available", "Recycle", "", &[])),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "6-3 - plugin not found",
            SyncOf::Volume,
            (
                volume("volume6-3", "1Gi", "uid6-3", "claim6-3", "Bound", "Recycle", "", &[]),
                saying(
                    "No recycler plugin found for the volume!",
                    volume("volume6-3", "1Gi", "uid6-3", "claim6-3", "Failed", "Recycle", "", &[]),
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Warning VolumeFailedRecycle"],
        ),
        row(
            "6-5 - recycle returns error",
            SyncOf::Recycled(&[Err("Mock recycle error")]),
            (
                on_host(volume("volume6-5", "1Gi", "uid6-5", "claim6-5", "Bound", "Recycle", "", &[])),
                saying(
                    "Recycle failed: failed to recycle volume: Mock recycle error",
                    on_host(volume("volume6-5", "1Gi", "uid6-5", "claim6-5", "Failed", "Recycle", "", &[])),
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Warning VolumeFailedRecycle"],
        ),
        row(
            "6-9 - prebound volume is recycled while the claim exists",
            SyncOf::Recycled(&[Ok(())]),
            (
                on_host(volume("volume6-9", "1Gi", "uid6-9", "claim6-9", "Bound", "Recycle", "", &[])),
                on_host(volume("volume6-9", "1Gi", "", "claim6-9", "Available", "Recycle", "", &[])),
            ),
            (
                claim("claim6-9", "uid6-9-x", "10Gi", "", "Pending", None, &[]),
                claim("claim6-9", "uid6-9-x", "10Gi", "", "Pending", None, &[]),
            ),
            &[],
        ),
        row(
            "6-10 - unknown reclaim policy",
            SyncOf::Volume,
            (
                volume("volume6-10", "1Gi", "uid6-10", "claim6-10", "Bound", "Unknown", "", &[]),
                saying(
                    "Volume has unrecognized PersistentVolumeReclaimPolicy",
                    volume("volume6-10", "1Gi", "uid6-10", "claim6-10", "Failed", "Unknown", "", &[]),
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Warning VolumeUnknownReclaimPolicy"],
        ),
        row(
            "6-11 - used by running pod",
            SyncOf::Volume,
            (
                volume("volume6-11", "1Gi", "uid6-11", "runningClaim", "Bound", "Recycle", "", &[BOUND_BY_CONTROLLER]),
                volume(
                    "volume6-11",
                    "1Gi",
                    "uid6-11",
                    "runningClaim",
                    "Released",
                    "Recycle",
                    "",
                    &[BOUND_BY_CONTROLLER],
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Normal VolumeFailedRecycle"],
        ),
        row(
            "6-12 - used by pending pod",
            SyncOf::Volume,
            (
                volume("volume6-12", "1Gi", "uid6-12", "pendingClaim", "Bound", "Recycle", "", &[BOUND_BY_CONTROLLER]),
                volume(
                    "volume6-12",
                    "1Gi",
                    "uid6-12",
                    "pendingClaim",
                    "Released",
                    "Recycle",
                    "",
                    &[BOUND_BY_CONTROLLER],
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Normal VolumeFailedRecycle"],
        ),
        row(
            "6-13 - used by completed pod",
            SyncOf::Recycled(&[Ok(())]),
            (
                on_host(volume(
                    "volume6-13",
                    "1Gi",
                    "uid6-13",
                    "completedClaim",
                    "Bound",
                    "Recycle",
                    "",
                    &[BOUND_BY_CONTROLLER],
                )),
                on_host(volume("volume6-13", "1Gi", "", "", "Available", "Recycle", "", &[])),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "6-14 - seemingly used by running pod",
            SyncOf::Recycled(&[Ok(())]),
            (
                on_host(volume(
                    "volume6-14",
                    "1Gi",
                    "uid6-14",
                    "runningClaim",
                    "Bound",
                    "Recycle",
                    "",
                    &[BOUND_BY_CONTROLLER],
                )),
                on_host(volume("volume6-14", "1Gi", "", "", "Available", "Recycle", "", &[])),
            ),
            (
                claim("runningClaim", "uid6-14-x", "10Gi", "", "Bound", None, &[]),
                claim("runningClaim", "uid6-14-x", "10Gi", "", "Bound", None, &[]),
            ),
            &[],
        ),
        // Of `TestRecycleMultiSync`.
        row(
            "7-1 - recycle returns error",
            SyncOf::Recycled(&[Err("Mock recycle error"), Ok(())]),
            (
                on_host(volume("volume7-1", "1Gi", "uid7-1", "claim7-1", "Bound", "Recycle", "", &[])),
                on_host(volume("volume7-1", "1Gi", "", "claim7-1", "Available", "Recycle", "", &[])),
            ),
            (Vec::new(), Vec::new()),
            &["Warning VolumeFailedRecycle"],
        ),
    ];
    for row in rows {
        row.check(&classes, &pods);
    }
}

fn using(pod: &str, claim: &str) -> ObjectBuilder {
    let volumes = json!([{ "name": "vol1", "persistentVolumeClaim": { "claimName": claim } }]);
    shared::testing::pod(pod).set(&["spec", "volumes"], volumes)
}

const RECYCLER: &str = "recycler-for-a";

/// A volume whose claim is gone, and the pod that empties it: the operator's own in this state, or none.
fn recycling(status: Option<Value>) -> World {
    let volume = on_host(volume("a", "1Gi", "b", "b", "Released", "Recycle", "", &[BOUND_BY_CONTROLLER]));
    let mut world = World { ends: vec![json!({ "phase": "Pending" })], ..World::of(&volume, &[], &[]) };
    sync(&mut world);
    match status {
        Some(status) => world.recyclers[0]["status"] = status,
        None => world.recyclers.clear(),
    }
    world
}

fn sync(world: &mut World) -> String {
    let plan = world.plan_volume(&Key::new("", "a"));
    world.apply(&plan);
    plan.to_string()
}

fn says(world: &World, event: &str, message: &str) -> ObjectBuilder {
    let involved = json!({ "kind": "Pod", "namespace": "default", "name": RECYCLER, "uid": world.recyclers[0]["metadata"]["uid"] });
    let told = object("v1", "Event", &format!("{RECYCLER}.{event}")).set(&["involvedObject"], involved);
    let (kind, message) = message.split_once(' ').unwrap();
    told.set(&["type"], kind).set(&["message"], message).set(&["metadata", "resourceVersion"], event)
}

/// Upstream: `TestRecyclerPod`, `pkg/volume/util/recyclerclient/recycler_client_test.go`.
#[test]
fn the_volume_is_told_what_others_say_about_its_pod_once_and_what_becomes_of_it() {
    let messages = [
        "Normal Successfully assigned recycler-for-podRecyclerSuccess to 127.0.0.1",
        "Warning Unable to mount volumes for pod \"recycler-for-podRecyclerFailure_default\"",
        "Normal Pulling image \"registry.k8s.io/busybox\"",
    ];
    let failed = |why: &str| format!("Warning VolumeFailedRecycle: Recycle failed: failed to recycle volume: {why}");
    for (name, status, expected) in [
        ("RecyclerSuccess", Some(json!({ "phase": "Succeeded" })), "Normal VolumeRecycled: Volume recycled".to_owned()),
        (
            "RecyclerFailure",
            Some(json!({ "phase": "Failed", "message": "Pod was active on the node longer than specified deadline" })),
            failed("Pod was active on the node longer than specified deadline"),
        ),
        (
            "a failure without a message",
            Some(json!({ "phase": "Failed", "message": "" })),
            failed("pod failed, pod.Status.Message unknown"),
        ),
        ("RecyclerDeleted", None, failed("recycler pod was deleted")),
    ] {
        let mut world = recycling(Some(json!({ "phase": "Running" })));
        for (at, message) in messages.iter().enumerate() {
            world.pod_events.push(says(&world, &(9 - at).to_string(), message));
        }
        let of_another = says(&world, "4", "Normal of another pod");
        let of_another = of_another.set(&["involvedObject", "uid"], json!(uid("another")));
        world.pod_events.push(of_another);
        let tells = "tell PersistentVolume RecyclerPod";
        assert_eq!(
            sync(&mut world),
            format!("{tells}, {tells}, {tells} (pod default/{RECYCLER} empties it)"),
            "{name}"
        );
        assert_eq!(sync(&mut world), format!("check again (pod default/{RECYCLER} empties it)"), "{name}");
        world.recyclers.retain(|_| status.is_some());
        world.recyclers.iter_mut().for_each(|pod| pod["status"] = status.clone().unwrap());
        sync(&mut world);
        let relayed = messages.iter().rev().map(|message| message.replacen(' ', " RecyclerPod: Recycler pod: ", 1));
        assert_eq!(world.events, relayed.chain([expected]).collect::<Vec<_>>(), "{name}");
        assert_eq!((world.recyclers.len(), world.own.len()), (0, 0), "{name}");
    }
}

/// Upstream: "Another recycler pod is already running" of `TestRecyclerPod`.
#[test]
fn a_pod_that_the_operator_does_not_remember_is_deleted_whatever_it_has_done() {
    for phase in ["Pending", "Running", "Succeeded", "Failed"] {
        let mut world = recycling(Some(json!({ "phase": phase })));
        world.own.clear();
        let plan = sync(&mut world);
        let expected = "delete pod default/recycler-for-a, the volume is Failed, tell PersistentVolume VolumeFailedRecycle \
                        (Recycle failed: old recycler pod found, will retry later)";
        assert_eq!(plan, expected, "{phase}");
        assert_eq!(
            sync(&mut world),
            "create pod default/recycler-for-a (pod default/recycler-for-a is to empty it, for its claim is gone and its policy is Recycle)"
        );
        sync(&mut world);
        assert_eq!(*volume_in(&world, "a").unwrap().phase(), "Available", "{phase}");
    }
    let mut world = recycling(Some(json!({ "phase": "Running" })));
    world.own.clear();
    world.recyclers[0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(sync(&mut world).starts_with("the volume is Failed, "));
    assert_eq!(sync(&mut world), "check again (Recycle failed: old recycler pod found, will retry later)");
}

#[test]
fn a_volume_that_is_not_to_be_emptied_any_more_ends_its_pod() {
    let change = |change: fn(&mut Value)| {
        let mut world = recycling(Some(json!({ "phase": "Running" })));
        change(&mut world.volumes[0]);
        sync(&mut world)
    };
    let kept = change(|volume| volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain"));
    assert_eq!(kept, "delete pod default/recycler-for-a (its claim default/b is gone, and its policy is Retain)");
    let free = change(|volume| volume["spec"]["claimRef"] = Value::Null);
    assert_eq!(free, "delete pod default/recycler-for-a, the volume is Available (bound to no claim)");
    let mut world = recycling(Some(json!({ "phase": "Running" })));
    world.claims = vec![claim("b", "b", "1Gi", "a", "Bound", None, &[])[0].json().clone()];
    let plan = sync(&mut world);
    assert_eq!(plan, "delete pod default/recycler-for-a, the volume is Bound (bound to claim default/b)");
}

/// Upstream: `Recycle`, `pkg/volume/hostpath/host_path.go` and `pkg/volume/nfs/nfs.go`, and `TestCalculateTimeoutForVolume`,
/// `pkg/volume/util/util_test.go`.
#[test]
fn a_pod_has_the_volume_of_its_plugin_and_a_time_for_its_size() {
    let pod = |size: &str, source: Value, remove: &str| {
        let volumes: Objects = volume("a", size, "b", "b", "Released", "Recycle", "", &[]);
        let spec = volumes[0].clone().set(&["spec", "gcePersistentDisk"], Value::Null).set(&["spec", remove], source);
        let (key, pod) = recyclers().pod(&spec.build()).unwrap();
        assert_eq!(key.as_str(), "default/recycler-for-a");
        pod
    };
    let nfs = pod("1Gi", json!({ "server": "s", "path": "/p", "readOnly": true }), "nfs");
    let args = "test -e /scrub && find /scrub -mindepth 1 -delete && test -z \"$(ls -A /scrub)\" || exit 1";
    assert_eq!(
        nfs,
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": "default", "name": RECYCLER },
            "spec": {
                "activeDeadlineSeconds": 300, "restartPolicy": "Never",
                "volumes": [{ "name": "vol", "nfs": { "server": "s", "path": "/p" } }],
                "containers": [{
                    "name": "pv-recycler", "image": "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6",
                    "command": ["/bin/sh"], "args": ["-c", args],
                    "volumeMounts": [{ "name": "vol", "mountPath": "/scrub" }],
                }],
            },
        })
    );
    let volumes = pod("1Gi", json!({ "path": "/d", "type": "Directory" }), "hostPath")["spec"]["volumes"].take();
    assert_eq!(volumes, json!([{ "name": "vol", "hostPath": { "path": "/d" } }]));
    for (size, on_host, of_nfs) in [
        ("1Gi", 60, 300),
        ("2Gi", 60, 300),
        ("3Gi", 90, 300),
        ("11Gi", 330, 330),
        ("150Gi", 4500, 4500),
        ("1500m", 60, 300),
        ("3221225471", 60, 300),
        ("9Ei", 257_698_020, 257_698_020),
    ] {
        let timeout = |plugin: &str| pod(size, json!({ "path": "/d" }), plugin)["spec"]["activeDeadlineSeconds"].take();
        assert_eq!((timeout("hostPath"), timeout("nfs")), (json!(on_host), json!(of_nfs)), "{size}");
    }
}

#[test]
fn a_migrated_volume_is_left_to_its_driver() {
    let volume = annotated(MIGRATED_TO, "d", on_host(volume("a", "1Gi", "b", "b", "Released", "Recycle", "", &[])));
    let world = World::of(&volume, &[], &[]);
    assert!(!volume_in(&world, "a").unwrap().is_recycled());
}
