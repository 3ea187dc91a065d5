//! A certificate's bytes, as Go writes them: the same names, kinds of texts and order of extensions.
//!
//! Go writes the attributes of the subject that it knows in an order of its own, those of one kind in one set, and drops
//! all others.
//!
//! Upstream: `CreateCertificate`, Go's crypto/x509.

use jiff::tz::Offset;
use shared::api::time::Time;
use shared::controllers::certificates::request::{AltNames, Attribute, Request};

use super::der::{self, bit_string, context, explicit, integer, value};
use crate::observe::pair::{Algorithm, Issuer};
use crate::plan::Certificate;
use crate::plan::policies::{ExtendedKeyUsage, KeyUsage, Usages, Validity};

/// A serial number, the highest byte first.
pub type SerialNumber = [u8; 16];

/// `1.2.840.113549.1.1.11`.
const SHA256_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
/// `1.2.840.10045.4.3.2`.
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
/// `1.2.840.10045.4.3.3`.
const ECDSA_WITH_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];
/// `1.2.840.10045.4.3.4`.
const ECDSA_WITH_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04];
/// `2.5.29.15`.
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
/// `2.5.29.37`.
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
/// `2.5.29.19`.
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
/// `2.5.29.35`.
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
/// `2.5.29.17`.
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const VERSION_3: &[u8] = &[2];
/// The first bytes of an IPv4 address in the form of an IPv6 address.
const MAPPED_IPV4: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
/// From this year on, a time has four digits for it. Before 1950 there are no certificates.
const LONG_YEARS: i16 = 2050;

pub fn to_be_signed(certificate: &Certificate, serial_number: SerialNumber) -> Vec<u8> {
    let Certificate { pair, request, usages, validity } = certificate;
    let issuer = &pair.issuer;
    let subject = name(request);
    let extensions = extensions(issuer, request, usages, &subject);
    value(
        der::SEQUENCE,
        &[
            value(explicit(0), &[integer(VERSION_3)]),
            integer(&serial_number),
            algorithm(issuer.algorithm),
            issuer.name.to_vec(),
            valid(*validity),
            subject,
            request.public_key.to_vec(),
            value(explicit(3), &[value(der::SEQUENCE, &extensions)]),
        ],
    )
}

pub fn whole(certificate: &Certificate, to_be_signed: &[u8], signature: &[u8]) -> Vec<u8> {
    let algorithm = algorithm(certificate.pair.issuer.algorithm);
    value(der::SEQUENCE, &[to_be_signed, &algorithm, &bit_string(signature)])
}

fn algorithm(algorithm: Algorithm) -> Vec<u8> {
    let oid = |oid: &[u8]| value(der::OID, &[oid]);
    match algorithm {
        Algorithm::RsaSha256 => value(der::SEQUENCE, &[oid(SHA256_WITH_RSA), vec![der::NULL, 0]]),
        Algorithm::EcdsaSha256 => value(der::SEQUENCE, &[oid(ECDSA_WITH_SHA256)]),
        Algorithm::EcdsaSha384 => value(der::SEQUENCE, &[oid(ECDSA_WITH_SHA384)]),
        Algorithm::EcdsaSha512 => value(der::SEQUENCE, &[oid(ECDSA_WITH_SHA512)]),
    }
}

fn valid(Validity { not_before, not_after }: Validity) -> Vec<u8> {
    value(der::SEQUENCE, &[time(not_before), time(not_after)])
}

/// Upstream: `marshalField` of a time, Go's encoding/asn1.
fn time(time: Time) -> Vec<u8> {
    let timestamp = time.timestamp();
    if Offset::UTC.to_datetime(timestamp).year() < LONG_YEARS {
        value(der::UTC_TIME, &[timestamp.strftime("%y%m%d%H%M%SZ").to_string()])
    } else {
        value(der::GENERALIZED_TIME, &[timestamp.strftime("%Y%m%d%H%M%SZ").to_string()])
    }
}

/// The subject: of each kind of attribute one set, and of the common name and the serial number only the last.
///
/// Upstream: `FillFromRDNSequence` and `ToRDNSequence`, Go's crypto/x509/pkix.
fn name(request: &Request) -> Vec<u8> {
    let mut sets = Vec::new();
    for attribute in Attribute::ALL {
        let values: Vec<&str> = match attribute {
            Attribute::CommonName | Attribute::SerialNumber => {
                request.values(attribute).last().filter(|value| !value.is_empty()).into_iter().collect()
            }
            Attribute::Country
            | Attribute::Province
            | Attribute::Locality
            | Attribute::StreetAddress
            | Attribute::PostalCode
            | Attribute::Organization
            | Attribute::OrganizationalUnit => request.values(attribute).collect(),
        };
        if values.is_empty() {
            continue;
        }
        let one = |text: &&str| value(der::SEQUENCE, &[value(der::OID, &[attribute.oid()]), string(text)]);
        let mut members: Vec<Vec<u8>> = values.iter().map(one).collect();
        // DER orders the members of a set by their bytes.
        members.sort_unstable();
        sets.push(value(der::SET, &members));
    }
    value(der::SEQUENCE, &sets)
}

