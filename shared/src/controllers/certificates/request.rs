//! The content of a certificate request (PKCS#10): the subject, the alternative names and the public key.
//!
//! The approver and the signer both read a request, so ambiguity is rejected: it must be one PEM block with names in
//! plain text. As upstream, other attributes of the subject and other extensions are dropped.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use x509_parser::asn1_rs::{Class, Oid, Tag};
use x509_parser::certification_request::{X509CertificationRequest, X509CertificationRequestInfo};
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{
    OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519, OID_X509_EXT_SUBJECT_ALT_NAME,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::AttributeTypeAndValue;

const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";
const BEGIN_ANY: &str = "-----BEGIN ";
/// The prefix of `2.5.4.x`, encoded.
const ATTRIBUTE_ARC: [u8; 2] = [0x55, 0x04];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The known attributes of the subject, in the order of the request.
    pub subject: Vec<(Attribute, String)>,
    pub alt_names: AltNames,
    /// The public key with its algorithm (`SubjectPublicKeyInfo`), in DER.
    pub public_key: Box<[u8]>,
}

/// The attributes of a subject that a certificate keeps, in Go's order.
///
/// Upstream: `Name.ToRDNSequence`, Go's crypto/x509/pkix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attribute {
    Country,
    Province,
    Locality,
    StreetAddress,
    PostalCode,
    /// An organization: a group of the user.
    Organization,
    /// A unit of an organization.
    OrganizationalUnit,
    /// The common name: the name of the user.
    CommonName,
    SerialNumber,
}

/// The alternative names that a certificate keeps. As upstream, all others are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AltNames {
    pub dns: Vec<String>,
    pub emails: Vec<String>,
    /// IP addresses of 4 or 16 bytes.
    pub ips: Vec<Box<[u8]>>,
    pub uris: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AltName {
    Dns,
    Email,
    Ip,
    Uri,
}

/// Why a request cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// It is not exactly one PEM block of a certificate request.
    NotOneBlock,
    /// The block is not exactly one certificate request.
    NotARequest,
    /// There is not exactly one common name.
    NotOneCommonName,
    /// A name in the subject is not plain text.
    UnreadableName,
    UnreadableAltNames,
    /// It is not signed with its own key, or by an unknown algorithm.
    Signature,
}

impl Request {
    /// Reads `spec.request`, PEM in base64, with nothing around the one block.
    ///
    /// Upstream: `ParseCSR`, `pkg/apis/certificates/helpers.go`.
    pub fn read(request: &str) -> Result<Self, Fault> {
        let text = decoded(request).ok_or(Fault::NotOneBlock)?;
        let der = block(text.trim_ascii()).ok_or(Fault::NotOneBlock)?;
        Self::of(&parsed(&der)?)
    }

    /// Reads `spec.request` if it is signed with its own key. Other text may surround the one block, such as openssl's.
    ///
    /// Upstream: `ParseCSR`, `pkg/apis/certificates/helpers.go`; `CertificateRequest.CheckSignature`, Go's crypto/x509.
    pub fn read_signed(request: &str) -> Result<Self, Fault> {
        let text = decoded(request).ok_or(Fault::NotOneBlock)?;
        let der = only_block(&text).and_then(block).ok_or(Fault::NotOneBlock)?;
        let request = parsed(&der)?;
        let key = &request.certification_request_info.subject_pki.algorithm.algorithm;
        let is_known = [OID_PKCS1_RSAENCRYPTION, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_SIG_ED25519].contains(key);
        if !is_known || request.verify_signature().is_err() {
            return Err(Fault::Signature);
        }
        Self::of(&request)
    }

    fn of(request: &X509CertificationRequest<'_>) -> Result<Self, Fault> {
        let info = &request.certification_request_info;
        let mut subject = Vec::new();
        for found in info.subject.iter_attributes() {
            if let Some(attribute) = Attribute::of(found.attr_type()) {
                subject.push((attribute, text(found)?));
            }
        }
        Ok(Self { subject, alt_names: alt_names(info)?, public_key: info.subject_pki.raw.into() })
    }

    /// The values of an attribute, in the order of the request.
    pub fn values(&self, attribute: Attribute) -> impl Iterator<Item = &str> {
        self.subject.iter().filter(move |(of, _)| *of == attribute).map(|(_, value)| value.as_str())
    }
}

impl Attribute {
    pub const ALL: [Self; 9] = [
        Self::Country,
        Self::Province,
        Self::Locality,
        Self::StreetAddress,
        Self::PostalCode,
        Self::Organization,
        Self::OrganizationalUnit,
        Self::CommonName,
        Self::SerialNumber,
    ];

