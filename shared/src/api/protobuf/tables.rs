//! Numbers of the fields that views read, written by `make protobuf`. Other fields are skipped.

#[rustfmt::skip]
mod generated;

use self::Kind::{Inline, Text};
#[cfg(test)]
pub(crate) use self::generated::PARTIAL_OBJECT_METADATA;
pub(crate) use self::generated::{KINDS, LIST_META, TYPE_META};
#[cfg(any(test, feature = "testing"))]
pub(crate) use self::generated::{POD, STATUS};
use crate::api::resource::Resource;

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) rows: &'static [Row],
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) number: u64,
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether JSON omits it if it is zero. The wire has every Go field that is not a pointer.
    pub(crate) omits_zero: bool,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Bool,
    Int,
    Text,
    /// `metav1.Time`; nothing where it is zero.
    Time,
    Map,
    Message(&'static Table),
    /// A message whose fields JSON has among those of the message around it.
    Inline(&'static Table),
    List(&'static Self),
}

impl Table {
    /// Whether JSON may have a field of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.rows.iter().any(|row| if let Inline(inner) = &row.kind { inner.has(name) } else { row.name == name })
    }
}

/// A field that JSON has whenever the wire has it.
const fn field(number: u64, name: &'static str, kind: Kind) -> Row {
    Row { number, name, kind, omits_zero: false }
}

/// A field that JSON omits if it is zero.
const fn omitted(number: u64, name: &'static str, kind: Kind) -> Row {
    Row { number, name, kind, omits_zero: true }
}

/// A field that a view reads for another message's sake, and this one has not: it has a number that no wire can have.
const fn absent(name: &'static str) -> Row {
    field(ABSENT, name, Text)
}

pub(crate) const ABSENT: u64 = u64::MAX;

const fn table(name: &'static str, rows: &'static [Row]) -> Table {
    Table { name, rows }
}

/// Whether whole objects of this resource can be read. Their metadata can, whatever the resource.
pub(crate) fn has_table_of(resource: &Resource) -> bool {
    object_of(&resource.api_version(), &resource.kind).is_some()
}

pub(crate) fn object_of(api_version: &str, kind: &str) -> Option<&'static Table> {
    KINDS.iter().find(|(version, name, _)| (*version, *name) == (api_version, kind)).map(|(.., table)| *table)
}

pub(crate) fn items_of(api_version: &str, kind: &str) -> Option<&'static Table> {
    object_of(api_version, kind.strip_suffix("List")?)
}
