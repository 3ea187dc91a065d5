//! The addresses of a load balancer, as a Service's status and a provider's answer have them.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use shared::api::object::null_as_default;
use shared::api::raw::raw_of;

/// `ingress` of a LoadBalancerStatus. Two are equal if the apiserver would store the same for both.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "RawLoadBalancerStatus")]
pub struct Ingress(Box<[Box<RawValue>]>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawLoadBalancerStatus {
    #[serde(deserialize_with = "null_as_default")]
    ingress: Vec<Box<RawValue>>,
}

impl From<RawLoadBalancerStatus> for Ingress {
    fn from(RawLoadBalancerStatus { ingress }: RawLoadBalancerStatus) -> Self {
        Self(ingress.into())
    }
}

impl Ingress {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn stored(&self) -> impl Iterator<Item = Option<Value>> {
        self.0.iter().map(|entry| serde_json::from_str(entry.get()).ok().map(stored))
    }
}

impl PartialEq for Ingress {
    fn eq(&self, other: &Self) -> bool {
        self.stored().eq(other.stored())
    }
}

impl Serialize for Ingress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        raw_of(&self.0).serialize(serializer)
    }
}

/// An entry as the apiserver stores it: without empty fields, and with the default of `ipMode`.
///
/// Upstream: `SetDefaults_Service`, pkg/apis/core/v1/defaults.go.
fn stored(entry: Value) -> Value {
    let Value::Object(fields) = entry else { return entry };
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    let mut fields: Map<String, Value> = fields.into_iter().filter(|(_, value)| !is_empty(value)).collect();
    if fields.contains_key("ip") && !fields.contains_key("ipMode") {
        fields.insert("ipMode".to_owned(), Value::from("VIP"));
    }
    Value::Object(fields)
}
