//! A value on the wire as a serde `Deserializer`: to a view it is what the apiserver's JSON has in its place.
//!
//! Left out: fields in several parts, which a reader would have to join. Go never writes them; here they are an error.

use std::borrow::Cow;

use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};
use serde_json::Error;

use super::fields::{Fields, Wire};
use super::tables::{Kind, Table};
use crate::api::time::Time;

/// One value, not read yet.
#[derive(Clone, Copy)]
pub struct Value<'a>(Content<'a>);

#[derive(Clone, Copy)]
enum Content<'a> {
    Bool(bool),
    Int(i64),
    Text(&'a [u8]),
    Time(&'a [u8]),
    Message(&'static Table, &'a [u8]),
    List(&'static Kind, Run<'a>),
    Map(Run<'a>),
}

/// The fields of one number that follow each other, from the first on.
#[derive(Clone, Copy)]
struct Run<'a> {
    number: u64,
    fields: Fields<'a>,
}

impl<'a> Run<'a> {
    fn next(&mut self) -> Result<Option<Wire<'a>>, Error> {
        let next = self.fields.next()?;
        Ok(next.and_then(|(number, wire)| (number == self.number).then_some(wire)))
    }
}

impl<'a> Value<'a> {
    pub(crate) const fn message(table: &'static Table, bytes: &'a [u8]) -> Self {
        Self(Content::Message(table, bytes))
    }

    fn single(kind: &'static Kind, wire: Wire<'a>) -> Result<Self, Error> {
        Ok(Self(match (kind, wire) {
            (Kind::Bool, Wire::Number(number)) => Content::Bool(number != 0),
            (Kind::Int, Wire::Number(number)) => Content::Int(number.cast_signed()),
            (Kind::Text, Wire::Bytes(bytes)) => Content::Text(bytes),
            (Kind::Time, Wire::Bytes(bytes)) => Content::Time(bytes),
            (Kind::Message(table), Wire::Bytes(bytes)) => Content::Message(table, bytes),
            _ => return Err(Error::custom(format_args!("the wire has something else than {kind:?}"))),
        }))
    }

    const fn is_zero(self) -> bool {
        matches!(self.0, Content::Bool(false) | Content::Int(0) | Content::Text([]) | Content::Time([]))
    }
}

/// Go's JSON replaces what is no UTF-8, too.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// `seconds`; the API's times have no parts of seconds.
fn time(bytes: &[u8]) -> Result<String, Error> {
    let (mut fields, mut second) = (Fields::new(bytes), 0);
    while let Some(field) = fields.next()? {
        if let (1, Wire::Number(number)) = field {
            second = number.cast_signed();
        }
    }
    Ok(Time::from_second(second).to_string())
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Content::Bool(value) => visitor.visit_bool(value),
            Content::Int(value) => visitor.visit_i64(value),
            Content::Text(bytes) => match text(bytes) {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            Content::Time([]) => visitor.visit_unit(),
            Content::Time(bytes) => visitor.visit_string(time(bytes)?),
            Content::Message(table, bytes) => visitor.visit_map(Message::new(table, bytes)),
            Content::List(kind, run) => visitor.visit_seq(Items { kind, run }),
            Content::Map(run) => visitor.visit_map(Entries { run, value: &[] }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Content::Time([]) = self.0 { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Content::Message(table, _) = self.0
            && let Some(field) = fields.iter().find(|field| !table.has(field))
        {
            return Err(Error::custom(format_args!(
                "{name} reads {field}, which is not in the table of {}",
                table.name
            )));
        }
        self.deserialize_any(visitor)
    }

    /// A message has to be read as a struct, which names its fields; one that flattens another does not.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Content::Message(table, _) = self.0 {
            return Err(Error::custom(format_args!("{} is read as a map", table.name)));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Content::Text(bytes) = self.0 else { return Err(Error::custom(format_args!("{name} is a text"))) };
        visitor.visit_enum(CowStrDeserializer::new(text(bytes)))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// Where it ends is known without looking into it.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct identifier
    }
}

struct Message<'a> {
    table: &'static Table,
    fields: Fields<'a>,
    seen: u64,
    /// The number of the list or map that is passed over; what it has is in the run.
    run: u64,
    /// A message whose fields belong to this one.
    inlined: Option<Box<Self>>,
    value: Value<'a>,
}

impl<'a> Message<'a> {
    const fn new(table: &'static Table, bytes: &'a [u8]) -> Self {
        let (fields, value) = (Fields::new(bytes), Value(Content::Text(&[])));
        Self { table, fields, seen: 0, run: 0, inlined: None, value }
    }

    /// The next field that JSON would have, and its name.
    fn next(&mut self) -> Result<Option<(&'static str, Value<'a>)>, Error> {
        loop {
            if let Some(inlined) = &mut self.inlined {
                if let Some(field) = inlined.next()? {
                    return Ok(Some(field));
                }
                self.inlined = None;
            }
            let from_here = self.fields;
            let Some((number, wire)) = self.fields.next()? else { return Ok(None) };
            let mut rows = self.table.rows.iter().enumerate();
            if number == self.run {
                continue;
            }
            self.run = 0;
            let Some((at, row)) = rows.find(|(_, row)| row.number == number) else { continue };
            let (seen, run) = (1 << at, Run { number, fields: from_here });
            if self.seen & seen != 0 {
                return Err(Error::custom(format_args!("{} comes in parts", row.name)));
            }
            self.seen |= seen;
            let value = match &row.kind {
                Kind::List(kind) => Value(Content::List(kind, run)),
                Kind::Map => Value(Content::Map(run)),
                Kind::Inline(table) => {
                    let Wire::Bytes(bytes) = wire else {
                        return Err(Error::custom(format_args!("{} is no message", row.name)));
                    };
                    self.inlined = Some(Box::new(Self::new(table, bytes)));
                    continue;
                }
                single @ (Kind::Bool | Kind::Int | Kind::Text | Kind::Time | Kind::Message(_)) => {
                    Value::single(single, wire)?
                }
            };
            if let Content::List(..) | Content::Map(_) = value.0 {
                self.run = number;
            }
            if !(row.omits_zero && value.is_zero()) {
                return Ok(Some((row.name, value)));
            }
        }
    }
}

impl<'de> MapAccess<'de> for Message<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.next()? else { return Ok(None) };
        self.value = value;
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.value)
    }
}

struct Items<'a> {
    kind: &'static Kind,
    run: Run<'a>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(wire) = self.run.next()? else { return Ok(None) };
        seed.deserialize(Value::single(self.kind, wire)?).map(Some)
    }
}

struct Entries<'a> {
    run: Run<'a>,
    value: &'a [u8],
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(wire) = self.run.next()? else { return Ok(None) };
        let Wire::Bytes(entry) = wire else { return Err(Error::custom("an entry of a map is no message")) };
        let (mut fields, mut key) = (Fields::new(entry), &[][..]);
        self.value = &[];
        while let Some(field) = fields.next()? {
            match field {
                (1, Wire::Bytes(bytes)) => key = bytes,
                (2, Wire::Bytes(bytes)) => self.value = bytes,
                _ => {}
            }
        }
        seed.deserialize(Value(Content::Text(key))).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Value(Content::Text(self.value)))
    }
}
