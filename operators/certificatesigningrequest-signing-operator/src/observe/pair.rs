//! A CA's certificate and the key that belongs to it.
//!
//! ring reads the key; the crate p521 reads one on P-521, with which ring cannot sign. The texts and bytes of the key are
//! wiped. As upstream, the file holds one certificate, which need not be marked as a CA's.
//!
//! Upstream: `setCA`, `pkg/controller/certificates/signer/ca_provider.go`; `ParsePrivateKeyPEM`,
//! staging/src/k8s.io/client-go/util/keyutil/key.go.

mod pem;

use std::fmt;

use anyhow::anyhow;
use p521::ecdsa::signature::Signer;
use p521::ecdsa::{DerSignature, SigningKey};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use shared::api::time::Time;
use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_PKCS1_RSAENCRYPTION,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::SubjectPublicKeyInfo;
use zeroize::Zeroizing;

const CERTIFICATE: &str = "CERTIFICATE";
/// PKCS#1.
const RSA_PRIVATE_KEY: &str = "RSA PRIVATE KEY";
/// SEC 1.
const EC_PRIVATE_KEY: &str = "EC PRIVATE KEY";
/// PKCS#8.
const PRIVATE_KEY: &str = "PRIVATE KEY";

pub struct Pair {
    pub issuer: Issuer,
    key: PrivateKey,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    pub name: Box<[u8]>,
    /// The identifier of its key, if its certificate has one.
    pub key_id: Option<Box<[u8]>>,
    pub not_after: Time,
    pub algorithm: Algorithm,
    public_key: Box<[u8]>,
}

/// How a CA signs: by its key, as Go chooses.
///
/// Upstream: `signingParamsForKey`, Go's crypto/x509.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA by PKCS#1 1.5, with SHA-256.
    RsaSha256,
    /// ECDSA on P-256, with SHA-256.
    EcdsaSha256,
    /// ECDSA on P-384, with SHA-384.
    EcdsaSha384,
    /// ECDSA on P-521, with SHA-512.
    EcdsaSha512,
}

enum PrivateKey {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
    P521(Box<SigningKey>),
}

/// Why two files are no pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairError {
    Certificate(String),
    Key(String),
    /// Each can be read, and they don't belong together.
    Mismatch,
}

/// The certificates of two pairs say whether they are the same.
impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.issuer == other.issuer
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Pair {
    /// Reads a certificate and its key, both as PEM.
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Self, PairError> {
        let wrong = |cause: &str| PairError::Certificate(cause.to_owned());
        let blocks = pem::blocks(certificate).into_iter().filter(|block| block.label == CERTIFICATE);
        let blocks: Vec<pem::Block<'_>> = blocks.collect();
        let [block] = &blocks[..] else {
            return Err(PairError::Certificate(format!("expected 1 certificate, found {}", blocks.len())));
        };
        let (rest, certificate) =
            X509Certificate::from_der(&block.der).map_err(|error| PairError::Certificate(error.to_string()))?;
        if !rest.is_empty() {
            return Err(wrong("there is more than a certificate in the block"));
        }
        let public = certificate.public_key();
        let algorithm = algorithm(public).ok_or_else(|| wrong("its key is none of RSA, P-256, P-384 and P-521"))?;
        let key_id = certificate.extensions().iter().find_map(|extension| {
            let ParsedExtension::SubjectKeyIdentifier(id) = extension.parsed_extension() else { return None };
            Some(id.0.into())
        });
        let issuer = Issuer {
            name: certificate.subject().as_raw().into(),
            key_id,
            not_after: Time::from_second(certificate.validity().not_after.timestamp()),
            algorithm,
            public_key: Box::from(&*public.subject_public_key.data),
        };
        let key = PrivateKey::read(key, &issuer)?;
        Ok(Self { issuer, key })
    }

    pub(crate) fn sign(&self, to_be_signed: &[u8]) -> anyhow::Result<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.key {
            PrivateKey::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, to_be_signed, &mut signature)
                    .map_err(|_| anyhow!("the RSA key does not sign"))?;
                Ok(signature)
            }
            PrivateKey::Ecdsa(pair) => {
                let signature = pair.sign(&random, to_be_signed).map_err(|_| anyhow!("the ECDSA key does not sign"))?;
                Ok(signature.as_ref().to_vec())
            }
            PrivateKey::P521(key) => {
                let signature: DerSignature =
                    key.try_sign(to_be_signed).map_err(|_| anyhow!("the ECDSA key does not sign"))?;
                Ok(signature.as_bytes().to_vec())
            }
        }
    }
}

/// How the owner of this public key signs; none if that is not known here.
fn algorithm(public: &SubjectPublicKeyInfo<'_>) -> Option<Algorithm> {
    let kind = &public.algorithm.algorithm;
    if *kind == OID_PKCS1_RSAENCRYPTION {
        return Some(Algorithm::RsaSha256);
    }
    let curve = public.algorithm.parameters.as_ref().filter(|_| *kind == OID_KEY_TYPE_EC_PUBLIC_KEY)?.as_oid().ok()?;
    if curve == OID_EC_P256 {
        Some(Algorithm::EcdsaSha256)
    } else if curve == OID_NIST_EC_P384 {
        Some(Algorithm::EcdsaSha384)
    } else if curve == OID_NIST_EC_P521 {
        Some(Algorithm::EcdsaSha512)
    } else {
        None
    }
}

