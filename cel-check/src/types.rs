//! The types of expressions, and their text in messages.
//!
//! Upstream: cel-go's `common/types/types.go` and `checker/format.go`.

use std::fmt;
use std::sync::Arc;

/// A type. Equal types are what cel-go calls exactly the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Any,
    Bool,
    Bytes,
    Double,
    Duration,
    /// Known when the expression is evaluated. It suits everywhere.
    Dyn,
    /// Of an expression with an error, which has been reported; suits everywhere too.
    Error,
    Int,
    Null,
    String,
    Timestamp,
    Uint,
    List(Arc<Self>),
    Map(Arc<(Self, Self)>),
    /// The type of a type, of which one where it is known.
    Type(Option<Arc<Self>>),
    /// An object with named fields; the environment knows which.
    Object(Arc<str>),
    /// A type without fields, such as `optional_type(int)`.
    Opaque(Arc<str>, Arc<[Self]>),
    /// A parameter of a declared function, such as the `A` of `list(A)`.
    Parameter(Arc<str>),
    /// A parameter of one use of a function, to which the checker assigns a type.
    Variable(u32),
}

const OPTIONAL: &str = "optional_type";

impl Type {
    pub fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    pub fn type_of(of: Self) -> Self {
        Self::Type(Some(Arc::new(of)))
    }

    pub fn object(name: &str) -> Self {
        Self::Object(name.into())
    }

    pub fn optional(of: Self) -> Self {
        Self::Opaque(OPTIONAL.into(), [of].into())
    }

    /// The type within an optional one.
    pub(crate) fn within_optional(&self) -> Option<&Self> {
        if let Self::Opaque(name, parameters) = self
            && **name == *OPTIONAL
        {
            parameters.first()
        } else {
            None
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || *self == Self::Error
    }

    /// Whether `null` may be assigned to it.
    ///
    /// Upstream: `internalIsAssignableNull`.
    pub(crate) fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Opaque(..) | Self::Object(_) | Self::Any | Self::Dyn | Self::Duration | Self::Timestamp | Self::Null
        )
    }

    /// The types that it consists of.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Self> {
        let (one, two, more): (Option<&Self>, Option<&Self>, &[Self]) = match self {
            Self::List(element) => (Some(&**element), None, &[]),
            Self::Type(of) => (of.as_deref(), None, &[]),
            Self::Map(entry) => (Some(&entry.0), Some(&entry.1), &[]),
            Self::Opaque(_, parameters) => (None, None, &**parameters),
            Self::Any
            | Self::Bool
            | Self::Bytes
            | Self::Double
            | Self::Duration
            | Self::Dyn
            | Self::Error
            | Self::Int
            | Self::Null
            | Self::String
            | Self::Timestamp
            | Self::Uint
            | Self::Object(_)
            | Self::Parameter(_)
            | Self::Variable(_) => (None, None, &[]),
        };
        one.into_iter().chain(two).chain(more)
    }

    /// The same type with other parts.
    pub(crate) fn with_parts<E>(&self, mut other: impl FnMut(&Self) -> Result<Self, E>) -> Result<Self, E> {
        Ok(if let Self::List(element) = self {
            Self::list(other(element)?)
        } else if let Self::Map(entry) = self {
            Self::map(other(&entry.0)?, other(&entry.1)?)
        } else if let Self::Type(Some(of)) = self {
            Self::type_of(other(of)?)
        } else if let Self::Opaque(name, parameters) = self {
            Self::Opaque(name.clone(), parameters.iter().map(other).collect::<Result<_, _>>()?)
        } else {
            self.clone()
        })
    }

    /// How many types it consists of, at most `limit`: parts may be shared, so there can be more than memory holds.
    pub(crate) fn weight(&self, limit: usize) -> usize {
        let mut weight = 1;
        for part in self.parts() {
            if weight >= limit {
                break;
            }
            weight += part.weight(limit - weight);
        }
        weight
    }

    /// The name without parameters, as it is when an expression runs.
    ///
    /// Upstream: `TypeName`.
    pub(crate) fn runtime_name(&self) -> &str {
        match self {
            Self::Any => "google.protobuf.Any",
            Self::Bool => "bool",
            Self::Bytes => "bytes",
            Self::Double => "double",
            Self::Duration => "google.protobuf.Duration",
            Self::Dyn | Self::Variable(_) => "dyn",
            Self::Error => "error",
            Self::Int => "int",
            Self::Null => "null_type",
            Self::String => "string",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Uint => "uint",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Object(name) | Self::Opaque(name, _) | Self::Parameter(name) => name,
        }
    }
}

/// Upstream: `FormatCELType`, `checker/format.go`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = match self {
            Self::Any => "any",
            Self::Duration => "duration",
            Self::Error => "!error!",
            Self::Null => "null",
            Self::Timestamp => "timestamp",
            Self::Variable(number) => return write!(f, "_var{number}"),
            Self::Bool
            | Self::Bytes
            | Self::Double
            | Self::Dyn
            | Self::Int
            | Self::String
            | Self::Uint
            | Self::List(_)
            | Self::Map(_)
            | Self::Type(_)
            | Self::Object(_)
            | Self::Opaque(..)
            | Self::Parameter(_) => self.runtime_name(),
        };
        f.write_str(short)?;
        let mut separator = "(";
        for part in self.parts() {
            write!(f, "{separator}{part}")?;
            separator = ", ";
        }
        f.write_str(if separator == "(" { "" } else { ")" })
    }
}
