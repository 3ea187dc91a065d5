//! The subresource `scale` of a target of any kind.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Uid, null_as_default};

pub const SCALE: &str = "scale";

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Scale {
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ScaleMeta,
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ScaleSpec,
    #[serde(deserialize_with = "null_as_default")]
    pub status: ScaleStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleMeta {
    #[serde(deserialize_with = "null_as_default")]
    pub uid: Uid,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ScaleStatus {
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
    #[serde(deserialize_with = "null_as_default")]
    pub selector: Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream: sigs.k8s.io/json, which gave these results for these rows.
    #[test]
    fn a_scale_is_read_as_upstream_reads_it() {
        let read = |json: &str| serde_json::from_str::<Scale>(json).ok();
        for json in [
            "{}",
            r#"{"metadata":null,"spec":null,"status":null}"#,
            r#"{"metadata":{"uid":null,"resourceVersion":null},"spec":{"replicas":null},"status":{"selector":null}}"#,
        ] {
            assert_eq!(read(json), Some(Scale::default()), "{json}");
        }
        for (replicas, expected) in [
            ("-1", Some(-1)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            ("1.0", None),
            ("1e3", None),
            (r#""1""#, None),
            ("true", None),
            ("{}", None),
        ] {
            let found = read(&format!(r#"{{"spec":{{"replicas":{replicas}}}}}"#)).map(|scale| scale.spec.replicas);
            assert_eq!(found, expected, "{replicas}");
        }
        for wrong in [r#"{"status":{"selector":5}}"#, r#"{"spec":5}"#, r#"{"metadata":"web"}"#] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read(r#"{"spec":[]}"#), Some(Scale::default()), "upstream refuses a list");
    }
}