/// A text in the smallest of two sorts.
///
/// Upstream: `isPrintable`, Go's encoding/asn1.
fn string(text: &str) -> Vec<u8> {
    let is_printable = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte);
    let tag = if text.bytes().all(is_printable) { der::PRINTABLE_STRING } else { der::UTF8_STRING };
    value(tag, &[text])
}

/// Upstream: `buildCertExtensions`.
fn extensions(issuer: &Issuer, request: &Request, usages: &Usages, subject: &[u8]) -> Vec<Vec<u8>> {
    let Usages { key, extended } = usages;
    let mut extensions = Vec::new();
    if !key.is_empty() {
        extensions.push(extension(KEY_USAGE, true, &bits(key.iter().copied())));
    }
    if !extended.is_empty() {
        let oids: Vec<Vec<u8>> = extended.iter().map(|usage| value(der::OID, &[oid(*usage)])).collect();
        extensions.push(extension(EXTENDED_KEY_USAGE, false, &value(der::SEQUENCE, &oids)));
    }
    // No CA: that is the default, and so left out.
    extensions.push(extension(BASIC_CONSTRAINTS, true, &value::<&[u8]>(der::SEQUENCE, &[])));
    // A certificate with the CA's own name looks as if it had signed itself.
    if let Some(key_id) = issuer.key_id.as_ref().filter(|_| *issuer.name != *subject) {
        let key_id = value(der::SEQUENCE, &[value(context(0), &[key_id])]);
        extensions.push(extension(AUTHORITY_KEY_ID, false, &key_id));
    }
    let names = general_names(&request.alt_names);
    if !names.is_empty() {
        let is_nameless = *subject == *value::<&[u8]>(der::SEQUENCE, &[]);
        extensions.push(extension(SUBJECT_ALT_NAME, is_nameless, &value(der::SEQUENCE, &names)));
    }
    extensions
}

fn extension(oid: &[u8], is_critical: bool, content: &[u8]) -> Vec<u8> {
    let mut parts = vec![value(der::OID, &[oid])];
    if is_critical {
        parts.push(value(der::BOOLEAN, &[[0xff_u8]]));
    }
    parts.push(value(der::OCTET_STRING, &[content]));
    value(der::SEQUENCE, &parts)
}

/// A bit for each usage, up to the last one that is set.
///
/// Upstream: `marshalKeyUsage`.
fn bits(usages: impl Iterator<Item = KeyUsage>) -> Vec<u8> {
    let (mut low, mut high) = (0_u8, 0_u8);
    for usage in usages {
        match usage {
            KeyUsage::DigitalSignature => low |= 0x80,
            KeyUsage::ContentCommitment => low |= 0x40,
            KeyUsage::KeyEncipherment => low |= 0x20,
            KeyUsage::DataEncipherment => low |= 0x10,
            KeyUsage::KeyAgreement => low |= 0x08,
            KeyUsage::CertSign => low |= 0x04,
            KeyUsage::CrlSign => low |= 0x02,
            KeyUsage::EncipherOnly => low |= 0x01,
            KeyUsage::DecipherOnly => high |= 0x80,
        }
    }
    let unused = |last: u8| u8::try_from(last.trailing_zeros()).unwrap_or_default();
    if high == 0 {
        value(der::BIT_STRING, &[[unused(low), low]])
    } else {
        value(der::BIT_STRING, &[[unused(high), low, high]])
    }
}

/// Upstream: `extKeyUsageOIDs`.
fn oid(usage: ExtendedKeyUsage) -> &'static [u8] {
    match usage {
        ExtendedKeyUsage::Any => &[0x55, 0x1d, 0x25, 0x00],
        ExtendedKeyUsage::ServerAuth => &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01],
        ExtendedKeyUsage::ClientAuth => &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02],
        ExtendedKeyUsage::CodeSigning => &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03],
        ExtendedKeyUsage::EmailProtection => &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x04],
        ExtendedKeyUsage::IpsecEndSystem => &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x05],
        ExtendedKeyUsage::IpsecTunnel => &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x06],
        ExtendedKeyUsage::IpsecUser => &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x07],
        ExtendedKeyUsage::TimeStamping => &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08],
        ExtendedKeyUsage::OcspSigning => &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x09],
        ExtendedKeyUsage::MicrosoftSgc => &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x0a, 0x03, 0x03],
        ExtendedKeyUsage::NetscapeSgc => &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x04, 0x01],
    }
}

/// Host names first, then addresses of e-mail, IP addresses and URIs.
///
/// Upstream: `marshalSANs`.
fn general_names(AltNames { dns, emails, ips, uris }: &AltNames) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    names.extend(dns.iter().map(|name| value(context(2), &[name])));
    names.extend(emails.iter().map(|name| value(context(1), &[name])));
    names.extend(ips.iter().map(|ip| value(context(7), &[ip.strip_prefix(MAPPED_IPV4).unwrap_or(ip)])));
    names.extend(uris.iter().map(|name| value(context(6), &[name])));
    names
}
