//! Which pods use a volume, and the conflicts of these: upstream's cases, and properties of any pods.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use selinux_warning_operator::memory::{Conflict, Volumes};
use selinux_warning_operator::objects::label::{ChangePolicy, Label, Property, Usage};
use selinux_warning_operator::objects::volume::Disk;
use shared::api::object::Key;
use shared::testing::uid;

const NO_LIMIT: usize = usize::MAX;

/// A pod that uses a volume: namespace, name, volume, label and policy.
type Use = (&'static str, &'static str, &'static str, &'static str, ChangePolicy);

use ChangePolicy::{MountOption, Recursive};

fn disk(name: &str, driver: &str) -> Disk {
    Disk { name: name.into(), driver: Some(driver.into()) }
}

/// As it is, also a label with the policy `Recursive`, which no pod has: upstream's cases are about such.
fn usage(label: &str, policy: ChangePolicy) -> Usage {
    Usage { policy, label: Label::new(label) }
}

fn add(volumes: &Volumes, (namespace, name, volume, label, policy): Use) {
    volumes.add(&Key::new(namespace, name), uid(name), &disk(volume, "csiDriver1"), usage(label, policy));
}

fn remembered(uses: &[Use]) -> Volumes {
    let volumes = Volumes::default();
    for of in uses {
        add(&volumes, *of);
    }
    volumes
}

/// Both directions.
fn between(property: Property, (a, value): (&str, &str), (b, other_value): (&str, &str)) -> [Conflict; 2] {
    let key = |text: &str| text.split_once('/').map_or_else(|| Key::new("ns", text), |(ns, name)| Key::new(ns, name));
    let one = |(pod, value): (&str, &str), (other, other_value): (&str, &str)| Conflict {
        property,
        pod: key(pod),
        value: value.to_owned(),
        other: key(other),
        other_value: other_value.to_owned(),
    };
    [one((a, value), (b, other_value)), one((b, other_value), (a, value))]
}

/// Upstream: `TestVolumeCache_DeleteAll`, `pkg/controller/volume/selinuxwarning/cache/volumecache_test.go`.
#[test]
fn nothing_is_left_of_pods_that_are_gone() {
    let volumes = Volumes::default();
    let of_each = |run: &dyn Fn(Key)| {
        for namespace in ["ns1", "ns2", "ns3", "ns4"] {
            for name in ["pod1", "pod2", "pod3", "pod4"] {
                run(Key::new(namespace, name));
            }
        }
    };
    of_each(&|pod| {
        for volume in ["vol1", "vol2", "vol3", "vol4"] {
            volumes.add(&pod, uid("pod"), &disk(volume, "csiDriver1"), usage("label1", MountOption));
        }
    });
    assert_eq!(volumes.conflicts(NO_LIMIT), BTreeSet::new());
    assert!(!volumes.is_empty());
    of_each(&|pod| volumes.remove(&pod));
    assert!(volumes.is_empty(), "{volumes:?}");
}

const EXISTING: &[Use] = &[
    ("ns1", "pod1-mountOption", "vol1", "system_u:system_r:label1", MountOption),
    ("ns2", "pod2-recursive", "vol2", "", Recursive),
    ("ns3", "pod3-1", "vol3", "", Recursive),
    ("ns3", "pod3-2", "vol3", "", Recursive),
    ("ns4", "pod4-1", "vol4", "system_u:system_r:label4", MountOption),
    ("ns4", "pod4-2", "vol4", "system_u:system_r:label4", MountOption),
    ("ns5", "pod5", "vol5", "::label5", MountOption),
    ("ns6", "pod6", "vol6", ":system_r:label6", MountOption),
    ("ns7", "pod7", "vol7", "::label7:c0,c1", MountOption),
    ("ns8", "pod8", "vol8", "", MountOption),
];

const fn new(volume: &'static str, label: &'static str, policy: ChangePolicy) -> Use {
    ("testns", "testpod", volume, label, policy)
}

