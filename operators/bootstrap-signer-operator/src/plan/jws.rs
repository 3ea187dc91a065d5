//! A detached JSON Web Signature by HMAC with SHA-256.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::json;
use shared::api::bootstrap_token::Data;

/// The signature of a text by a token (RFC 7515, appendix F): its middle part, the text, is empty.
///
/// ring's copy of the key is on the stack during this call, and is not wiped.
///
/// Upstream: `ComputeDetachedSignature`, staging/src/k8s.io/cluster-bootstrap/token/jws/jws.go.
pub fn detached_signature(text: &str, token_id: &str, token_secret: &Data) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({ "alg": "HS256", "kid": token_id }).to_string());
    let payload = URL_SAFE_NO_PAD.encode(text);
    let key = hmac::Key::new(hmac::HMAC_SHA256, token_secret.bytes());
    let signature = hmac::sign(&key, format!("{header}.{payload}").as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(signature))
}
