//! The text of a token, a JSON Web Token in compact form: its header, its claims, and the form of its signature.
//!
//! Left out: making the signature, which needs the key; and an expiration, because these tokens are good for as long as
//! their Secret is there.
//!
//! Upstream: `pkg/serviceaccount/jwt.go` and `legacy.go`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use shared::api::object::Uid;

/// The issuer of these tokens, by which the apiserver knows them. Upstream: `LegacyIssuer`.
pub const ISSUER: &str = "kubernetes/serviceaccount";

/// The tags of the two elements of ASN.1 that a signature is made of.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;

/// The bearer of a token, and the Secret that it is in. Upstream: `LegacyClaims`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims<'a> {
    /// The namespace of both.
    pub namespace: &'a str,
    /// The name of the ServiceAccount.
    pub account: &'a str,
    /// The uid of the ServiceAccount.
    pub account_uid: Uid,
    /// The name of the Secret.
    pub secret: &'a str,
}

/// How a token is signed, which its key's kind says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA.
    Rs256,
    /// The curve P-256.
    Es256,
    /// The curve P-384.
    Es384,
    /// The curve P-521.
    Es512,
}

impl Claims<'_> {
    /// All that is signed: header and claims. `key_id` tells the apiserver by which of its keys to check the signature.
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
    /// Its name in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
        }
    }

    /// The token: what was signed, and the signature in the form that a token has it in. None if the signature is none
    /// of this algorithm.
    pub fn token(self, signing_input: &str, signature: &[u8]) -> Option<String> {
        let signature = match self {
            // Who signs on P-521 gives it in that form.
            Self::Rs256 | Self::Es512 => signature.to_vec(),
            Self::Es256 => fixed(signature, 32)?,
            Self::Es384 => fixed(signature, 48)?,
        };
        Some(format!("{signing_input}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The two numbers of a signature by an elliptic-curve key, each in `size` bytes: as RFC 7518 has them in section 3.4.
/// They come as ASN.1, where each is as short as it can be.
fn fixed(signature: &[u8], size: usize) -> Option<Vec<u8>> {
    let (numbers, rest) = element(SEQUENCE, signature)?;
    let (first, numbers) = element(INTEGER, numbers)?;
    let (second, end) = element(INTEGER, numbers)?;
    if !rest.is_empty() || !end.is_empty() {
        return None;
    }
    let mut fixed = Vec::with_capacity(2 * size);
    for number in [first, second] {
        // One whose first bit is set has a zero before it, which says that it is positive.
        let number = number.strip_prefix(&[0_u8]).unwrap_or(number);
        fixed.extend(std::iter::repeat_n(0_u8, size.checked_sub(number.len())?));
        fixed.extend_from_slice(number);
    }
    Some(fixed)
}

/// The content of the element that a text begins with, and the rest. None is as long as 128 bytes here.
fn element(tag: u8, text: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([found, length], rest) = text.split_first_chunk::<2>()?;
    if *found != tag {
        return None;
    }
    rest.split_at_checked(usize::from(*length))
}
