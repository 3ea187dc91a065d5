//! Which labels conflict, and how a label is made and taken apart: upstream's cases.

use selinux_warning_operator::objects::label::{ChangePolicy, Label, Property, SeLinuxOptions, Usage};
use serde_json::json;

/// Upstream: `TestParseSELinuxLabel`, `pkg/controller/volume/selinuxwarning/internal/parse/selinux_label_test.go`.
#[test]
fn a_label_has_four_parts() {
    for (name, label, expected) in [
        ("empty label", "", ["", "", "", ""]),
        (
            "complete label with all components",
            "system_u:system_r:container_t:s0:c0,c1",
            ["system_u", "system_r", "container_t", "s0:c0,c1"],
        ),
        (
            "label with user, role, and type only",
            "system_u:system_r:container_t",
            ["system_u", "system_r", "container_t", ""],
        ),
        ("label with user and role only", "system_u:system_r", ["system_u", "system_r", "", ""]),
        ("label with user only", "system_u", ["system_u", "", "", ""]),
        ("label missing user but with role and type", ":system_r:container_t", ["", "system_r", "container_t", ""]),
        ("label missing user and role but with type", "::container_t", ["", "", "container_t", ""]),
        ("label missing user and role but with type and level", "::container_t:s0", ["", "", "container_t", "s0"]),
        ("label with all empty components except level", ":::s0:c0,c1", ["", "", "", "s0:c0,c1"]),
        (
            "label with special characters in components",
            "user_with_underscore:role-with-dash:type.with.dots:s0:c0.c1",
            ["user_with_underscore", "role-with-dash", "type.with.dots", "s0:c0.c1"],
        ),
        (
            "label with extra colons in level component",
            "user:role:type:s0:c0,c1:extra",
            ["user", "role", "type", "s0:c0,c1:extra"],
        ),
        ("multiple colons only", ":::", ["", "", "", ""]),
        ("five colons", ":::::", ["", "", "", "::"]),
    ] {
        assert_eq!(Label::new(label).parts(), expected, "{name}");
    }
}

/// Upstream: `TestSELinuxOptionsToFileLabel`, `translator/selinux_translator_test.go`.
#[test]
fn a_label_has_the_parts_that_a_pod_sets() {
    for (name, options, expected) in [
        ("nil options", json!({}), ""),
        (
            "all fields set",
            json!({ "user": "system_u", "role": "system_r", "type": "container_t", "level": "s0:c0,c1" }),
            "system_u:system_r:container_t:s0:c0,c1",
        ),
        ("some fields set", json!({ "type": "container_t", "level": "s0:c0,c1" }), "::container_t:s0:c0,c1"),
        ("only level set", json!({ "level": "s0:c0,c1" }), ":::s0:c0,c1"),
        ("no fields set", json!({ "user": "", "level": "" }), ""),
    ] {
        let options: SeLinuxOptions = serde_json::from_value(options).unwrap_or_default();
        assert_eq!(Label::of(&options).as_str(), expected, "{name}");
    }
}

#[test]
fn a_part_of_a_megabyte_is_kept_as_its_digest() {
    let label = |level: char| {
        let level: String = std::iter::repeat_n(level, 1_000_000).collect();
        let options = json!({ "user": "u", "level": level });
        Label::of(&serde_json::from_value(options).unwrap_or_default())
    };
    assert!(label('a').as_str().starts_with("u:::1000000 bytes, sha256="), "{:?}", label('a'));
    assert!(label('a').as_str().len() < 100 && !label('a').conflicts_with(&label('a')));
    assert!(label('a').conflicts_with(&label('b')));
}

/// Upstream: `TestLabelsConflict`, `translator/selinux_translator_test.go`.
#[test]
fn labels_conflict_in_the_parts_that_both_set_and_in_the_level() {
    for (name, a, b, expected) in [
        ("empty strings don't conflict", "", "", false),
        ("empty strings don't conflict with anything except the level", "", "system_u:system_r:container_t", false),
        ("empty string conflicts with level", "", "system_u:system_r:container_t:s0:c1,c2", true),
        ("empty parts don't conflict with anything", ":::", "system_u:system_r:container_t", false),
        (
            "different lengths don't conflict if the common parts are the same",
            "system_u:system_r:container_t:",
            "system_u:system_r",
            false,
        ),
        (
            "different lengths conflict if the common parts differ",
            "system_u:system_r:conflict_t:",
            "system_u:system_r:container_t",
            true,
        ),
        ("empty parts with conflict", "::conflict_t", "::container_t", true),
        ("non-conflicting empty parts", "system_u::container_t", ":system_r::", false),
        ("empty level conflicts with non-empty level", ":::s0:c1,c2", "", true),
        ("other roles", ":a", ":b", true),
        ("other users", "a", "b", true),
    ] {
        let (a, b) = (Label::new(a), Label::new(b));
        assert_eq!(a.conflicts_with(&b), expected, "{name}");
        assert_eq!(b.conflicts_with(&a), expected, "{name}");
    }
}

#[test]
fn a_volume_is_mounted_with_a_label_only_where_all_agree() {
    let label = Label::new(":::s0");
    let usage = |label: &Label, policy, mounts_with_label| {
        let Usage { policy, label } = Usage::new(label, policy, mounts_with_label);
        (policy, label)
    };
    let recursive = || (ChangePolicy::Recursive, Label::default());
    assert_eq!(usage(&label, ChangePolicy::MountOption, true), (ChangePolicy::MountOption, label.clone()));
    assert_eq!(usage(&label, ChangePolicy::Recursive, true), recursive());
    assert_eq!(usage(&label, ChangePolicy::MountOption, false), recursive());
    assert_eq!(usage(&Label::default(), ChangePolicy::MountOption, true), recursive());
}

#[test]
fn both_properties_can_conflict_at_once() {
    let mounted = Usage::new(&Label::new(":::s0"), ChangePolicy::MountOption, true);
    let labelled = Usage::new(&Label::default(), ChangePolicy::Recursive, true);
    let properties: Vec<Property> = mounted.conflicts_with(&labelled).collect();
    assert_eq!(properties, [Property::ChangePolicy, Property::Label]);
    assert_eq!(mounted.conflicts_with(&mounted).count(), 0);
}
