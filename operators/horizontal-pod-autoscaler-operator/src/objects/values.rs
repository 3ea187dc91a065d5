//! The answers of the three metrics APIs: `metrics.k8s.io/v1beta1`, `custom.metrics.k8s.io/v1beta2` and `v1beta1`, and
//! `external.metrics.k8s.io/v1beta1`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;
use shared::api::time::Time;
use shared::process::flags::GoDuration;

/// A list of values of any of these APIs.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct Values<T> {
    /// Go writes an empty list as `null`.
    #[serde(default = "Vec::new", deserialize_with = "null_as_default")]
    pub items: Vec<T>,
}

/// `PodMetrics`: the usage of one pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodUsage {
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: Named,
    pub timestamp: Option<Time>,
    #[serde(deserialize_with = "go_duration")]
    pub window: Duration,
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<ContainerUsage>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Named {
    #[serde(deserialize_with = "null_as_default")]
    pub name: Text,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerUsage {
    #[serde(deserialize_with = "null_as_default")]
    pub name: Text,
    #[serde(deserialize_with = "null_as_default")]
    pub usage: BTreeMap<Text, Quantity>,
}

/// `MetricValue`: the value of a metric of an object.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectValue {
    #[serde(default, deserialize_with = "null_as_default")]
    pub described_object: Named,
    #[serde(default)]
    pub timestamp: Option<Time>,
    /// v1beta1 calls it `window`.
    #[serde(default, alias = "window")]
    pub window_seconds: Option<i64>,
    #[serde(default)]
    pub value: Quantity,
}

/// `ExternalMetricValue`: a value of an external metric.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ExternalValue {
    #[serde(default)]
    pub timestamp: Option<Time>,
    #[serde(default)]
    pub value: Quantity,
}

fn go_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    Ok(text.parse::<GoDuration>().map_or(Duration::ZERO, |duration| duration.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(json: &str) -> Option<String> {
        let read: PodUsage = serde_json::from_str(json).ok()?;
        let memory = read.containers.first().and_then(|container| container.usage.get("memory").copied());
        Some(format!("{:?} {:?} {}", read.window, read.timestamp, memory.unwrap_or_default()))
    }

    /// Upstream: sigs.k8s.io/json and the `UnmarshalJSON` of `Quantity` and `Time`, which gave these results for these
    /// rows.
    #[test]
    fn an_answer_is_read_as_upstream_reads_it() {
        let none = Some("0ns None 0".to_owned());
        for json in ["{}", r#"{"metadata":null,"timestamp":null,"containers":null}"#, r#"{"metadata":{"name":null}}"#] {
            assert_eq!(usage(json), none, "{json}");
        }
        for (json, memory) in [("209715200", "209715200"), ("null", "0"), (r#"" 200Mi ""#, "200Mi"), ("1.5", "1500m")] {
            let json = format!(r#"{{"window":"30s","containers":[{{"name":null,"usage":{{"memory":{json}}}}}]}}"#);
            assert_eq!(usage(&json), Some(format!("30s None {memory}")), "{json}");
        }
        for (window, expected) in [("1h30m", "5400s"), ("1.5s", "1.5s"), (".5s", "500ms"), ("+1m", "60s"), ("0", "0ns")]
        {
            let json = format!(r#"{{"window":"{window}"}}"#);
            assert_eq!(usage(&json), Some(format!("{expected} None 0")), "{json}");
        }
        for field in ["window", "timestamp", "containers", "metadata"] {
            for wrong in ["true", "30", "1.5"] {
                let json = format!(r#"{{"{field}":{wrong}}}"#);
                assert_eq!(usage(&json), None, "{json}");
            }
        }
        for wrong in [r#"{"containers":[{"usage":{"memory":true}}]}"#, r#"{"metadata":{"name":5}}"#, r#"{"window":{}}"#]
        {
            assert_eq!(usage(wrong), None, "{wrong}");
        }
    }

    /// Upstream refuses the whole answer, and with it the values of all pods.
    #[test]
    fn a_window_that_upstream_refuses_counts_as_none() {
        for window in ["null", r#""""#, r#""30""#, r#"" 30s""#, r#""30s ""#, r#""1d""#, r#""30S""#] {
            let json = format!(r#"{{"window":{window}}}"#);
            assert_eq!(usage(&json), Some("0ns None 0".to_owned()), "{json}");
        }
    }

    #[test]
    fn a_value_of_an_object_is_read_as_upstream_reads_it() {
        for (json, expected) in [
            (r#"{"value":7}"#, Some((None, "7"))),
            (r#"{"value":null,"describedObject":null,"windowSeconds":null}"#, Some((None, "0"))),
            (r#"{"windowSeconds":-1}"#, Some((Some(-1), "0"))),
            (r#"{"window":60,"value":"1k"}"#, Some((Some(60), "1k"))),
            (r#"{"windowSeconds":"60","value":"1"}"#, None),
            (r#"{"windowSeconds":60.0,"value":"1"}"#, None),
            (r#"{"windowSeconds":9223372036854775808}"#, None),
            (r#"{"windowSeconds":true}"#, None),
            (r#"{"describedObject":"web"}"#, None),
        ] {
            let read = serde_json::from_str::<ObjectValue>(json).ok();
            let found = read.map(|read| (read.window_seconds, read.value.to_string()));
            assert_eq!(found, expected.map(|(window, value)| (window, value.to_owned())), "{json}");
        }
    }
}
