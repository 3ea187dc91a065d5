//! What is remembered and reported of a pod, and which changes lead to a sync: upstream's cases, and properties of
//! any pods.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use proptest::prelude::*;
use selinux_warning_operator::controller::changes::pod_changed;
use selinux_warning_operator::objects::label::Usage;
use selinux_warning_operator::objects::pod::Pod;
use selinux_warning_operator::objects::volume::{Disk, PersistentVolume};
use selinux_warning_operator::objects::{CsiDriver, PersistentVolumeClaim};
use selinux_warning_operator::observe::Caches;
use selinux_warning_operator::plan::{Plan, plan};
use serde_json::{Value, json};
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::testing::{ObjectBuilder, forget, object, pod, store, uid};
use shared::working::decisions::stage;
use shared::working::effect::Effect;
use shared::working::events::PlannedEvent;
use shared::working::queue::Cause;

const EBS: &str = "ebs.csi.aws.com";
const RECURSIVE: Option<&str> = Some("Recursive");

/// A running pod whose container mounts `vol1`, and has a volume that no label concerns.
fn user(name: &str, level: &str, policy: Option<&str>) -> ObjectBuilder {
    let mut context = json!({});
    if !level.is_empty() {
        context["seLinuxOptions"] = json!({ "level": level });
    }
    if let Some(policy) = policy {
        context["seLinuxChangePolicy"] = policy.into();
    }
    let pod = pod(name).set(&["spec", "securityContext"], context);
    pod.set(&["spec", "volumes"], json!([{ "name": "emptyDir1", "emptyDir": {} }])).set(
        &["spec", "containers"],
        json!([
            { "name": "container1", "volumeMounts": [{ "name": "vol1" }] },
        ]),
    )
}

/// The pod with one volume more.
fn with(pod: ObjectBuilder, name: &str, source: &str, value: &Value) -> ObjectBuilder {
    let mut volumes = pod.json()["spec"]["volumes"].clone();
    volumes.as_array_mut().unwrap().push(json!({ "name": name, source: value }));
    pod.set(&["spec", "volumes"], volumes)
}

fn with_claim(pod: ObjectBuilder, claim: &str) -> ObjectBuilder {
    with(pod, "vol1", "persistentVolumeClaim", &json!({ "claimName": claim }))
}

fn with_inline_volume(pod: ObjectBuilder) -> ObjectBuilder {
    let pod = with(pod, "inlineVolume", "awsElasticBlockStore", &json!({ "volumeID": "inlinevol1" }));
    mounting(pod, json!([{ "volumeMounts": [{ "name": "vol1" }, { "name": "inlineVolume" }] }]))
}

fn mounting(pod: ObjectBuilder, containers: Value) -> ObjectBuilder {
    pod.set(&["spec", "containers"], containers)
}

/// A container with this level that mounts these volumes.
fn container(level: &str, volumes: &[&str]) -> Value {
    let mounts: Vec<Value> = volumes.iter().map(|name| json!({ "name": name })).collect();
    json!({ "securityContext": { "seLinuxOptions": { "level": level } }, "volumeMounts": mounts })
}

fn claim(name: &str, volume: &str) -> ObjectBuilder {
    let claim = object("v1", "PersistentVolumeClaim", name).set(&["spec", "volumeName"], volume);
    claim.set(&["status", "phase"], "Bound")
}

/// A volume that is bound to this claim, with the source of an in-tree plugin.
fn volume(name: &str, claim: &str) -> ObjectBuilder {
    let claim = json!({ "namespace": "default", "name": claim, "uid": uid(claim).to_string() });
    let volume = object("v1", "PersistentVolume", name).namespace("").set(&["spec", "claimRef"], claim);
    volume.set(&["spec", "awsElasticBlockStore"], json!({ "volumeID": name }))
}

fn driver(mounts_with_label: impl Into<Value>) -> ObjectBuilder {
    object("storage.k8s.io/v1", "CSIDriver", EBS).namespace("").set(&["spec", "seLinuxMount"], mounts_with_label)
}

