//! A list that comes in pieces, taken apart as it comes: no more of it is held than one object.
//!
//! Left out: reading the objects, which is the views', and whatever is no list.

use bytes::BytesMut;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Error;

use super::fields::Fields;
use super::tables::{LIST_META, TYPE_META, Table, items_of};
use super::{MAGIC, TypeMeta, Value, table_of};

/// An apiserver takes no object of more than 3 MB; an aggregated one may have larger ones.
const PART_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The number of a field and the length of its value have at most ten bytes each.
const HEAD_BYTES_MAX: usize = 20;

/// The bytes of a list that have come and were not handed out yet.
#[derive(Default)]
pub(crate) struct Parts {
    buffer: BytesMut,
    within: Within,
    table: Option<&'static Table>,
    has_list: bool,
}

/// Where the next byte belongs.
#[derive(Clone, Copy, Default)]
enum Within {
    /// Before the mark that protobuf of the API begins with.
    #[default]
    Nothing,
    Envelope,
    /// With so many bytes of the list still to come.
    List(usize),
}

/// A part of a list, all bytes of which are there.
pub(crate) enum Part {
    Metadata(BytesMut),
    Item(&'static Table, BytesMut),
}

impl Part {
    /// To be read by a view.
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Metadata(bytes) => Value::message(&LIST_META, bytes),
            Self::Item(table, bytes) => Value::message(table, bytes),
        }
    }
}

impl Parts {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// Whether what comes is something else than protobuf; none while too little has come.
    pub(crate) fn is_other_form(&self) -> Option<bool> {
        match self.within {
            Within::Nothing if self.buffer.len() < MAGIC.len() => None,
            Within::Nothing => Some(!self.buffer.starts_with(MAGIC)),
            Within::Envelope | Within::List(_) => Some(false),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.has_list && self.buffer.is_empty() && matches!(self.within, Within::Envelope | Within::List(0))
    }

    /// The next part; none until more has come.
    pub(crate) fn next(&mut self) -> Result<Option<Part>, Error> {
        loop {
            match self.within {
                Within::Nothing if self.buffer.len() < MAGIC.len() => return Ok(None),
                Within::Nothing => {
                    let magic = self.buffer.split_to(MAGIC.len());
                    if magic != MAGIC {
                        return Err(Error::custom("this is no protobuf of the API"));
                    }
                    self.within = Within::Envelope;
                }
                Within::List(0) => self.within = Within::Envelope,
                Within::List(left) => {
                    let Some((number, bytes, size)) = self.field(left)? else { return Ok(None) };
                    self.within = Within::List(left - size);
                    match (number, self.table) {
                        (1, _) => return Ok(Some(Part::Metadata(bytes))),
                        (2, Some(table)) => return Ok(Some(Part::Item(table, bytes))),
                        (2, None) => return Err(Error::custom("the list came before its kind")),
                        _ => {}
                    }
                }
                Within::Envelope => {
                    let Some(head) = head(&self.buffer)? else { return Ok(None) };
                    if head.number == 2 {
                        let _ = self.buffer.split_to(head.size);
                        (self.within, self.has_list) = (Within::List(head.length), true);
                        continue;
                    }
                    let Some((number, bytes, _)) = self.field(usize::MAX)? else { return Ok(None) };
                    if number == 1 {
                        let kind = TypeMeta::deserialize(Value::message(&TYPE_META, &bytes))?;
                        self.table = Some(table_of(&kind, items_of)?);
                    }
                }
            }
        }
    }

    /// The next field's number, its value, and the size of both; none until all of it has come.
    fn field(&mut self, left: usize) -> Result<Option<(u64, BytesMut, usize)>, Error> {
        let Some(Head { number, size, length }) = head(&self.buffer)? else { return Ok(None) };
        let whole = size.saturating_add(length);
        if whole > left || length > PART_BYTES_MAX {
            return Err(Error::custom(format_args!("a part of the list has {length} bytes")));
        }
        if self.buffer.len() < whole {
            return Ok(None);
        }
        let mut field = self.buffer.split_to(whole);
        Ok(Some((number, field.split_off(size), whole)))
    }
}

/// The bytes before a field's value.
struct Head {
    number: u64,
    size: usize,
    length: usize,
}

/// The head of the first field; none until all of it has come.
fn head(bytes: &[u8]) -> Result<Option<Head>, Error> {
    let mut fields = Fields::new(bytes);
    match fields.head() {
        Ok((number, length)) => Ok(Some(Head { number, size: bytes.len() - fields.rest().len(), length })),
        Err(_) if bytes.len() < HEAD_BYTES_MAX => Ok(None),
        Err(error) => Err(error),
    }
}
