//! The view of a bootstrap token: when it expires. The token itself is not decoded.

use serde::Deserialize;
use shared::api::bootstrap_token::Expiration;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::SECRETS;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawSecret")]
pub struct BootstrapToken {
    pub metadata: Meta,
    pub expiration: Expiration,
}

shared::view!(BootstrapToken, SECRETS);

#[derive(Deserialize)]
struct RawSecret {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    data: RawData,
}

#[derive(Default, Deserialize)]
struct RawData {
    #[serde(default, deserialize_with = "null_as_default")]
    expiration: Expiration,
}

impl From<RawSecret> for BootstrapToken {
    fn from(RawSecret { metadata, data: RawData { expiration } }: RawSecret) -> Self {
        Self { metadata, expiration }
    }
}
