//! The events of a watch, each in a frame that begins with its length.
//!
//! Upstream: `lengthDelimitedFrameReader`, staging/src/k8s.io/apimachinery/pkg/util/framer/framer.go; `WatchEvent`,
//! staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

use serde::de::Error as _;
use serde_json::Error;

use super::fields::{Fields, Wire};

/// The bytes of a frame's length, the highest one first.
const LENGTH_BYTES: usize = 4;
/// Every frame is shorter, so that its first byte is below any that JSON may begin with.
const FRAME_BYTES_END: usize = 9 << 24;

/// What some bytes of a watch begin with.
pub enum Frame {
    /// No frame: events as lines of JSON, or nothing.
    None,
    /// A frame with so many bytes, after its length.
    Of(usize),
    /// A frame whose length has not come yet.
    Unknown,
}

/// Tells which it is by the first bytes.
pub fn frame(bytes: &[u8]) -> Frame {
    match *bytes {
        [first, ..] if usize::from(first) >= FRAME_BYTES_END >> 24 => Frame::None,
        [a, b, c, d, ..] => Frame::Of(usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX)),
        [] => Frame::None,
        _ => Frame::Unknown,
    }
}

impl Frame {
    /// The bytes of a frame together with its length.
    pub const fn whole(length: usize) -> usize {
        length + LENGTH_BYTES
    }

    /// What a frame has in it, without its length.
    pub fn content(frame: &[u8]) -> &[u8] {
        frame.get(LENGTH_BYTES..).unwrap_or_default()
    }
}

/// The type of an event, and the object that came with it, for [`object`](super::object).
///
/// # Errors
/// When it has not both.
pub fn event(content: &[u8]) -> Result<(&str, &[u8]), Error> {
    let (mut fields, mut kind, mut object) = (Fields::new(content), None, None);
    while let Some(field) = fields.next()? {
        match field {
            (1, Wire::Bytes(bytes)) => kind = Some(std::str::from_utf8(bytes).map_err(Error::custom)?),
            // A `RawExtension` around it.
            (2, Wire::Bytes(bytes)) => object = Fields::new(bytes).next()?,
            _ => {}
        }
    }
    match (kind, object) {
        (Some(kind), Some((1, Wire::Bytes(object)))) => Ok((kind, object)),
        _ => Err(Error::custom("an event has a type and an object")),
    }
}
