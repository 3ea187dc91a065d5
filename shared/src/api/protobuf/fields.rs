//! The fields of one protobuf message, one after the other, where they stand.
//!
//! Left out: groups, which no message of the API has.

use serde::de::Error as _;
use serde_json::Error;

/// The bytes of a message that are not read yet.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

/// A field's value, as far as the wire tells.
#[derive(Clone, Copy)]
pub(super) enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A number of fixed size, which nothing that is read has.
    Fixed,
}

impl<'a> Fields<'a> {
    pub(super) const fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    pub(super) const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// The next field's number and value; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => self.take(8).map(|_| Wire::Fixed)?,
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Fixed)?,
            other => return Err(Error::custom(format_args!("there is no wire type {other}"))),
        };
        Ok(Some((tag >> 3, value)))
    }

    /// The next field's number, and the length of its value, which need not be there yet: a text, a message, or one of
    /// many.
    pub(super) fn head(&mut self) -> Result<(u64, usize), Error> {
        let tag = self.varint()?;
        if tag & 7 != 2 {
            return Err(Error::custom("a list has only messages and texts"));
        }
        let length = self.varint()?;
        Ok((tag >> 3, usize::try_from(length).map_err(Error::custom)?))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Error> {
        let split = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let (taken, rest) = split.ok_or_else(|| Error::custom("a field is longer than its message"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or_else(|| Error::custom("a message ends within a number"))?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::custom("a number has more than 64 bits"))
    }
}
