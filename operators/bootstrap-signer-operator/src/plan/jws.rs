//! One signature: a JSON Web Signature by HMAC with SHA-256, whose text is elsewhere.
//!
//! Left out: checking one, which is `kubeadm join`'s: it makes the same signature once more and compares.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::json;
use shared::api::bootstrap_token::Data;

/// The signature of a text by a token, as RFC 7515 has it in appendix F: the middle part, which is the text, is empty.
///
/// ring's copy of the key lives on the stack for the time of this call, and is not wiped.
///
/// Upstream: `ComputeDetachedSignature`, staging/src/k8s.io/cluster-bootstrap/token/jws/jws.go.
pub fn detached_signature(text: &str, token_id: &str, token_secret: &Data) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({ "alg": "HS256", "kid": token_id }).to_string());
    let payload = URL_SAFE_NO_PAD.encode(text);
    let key = hmac::Key::new(hmac::HMAC_SHA256, token_secret.bytes());
    let signature = hmac::sign(&key, format!("{header}.{payload}").as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(signature))
}
