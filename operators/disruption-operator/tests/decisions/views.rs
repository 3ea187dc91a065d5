//! The fields that are read of the scales of owners of any kind.

use disruption_operator::objects::owner::Scale;

/// Upstream: sigs.k8s.io/json, which gave these results for these rows.
#[test]
fn a_scale_is_read_as_upstream_reads_it() {
    let replicas = |json: &str| serde_json::from_str::<Scale>(json).map(|scale| scale.spec.replicas).ok();
    for json in ["{}", r#"{"metadata":null,"spec":null}"#, r#"{"metadata":{"uid":null},"spec":{"replicas":null}}"#] {
        assert_eq!(replicas(json), Some(0), "{json}");
    }
    for (json, expected) in [("3", Some(3)), ("2147483648", None), ("1.0", None), (r#""1""#, None), ("true", None)] {
        assert_eq!(replicas(&format!(r#"{{"spec":{{"replicas":{json}}}}}"#)), expected, "{json}");
    }
}
