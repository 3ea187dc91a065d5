//! Writes the DER of a certificate.

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag of a value in a choice or an optional field, implicitly tagged.
pub(super) const fn context(number: u8) -> u8 {
    0x80 | number
}

/// The tag of an optional field with a whole value in it.
pub(super) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// A value: its tag, its length, and the parts of its content.
pub(super) fn value<P: AsRef<[u8]>>(tag: u8, parts: &[P]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.as_ref().len()).sum();
    let mut value = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => value.push(short),
        Ok(_) | Err(_) => {
            let bytes = length.to_be_bytes();
            let bytes = without_zeros(&bytes);
            // A length has at most eight bytes.
            value.push(0x80 | u8::try_from(bytes.len()).unwrap_or_default());
            value.extend_from_slice(bytes);
        }
    }
    for part in parts {
        value.extend_from_slice(part.as_ref());
    }
    value
}

/// A number that is not negative, from its bytes, the highest first.
pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let bytes = without_zeros(bytes);
    let is_high = bytes.first().is_none_or(|first| *first >= 0x80);
    let sign: &[u8] = if is_high { &[0] } else { &[] };
    value(INTEGER, &[sign, bytes])
}

/// The bits of whole bytes.
pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    let unused: &[u8] = &[0];
    value(BIT_STRING, &[unused, bytes])
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}
