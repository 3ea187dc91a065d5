//! The validation of a selector's keys and values, with upstream's error texts.
//!
//! Left out: every other name format of the API; the apiserver checks those.
//!
//! Upstream: `NewRequirement`, `staging/src/k8s.io/apimachinery/pkg/labels/selector.go`, and
//! `staging/src/k8s.io/apimachinery/pkg/api/validate/content/{kube,dns,errors}.go`.

use super::InvalidSelector;
use crate::api::intern::Text;

const MAX_NAME_LENGTH: usize = 63;
const MAX_PREFIX_LENGTH: usize = 253;

const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
    or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Checks one requirement; `wants_values` is `None` for an equality, which always has its one value.
pub(super) fn check(key: &str, values: &[Text], wants_values: Option<bool>) -> Result<(), InvalidSelector> {
    let mut faults = Vec::new();
    let key_faults = key_faults(key);
    if !key_faults.is_empty() {
        faults.push(format!("key: Invalid value: {key:?}: {}", key_faults.join("; ")));
    }
    match (wants_values, values) {
        (Some(true), []) => {
            faults
                .push("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty".to_owned());
        }
        (Some(false), [_, ..]) => {
            let list: Vec<_> = values.iter().map(|value| format!("{:?}", value.as_str())).collect();
            let list = list.join(",");
            faults.push(format!(
                "values: Invalid value: [{list}]: values set must be empty for exists and does not exist"
            ));
        }
        (Some(true) | None, _) | (Some(false), []) => {}
    }
    for (at, value) in values.iter().enumerate() {
        let value_faults = value_faults(value);
        if !value_faults.is_empty() {
            faults.push(format!("values[{at}][{key}]: Invalid value: {value:?}: {}", value_faults.join("; ")));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(InvalidSelector::Requirement(faults)) }
}

pub(super) fn key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, rest)) if rest.contains('/') => {
            let prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {KEY_RULE} {prefix}")];
        }
        Some((prefix, name)) => {
            faults.extend(prefix_faults(prefix).into_iter().map(|fault| format!("prefix part {fault}")));
            name
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_NAME_LENGTH {
        faults.push(format!("name part must be no more than {MAX_NAME_LENGTH} bytes"));
    }
    if !is_name(name) {
        faults.push(format!("name part {KEY_RULE}"));
    }
    faults
}

fn prefix_faults(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["must be non-empty".to_owned()];
    }
    let mut faults = Vec::new();
    if prefix.len() > MAX_PREFIX_LENGTH {
        faults.push(format!("must be no more than {MAX_PREFIX_LENGTH} bytes"));
    }
    if !prefix.split('.').all(is_dns_label) {
        faults.push(SUBDOMAIN_RULE.to_owned());
    }
    faults
}

fn value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > MAX_NAME_LENGTH {
        faults.push(format!("must be no more than {MAX_NAME_LENGTH} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        faults.push(VALUE_RULE.to_owned());
    }
    faults
}

fn is_name(text: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    alphanumeric(bytes.first()) && alphanumeric(bytes.last()) && bytes.iter().all(inner)
}

fn is_dns_label(text: &str) -> bool {
    let lower = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(lower) && bytes.last().is_some_and(lower) && bytes.iter().all(|b| lower(b) || *b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_key(key: &str, faults: &[&str]) {
        assert_eq!(key_faults(key), faults, "{key}");
    }

    #[test]
    fn keys() {
        check_key("app", &[]);
        check_key("app.kubernetes.io/name", &[]);
        check_key("A_b.c-9", &[]);
        check_key("/name", &["prefix part must be non-empty"]);
        check_key("Example.com/name", &[&format!("prefix part {SUBDOMAIN_RULE}")]);
        check_key("a..b/name", &[&format!("prefix part {SUBDOMAIN_RULE}")]);
        check_key("example.com/", &["name part must be non-empty", &format!("name part {KEY_RULE}")]);
        check_key("-app", &[&format!("name part {KEY_RULE}")]);
        check_key(&"a".repeat(63), &[]);
        check_key(&"a".repeat(64), &["name part must be no more than 63 bytes"]);
        check_key(&format!("{}/a", "p".repeat(254)), &["prefix part must be no more than 253 bytes"]);
    }

    #[test]
    fn values() {
        assert!(value_faults("").is_empty());
        assert!(value_faults("a.B_c-0").is_empty());
        assert_eq!(value_faults("a b"), [VALUE_RULE]);
        assert_eq!(value_faults(&"a".repeat(64)), ["must be no more than 63 bytes"]);
    }
}
