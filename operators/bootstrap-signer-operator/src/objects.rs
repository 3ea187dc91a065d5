//! The views: the signed ConfigMap, and the parts of a bootstrap token that a signature needs.
//!
//! The secret of a token that does not sign is wiped as soon as it is read.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use shared::api::bootstrap_token::{Data, Expiration};
use shared::api::object::{Key, Meta, null_as_default};
use shared::api::resource::{CONFIG_MAPS, SECRETS};

pub const PUBLIC: &str = "kube-public";
/// Its name. Upstream: `ConfigMapClusterInfo`.
pub const CLUSTER_INFO: &str = "cluster-info";
/// The key of the signed text. Upstream: `KubeConfigKey`.
pub const KUBECONFIG: &str = "kubeconfig";
/// The prefix of a signature's key, before the token's id. Upstream: `JWSSignatureKeyPrefix`.
pub const SIGNATURE_PREFIX: &str = "jws-kubeconfig-";
/// The prefix of a token's name, before its id. Upstream: `BootstrapTokenSecretPrefix`.
const TOKEN_PREFIX: &str = "bootstrap-token-";
const ID_LENGTH: usize = 6;

pub fn cluster_info_key() -> Key {
    Key::new(PUBLIC, CLUSTER_INFO)
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawConfigMap")]
pub struct ClusterInfo {
    pub metadata: Meta,
    /// The signed text; none if there is nothing to sign.
    pub kubeconfig: Option<String>,
    /// Its signatures, by token id.
    pub signatures: BTreeMap<String, String>,
}

shared::view!(ClusterInfo, CONFIG_MAPS);

#[derive(Deserialize)]
struct RawConfigMap {
    metadata: Meta,
    data: Option<BTreeMap<String, String>>,
}

impl From<RawConfigMap> for ClusterInfo {
    fn from(RawConfigMap { metadata, data }: RawConfigMap) -> Self {
        let mut data = data.unwrap_or_default();
        let kubeconfig = data.remove(KUBECONFIG);
        let signature = |(key, value): (String, String)| Some((key.strip_prefix(SIGNATURE_PREFIX)?.to_owned(), value));
        Self { metadata, kubeconfig, signatures: data.into_iter().filter_map(signature).collect() }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawSecret")]
pub struct BootstrapToken {
    pub metadata: Meta,
    /// Its parts for a signature, or why it does not sign.
    pub signing: Result<Signing, Unfit>,
}

shared::view!(BootstrapToken, SECRETS);

/// A token that signs until it expires.
#[derive(Debug, PartialEq)]
pub struct Signing {
    pub id: Box<str>,
    pub secret: Data,
    pub expiration: Expiration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unfit {
    Name,
    NoId,
    /// Its id differs from the one in its name.
    OtherId,
    NoSecret,
    NotForSigning,
    Expired,
}

#[derive(Deserialize)]
struct RawSecret {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    data: RawData,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawData {
    #[serde(default, deserialize_with = "null_as_default")]
    token_id: Data,
    #[serde(default, deserialize_with = "null_as_default")]
    token_secret: Data,
    #[serde(default, deserialize_with = "null_as_default")]
    expiration: Expiration,
    #[serde(default, deserialize_with = "null_as_default")]
    usage_bootstrap_signing: Data,
}

impl From<RawSecret> for BootstrapToken {
    fn from(RawSecret { metadata, data }: RawSecret) -> Self {
        let signing = signing(metadata.name(), data);
        Self { metadata, signing }
    }
}

/// Upstream: `validateSecretForSigning`, `pkg/controller/bootstrap/util.go`. The plan compares the time.
fn signing(name: &str, data: RawData) -> Result<Signing, Unfit> {
    let RawData { token_id, token_secret, expiration, usage_bootstrap_signing } = data;
    let id = id_of(name).ok_or(Unfit::Name)?;
    if token_id.bytes().is_empty() {
        Err(Unfit::NoId)
    } else if token_id.bytes() != id.as_bytes() {
        Err(Unfit::OtherId)
    } else if token_secret.bytes().is_empty() {
        Err(Unfit::NoSecret)
    } else if usage_bootstrap_signing.bytes() != b"true" {
        Err(Unfit::NotForSigning)
    } else {
        Ok(Signing { id: id.into(), secret: token_secret, expiration })
    }
}

/// The id in a token's name.
///
/// Upstream: `ParseName`, staging/src/k8s.io/cluster-bootstrap/util/secrets/secrets.go.
pub fn id_of(name: &str) -> Option<&str> {
    let is_of_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.strip_prefix(TOKEN_PREFIX).filter(|id| id.len() == ID_LENGTH && id.bytes().all(is_of_id))
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "its name is not a token's",
            Self::NoId => "no token-id",
            Self::OtherId => "its token-id differs from its name",
            Self::NoSecret => "no token-secret",
            Self::NotForSigning => "usage-bootstrap-signing is not true",
            Self::Expired => "expired",
        })
    }
}
