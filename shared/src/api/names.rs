//! Names: what the apiserver accepts, the rules by which one name is made from another, and how far two are apart.
//!
//! Left out: the random suffix of `generateName`, which the apiserver appends.

/// The longest DNS-1123 subdomain: the name of most objects.
pub const DNS1123_SUBDOMAIN_MAX_LENGTH: usize = 253;

/// The longest DNS-1123 label: a namespace, a host name, a name that the apiserver completed from `generateName`.
pub const DNS1123_LABEL_MAX_LENGTH: usize = 63;

/// The longest value of a label.
pub const LABEL_VALUE_MAX_LENGTH: usize = 63;

/// The longest name with which a StatefulSet can always have pods: the values of their labels are this name, a dash, and
/// a hash or an ordinal of at most ten characters.
pub const STATEFUL_SET_NAME_MAX_LENGTH: usize = LABEL_VALUE_MAX_LENGTH - 11;

/// Whether `text` is a lower-case DNS label.
///
/// Upstream: `IsDNS1123Label`, `staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go`.
pub fn is_dns1123_label(text: &str) -> bool {
    text.len() <= DNS1123_LABEL_MAX_LENGTH && is_label_shaped(text)
}

/// Whether `text` is a series of labels with dots between them. Only its whole length is limited, not that of a label.
///
/// Upstream: `IsDNS1123Subdomain`, `validation.go`.
pub fn is_dns1123_subdomain(text: &str) -> bool {
    text.len() <= DNS1123_SUBDOMAIN_MAX_LENGTH && text.split('.').all(is_label_shaped)
}

fn is_label_shaped(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(is_alphanumeric)
        && bytes.last().copied().is_some_and(is_alphanumeric)
        && bytes.iter().all(|&byte| byte == b'-' || is_alphanumeric(byte))
}

/// The `generateName` of the pods of an object: its name and a dash, or without the dash where that were no valid prefix.
///
/// Upstream: `getPodsPrefix`, `pkg/controller/controller_utils.go`.
pub fn pod_name_prefix(owner: &str) -> String {
    let prefix = format!("{owner}-");
    if is_pod_name_prefix(&prefix) { prefix } else { owner.to_owned() }
}

/// The name of the claim that is made for an ephemeral volume of a pod.
///
/// Upstream: `VolumeClaimName`, `staging/src/k8s.io/component-helpers/storage/ephemeral/ephemeral.go`.
pub fn ephemeral_claim_name(pod: &str, volume: &str) -> String {
    format!("{pod}-{volume}")
}

/// Whether a pod's name may begin with `prefix`.
///
/// Upstream: `NameIsDNSSubdomain` with `prefix`, `staging/src/k8s.io/apimachinery/pkg/api/validation/generic.go`.
pub fn is_pod_name_prefix(prefix: &str) -> bool {
    // Upstream puts an `a` in place of the last two characters when the last one is a dash.
    match prefix.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        Some(rest) => {
            let mut masked = rest.to_owned();
            masked.pop();
            masked.push('a');
            is_dns1123_subdomain(&masked)
        }
        None => is_dns1123_subdomain(prefix),
    }
}

/// `base-suffix` of at most `max` bytes: the base is cut, the suffix never.
///
/// Upstream: `generateReplicaSetName`, `pkg/controller/deployment/sync.go`.
pub fn with_suffix(base: &str, suffix: &str, max: usize) -> String {
    let room = max.saturating_sub(suffix.len() + 1);
    let cut = if room == 0 { base.len() } else { base.floor_char_boundary(room) };
    format!("{}-{suffix}", &base[..cut])
}

/// How many characters must be put in, left out or replaced to make one of the other: the distance of Levenshtein.
pub fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // How far the part of `from` that was read is from each beginning of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for read in from.chars() {
        let mut replaced = row[0];
        row[0] += 1;
        for (at, wanted) in to.iter().enumerate() {
            let replace = replaced + usize::from(read != *wanted);
            replaced = row[at + 1];
            row[at + 1] = replace.min(replaced + 1).min(row[at] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "axc", 1),
            ("abc", "ac", 1),
            ("ac", "abc", 1),
            ("job", "jobs", 1),
            ("kitten", "sitting", 3),
            ("äöü", "aou", 3),
        ] {
            assert_eq!(edits(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn subdomains_are_labels_joined_by_dots() {
        for name in ["a", "0", "web-0", "a.b", "a--b", &"a".repeat(253)] {
            assert!(is_dns1123_subdomain(name), "{name}");
        }
        for name in ["", "A", "a_b", "-a", "a-", ".a", "a.", "a..b", "a.-b", "ä", &"a".repeat(254)] {
            assert!(!is_dns1123_subdomain(name), "{name}");
        }
        assert!(is_dns1123_label(&"a".repeat(63)));
        assert!(!is_dns1123_label(&"a".repeat(64)));
        assert!(!is_dns1123_label("a.b"));
    }

    #[test]
    fn the_dash_is_left_out_where_it_makes_no_valid_prefix() {
        assert_eq!(pod_name_prefix("web"), "web-");
        assert_eq!(pod_name_prefix("a"), "a-");
        assert_eq!(pod_name_prefix("web.v1"), "web.v1-");
        assert_eq!(pod_name_prefix(&"a".repeat(252)), format!("{}-", "a".repeat(252)));
        assert_eq!(pod_name_prefix(&"a".repeat(253)), format!("{}-", "a".repeat(253)));
        assert_eq!(pod_name_prefix("Web"), "Web");
        assert_eq!(pod_name_prefix(&"a".repeat(254)), "a".repeat(254));
    }

    /// Upstream: `TestGenerateReplicaSetName`.
    #[test]
    fn the_base_is_cut_and_the_suffix_never() {
        assert_eq!(with_suffix("web", "5d4f8c7b9", 253), "web-5d4f8c7b9");
        let long = "d".repeat(253);
        assert_eq!(with_suffix(&long, "8774596455", 253), format!("{}-8774596455", "d".repeat(242)));
        let suffix = "9".repeat(252);
        assert_eq!(with_suffix("web", &suffix, 253), format!("web-{suffix}"));
        assert_eq!(with_suffix("ää", "9", 5), "ä-9");
    }
}
