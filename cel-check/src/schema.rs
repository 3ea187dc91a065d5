//! OpenAPI v3 schemas as types. An object's type is named after its path, such as `Deployment0.spec.template`, and its
//! fields are looked up when an expression asks for them; so a schema that refers to itself needs no more than its text.
//!
//! Upstream: `SchemaDeclType`, `staging/src/k8s.io/apiserver/pkg/cel/common/schemas.go`; `MaybeAssignTypeName`, `types.go`;
//! `PopulateRefs`, `openapi/resolver/refs.go`.

mod document;

use std::sync::{Arc, LazyLock};

use document::Schema;
pub use document::{Definitions, Document};

use crate::names::escape;
use crate::types::Type;
use crate::undecided::{Budget, Undecided};

/// How many schemas may be nested between a kind and a field.
const MAX_DEPTH: usize = 200;
/// How long the name of a type may be, in bytes.
const MAX_NAME: usize = 4_096;
/// The elements of a list, in the name of a type.
const ELEMENT: &str = "@idx";
/// The values of a map.
const VALUE: &str = "@elem";

/// The type of a kind's objects.
#[derive(Clone, Debug)]
pub struct SchemaType {
    name: Arc<str>,
    definitions: Arc<Definitions>,
    root: Type,
}

impl SchemaType {
    /// The type of the root of some definitions, under a name that no other type of the environment has. It is dyn if the
    /// schema says nothing that an expression could rely on.
    pub fn new(name: &str, definitions: Arc<Definitions>) -> Result<Self, Undecided> {
        let reader = Reader { definitions: &definitions };
        let root = reader.type_of(At { schema: definitions.root(), is_root: true }, &mut Vec::new(), name)?;
        Ok(Self { name: name.into(), root: root.unwrap_or(Type::Dyn), definitions })
    }

    pub fn root(&self) -> Type {
        self.root.clone()
    }

    pub(crate) fn knows(&self, object: &str) -> bool {
        object.strip_prefix(&*self.name).is_some_and(|path| path.is_empty() || path.starts_with('.'))
    }

    /// The type of a field of one of its objects, if there is such a field.
    pub(crate) fn field(&self, object: &str, field: &str, budget: &mut Budget) -> Result<Option<Type>, Undecided> {
        let reader = Reader { definitions: &self.definitions };
        let mut at = At { schema: self.definitions.root(), is_root: true };
        let mut visited = Vec::new();
        let path = object.strip_prefix(&*self.name).unwrap_or_default();
        for segment in path.split('.').skip(1) {
            let resolved = reader.resolve(at, &mut visited);
            let next = match segment {
                ELEMENT => resolved.schema.items.as_deref(),
                VALUE => resolved.schema.additional_properties.as_deref(),
                field => reader.property(resolved, field, &visited, budget)?,
            };
            let Some(next) = next else { return Ok(None) };
            at = At { schema: next, is_root: false };
        }
        let resolved = reader.resolve(at, &mut visited);
        match reader.property(resolved, field, &visited, budget)? {
            Some(schema) => reader.type_of(At { schema, is_root: false }, &mut visited, &format!("{object}.{field}")),
            None => Ok(None),
        }
    }
}

/// A schema where it is used.
#[derive(Clone, Copy)]
struct At<'a> {
    schema: &'a Schema,
    /// Whether it is an object with a kind, whose metadata an expression may rely on.
    is_root: bool,
}

struct Reader<'a> {
    definitions: &'a Definitions,
}

