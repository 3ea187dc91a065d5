//! JSON that a cache keeps only up to a size: above it, its digest stands for it.
//!
//! An object can have 1.5 MB, and a single user can create thousands. The JSON that a controller only hands on, such as
//! a template, is read live when a write needs it. Left out: that read, which is
//! [`crate::controllers::live_spec`]'s, and JSON that decisions need, such as selectors.

use std::borrow::Cow;
use std::fmt;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A cache keeps JSON of at most this many bytes.
pub const KEPT_BYTES_MAX: usize = 64 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    sha256: [u8; 32],
    pub bytes: usize,
}

impl Digest {
    pub fn of(text: &str) -> Self {
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        Self { sha256, bytes: text.len() }
    }

    /// A text of at most this many bytes, or in its place the digest.
    pub fn abridge(text: &str, bytes_max: usize) -> Cow<'_, str> {
        if text.len() <= bytes_max { Cow::Borrowed(text) } else { Cow::Owned(format!("{:?}", Self::of(text))) }
    }
}

/// `1400000 bytes, sha256:3b5c…`.
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, sha256:", self.bytes)?;
        self.sha256.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[derive(Clone)]
pub enum Kept {
    /// All of it. A live read gives it at any size.
    Whole(Box<RawValue>),
    /// It is too large.
    Digest(Digest),
}

impl Kept {
    pub fn new(json: Box<RawValue>) -> Self {
        if json.get().len() > KEPT_BYTES_MAX { Self::Digest(Digest::of(json.get())) } else { Self::Whole(json) }
    }

    /// The JSON, if it is here.
    pub fn whole(&self) -> Option<&RawValue> {
        match self {
            Self::Whole(json) => Some(json),
            Self::Digest(_) => None,
        }
    }

    /// The bytes that are not here.
    pub fn left_out(&self) -> usize {
        match self {
            Self::Whole(_) => 0,
            Self::Digest(digest) => digest.bytes,
        }
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self::Whole(Box::default())
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(json) => f.write_str(json.get()),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A JSON string of so many bytes.
    fn of_bytes(bytes: usize) -> String {
        format!("\"{}\"", "x".repeat(bytes - 2))
    }

    #[test]
    fn json_above_the_limit_is_kept_as_its_digest() {
        for (bytes, left_out) in
            [(2, 0), (KEPT_BYTES_MAX, 0), (KEPT_BYTES_MAX + 1, KEPT_BYTES_MAX + 1), (1_400_000, 1_400_000)]
        {
            let text = of_bytes(bytes);
            let kept: Kept = serde_json::from_str(&text).unwrap();
            assert_eq!(kept.left_out(), left_out);
            assert_eq!(kept.whole().map(RawValue::get), (left_out == 0).then_some(&*text));
        }
    }

    #[test]
    fn a_digest_is_that_of_the_text() {
        let digest = Digest::of("abc");
        let text = "3 bytes, sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(format!("{digest:?}"), text);
        assert_ne!(digest, Digest::of("abd"));
        assert_eq!((&*Digest::abridge("abc", 3), &*Digest::abridge("abc", 2)), ("abc", text));
    }
}
