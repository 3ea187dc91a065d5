//! FNV-1a, FNV-1, SHA-256 and the alphabet of hashes that become part of a name.
//!
//! Left out: upstream's way of turning a typed object into bytes, which depends on its Go structs; callers hash a
//! canonical text of their own.

use ring::digest::{SHA256, digest};

/// FNV-1a, 32 bits: short, stable across releases and machines, and not for anything an attacker may choose.
pub fn fnv1a_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    fnv1a_32_after(0x811c_9dc5, bytes)
}

/// The hash of a text of this hash with more bytes behind it.
fn fnv1a_32_after(hash: u32, bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(hash, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// FNV-1, 32 bits, which multiplies first: upstream names the revisions of a StatefulSet by it.
pub fn fnv1_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(0x811c_9dc5, |hash: u32, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte))
}

/// FNV-1a, 128 bits: long enough that different texts of one cluster never share it by chance.
pub fn fnv1a_128(bytes: impl IntoIterator<Item = u8>) -> u128 {
    fnv1a_128_after(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, bytes)
}

/// The hash of a text of this hash with more bytes behind it.
pub fn fnv1a_128_after(hash: u128, bytes: impl IntoIterator<Item = u8>) -> u128 {
    bytes
        .into_iter()
        .fold(hash, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b))
}

/// SHA-256, in hexadecimal digits.
pub fn sha256_hex(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let digits = digest.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// Text in an alphabet without vowels and look-alikes, so that it spells no word; of digits no two become the same.
///
/// Upstream: `SafeEncodeString`, `staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go`.
pub fn safe_encode(text: &str) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    text.bytes().map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

/// At most 10 characters that stand for `text` and the number of earlier collisions, in the alphabet of [`safe_encode`].
///
/// Upstream: `ComputeHash`, `pkg/controller/controller_utils.go`, which hashes a dump of Go structs instead of `text`, and
/// the count in the same 8 bytes.
pub fn safe_hash(text: &str, collision_count: Option<i32>) -> String {
    safe_hash_after(fnv1a_32(text.bytes()), collision_count)
}

/// The [`safe_hash`] of the text that has this [`fnv1a_32`].
pub fn safe_hash_after(text: u32, collision_count: Option<i32>) -> String {
    let count = collision_count.map(|count| i64::from(count.cast_unsigned()).to_le_bytes());
    safe_encode(&fnv1a_32_after(text, count.into_iter().flatten()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_gives_the_published_vector() {
        assert_eq!(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn fnv_gives_the_published_vectors() {
        assert_eq!(fnv1a_32(*b""), 0x811c_9dc5);
        assert_eq!(fnv1a_32(*b"a"), 0xe40c_292c);
        assert_eq!(fnv1a_32(*b"foobar"), 0xbf9c_f968);
        assert_eq!(fnv1a_128(*b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv1_32(*b""), 0x811c_9dc5);
        assert_eq!(fnv1_32(*b"a"), 0x050c_5d7e);
        assert_eq!(fnv1_32(*b"foobar"), 0x31f0_b262);
    }

    #[test]
    fn digits_become_letters_as_upstream_writes_them() {
        assert_eq!(safe_encode("0123456789"), "456789bcdf");
    }

    #[test]
    fn a_collision_count_changes_the_hash_and_none_is_not_zero() {
        let hashes = [None, Some(0), Some(1), Some(2)].map(|count| safe_hash("template", count));
        for (at, hash) in hashes.iter().enumerate() {
            assert!(hash.len() <= 10 && hash.bytes().all(|byte| b"456789bcdf".contains(&byte)), "{hash}");
            assert!(!hashes[..at].contains(hash), "{hashes:?}");
        }
    }

    #[test]
    fn the_hash_of_a_text_never_changes() {
        // ReplicaSets are named by these values: with others each would be created again under a new name.
        assert_eq!(safe_hash("", None), "65bb57b6b5");
        assert_eq!(safe_hash("foobar", None), safe_encode(&0xbf9c_f968_u32.to_string()));
        assert_eq!(safe_hash("template", Some(1)), "58bd6886fd");
    }
}
