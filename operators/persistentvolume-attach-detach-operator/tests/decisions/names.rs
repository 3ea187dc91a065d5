//! Unique names of volumes, the names of their VolumeAttachments, and which volumes may be on several nodes.
//!
//! Upstream: `pkg/volume/csi/csi_attacher_test.go`, `pkg/volume/util/util_test.go`.

use persistentvolume_attach_detach_operator::objects::volume::{PersistentVolume, Plugin, VolumeName};
use serde_json::{Value, json};
use shared::testing::object;

fn persistent_volume(spec: &Value) -> (Option<String>, bool) {
    let volume: std::sync::Arc<PersistentVolume> =
        object("v1", "PersistentVolume", "pv").namespace("").set(&["spec"], spec.clone()).build();
    let spec = volume.spec.as_ref();
    (spec.map(|spec| spec.volume.to_string()), spec.is_some_and(|spec| spec.allows_multi_attach))
}

/// Upstream: `GetVolumeName` of each plugin that can attach, and `TestGetPluginNameFromSpec`.
#[test]
fn each_plugin_names_its_volumes() {
    for (source, expected) in [
        (
            json!({ "csi": { "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1" } }),
            Some("kubernetes.io/csi/ebs.csi.aws.com^vol-1"),
        ),
        (json!({ "fc": { "targetWWNs": ["a", "b"], "lun": 0 } }), Some("kubernetes.io/fc/[a b]:0")),
        (json!({ "fc": { "targetWWNs": ["a"] } }), None),
        (
            json!({ "iscsi": { "targetPortal": "127.0.0.1:3260", "iqn": "iqn.2014-12.server:storage.target01", "lun": 0 } }),
            Some("kubernetes.io/iscsi/127.0.0.1:3260:iqn.2014-12.server:storage.target01:0"),
        ),
        (json!({ "nfs": { "server": "a", "path": "/" } }), None),
        (json!({ "hostPath": { "path": "/" } }), None),
        (json!(null), None),
    ] {
        assert_eq!(persistent_volume(&source).0.as_deref(), expected, "{source}");
    }
}

/// Upstream: `TestIsMultiAttachAllowed`, `pkg/volume/util/util_test.go`.
#[test]
fn access_modes_say_whether_several_nodes_may_have_a_volume() {
    for (modes, expected) in [
        (json!([]), true),
        (json!(null), true),
        (json!(["ReadWriteOnce"]), false),
        (json!(["ReadWriteOncePod"]), false),
        (json!(["ReadWriteMany"]), true),
        (json!(["ReadOnlyMany"]), true),
        (json!(["ReadWriteMany", "ReadOnlyMany"]), true),
        (json!(["ReadWriteOnce", "ReadOnlyMany"]), true),
        (json!(["ReadWriteOnce", "ReadWriteMany"]), true),
    ] {
        let spec = json!({ "csi": { "driver": "d", "volumeHandle": "h" }, "accessModes": modes });
        assert_eq!(persistent_volume(&spec).1, expected, "{modes}");
    }
}

#[test]
fn an_attachment_is_named_after_its_volume_and_its_node() {
    let volume = VolumeName::csi("hostpath.csi.k8s.io", "8d0a1c2e");
    let key = volume.attachment("worker-0").unwrap();
    // SHA-256 of "8d0a1c2ehostpath.csi.k8s.ioworker-0".
    let expected = "csi-f67377c5ba81fc77130cc4984ba82c7d30d1a55e450f226f412ce5d2c4260e5c";
    assert_eq!((key.name(), key.namespace()), (expected, ""));
    assert_eq!(VolumeName::new("kubernetes.io/fc/[a]").attachment("worker-0"), None);
}

#[test]
fn a_key_holds_any_handle() {
    for handle in ["vol-1", "/subscriptions/a/disks/b", "100%2F", "a^b", "ü\n", ""] {
        let volume = VolumeName::csi("disk.csi.azure.com", handle);
        let key = volume.key();
        assert_eq!((key.namespace(), VolumeName::of_key(&key)), ("", volume.clone()), "{key}");
        assert_eq!(volume.plugin(), Plugin::Csi { driver: "disk.csi.azure.com", handle });
    }
}

#[test]
fn metrics_name_the_driver_of_a_csi_volume() {
    for (name, expected) in [
        ("kubernetes.io/csi/ebs.csi.aws.com^vol-1", Some("kubernetes.io/csi:ebs.csi.aws.com")),
        ("kubernetes.io/fc/[a]", Some("kubernetes.io/fc")),
        ("kubernetes.io/iscsi/a:b:0", Some("kubernetes.io/iscsi")),
        ("kubernetes.io/rbd/a", None),
        ("kubernetes.io/csi/no-separator", None),
        ("volume-name", None),
    ] {
        assert_eq!(VolumeName::new(name).plugin_name().as_deref(), expected, "{name}");
    }
}
