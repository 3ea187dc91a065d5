//! Ranges of addresses, and their texts.

use std::net::IpAddr;

use service_lb_operator::objects::address_range::{AddressRange, InvalidRange};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn ends(text: &str) -> (String, String) {
    let range: AddressRange = text.parse().unwrap();
    (range.addresses().start().to_string(), range.addresses().end().to_string())
}

#[test]
fn a_range_is_a_cidr_two_ends_or_one_address() {
    let cases = [
        ("192.0.2.7/24", "192.0.2.0", "192.0.2.255"),
        ("192.0.2.7/32", "192.0.2.7", "192.0.2.7"),
        ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"),
        ("192.0.2.10-192.0.2.20", "192.0.2.10", "192.0.2.20"),
        ("192.0.2.10 - 192.0.2.20", "192.0.2.10", "192.0.2.20"),
        ("192.0.2.9", "192.0.2.9", "192.0.2.9"),
        ("2001:db8::5/126", "2001:db8::4", "2001:db8::7"),
        ("2001:db8::-2001:db8::1", "2001:db8::", "2001:db8::1"),
    ];
    for (text, first, last) in cases {
        assert_eq!(ends(text), (first.to_owned(), last.to_owned()), "{text}");
    }
}

#[test]
fn a_wrong_range_is_refused_with_its_text() {
    let refused = |text: &str| text.parse::<AddressRange>().unwrap_err();
    for text in ["", "web", "192.0.2.0/33", "192.0.2.0/x", "2001:db8::/129", "192.0.2.1-", "192.0.2.0/24-1"] {
        assert_eq!(refused(text), InvalidRange::Text(text.to_owned()));
    }
    assert_eq!(refused("192.0.2.1-2001:db8::1"), InvalidRange::TwoFamilies("192.0.2.1-2001:db8::1".to_owned()));
    assert_eq!(refused("192.0.2.2-192.0.2.1"), InvalidRange::Reversed("192.0.2.2-192.0.2.1".to_owned()));
}

#[test]
fn the_first_address_outside_is_the_first_gap() {
    let range: AddressRange = "192.0.2.0/30".parse().unwrap();
    let outside = |taken: &[&str]| range.first_outside(taken.iter().map(|text| address(text)));
    assert_eq!(outside(&[]), Some(address("192.0.2.0")));
    assert_eq!(outside(&["192.0.2.0", "192.0.2.2"]), Some(address("192.0.2.1")));
    assert_eq!(outside(&["192.0.2.0", "192.0.2.1", "192.0.2.2", "192.0.2.3"]), None);
    let last: AddressRange = "255.255.255.255".parse().unwrap();
    assert_eq!(last.first_outside([address("255.255.255.255")]), None);
}