/// The claim `pvc1` is bound to the volume `pv1`, and the driver mounts with a label.
fn cluster(pods: &[ObjectBuilder]) -> Caches {
    let (caches, _) = Caches::new();
    store(&caches.persistent_volume_claims, &claim("pvc1", "pv1").build());
    store(&caches.persistent_volumes, &volume("pv1", "pvc1").build());
    store(&caches.csi_drivers, &driver(true).build());
    for pod in pods {
        store(&caches.pods, &pod.build());
    }
    caches
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn decide(caches: &Caches, pod: &str) -> Plan {
    plan(&caches.observe(&key(pod)))
}

/// Decides, and remembers what a sync would.
fn sync(caches: &Caches, pod: &str) -> Plan {
    let plan = decide(caches, pod);
    if let Plan::Check { uid, uses, .. } = &plan {
        for (disk, usage) in uses {
            caches.remembered.add(&key(pod), *uid, disk, usage.clone());
        }
    }
    plan
}

/// Each remembered volume, with the label and the policy.
fn uses(plan: &Plan) -> Vec<(String, String, &'static str)> {
    let Plan::Check { uses, .. } = plan else { return Vec::new() };
    let text = |(disk, Usage { policy, label }): &(Disk, Usage)| {
        (disk.name.to_string(), label.as_str().to_owned(), policy.as_str())
    };
    uses.iter().map(text).collect()
}

/// Each event as `type reason about: message`.
fn events(plan: &Plan) -> Vec<String> {
    let Plan::Check { events, warnings, .. } = plan else { return Vec::new() };
    let text = |event: &PlannedEvent| {
        format!("{} {} {}: {}", event.kind.as_str(), event.reason, event.about.key, event.message)
    };
    events.iter().chain(warnings).map(text).collect()
}

const PV1: &str = "kubernetes.io/csi/ebs.csi.aws.com^pv1";
const INLINE: &str = "kubernetes.io/csi/ebs.csi.aws.com^inlinevol1";
const LABEL: &str = ":::s0:c1,c2";

/// Upstream: `TestSELinuxWarningController_Sync`,
/// `pkg/controller/volume/selinuxwarning/selinux_warning_controller_test.go`. The rows about conflicts are the next
/// test's.
#[test]
fn a_pod_is_remembered_with_its_label_and_its_policy() {
    let user = |policy| user("pod1", "s0:c1,c2", policy);
    let claimed = |policy| with_claim(user(policy), "pvc1");
    for (name, pod, expected) in [
        ("existing pod with no volumes", user(None), &[][..]),
        ("existing pod with unbound PVC", with_claim(user(None), "non-existing-pvc"), &[]),
        ("existing pod with fully bound PVC", claimed(None), &[(PV1, LABEL, "MountOption")]),
        ("existing pod with fully bound PVC, Recursive change policy", claimed(RECURSIVE), &[(PV1, "", "Recursive")]),
        ("existing pod with inline volume", with_inline_volume(user(None)), &[(INLINE, LABEL, "MountOption")]),
        (
            "existing pod with inline volume and PVC",
            with_inline_volume(claimed(None)),
            &[(INLINE, LABEL, "MountOption"), (PV1, LABEL, "MountOption")],
        ),
        (
            "empty label implies Recursive policy",
            with_claim(self::user("pod1", "", Some("MountOption")), "pvc1"),
            &[(PV1, "", "Recursive")],
        ),
        ("pending pod is processed", claimed(None).phase("Pending"), &[(PV1, LABEL, "MountOption")]),
        ("unknown pod is processed", claimed(None).phase("Unknown"), &[(PV1, LABEL, "MountOption")]),
    ] {
        let plan = decide(&cluster(&[pod]), "pod1");
        let expected: Vec<_> = expected.iter().map(|(v, l, p)| ((*v).to_owned(), (*l).to_owned(), *p)).collect();
        assert_eq!((uses(&plan), events(&plan)), (expected, Vec::new()), "{name}");
    }
    // "succeeded pod is removed from the cache", "failed pod is removed from the cache" and "deleted pod": neither is
    // watched.
    assert_eq!(decide(&cluster(&[]), "pod1"), Plan::Forget);
    // "existing pod with fully bound PVC and CSIDriver.SELinuxMount disabled"
    for other in [driver(false), driver(Value::Null)] {
        let caches = cluster(&[claimed(None)]);
        store(&caches.csi_drivers, &other.build());
        assert_eq!(uses(&decide(&caches, "pod1")), [(PV1.to_owned(), String::new(), "Recursive")]);
    }
}

/// Upstream: `TestSELinuxWarningController_Sync`.
#[test]
fn each_of_two_pods_is_told_of_the_other_one_once() {
    let pair = |policy, other_policy| {
        [
            with_claim(user("pod1", "s0:c1,c2", policy), "pvc1"),
            with_claim(user("pod2", "s0:c98,c99", other_policy), "pvc1"),
        ]
    };
    let told = |pods: &[ObjectBuilder]| {
        let caches = cluster(pods);
        assert_eq!(events(&sync(&caches, "pod2")), [""; 0]);
        let told = events(&sync(&caches, "pod1"));
        assert_eq!(events(&sync(&caches, "pod1")), [""; 0], "known");
        assert_eq!(events(&sync(&caches, "pod2")), [""; 0], "known");
        told
    };
    // "existing pod with PVC generates conflict, the other pod exists"
    let to_first = "Normal SELinuxLabelConflict default/pod1: SELinuxLabel \":::s0:c1,c2\" conflicts with pod \
                    pod2 that uses the same volume as this pod with SELinuxLabel \":::s0:c98,c99\". If both \
                    pods land on the same node, only one of them may access the volume.";
    let to_second = "Normal SELinuxLabelConflict default/pod2: SELinuxLabel \":::s0:c98,c99\" conflicts with \
                     pod pod1 that uses the same volume as this pod with SELinuxLabel \":::s0:c1,c2\". If both \
                     pods land on the same node, only one of them may access the volume.";
    assert_eq!(told(&pair(None, None)), [to_first, to_second]);
    // "existing pod with Recursive policy does not generate conflicts"
    assert_eq!(told(&pair(RECURSIVE, RECURSIVE)), [""; 0]);
    // "existing pod with Recursive policy does not conflict with pod with MountOption policy label, only with the
    // policy"; a level conflicts with none, too, which upstream's row leaves to its cache.
    let policies: Vec<String> = told(&pair(RECURSIVE, Some("MountOption")))
        .into_iter()
        .filter(|event| event.contains("ChangePolicy"))
        .collect();
    let to_first = "Normal SELinuxChangePolicyConflict default/pod1: SELinuxChangePolicy \"Recursive\" \
                    conflicts with pod pod2 that uses the same volume as this pod with SELinuxChangePolicy \
                    \"MountOption\". If both pods land on the same node, only one of them may access the volume.";
    let to_second = "Normal SELinuxChangePolicyConflict default/pod2: SELinuxChangePolicy \"MountOption\" \
                     conflicts with pod pod1 that uses the same volume as this pod with SELinuxChangePolicy \
                     \"Recursive\". If both pods land on the same node, only one of them may access the volume.";
    assert_eq!(policies, [to_first, to_second]);
    // "existing pod with PVC generates conflict, the other pod doesn't exist"
    let caches = cluster(&pair(None, None));
    sync(&caches, "pod2");
    forget(&caches.pods, &caches.pods.get(&key("pod2")).unwrap());
    assert_eq!(events(&sync(&caches, "pod1")).len(), 1);
}

#[test]
fn a_pod_of_another_namespace_stays_unnamed() {
    let iscsi = json!({ "targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-01.com.example:disk", "lun": 1 });
    let shared = |name, level| with(user(name, level, None), "vol1", "iscsi", &iscsi);
    let caches = cluster(&[shared("pod1", "s0:c1"), shared("pod2", "s0:c2").namespace("another")]);
    let pod2 = plan(&caches.observe(&Key::new("another", "pod2")));
    let Plan::Check { uid, uses: used, .. } = &pod2 else { panic!("{pod2:?}") };
    assert_eq!(uses(&pod2)[0].0, "kubernetes.io/iscsi/10.0.0.1:3260:iqn.2026-01.com.example:disk:1");
    caches.remembered.add(&Key::new("another", "pod2"), *uid, &used[0].0, used[0].1.clone());
    let plan = decide(&caches, "pod1");
    let expected = "Normal SELinuxLabelConflict default/pod1: SELinuxLabel\":::s0:c1\" conflicts with another \
                    pod that uses the same volume as this pod with a different SELinuxLabel. If both pods land \
                    on the same node, only one of them may access the volume.";
    assert_eq!(events(&plan)[0], expected);
    assert_eq!(
        stage(&plan).text,
        "remember 1 volume, post 2 events (conflicts with SELinuxLabel of a pod in another namespace)"
    );
}

#[test]
fn a_pod_is_told_of_a_hundred_others_at_most() {
    let names: Vec<String> = (0..150).map(|n| format!("pod-{n}")).collect();
    let labelled = |name: &String| with_claim(user(name, &format!("s0:c{}", name.len()), None), "pvc1");
    let caches =
        cluster(&names.iter().map(labelled).chain([with_claim(user("pod", "s0", None), "pvc1")]).collect::<Vec<_>>());
    for name in &names {
        sync(&caches, name);
    }
    let plan = sync(&caches, "pod");
    assert_eq!((events(&plan).len(), stage(&plan).text.contains("and 95 more")), (200, true), "{}", stage(&plan).text);
}

#[test]
fn containers_with_several_labels_are_reported_for_each_volume_that_they_share() {
    let mixed = |pod: ObjectBuilder| {
        mounting(pod, json!([container("s0:c1", &["vol1", "emptyDir1"]), container("s0:c2", &["vol1"])]))
    };
    let warning = "Warning MultipleSELinuxLabels default/pod1: Volume \"vol1\" is mounted twice with different \
                   SELinux labels inside this pod";
    let caches = cluster(&[mixed(with_claim(user("pod1", "", None), "pvc1"))]);
    for _ in 0..2 {
        let plan = sync(&caches, "pod1");
        assert_eq!((uses(&plan), events(&plan)), (Vec::new(), vec![warning.to_owned()]));
        assert_eq!(stage(&plan).text, "post 1 event (mounted with several labels: vol1)");
    }
    // Of any volume, and with any policy.
    let caches = cluster(&[mixed(with(user("pod1", "", RECURSIVE), "vol1", "emptyDir", &json!({})))]);
    assert_eq!(events(&decide(&caches, "pod1")), [warning]);
    // Not before it is known what is behind it.
    let caches = cluster(&[mixed(with_claim(user("pod1", "", None), "missing"))]);
    let plan = decide(&caches, "pod1");
    assert_eq!(stage(&plan).text, "nothing (not checked: claim missing does not exist)");
}

#[test]
fn containers_of_all_kinds_have_a_say_and_those_without_options_have_none() {
    let label = |spec: Value| {
        let pod = with_claim(user("pod1", "", None), "pvc1");
        let pod =
            spec.as_object().unwrap().iter().fold(pod, |pod, (field, value)| pod.set(&["spec", field], value.clone()));
        let plan = decide(&cluster(&[pod]), "pod1");
        (uses(&plan).pop().map(|(_, label, _)| label), events(&plan).len())
    };
    let one = |level: &str| (Some(format!(":::{level}")), 0);
    let own = |level: &str| json!([container(level, &["vol1"])]);
    let none = json!([{ "volumeMounts": [{ "name": "vol1" }] }]);
    let context = json!({ "seLinuxOptions": { "level": "s0" } });
    assert_eq!(label(json!({ "containers": none, "initContainers": own("s1") })), one("s1"));
    assert_eq!(label(json!({ "containers": none, "ephemeralContainers": own("s1") })), one("s1"));
    assert_eq!(label(json!({ "containers": own("s1"), "initContainers": own("s2") })), (None, 1));
    assert_eq!(label(json!({ "containers": own("s1"), "initContainers": own("s1") })), one("s1"));
    assert_eq!(label(json!({ "containers": none, "securityContext": context })), one("s0"));
    assert_eq!(label(json!({ "containers": own("s1"), "securityContext": context })), one("s1"));
    assert_eq!(
        label(json!({ "containers": none, "initContainers": own("s1"), "securityContext": context })),
        (None, 1)
    );
    // A block device has no label.
    assert_eq!(label(json!({ "containers": [{ "volumeDevices": [{ "name": "vol1" }] }] })), (None, 0));
}

#[test]
fn a_volume_is_known_by_upstreams_name() {
    let of_pod = |source: &str, value: Value| {
        let caches = cluster(&[with(user("pod1", "s0", None), "vol1", source, &value)]);
        uses(&decide(&caches, "pod1")).pop().map(|(name, label, _)| (name, label.is_empty()))
    };
    let named = |name: &str, is_unlabelled| Some((name.to_owned(), is_unlabelled));
    let wwns = json!({ "targetWWNs": ["50060e801049cfd1", "b"], "lun": 0 });
    assert_eq!(of_pod("fc", wwns), named("kubernetes.io/fc/[50060e801049cfd1 b]:0", false));
    assert_eq!(
        of_pod("fc", json!({ "wwids": ["3600508b400105e21"] })),
        named("kubernetes.io/fc/[3600508b400105e21]", false)
    );
    assert_eq!(of_pod("fc", json!({ "targetWWNs": ["a"] })), None);
    let share = json!({ "secretName": "azure-storage-account-a-secret", "shareName": "s" });
    assert_eq!(of_pod("azureFile", share), named("kubernetes.io/csi/file.csi.azure.com^#a#s#vol1#default", true));
    for (source, field, driver) in [
        ("azureDisk", "diskURI", "disk.csi.azure.com"),
        ("cinder", "volumeID", "cinder.csi.openstack.org"),
        ("portworxVolume", "volumeID", "pxd.portworx.com"),
        ("vsphereVolume", "volumePath", "csi.vsphere.vmware.com"),
    ] {
        let name = format!("kubernetes.io/csi/{driver}^x");
        assert_eq!(of_pod(source, json!({ field: "x" })), named(&name, true), "{source}");
    }
    let name = "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/x";
    assert_eq!(of_pod("gcePersistentDisk", json!({ "pdName": "x" })), named(name, true));
    // Other plugins mount none with a label, and a pod's own CSI volume has no name.
    for source in ["nfs", "hostPath", "csi", "emptyDir"] {
        assert_eq!(of_pod(source, json!({ "driver": EBS })), None, "{source}");
    }
    assert_eq!(of_pod("awsElasticBlockStore", json!({ "volumeID": "aws://zone/invalid" })), None);
    let long = of_pod("iscsi", json!({ "targetPortal": "x".repeat(1_000_000) })).unwrap().0;
    assert!(long.len() < 100, "{long}");

    let of_volume = |source: &str, value: Value| {
        let bound = volume("pv1", "pvc1").set(&["spec", "awsElasticBlockStore"], Value::Null);
        let volume: Arc<PersistentVolume> = bound.set(&["spec", source], value).build();
        let caches = cluster(&[with_claim(user("pod1", "s0", None), "pvc1")]);
        store(&caches.persistent_volumes, &volume);
        uses(&decide(&caches, "pod1")).pop().map(|(name, label, _)| (name, label.is_empty()))
    };
    let csi = json!({ "driver": EBS, "volumeHandle": "vol-1" });
    assert_eq!(of_volume("csi", csi), named("kubernetes.io/csi/ebs.csi.aws.com^vol-1", false));
    assert_eq!(
        of_volume("csi", json!({ "driver": "other", "volumeHandle": "1" })),
        named("kubernetes.io/csi/other^1", true)
    );
    let iscsi = json!({ "targetPortal": "p", "iqn": "i", "lun": 2 });
    assert_eq!(of_volume("iscsi", iscsi), named("kubernetes.io/iscsi/p:i:2", false));
    assert_eq!(of_volume("nfs", json!({ "server": "a", "path": "/" })), None);
}

#[test]
fn what_is_not_bound_is_told_where_a_label_depends_on_it() {
    let pod = || with_claim(user("pod1", "s0", None), "pvc1");
    let check = |caches: &Caches, expected: &str| {
        assert_eq!(stage(&decide(caches, "pod1")).text, format!("nothing (not checked: {expected})"));
    };
    let caches = cluster(&[pod()]);
    store(&caches.persistent_volume_claims, &claim("pvc1", "pv1").set(&["status", "phase"], "Pending").build());
    check(&caches, "claim pvc1 is not bound");
    store(&caches.persistent_volume_claims, &claim("pvc1", "missing").build());
    check(&caches, "volume missing does not exist");
    store(&caches.persistent_volume_claims, &claim("pvc1", "pv1").uid_of("newer").build());
    check(&caches, "volume pv1 is bound to another claim");
    let caches = cluster(&[pod()]);
    let invalid = volume("pv1", "pvc1").set(&["spec", "awsElasticBlockStore", "volumeID"], "aws://zone/invalid");
    store(&caches.persistent_volumes, &invalid.build());
    check(
        &caches,
        "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/invalid)",
    );

    let own = || with(user("pod1", "s0", None), "vol1", "ephemeral", &json!({}));
    let caches = cluster(&[own()]);
    store(&caches.persistent_volume_claims, &claim("pod1-vol1", "pv1").build());
    check(&caches, "claim pod1-vol1 was not created for this pod");
    store(&caches.persistent_volume_claims, &claim("pod1-vol1", "pv1").owned_by(&*own().build::<Pod>()).build());
    store(&caches.persistent_volumes, &volume("pv1", "pod1-vol1").build());
    assert_eq!(uses(&decide(&caches, "pod1")), [(PV1.to_owned(), ":::s0".to_owned(), "MountOption")]);

    let caches = cluster(&[with_claim(user("pod1", "", None), "missing")]);
    assert_eq!(stage(&decide(&caches, "pod1")).text, "nothing (no conflict)");
}

#[test]
fn an_earlier_pod_of_the_name_is_not_this_one() {
    let caches = cluster(&[with_claim(user("pod1", "s0", None), "pvc1")]);
    sync(&caches, "pod1");
    assert_eq!(uses(&decide(&caches, "pod1")), []);
    store(&caches.pods, &with_claim(user("pod1", "s0", None), "pvc1").uid_of("another").build());
    assert_eq!(uses(&decide(&caches, "pod1")).len(), 1);
}

#[test]
fn a_pod_with_a_label_makes_its_volumes_needed() {
    for (pod, expected) in [
        (with_claim(user("a", "s0", None), "pvc1"), true),
        (with_inline_volume(user("a", "s0", None)), true),
        (with_claim(user("a", "s0", RECURSIVE), "pvc1"), false),
        (with_claim(user("a", "", None), "pvc1"), false),
        (with(user("a", "s0", None), "vol1", "nfs", &json!({})), false),
        (user("a", "s0", None), false),
    ] {
        assert_eq!(pod.build::<Pod>().may_mount_with_label(), expected, "{:?}", pod.json()["spec"]);
    }
}

fn enqueued(names: &[&str]) -> Vec<Effect> {
    names.iter().map(|name| Effect::Enqueue(key(name), Cause::Event)).collect()
}

#[test]
fn a_pod_is_synced_when_it_comes_when_it_goes_and_when_it_mounts_more() {
    let plain: Arc<Pod> = user("pod1", "s0", None).build();
    let web = with_claim(user("pod1", "s0", None), "pvc1");
    let debugged = web.clone().set(&["spec", "ephemeralContainers"], json!([container("s1", &["vol1"])]));
    let [web, debugged, labelled]: [Arc<Pod>; 3] = [web.build(), debugged.build(), web.label("a", "b").build()];
    assert_eq!(pod_changed(Change::Added(&web)), enqueued(&["pod1"]));
    assert_eq!(pod_changed(Change::Deleted(&web)), enqueued(&["pod1"]));
    assert_eq!(pod_changed(Change::Updated { old: &web, new: &debugged }), enqueued(&["pod1"]));
    assert_eq!(pod_changed(Change::Updated { old: &web, new: &labelled }), []);
    assert_eq!(pod_changed(Change::Added(&plain)), []);
    assert_eq!(pod_changed(Change::Deleted(&plain)), []);
}

#[test]
fn a_binding_wakes_the_pods_of_the_claim() {
    let caches = cluster(&[
        with_claim(user("a", "s0", None), "pvc1"),
        with_claim(user("b", "", None), "pvc1"),
        with_claim(user("c", "s0", None), "other"),
        with_claim(user("d", "s0", None), "pvc1").namespace("another"),
    ]);
    let pods = || enqueued(&["a", "b"]);
    let waiting = claim("pvc1", "pv1").set(&["status", "phase"], "Pending");
    let [bound, waiting]: [Arc<PersistentVolumeClaim>; 2] = [claim("pvc1", "pv1").build(), waiting.build()];
    assert_eq!(caches.claim_changed(Change::Added(&bound)), pods());
    assert_eq!(caches.claim_changed(Change::Added(&waiting)), []);
    assert_eq!(caches.claim_changed(Change::Updated { old: &waiting, new: &bound }), pods());
    assert_eq!(caches.claim_changed(Change::Updated { old: &bound, new: &bound }), []);
    assert_eq!(caches.claim_changed(Change::Deleted(&bound)), []);
    let available = volume("pv1", "pvc1").set(&["spec", "claimRef"], Value::Null);
    let incomplete = volume("pv1", "pvc1").set(&["spec", "claimRef", "uid"], Value::Null);
    let [bound, available, incomplete]: [Arc<PersistentVolume>; 3] =
        [volume("pv1", "pvc1").build(), available.build(), incomplete.build()];
    assert_eq!(caches.volume_changed(Change::Added(&bound)), pods());
    assert_eq!(caches.volume_changed(Change::Added(&available)), []);
    assert_eq!(caches.volume_changed(Change::Added(&incomplete)), []);
    assert_eq!(caches.volume_changed(Change::Updated { old: &incomplete, new: &bound }), pods());
    assert_eq!(caches.volume_changed(Change::Updated { old: &bound, new: &bound }), []);
    assert_eq!(caches.volume_changed(Change::Updated { old: &bound, new: &available }), []);
    assert_eq!(caches.volume_changed(Change::Deleted(&bound)), []);
}

#[test]
fn a_driver_that_mounts_otherwise_wakes_the_pods_with_its_volumes() {
    let caches = cluster(&[with_claim(user("a", "s0", None), "pvc1"), with_claim(user("b", "s0", None), "other")]);
    sync(&caches, "a");
    let [mounts, not]: [Arc<CsiDriver>; 2] = [driver(true).build(), driver(Value::Null).build()];
    let off: Arc<CsiDriver> = driver(false).build();
    let pods = || enqueued(&["a"]);
    assert_eq!(caches.driver_changed(Change::Added(&mounts)), pods());
    assert_eq!(caches.driver_changed(Change::Updated { old: &not, new: &mounts }), pods());
    assert_eq!(caches.driver_changed(Change::Updated { old: &mounts, new: &off }), pods());
    assert_eq!(caches.driver_changed(Change::Deleted(&mounts)), pods());
    assert_eq!(caches.driver_changed(Change::Updated { old: &off, new: &not }), []);
    assert_eq!(caches.driver_changed(Change::Deleted(&off)), []);
    let other: Arc<CsiDriver> =
        object("storage.k8s.io/v1", "CSIDriver", "other").set(&["spec", "seLinuxMount"], true).build();
    assert_eq!(caches.driver_changed(Change::Added(&other)), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Pods with any labels and policies, synced in any order, twice.
    #[test]
    fn every_pair_is_told_once_and_in_any_order(
        pods in prop::collection::vec((prop::sample::select(vec!["", "s0", "s1"]), any::<bool>()), 1..6),
        order in Just((0..6_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let pod = |(n, (level, is_recursive)): (usize, &(&str, bool))| {
            with_claim(user(&format!("pod-{n}"), level, is_recursive.then_some("Recursive")), "pvc1")
        };
        let names = |n: &usize| format!("pod-{n}");
        let caches = cluster(&pods.iter().enumerate().map(pod).collect::<Vec<_>>());
        let order: Vec<String> = order.iter().filter(|n| **n < pods.len()).map(names).collect();
        let mut told: Vec<String> = order.iter().flat_map(|name| events(&sync(&caches, name))).collect();
        let again: Vec<String> = order.iter().flat_map(|name| events(&sync(&caches, name))).collect();
        prop_assert_eq!(again, Vec::<String>::new());
        let count = told.len();
        told.sort();
        told.dedup();
        prop_assert_eq!((told.len(), caches.remembered.conflicts(usize::MAX).len()), (count, count));
    }
}