/// The property, this pod's value, the other pod, and its value.
type Clash = (Property, &'static str, &'static str, &'static str);

const ADDED: &[(&str, &[Use], Use, Option<Clash>)] = &[
    ("new volume in empty cache", &[], new("vol-new", "system_u:system_r:label-new", MountOption), None),
    ("new volume", EXISTING, new("vol-new", "system_u:system_r:label-new", MountOption), None),
    (
        "existing volume in a new pod with existing policy and label",
        EXISTING,
        new("vol1", "system_u:system_r:label1", MountOption),
        None,
    ),
    (
        "existing volume in a new pod with existing policy and new conflicting label",
        EXISTING,
        new("vol1", "system_u:system_r:label-new", MountOption),
        Some((Property::Label, "system_u:system_r:label-new", "ns1/pod1-mountOption", "system_u:system_r:label1")),
    ),
    (
        "existing volume in a new pod with new conflicting policy",
        EXISTING,
        new("vol1", "", Recursive),
        Some((Property::ChangePolicy, "Recursive", "ns1/pod1-mountOption", "MountOption")),
    ),
    (
        "existing pod is replaced with different non-conflicting policy and label",
        EXISTING,
        ("ns2", "pod2-recursive", "vol2", "system_u:system_r:label-new", MountOption),
        None,
    ),
    (
        "existing pod is replaced with conflicting policy",
        EXISTING,
        ("ns3", "pod3-1", "vol3", "system_u:system_r:label-new", MountOption),
        Some((Property::ChangePolicy, "MountOption", "ns3/pod3-2", "Recursive")),
    ),
    (
        "existing volume in a new pod with existing policy and new incomparable label (missing user and role)",
        EXISTING,
        new("vol5", "system_u:system_r:label5", MountOption),
        None,
    ),
    (
        "existing volume in a new pod with conflicting policy with incomparable parts",
        EXISTING,
        new("vol5", "::label6", MountOption),
        Some((Property::Label, "::label6", "ns5/pod5", "::label5")),
    ),
    (
        "existing volume in a new pod with existing policy and new incomparable label (missing user)",
        EXISTING,
        new("vol6", "system_u::label6", MountOption),
        None,
    ),
    (
        "existing volume in a new pod with existing policy and new comparable label (missing categories)",
        EXISTING,
        new("vol7", "system_u:system_r:label7", MountOption),
        Some((Property::Label, "system_u:system_r:label7", "ns7/pod7", "::label7:c0,c1")),
    ),
    (
        "existing volume in a new pod with existing policy and new incomparable label (missing everything)",
        EXISTING,
        new("vol8", "system_u:system_r:label8", MountOption),
        None,
    ),
    (
        "existing volume in a new pod with existing policy and new comparable label (missing everything but \
         categories)",
        EXISTING,
        new("vol8", "system_u:system_r:label8:c0,c1", MountOption),
        Some((Property::Label, "system_u:system_r:label8:c0,c1", "ns8/pod8", "")),
    ),
];

/// Upstream: `TestVolumeCache_AddVolumeGetConflicts`.
#[test]
fn a_pod_conflicts_with_each_that_uses_its_volume_otherwise() {
    for (name, initial, added, expected) in ADDED {
        let volumes = remembered(initial);
        assert_eq!(volumes.conflicts(NO_LIMIT), BTreeSet::new(), "{name}");
        add(&volumes, *added);
        let (namespace, pod, volume, label, policy) = *added;
        let conflict = |(property, value, other, other_value): &Clash| {
            between(*property, (&format!("{namespace}/{pod}"), value), (other, other_value))
        };
        let expected: BTreeSet<Conflict> = expected.iter().flat_map(conflict).collect();
        assert_eq!(volumes.conflicts(NO_LIMIT), expected, "{name}");
        let known = volumes.usage(&Key::new(namespace, pod), uid(pod), &volume.into());
        assert_eq!(known, Some(usage(label, policy)), "{name}");
    }
}

/// Upstream: `TestVolumeCache_MultiVolumeConflicts`.
#[test]
fn conflicts_of_several_volumes_are_counted_once_for_each_pair_of_pods() {
    let volumes = remembered(&[
        ("ns", "podB", "vol1", "system_u:system_r:labelB", MountOption),
        ("ns", "podC", "vol2", "system_u:system_r:labelC", MountOption),
        ("ns", "podA", "vol1", "system_u:system_r:labelA", MountOption),
        ("ns", "podA", "vol2", "system_u:system_r:labelA", MountOption),
    ]);
    assert_eq!(volumes.conflicts(NO_LIMIT).len(), 4);
    volumes.remove(&Key::new("ns", "podA"));
    assert_eq!(volumes.conflicts(NO_LIMIT), BTreeSet::new());
    for (name, label) in [("podD", "system_u:system_r:labelD"), ("podE", "system_u:system_r:labelE")] {
        for volume in ["vol3", "vol4"] {
            add(&volumes, ("ns", name, volume, label, MountOption));
        }
    }
    assert_eq!(volumes.conflicts(NO_LIMIT).len(), 2);
}

/// Upstream: `TestVolumeCache_DeletePodConflicts`.
#[test]
fn the_conflicts_of_a_pod_go_with_it_and_no_others() {
    const A: Use = ("ns", "podA", "vol1", "system_u:system_r:labelA", MountOption);
    const B: Use = ("ns", "podB", "vol1", "system_u:system_r:labelB", MountOption);
    const C: Use = ("ns", "podC", "vol2", "system_u:system_r:labelC", MountOption);
    const C1: Use = ("ns", "podC", "vol1", "system_u:system_r:labelC", MountOption);
    const A2: Use = ("ns", "podA", "vol2", "system_u:system_r:labelA", MountOption);
    const D: Use = ("ns", "podD", "vol2", "system_u:system_r:labelD", MountOption);
    for (name, initial, deleted, expected) in [
        ("delete one of two conflicting pods clears all conflicts", &[A, B][..], &["podA"][..], None),
        ("delete non-conflicting pod preserves existing conflicts", &[A, B, C], &["podC"], Some((A, B))),
        ("three pods on same volume delete one leaves remaining pair conflict", &[A, B, C1], &["podA"], Some((B, C1))),
        ("delete pod with conflicts on multiple volumes", &[B, C, A, A2], &["podA"], None),
        ("delete pod preserves conflicts on unrelated volumes", &[A, B, C, D], &["podA"], Some((C, D))),
        ("delete pod that was already deleted is a no-op", &[A, B], &["podA", "podA"], None),
    ] {
        let volumes = remembered(initial);
        for pod in deleted {
            volumes.remove(&Key::new("ns", pod));
        }
        let expected = expected.map(|((_, a, _, label, _), (_, b, _, other, _)): (Use, Use)| {
            between(Property::Label, (a, label), (b, other))
        });
        assert_eq!(volumes.conflicts(NO_LIMIT), expected.into_iter().flatten().collect(), "{name}");
    }
}

/// Upstream: `TestVolumeCache_GetPodsForCSIDriver`.
#[test]
fn the_pods_of_a_driver_are_those_with_its_volumes() {
    let volumes = Volumes::default();
    for (driver, namespace, name, volume) in [
        ("csiDriver1", "ns1", "pod1-mountOption", "vol1"),
        ("csiDriver2", "ns2", "pod2-recursive", "vol2"),
        ("csiDriver2", "ns3", "pod3-1", "vol3"),
        ("csiDriver2", "ns3", "pod3-2", "vol3"),
        ("csiDriver3", "ns4", "pod4-1", "vol4"),
        ("csiDriver3", "ns4", "pod4-2", "vol4"),
    ] {
        volumes.add(&Key::new(namespace, name), uid(name), &disk(volume, driver), usage("label", MountOption));
    }
    for (driver, expected) in [
        ("csiDriver1", &[("ns1", "pod1-mountOption")][..]),
        ("csiDriver2", &[("ns2", "pod2-recursive"), ("ns3", "pod3-1"), ("ns3", "pod3-2")]),
        ("csiDriver3", &[("ns4", "pod4-1"), ("ns4", "pod4-2")]),
        ("csiDriver4", &[]),
    ] {
        let expected: BTreeSet<Key> = expected.iter().map(|(namespace, name)| Key::new(namespace, name)).collect();
        assert_eq!(volumes.pods_of(driver), expected, "{driver}");
    }
}

#[test]
fn a_million_conflicts_are_neither_kept_nor_shown_nor_compared() {
    let volumes = Volumes::default();
    for n in 0..2000 {
        let name = format!("pod-{n}");
        volumes.add(
            &Key::new("ns", &name),
            uid(&name),
            &disk("vol", "d"),
            usage(&format!(":::c{}", n % 1000), MountOption),
        );
    }
    assert_eq!(volumes.conflicts(100).len(), 100);
    let others = volumes.others(&Key::new("ns", "pod-0"), &"vol".into());
    assert_eq!(others.iter().map(|(_, pods)| pods.len()).sum::<usize>(), 199);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Pods come, change how they use their volumes, and go, in any order.
    #[test]
    fn the_conflicts_are_those_of_the_last_states(
        changes in prop::collection::vec((0..4_usize, 0..3_usize, prop::option::of(0..3_usize)), 0..40),
    ) {
        let (volumes, mut last) = (Volumes::default(), BTreeMap::new());
        for (pod, volume, label) in changes {
            let key = Key::new("ns", &format!("pod-{pod}"));
            if let Some(label) = label {
                let (label, policy) = [(":::s0", MountOption), (":::s1", MountOption), ("::t:s0", Recursive)][label];
                let usage = usage(label, policy);
                volumes.add(&key, uid("pod"), &disk(&format!("vol-{volume}"), "d"), usage.clone());
                last.insert((volume, key), usage);
            } else {
                volumes.remove(&key);
                last.retain(|(_, pod), _| *pod != key);
            }
        }
        let mut expected = BTreeSet::new();
        for ((volume, pod), usage) in &last {
            for ((_, other), other_usage) in last.iter().filter(|((of, _), _)| of == volume) {
                expected.extend(usage.conflicts_with(other_usage).map(|property| Conflict {
                    property,
                    pod: pod.clone(),
                    value: property.of(usage).to_owned(),
                    other: other.clone(),
                    other_value: property.of(other_usage).to_owned(),
                }));
            }
        }
        prop_assert_eq!(volumes.conflicts(NO_LIMIT), expected);
        prop_assert_eq!(volumes.is_empty(), last.is_empty());
    }
}