impl PrivateKey {
    /// The first key in the text; other blocks, such as `EC PARAMETERS`, may stand before it.
    fn read(text: &[u8], issuer: &Issuer) -> Result<Self, PairError> {
        let mut refused = None;
        for block in pem::blocks(text) {
            let found = match block.label {
                RSA_PRIVATE_KEY => Some(Found::Rsa(&block.der)),
                EC_PRIVATE_KEY => scalar(&block.der).map(Found::Ecdsa),
                PRIVATE_KEY => of_pkcs8(&block.der),
                _ => None,
            };
            match found.map(|found| found.of(issuer)) {
                Some(Ok(key)) => return Ok(key),
                Some(Err(error)) => refused = Some(error),
                None => {}
            }
        }
        let none = || PairError::Key("data does not contain a valid RSA or ECDSA private key".to_owned());
        Err(refused.unwrap_or_else(none))
    }
}

enum Found<'a> {
    /// `RSAPrivateKey`, in DER.
    Rsa(&'a [u8]),
    Ecdsa(&'a [u8]),
}

impl Found<'_> {
    fn of(self, issuer: &Issuer) -> Result<PrivateKey, PairError> {
        match (self, issuer.algorithm) {
            (Self::Rsa(der), Algorithm::RsaSha256) => {
                let pair = RsaKeyPair::from_der(der).map_err(|error| {
                    PairError::Key(format!("it is no RSA key of 2048 to 4096 bits that can be used: {error}"))
                })?;
                let is_its = pair.public().as_ref() == &*issuer.public_key;
                if is_its { Ok(PrivateKey::Rsa(pair)) } else { Err(PairError::Mismatch) }
            }
            (Self::Ecdsa(scalar), Algorithm::EcdsaSha256) => {
                on_curve(&ECDSA_P256_SHA256_ASN1_SIGNING, scalar, 32, issuer)
            }
            (Self::Ecdsa(scalar), Algorithm::EcdsaSha384) => {
                on_curve(&ECDSA_P384_SHA384_ASN1_SIGNING, scalar, 48, issuer)
            }
            (Self::Ecdsa(scalar), Algorithm::EcdsaSha512) => {
                let key = padded(scalar, 66).and_then(|scalar| SigningKey::from_slice(&scalar).ok());
                let is_its =
                    |key: &SigningKey| key.verifying_key().to_sec1_point(false).as_bytes() == &*issuer.public_key;
                let key = key.filter(is_its).ok_or(PairError::Mismatch)?;
                Ok(PrivateKey::P521(Box::new(key)))
            }
            (Self::Rsa(_), Algorithm::EcdsaSha256 | Algorithm::EcdsaSha384 | Algorithm::EcdsaSha512)
            | (Self::Ecdsa(_), Algorithm::RsaSha256) => Err(PairError::Mismatch),
        }
    }
}

/// A key with which ring signs on a curve whose numbers have this many bytes.
fn on_curve(
    signing: &'static EcdsaSigningAlgorithm,
    scalar: &[u8],
    length: usize,
    issuer: &Issuer,
) -> Result<PrivateKey, PairError> {
    let scalar = padded(scalar, length).ok_or(PairError::Mismatch)?;
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::from_private_key_and_public_key(signing, &scalar, &issuer.public_key, &random);
    pair.map(PrivateKey::Ecdsa).map_err(|_| PairError::Mismatch)
}

/// A number of this length, whatever zeros stood before it.
fn padded(number: &[u8], length: usize) -> Option<Zeroizing<Vec<u8>>> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let number = number.get(zeros..)?;
    let mut padded = Zeroizing::new(vec![0; length.checked_sub(number.len())?]);
    padded.reserve_exact(number.len());
    padded.extend_from_slice(number);
    Some(padded)
}

/// The content of a value of this tag, and the bytes after it.
fn content(der: &[u8], tag: Tag) -> Option<(&[u8], &[u8])> {
    let (rest, value) = Any::from_der(der).ok()?;
    (value.tag() == tag).then_some((value.data, rest))
}

/// The secret number of an `ECPrivateKey` (SEC 1): a version, and then the number.
fn scalar(der: &[u8]) -> Option<&[u8]> {
    let (fields, _) = content(der, Tag::Sequence)?;
    let (_, rest) = content(fields, Tag::Integer)?;
    content(rest, Tag::OctetString).map(|(scalar, _)| scalar)
}

/// The key in a `PrivateKeyInfo` (PKCS#8): a version, an algorithm, and then the key.
fn of_pkcs8(der: &[u8]) -> Option<Found<'_>> {
    let (fields, _) = content(der, Tag::Sequence)?;
    let (_, rest) = content(fields, Tag::Integer)?;
    let (algorithm, rest) = content(rest, Tag::Sequence)?;
    let (kind, _) = content(algorithm, Tag::Oid)?;
    let (key, _) = content(rest, Tag::OctetString)?;
    if kind == OID_PKCS1_RSAENCRYPTION.as_bytes() {
        Some(Found::Rsa(key))
    } else if kind == OID_KEY_TYPE_EC_PUBLIC_KEY.as_bytes() {
        scalar(key).map(Found::Ecdsa)
    } else {
        None
    }
}