    /// Its object identifier, without tag and length.
    pub const fn oid(self) -> [u8; 3] {
        let last = match self {
            Self::CommonName => 3,
            Self::SerialNumber => 5,
            Self::Country => 6,
            Self::Locality => 7,
            Self::Province => 8,
            Self::StreetAddress => 9,
            Self::Organization => 10,
            Self::OrganizationalUnit => 11,
            Self::PostalCode => 17,
        };
        [ATTRIBUTE_ARC[0], ATTRIBUTE_ARC[1], last]
    }

    fn of(oid: &Oid<'_>) -> Option<Self> {
        Self::ALL.into_iter().find(|attribute| attribute.oid() == *oid.as_bytes())
    }
}

impl AltNames {
    pub fn sorts(&self) -> BTreeSet<AltName> {
        let Self { dns, emails, ips, uris } = self;
        let counts = [
            (AltName::Dns, dns.len()),
            (AltName::Email, emails.len()),
            (AltName::Ip, ips.len()),
            (AltName::Uri, uris.len()),
        ];
        counts.into_iter().filter(|(_, count)| *count > 0).map(|(sort, _)| sort).collect()
    }

    fn add(&mut self, name: &GeneralName<'_>) -> Result<(), Fault> {
        match name {
            GeneralName::DNSName(name) => self.dns.push(ascii(name)?),
            GeneralName::RFC822Name(name) => self.emails.push(ascii(name)?),
            GeneralName::IPAddress(bytes) if matches!(bytes.len(), 4 | 16) => self.ips.push((*bytes).into()),
            GeneralName::URI(name) => self.uris.push(ascii(name)?),
            GeneralName::OtherName(..)
            | GeneralName::X400Address(_)
            | GeneralName::DirectoryName(_)
            | GeneralName::EDIPartyName(_)
            | GeneralName::RegisteredID(_) => {}
            GeneralName::IPAddress(_) | GeneralName::Invalid(..) => return Err(Fault::UnreadableAltNames),
        }
        Ok(())
    }
}

fn decoded(request: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(request).ok()?).ok()
}

fn only_block(text: &str) -> Option<&str> {
    let from = text.find(BEGIN)?;
    let to = from + text.get(from..)?.find(END)? + END.len();
    (text.matches(BEGIN_ANY).count() == 1).then_some(text.get(from..to)?)
}

fn block(text: &str) -> Option<Vec<u8>> {
    let base64 = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let base64: String = base64.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    STANDARD.decode(base64).ok()
}

fn parsed(der: &[u8]) -> Result<X509CertificationRequest<'_>, Fault> {
    let (rest, request) = X509CertificationRequest::from_der(der).map_err(|_| Fault::NotARequest)?;
    if rest.is_empty() { Ok(request) } else { Err(Fault::NotARequest) }
}

/// A value of the two string types that Go writes, or of two types that allow fewer characters.
fn text(attribute: &AttributeTypeAndValue<'_>) -> Result<String, Fault> {
    let value = attribute.attr_value();
    let is_text = value.class() == Class::Universal
        && match value.tag() {
            Tag::Utf8String | Tag::PrintableString => true,
            Tag::Ia5String | Tag::NumericString => value.data.is_ascii(),
            _ => false,
        };
    let text = if is_text { attribute.as_str().ok() } else { None };
    text.map(str::to_owned).ok_or(Fault::UnreadableName)
}

fn ascii(name: &str) -> Result<String, Fault> {
    if name.is_ascii() { Ok(name.to_owned()) } else { Err(Fault::UnreadableAltNames) }
}

/// The requested alternative names. As in Go, a request with two such extensions is not read.
///
/// Upstream: `parseCSRExtensions` and `parseSANExtension`, Go's crypto/x509.
fn alt_names(info: &X509CertificationRequestInfo<'_>) -> Result<AltNames, Fault> {
    let mut found: Option<AltNames> = None;
    for attribute in info.attributes() {
        let ParsedCriAttribute::ExtensionRequest(requested) = attribute.parsed_attribute() else { continue };
        for extension in requested.extensions.iter().filter(|extension| extension.oid == OID_X509_EXT_SUBJECT_ALT_NAME)
        {
            let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else {
                return Err(Fault::UnreadableAltNames);
            };
            let mut alt_names = AltNames::default();
            for name in &names.general_names {
                alt_names.add(name)?;
            }
            if found.replace(alt_names).is_some() {
                return Err(Fault::UnreadableAltNames);
            }
        }
    }
    Ok(found.unwrap_or_default())
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotOneBlock => "not one PEM block of type CERTIFICATE REQUEST and nothing else",
            Self::NotARequest => "no certificate request in the PEM block, or more than that",
            Self::NotOneCommonName => "not exactly one common name",
            Self::UnreadableName => "a name in the subject is no plain text",
            Self::UnreadableAltNames => "alternative names that cannot be read",
            Self::Signature => "no signature with its own key that can be checked",
        })
    }
}
