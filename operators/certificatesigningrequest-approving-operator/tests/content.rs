//! The parts of a certificate request that are read, and requests that are not read at all.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use certificatesigningrequest_approving_operator::objects::{AltName, Content, Fault};
use data_encoding::BASE64;
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, OtherNameValue, SanType};

/// The last two bytes of `2.5.4.3`, `2.5.4.10` and `2.5.4.11`.
const COMMON_NAME: [u8; 2] = [4, 3];
const ORGANIZATION: [u8; 2] = [4, 10];
const UNIT: [u8; 2] = [4, 11];

/// A request of a node that has a unit, too, in DER.
fn der(alt_names: Vec<SanType>) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "system:node:foo");
    params.distinguished_name.push(DnType::OrganizationName, DnValue::PrintableString("nodes".try_into().unwrap()));
    params.distinguished_name.push(DnType::OrganizationalUnitName, "bar");
    params.subject_alt_names = alt_names;
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

/// The same with another attribute in its subject.
fn with(from: [u8; 2], to: [u8; 2]) -> Vec<u8> {
    let mut der = der(Vec::new());
    let oid = |end: [u8; 2]| [6, 3, 0x55, end[0], end[1]];
    let at = der.windows(5).position(|bytes| *bytes == oid(from)).unwrap();
    der[at..at + 5].copy_from_slice(&oid(to));
    der
}

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n", BASE64.encode(der))
}

fn read(text: &str) -> Result<Content, Fault> {
    Content::read(&BASE64.encode(text.as_bytes()))
}

fn alt_names(alt_names: Vec<SanType>) -> Result<Vec<AltName>, Fault> {
    read(&pem(&der(alt_names))).map(|content| content.alt_names.into_iter().collect())
}

#[test]
fn the_subject_is_read() {
    let expected = Content {
        common_name: "system:node:foo".to_owned(),
        organizations: vec!["nodes".to_owned()],
        alt_names: BTreeSet::new(),
    };
    let der = der(Vec::new());
    assert_eq!(read(&pem(&der)), Ok(expected.clone()));
    // In lines of any length, with blank ones around it.
    let lines = pem(&der).replace('A', "A\r\n");
    let lines = lines.replace("CERTIFICA\r\nTE", "CERTIFICATE");
    assert_eq!(read(&format!("\n{lines}\n")), Ok(expected));
    let two = read(&pem(&with(UNIT, ORGANIZATION))).unwrap();
    assert_eq!(two.organizations, ["nodes", "bar"]);
    assert_eq!(read(&pem(&with(ORGANIZATION, UNIT))).unwrap().organizations, [""; 0]);
}

#[test]
fn the_sorts_of_alternative_names_are_read_and_others_do_not_count() {
    let dns = || SanType::DnsName("a.example".try_into().unwrap());
    let email = SanType::Rfc822Name("a@example.com".try_into().unwrap());
    let uri = SanType::URI("spiffe://a/b".try_into().unwrap());
    let ip = SanType::IpAddress(Ipv4Addr::LOCALHOST.into());
    let other = SanType::OtherName((vec![1, 2, 3], OtherNameValue::Utf8String("a".to_owned())));
    assert_eq!(alt_names(vec![other]), Ok(Vec::new()));
    assert_eq!(alt_names(vec![ip, dns()]), Ok(vec![AltName::Dns, AltName::Ip]));
    assert_eq!(alt_names(vec![uri, email, dns(), dns()]), Ok(vec![AltName::Dns, AltName::Email, AltName::Uri]));
}

#[test]
fn what_two_readers_could_understand_in_two_ways_is_not_read() {
    let der = der(Vec::new());
    let one = pem(&der);
    assert!(read(&one).is_ok());
    let beside = |text: String| assert_eq!(read(&text), Err(Fault::NotOneBlock), "{text}");
    beside(String::new());
    beside(format!("{one}{one}"));
    beside(format!("-----BEGIN CERTIFICATE REQUEST-----\nodd\n{one}"));
    beside(format!("a comment\n{one}"));
    beside(one.replace("REQUEST-----\nM", "REQUEST-----\nProc-Type: 4,ENCRYPTED\n\nM"));
    beside(one.replace("CERTIFICATE REQUEST", "CERTIFICATE"));
    assert_eq!(Content::read("no base64!"), Err(Fault::NotOneBlock));

    let longer: Vec<u8> = der.iter().copied().chain([0]).collect();
    for odd in [&longer[..], &der[..der.len() - 1], &[]] {
        assert_eq!(read(&pem(odd)), Err(Fault::NotARequest));
    }
    assert_eq!(read(&pem(&with(UNIT, COMMON_NAME))), Err(Fault::NotOneCommonName));
    assert_eq!(read(&pem(&with(COMMON_NAME, UNIT))), Err(Fault::NotOneCommonName));
}

#[test]
fn only_plain_texts_are_names() {
    let mut der = der(Vec::new());
    let at = der.windows(5).position(|bytes| *bytes == *b"nodes").unwrap();
    // The tag of a text is before its length: that of a BMPString, of a T61String, and of no universal type.
    for tag in [30, 20, 0x80 | 0x13] {
        der[at - 2] = tag;
        let found = read(&pem(&der)).unwrap_err();
        assert!([Fault::UnreadableName, Fault::NotARequest].contains(&found), "{tag}: {found}");
    }
    der[at - 2] = 12;
    assert!(read(&pem(&der)).is_ok());
}

static WITH_ALT_NAMES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    der(vec![SanType::DnsName("a.example".try_into().unwrap()), SanType::IpAddress(Ipv4Addr::LOCALHOST.into())])
});

proptest! {
    /// Whatever a request is made of, it is read or it is not; and one that lacks a part is not.
    #[test]
    fn broken_requests_do_no_harm(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut der = WITH_ALT_NAMES.clone();
        let at = at.index(der.len());
        der[at] = byte;
        if cut {
            der.truncate(at);
        }
        let content = read(&pem(&der));
        prop_assert!(!cut || content == Err(Fault::NotARequest), "{:?}", content);
    }

    #[test]
    fn a_text_that_is_no_block_is_not_read(text in any::<String>()) {
        prop_assert_eq!(Content::read(&text), Err(Fault::NotOneBlock));
        prop_assert_eq!(read(&text), Err(Fault::NotOneBlock));
    }
}
