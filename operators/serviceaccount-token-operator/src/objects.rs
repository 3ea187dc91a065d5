//! The views: the parts of a token's Secret that show what it lacks, and the metadata of a ServiceAccount.
//!
//! Of a Secret's data only the CA is kept, which is not secret and shared in memory.

use std::fmt;

use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, Uid, null_as_default};
use shared::api::resource::Resource;

pub use shared::api::resource::SECRETS;

pub const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");

/// The field selector of tokens; no other Secret is read. Upstream: `SecretTypeServiceAccountToken`.
pub const TOKENS: &str = "type=kubernetes.io/service-account-token";

/// The annotation with the uid of a token's account. Upstream: `ServiceAccountUIDKey`.
pub const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// The key of the token in a Secret's data. Upstream: `ServiceAccountTokenKey`.
pub const TOKEN: &str = "token";
/// The key of the account's namespace there. Upstream: `ServiceAccountNamespaceKey`.
pub const NAMESPACE: &str = "namespace";
/// The key of the apiserver's CA there. Upstream: `ServiceAccountRootCAKey`.
pub const CA_CERT: &str = "ca.crt";

/// A Secret that holds or should hold a token.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawSecret")]
pub struct Token {
    pub metadata: Meta<AccountName>,
    pub is_immutable: bool,
    /// It has a token, which is not checked.
    pub has_token: bool,
    /// It has a namespace, which is not checked.
    pub has_namespace: bool,
    /// Its CA in base64, as in the data of the Secret; none if it has none.
    pub ca: Option<Text>,
}

shared::view!(Token, SECRETS, AccountName);

/// The annotations of a token that name its account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AccountName {
    /// The name; `""` for no account.
    #[serde(rename = "kubernetes.io/service-account.name")]
    pub name: Text,
    #[serde(rename = "kubernetes.io/service-account.uid", deserialize_with = "uid_if_any")]
    pub uid: Option<Uid>,
}

impl AccountName {
    pub fn means(&self, uid: Uid) -> bool {
        self.uid.is_none_or(|named| named == uid)
    }

    pub fn key_in(&self, namespace: &str) -> Key {
        Key::new(namespace, &self.name)
    }
}

fn uid_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uid>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok((!text.is_empty()).then(|| Uid::parse(&text)))
}

#[derive(Debug, PartialEq, Deserialize)]
pub struct ServiceAccount {
    pub metadata: Meta,
}

shared::view!(ServiceAccount, SERVICE_ACCOUNTS);

/// A ServiceAccount with its list of Secrets, read after the deletion of a Secret.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawListing")]
pub struct Listing {
    pub metadata: Meta,
    pub secrets: Box<[Text]>,
}

shared::view!(Listing, SERVICE_ACCOUNTS);

#[derive(Deserialize)]
struct RawSecret {
    metadata: Meta<AccountName>,
    #[serde(default, deserialize_with = "null_as_default")]
    immutable: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    data: RawData,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawData {
    #[serde(deserialize_with = "null_as_default")]
    token: Filled,
    #[serde(deserialize_with = "null_as_default")]
    namespace: Filled,
    #[serde(rename = "ca.crt")]
    ca: Option<Text>,
}

/// Whether a text is not empty; the text itself is not copied.
#[derive(Default)]
struct Filled(bool);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Filled;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Filled, E> {
                Ok(Filled(!text.is_empty()))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl From<RawSecret> for Token {
    fn from(RawSecret { metadata, immutable, data }: RawSecret) -> Self {
        let RawData { token: Filled(has_token), namespace: Filled(has_namespace), ca } = data;
        Self { metadata, is_immutable: immutable, has_token, has_namespace, ca }
    }
}

#[derive(Deserialize)]
struct RawListing {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    secrets: Vec<RawReference>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawReference {
    name: Text,
}

impl From<RawListing> for Listing {
    fn from(RawListing { metadata, secrets }: RawListing) -> Self {
        Self { metadata, secrets: secrets.into_iter().map(|RawReference { name }| name).collect() }
    }
}
