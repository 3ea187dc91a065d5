//! The usages of a certificate, and how long it is valid.
//!
//! Left out: extensions that a request asks for. No certificate gets one but the alternative names.
//!
//! Upstream: `PermissiveSigningPolicy`, `pkg/controller/certificates/authority/policies.go`.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::time::Time;

/// A certificate is valid from this long ago, because clocks differ. Upstream: `Backdate`.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);
/// One that is valid for less than this does not end as much earlier. Upstream: `Short`.
const SHORT: SignedDuration = SignedDuration::from_hours(8);
/// The shortest time that can be asked for.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usages {
    pub key: BTreeSet<KeyUsage>,
    pub extended: BTreeSet<ExtendedKeyUsage>,
}

/// A usage of a key, in the order of their bits in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyUsage {
    DigitalSignature,
    ContentCommitment,
    KeyEncipherment,
    DataEncipherment,
    KeyAgreement,
    CertSign,
    CrlSign,
    /// To encipher while agreeing on keys.
    EncipherOnly,
    /// To decipher while agreeing on keys.
    DecipherOnly,
}

/// A usage of a certificate, in the order in which Go writes them.
///
/// Upstream: `ExtKeyUsage`, Go's crypto/x509.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExtendedKeyUsage {
    Any,
    ServerAuth,
    ClientAuth,
    CodeSigning,
    EmailProtection,
    IpsecEndSystem,
    IpsecTunnel,
    IpsecUser,
    TimeStamping,
    OcspSigning,
    MicrosoftSgc,
    NetscapeSgc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub not_before: Time,
    pub not_after: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Expiry {
    pub not_after: Time,
    /// Whether it was over when the certificate would begin, which is in the past.
    pub for_long: bool,
}

/// The usages in a request, or those that nobody knows.
///
/// Upstream: `keyUsagesFromStrings`.
pub fn usages(asked: &[Text]) -> Result<Usages, Vec<Text>> {
    let (mut usages, mut unknown) = (Usages::default(), Vec::new());
    for usage in asked {
        if let Some(known) = key_usage(usage) {
            usages.key.insert(known);
        } else if let Some(known) = extended_key_usage(usage) {
            usages.extended.insert(known);
        } else {
            unknown.push(usage.clone());
        }
    }
    if unknown.is_empty() { Ok(usages) } else { Err(unknown) }
}

/// Upstream: `keyUsageDict`.
fn key_usage(name: &str) -> Option<KeyUsage> {
    Some(match name {
        "signing" | "digital signature" => KeyUsage::DigitalSignature,
        "content commitment" => KeyUsage::ContentCommitment,
        "key encipherment" => KeyUsage::KeyEncipherment,
        "key agreement" => KeyUsage::KeyAgreement,
        "data encipherment" => KeyUsage::DataEncipherment,
        "cert sign" => KeyUsage::CertSign,
        "crl sign" => KeyUsage::CrlSign,
        "encipher only" => KeyUsage::EncipherOnly,
        "decipher only" => KeyUsage::DecipherOnly,
        _ => return None,
    })
}

/// Upstream: `extKeyUsageDict`.
fn extended_key_usage(name: &str) -> Option<ExtendedKeyUsage> {
    Some(match name {
        "any" => ExtendedKeyUsage::Any,
        "server auth" => ExtendedKeyUsage::ServerAuth,
        "client auth" => ExtendedKeyUsage::ClientAuth,
        "code signing" => ExtendedKeyUsage::CodeSigning,
        "email protection" | "s/mime" => ExtendedKeyUsage::EmailProtection,
        "ipsec end system" => ExtendedKeyUsage::IpsecEndSystem,
        "ipsec tunnel" => ExtendedKeyUsage::IpsecTunnel,
        "ipsec user" => ExtendedKeyUsage::IpsecUser,
        "timestamping" => ExtendedKeyUsage::TimeStamping,
        "ocsp signing" => ExtendedKeyUsage::OcspSigning,
        "microsoft sgc" => ExtendedKeyUsage::MicrosoftSgc,
        "netscape sgc" => ExtendedKeyUsage::NetscapeSgc,
        _ => return None,
    })
}

/// When a certificate is valid for which this many seconds were asked for. None is valid for longer than `longest`, or
/// than its CA.
///
/// Upstream: `apply`.
pub fn validity(asked: Option<i32>, longest: Duration, ca_ends: Time, now: Timestamp) -> Result<Validity, Expiry> {
    let lasts = duration(asked, SignedDuration::try_from(longest).unwrap_or(SignedDuration::MAX));
    let not_before = now.checked_sub(BACKDATE).unwrap_or(Timestamp::MIN);
    let begins = if lasts < SHORT { now } else { not_before };
    let end = ca_ends.timestamp();
    let not_after = begins.checked_add(lasts).unwrap_or(Timestamp::MAX).min(end);
    if now >= end {
        return Err(Expiry { not_after: ca_ends, for_long: not_before >= end });
    }
    Ok(Validity { not_before: Time::of(not_before), not_after: Time::of(not_after) })
}

/// Upstream: `duration`, `pkg/controller/certificates/signer/signer.go`.
fn duration(asked: Option<i32>, longest: SignedDuration) -> SignedDuration {
    match asked.map(|seconds| SignedDuration::from_secs(seconds.into())) {
        None => longest,
        Some(asked) if asked > longest => longest,
        Some(asked) => asked.max(SHORTEST),
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { not_after, for_long } = self;
        // As Go prints a time.
        let end = not_after.timestamp();
        let end = end.strftime("%Y-%m-%d %H:%M:%S +0000 UTC");
        if *for_long {
            write!(f, "the signer has expired: NotAfter={end}")
        } else {
            write!(f, "refusing to sign a certificate that expired in the past: NotAfter={end}")
        }
    }
}