impl<'a> Reader<'a> {
    /// The schema that is referred to. `visited` are the references on the way to here; of one that leads back, no more is
    /// known than that it is an object.
    ///
    /// Upstream: `populateRefs`.
    fn resolve(&self, At { schema, is_root }: At<'a>, visited: &mut Vec<&'a str>) -> At<'a> {
        let schema = match schema.reference() {
            Some(reference) if visited.contains(&reference) => &*ANY_OBJECT,
            Some(reference) => {
                visited.push(reference);
                self.definitions.get(reference).unwrap_or(&*NOTHING)
            }
            None => schema,
        };
        At { schema, is_root: is_root || schema.is_embedded_resource }
    }

    /// The type of a schema; none if expressions cannot see it.
    ///
    /// Upstream: `SchemaDeclType`.
    fn type_of(&self, at: At<'a>, visited: &mut Vec<&'a str>, path: &str) -> Result<Option<Type>, Undecided> {
        // Each level adds a reference or a part of the path.
        if visited.len() > MAX_DEPTH || path.len() > MAX_NAME || path.split('.').count() > MAX_DEPTH {
            return Err(Undecided::TooDeep);
        }
        let outer = visited.len();
        let At { schema, is_root: _ } = self.resolve(at, visited);
        let of = self.type_of_resolved(schema, visited, path);
        visited.truncate(outer);
        of
    }

    fn type_of_resolved(
        &self,
        schema: &'a Schema,
        visited: &mut Vec<&'a str>,
        path: &str,
    ) -> Result<Option<Type>, Undecided> {
        if schema.is_int_or_string() {
            return Ok(Some(Type::Dyn));
        }
        Ok(match (schema.type_name(), &*schema.format) {
            ("array", _) => match schema.items.as_deref() {
                Some(items) => self.part(items, visited, path, ELEMENT)?.map(Type::list),
                None => None,
            },
            ("object", _) => match schema.additional_properties.as_deref() {
                Some(values) => self.part(values, visited, path, VALUE)?.map(|value| Type::map(Type::String, value)),
                None => Some(Type::object(path)),
            },
            ("string", "byte") => Some(Type::Bytes),
            ("string", "duration") => Some(Type::Duration),
            ("string", "date" | "date-time") => Some(Type::Timestamp),
            ("string", _) => Some(Type::String),
            ("boolean", _) => Some(Type::Bool),
            ("number", _) => Some(Type::Double),
            ("integer", _) => Some(Type::Int),
            _ => None,
        })
    }

    fn part(
        &self,
        schema: &'a Schema,
        visited: &mut Vec<&'a str>,
        path: &str,
        segment: &str,
    ) -> Result<Option<Type>, Undecided> {
        self.type_of(At { schema, is_root: false }, visited, &format!("{path}.{segment}"))
    }

    /// A property of a resolved schema by the name that it has in expressions.
    fn property(
        &self,
        At { schema, is_root }: At<'a>,
        field: &str,
        visited: &[&'a str],
        budget: &mut Budget,
    ) -> Result<Option<&'a Schema>, Undecided> {
        budget.charge(1)?;
        if is_root && matches!(field, "apiVersion" | "kind" | "metadata") && !self.has_metadata(schema, visited) {
            return Ok(Some(if field == "metadata" { &*METADATA } else { &*STRING }));
        }
        if escape(field).as_deref() == Some(field) {
            return Ok(schema.properties.get(field));
        }
        budget.charge(schema.properties.len())?;
        Ok(schema.properties.iter().find(|(name, _)| escape(name).as_deref() == Some(field)).map(|(_, found)| found))
    }

    /// Whether the schema of an object with a kind describes what each of them has.
    ///
    /// Upstream: `WithTypeAndObjectMeta`.
    fn has_metadata(&self, schema: &'a Schema, visited: &[&'a str]) -> bool {
        let is_string = |of: &'a Schema, name: &str| {
            let found = of.properties.get(name).map(|schema| self.peek(schema, visited));
            found.is_some_and(|found| found.has_type("string"))
        };
        let Some(metadata) = schema.properties.get("metadata") else { return false };
        let mut within = visited.to_vec();
        let metadata = self.resolve(At { schema: metadata, is_root: false }, &mut within).schema;
        is_string(schema, "kind")
            && is_string(schema, "apiVersion")
            && metadata.has_type("object")
            && is_string(metadata, "name")
            && is_string(metadata, "generateName")
    }

    fn peek(&self, schema: &'a Schema, visited: &[&'a str]) -> &'a Schema {
        self.resolve(At { schema, is_root: false }, &mut visited.to_vec()).schema
    }
}

static NOTHING: LazyLock<Schema> = LazyLock::new(Schema::default);
static STRING: LazyLock<Schema> = LazyLock::new(|| Schema::of("string", []));
static ANY_OBJECT: LazyLock<Schema> = LazyLock::new(|| Schema::of("object", []));
static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::of("object", [("name", Schema::of("string", [])), ("generateName", Schema::of("string", []))])
});
