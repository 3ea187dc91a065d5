//! Bootstrap tokens: which Secrets they are, and the values of their data.
//!
//! Left out: views, for each operator keeps the values that it decides on and no others; and wiping the text that a
//! value was decoded from, which other layers have had in their buffers too.

mod expiration;

use std::fmt;

use base64::engine::general_purpose::STANDARD;
use base64::{Engine, decoded_len_estimate};
use secrecy::{ExposeSecret, ExposeSecretMut, SecretSlice};
use serde::{Deserialize, Deserializer};

pub use expiration::Expiration;

/// The namespace of bootstrap tokens. In any other one a Secret of their type is none.
pub const NAMESPACE: &str = "kube-system";
/// Selects bootstrap tokens: a Secret never changes its type. Upstream: `SecretTypeBootstrapToken`,
/// staging/src/k8s.io/cluster-bootstrap/token/api/types.go.
pub const SELECTOR: &str = "type=bootstrap.kubernetes.io/token";

/// A value of a Secret's data. No log shows it, and when it is dropped its memory is wiped.
#[derive(Debug, Default)]
pub struct Data(SecretSlice<u8>);

impl Data {
    pub fn bytes(&self) -> &[u8] {
        self.0.expose_secret()
    }

    fn decode(text: &str) -> Option<Self> {
        let mut buffer = SecretSlice::from(vec![0_u8; decoded_len_estimate(text.len())]);
        let length = STANDARD.decode_slice(text, buffer.expose_secret_mut()).ok()?;
        // In memory of exactly its length: the rest of a larger piece would be given back by copying.
        let value = buffer.expose_secret().get(..length)?.to_vec();
        Some(Self(value.into()))
    }
}

impl From<&[u8]> for Data {
    fn from(value: &[u8]) -> Self {
        Self(value.to_vec().into())
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Data {}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Data;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Data, E> {
                // An error is logged, so it has nothing of the text.
                Data::decode(text).ok_or_else(|| E::custom("a value is no base64"))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests;
