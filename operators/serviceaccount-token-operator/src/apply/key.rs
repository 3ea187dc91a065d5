//! The key that signs tokens, read from its file for each signature.
//!
//! The key is in memory only for that time, and a replaced file takes effect at once. The file's text and its decoded
//! form are wiped; the copies inside rustls and ring are not. ring does not support P-521; there the crate p521 signs,
//! which wipes its copy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use base64::{Engine, decoded_len_estimate};
use clap::builder::{OsStringValueParser, TypedValueParser};
use p521::SecretKey;
use p521::ecdsa::signature::Signer as _;
use p521::ecdsa::{Signature, SigningKey};
use p521::pkcs8::{DecodePrivateKey, EncodePublicKey};
use ring::digest::{SHA256, digest};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::Signer;
use secrecy::zeroize::Zeroizing;

use crate::plan::jwt::{Algorithm, Claims};

/// The signature schemes of rustls, and the algorithms of tokens.
const ALGORITHMS: [(SignatureScheme, Algorithm); 3] = [
    (SignatureScheme::RSA_PKCS1_SHA256, Algorithm::Rs256),
    (SignatureScheme::ECDSA_NISTP256_SHA256, Algorithm::Es256),
    (SignatureScheme::ECDSA_NISTP384_SHA384, Algorithm::Es384),
];

const PKCS1: &str = "RSA PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";
const PKCS8: &str = "PRIVATE KEY";

/// The object identifier of the curve P-521, in DER.
const P521: [u8; 7] = [0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23];

/// The permissions with which others than its owner may read a file.
const READ_BY_OTHERS: u32 = 0o044;

const NO_KEY: &str = "it holds no private key in PEM form";
const OTHER_KIND: &str = "its private key is neither RSA of 2048 to 4096 bits nor on the curve P-256, P-384 or P-521";

/// `--service-account-private-key-file`; none if it is not set, or `""`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile(pub Option<PathBuf>);

/// Parses the flag. As upstream, a key that cannot sign ends the process at its start.
pub(crate) fn key_file() -> impl TypedValueParser<Value = KeyFile> {
    OsStringValueParser::new().try_map(|path| {
        if path.is_empty() {
            return Ok::<_, String>(KeyFile(None));
        }
        let path = PathBuf::from(path);
        TokenKey::read(&path)?;
        Ok(KeyFile(Some(path)))
    })
}

/// The permissions of a file if others than its owner may read it.
pub(crate) fn open_to_others(path: &Path) -> Option<u32> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & READ_BY_OTHERS != 0).then_some(mode)
}

#[derive(Debug)]
pub struct TokenKey {
    id: String,
    signing: Signing,
}

/// The crate that signs.
#[derive(Debug)]
enum Signing {
    Ring(Algorithm, Box<dyn Signer>),
    P521(Box<SigningKey>),
}

impl TokenKey {
    /// Reads the first private key of a file.
    ///
    /// Upstream: `PrivateKeyFromFile`, staging/src/k8s.io/client-go/util/keyutil/key.go; `JWTTokenGenerator`,
    /// pkg/serviceaccount/jwt.go.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = Zeroizing::new(fs::read(path).map_err(|error| error.to_string())?);
        let text = std::str::from_utf8(&text).map_err(|_| NO_KEY.to_owned())?;
        let (label, der) = first_key(text).ok_or_else(|| NO_KEY.to_owned())?;
        let der = der.as_slice();
        Self::of_der(&match label {
            PKCS1 => PrivateKeyDer::Pkcs1(der.into()),
            SEC1 => PrivateKeyDer::Sec1(der.into()),
            _ => PrivateKeyDer::Pkcs8(der.into()),
        })
    }

    fn of_der(der: &PrivateKeyDer<'_>) -> Result<Self, String> {
        let unfit = || OTHER_KIND.to_owned();
        if der.secret_der().windows(P521.len()).any(|part| part == P521) {
            return Self::on_p521(der).ok_or_else(unfit);
        }
        let key = any_supported_type(der).map_err(|_| unfit())?;
        let chosen =
            ALGORITHMS.into_iter().find_map(|(scheme, algorithm)| Some((key.choose_scheme(&[scheme])?, algorithm)));
        let (signer, algorithm) = chosen.ok_or_else(unfit)?;
        let public = key.public_key().ok_or_else(unfit)?;
        Ok(Self { id: key_id(&public), signing: Signing::Ring(algorithm, signer) })
    }

    fn on_p521(der: &PrivateKeyDer<'_>) -> Option<Self> {
        let secret = match der {
            PrivateKeyDer::Sec1(der) => SecretKey::from_sec1_der(der.secret_sec1_der()).ok()?,
            PrivateKeyDer::Pkcs8(der) => SecretKey::from_pkcs8_der(der.secret_pkcs8_der()).ok()?,
            PrivateKeyDer::Pkcs1(_) | _ => return None,
        };
        let public = secret.public_key().to_public_key_der().ok()?;
        Some(Self { id: key_id(public.as_bytes()), signing: Signing::P521(Box::new(SigningKey::from(&secret))) })
    }

    pub fn sign(&self, claims: &Claims<'_>) -> Result<String, String> {
        let Self { id, signing } = self;
        let (algorithm, signing_input, signature) = match signing {
            Signing::Ring(algorithm, signer) => {
                let input = claims.signing_input(*algorithm, id);
                let signature = signer.sign(input.as_bytes()).map_err(|error| error.to_string())?;
                (*algorithm, input, signature)
            }
            Signing::P521(key) => {
                let input = claims.signing_input(Algorithm::Es512, id);
                let signature: Signature = key.try_sign(input.as_bytes()).map_err(|error| error.to_string())?;
                (Algorithm::Es512, input, signature.to_vec())
            }
        };
        algorithm.token(&signing_input, &signature).ok_or_else(|| "the signature does not fit its algorithm".to_owned())
    }
}

/// The id by which the apiserver knows a public key.
///
/// Upstream: `keyIDFromPublicKey`, pkg/serviceaccount/jwt.go.
fn key_id(public: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, public))
}

/// The label and the DER of the first private key in a PEM file. It is copied only into memory that is wiped, unlike by
/// a general PEM reader.
fn first_key(text: &str) -> Option<(&str, Zeroizing<Vec<u8>>)> {
    let mut lines = text.lines().map(str::trim_end);
    loop {
        let label = lines.by_ref().find_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"))?;
        let end = format!("-----END {label}-----");
        // Large enough from the start: growing would leave an unwiped copy behind.
        let mut encoded = Zeroizing::new(String::with_capacity(text.len()));
        for line in lines.by_ref().take_while(|line| *line != end) {
            encoded.push_str(line);
        }
        if [PKCS1, SEC1, PKCS8].contains(&label) {
            let mut der = Zeroizing::new(vec![0_u8; decoded_len_estimate(encoded.len())]);
            let length = STANDARD.decode_slice(encoded.as_bytes(), &mut der).ok()?;
            der.truncate(length);
            return Some((label, der));
        }
    }
}
