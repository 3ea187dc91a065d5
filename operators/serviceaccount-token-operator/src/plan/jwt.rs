//! The text of a token, a JSON Web Token in compact form: its header, its claims, and the form of its signature.
//!
//! It has no expiration: the token is valid as long as its Secret exists.
//!
//! Upstream: `pkg/serviceaccount/jwt.go` and `legacy.go`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use shared::api::object::Uid;

/// The issuer of these tokens. Upstream: `LegacyIssuer`.
pub const ISSUER: &str = "kubernetes/serviceaccount";

/// The ASN.1 tags in a signature.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;

/// The account and the Secret of a token. Upstream: `LegacyClaims`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims<'a> {
    /// The namespace of both.
    pub namespace: &'a str,
    pub account: &'a str,
    pub account_uid: Uid,
    pub secret: &'a str,
}

/// The algorithm of a signature, which follows from the kind of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    /// The curve P-256.
    Es256,
    /// The curve P-384.
    Es384,
    /// The curve P-521.
    Es512,
}

impl Claims<'_> {
    /// The signed text: header and claims. `key_id` tells the apiserver which key verifies the signature.
    pub fn signing_input(&self, algorithm: Algorithm, key_id: &str) -> String {
        let Self { namespace, account, account_uid, secret } = *self;
        let header = json!({ "alg": algorithm.name(), "kid": key_id });
        let claims = json!({
            "iss": ISSUER,
            "kubernetes.io/serviceaccount/namespace": namespace,
            "kubernetes.io/serviceaccount/secret.name": secret,
            "kubernetes.io/serviceaccount/service-account.name": account,
            "kubernetes.io/serviceaccount/service-account.uid": account_uid,
            "sub": format!("system:serviceaccount:{namespace}:{account}"),
        });
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        format!("{header}.{claims}")
    }
}

impl Algorithm {
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
        }
    }

    /// The token: the signed text and the encoded signature. None if the signature does not fit the algorithm.
    pub fn token(self, signing_input: &str, signature: &[u8]) -> Option<String> {
        let signature = match self {
            // p521 returns a token's form.
            Self::Rs256 | Self::Es512 => signature.to_vec(),
            Self::Es256 => fixed(signature, 32)?,
            Self::Es384 => fixed(signature, 48)?,
        };
        Some(format!("{signing_input}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The two numbers of an ECDSA signature in ASN.1, each padded to `size` bytes (RFC 7518, section 3.4).
fn fixed(signature: &[u8], size: usize) -> Option<Vec<u8>> {
    let (numbers, rest) = element(SEQUENCE, signature)?;
    let (first, numbers) = element(INTEGER, numbers)?;
    let (second, end) = element(INTEGER, numbers)?;
    if !rest.is_empty() || !end.is_empty() {
        return None;
    }
    let mut fixed = Vec::with_capacity(2 * size);
    for number in [first, second] {
        // A leading zero marks a number as positive if its first bit is set.
        let number = number.strip_prefix(&[0_u8]).unwrap_or(number);
        fixed.extend(std::iter::repeat_n(0_u8, size.checked_sub(number.len())?));
        fixed.extend_from_slice(number);
    }
    Some(fixed)
}

/// The content of the first ASN.1 element, which is shorter than 128 bytes, and the rest.
fn element(tag: u8, text: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([found, length], rest) = text.split_first_chunk::<2>()?;
    if *found != tag {
        return None;
    }
    rest.split_at_checked(usize::from(*length))
}
