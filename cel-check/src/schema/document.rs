//! The apiserver's `/openapi/v3` document of a group version, and what of it a kind needs.
//!
//! Upstream: `ClientDiscoveryResolver`, `staging/src/k8s.io/apiserver/pkg/cel/openapi/resolver/discovery.go`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

const PREFIX: &str = "#/components/schemas/";
/// The definition of which version 3 says only that it is a string or a number. Upstream resolves built-in kinds from its
/// own definitions, in which it is a string.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// A kind's schema, and those that it refers to.
#[derive(Debug)]
pub struct Definitions {
    root: Schema,
    /// By their name in the document.
    schemas: BTreeMap<String, Schema>,
}

impl<'a> Document<'a> {
    /// Splits a document into the texts of its schemas.
    pub fn read(text: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }

    /// What the document says about a kind; none if it does not know the kind, or refers to what it lacks.
    pub fn definitions(&self, group: &str, version: &str, kind: &str) -> serde_json::Result<Option<Definitions>> {
        let Components { schemas: texts } = &self.components;
        let mut name = None;
        for (candidate, text) in texts {
            let Kinds { kinds } = serde_json::from_str(text.get())?;
            if kinds.iter().any(|of| of.group == group && of.version == version && of.kind == kind) {
                name = Some(candidate.to_string());
                break;
            }
        }
        let Some(name) = name else { return Ok(None) };
        let mut schemas = BTreeMap::new();
        let mut wanted = vec![name.clone()];
        while let Some(name) = wanted.pop() {
            if schemas.contains_key(&name) {
                continue;
            }
            let Some(text) = texts.get(&*name) else { return Ok(None) };
            let mut schema: Schema = serde_json::from_str(text.get())?;
            if name == QUANTITY {
                schema.types = Types::of("string");
            }
            schema.each_reference(&mut |reference| wanted.push(name_of(reference).to_owned()));
            schemas.insert(name, schema);
        }
        let root = Schema { reference: Some(format!("{PREFIX}{name}")), ..Schema::default() };
        Ok(Some(Definitions { root, schemas }))
    }
}

impl Definitions {
    /// A schema that refers to nothing.
    pub fn of(schema: &[u8]) -> serde_json::Result<Self> {
        Ok(Self { root: serde_json::from_slice(schema)?, schemas: BTreeMap::new() })
    }

    pub(super) fn root(&self) -> &Schema {
        &self.root
    }

    pub(super) fn get(&self, reference: &str) -> Option<&Schema> {
        self.schemas.get(name_of(reference))
    }
}

fn name_of(reference: &str) -> &str {
    reference.strip_prefix(PREFIX).unwrap_or(reference)
}

/// The document of a group version, each schema as its text until a kind needs it.
#[derive(Deserialize)]
pub struct Document<'a> {
    #[serde(borrow)]
    components: Components<'a>,
}

#[derive(Deserialize)]
struct Components<'a> {
    #[serde(borrow)]
    schemas: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Deserialize)]
struct Kinds {
    #[serde(rename = "x-kubernetes-group-version-kind", default)]
    kinds: Vec<GroupVersionKind>,
}

#[derive(Deserialize)]
struct GroupVersionKind {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
}

/// The fields of a schema that decide about types.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Schema {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(deserialize_with = "or_default")]
    all_of: Vec<Self>,
    #[serde(rename = "type", deserialize_with = "or_default")]
    types: Types,
    #[serde(deserialize_with = "or_default")]
    pub(super) format: String,
    #[serde(deserialize_with = "if_schema")]
    pub(super) items: Option<Box<Self>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) properties: BTreeMap<String, Self>,
    #[serde(deserialize_with = "if_schema")]
    pub(super) additional_properties: Option<Box<Self>>,
    #[serde(rename = "x-kubernetes-int-or-string", deserialize_with = "or_default")]
    is_int_or_string: bool,
    #[serde(rename = "x-kubernetes-embedded-resource", deserialize_with = "or_default")]
    pub(super) is_embedded_resource: bool,
}

/// A type, or a list of them, of which the first counts.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Types {
    One(String),
    Several(Vec<String>),
}

impl Types {
    fn of(name: &str) -> Self {
        Self::One(name.to_owned())
    }

    fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

impl Default for Types {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Schema {
    pub(super) fn of<const N: usize>(type_name: &str, properties: [(&str, Self); N]) -> Self {
        let properties = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        Self { types: Types::of(type_name), properties, ..Self::default() }
    }

    pub(super) fn type_name(&self) -> &str {
        self.types.names().first().map_or("", String::as_str)
    }

    pub(super) fn has_type(&self, name: &str) -> bool {
        self.types.names().iter().any(|of| of == name)
    }

    /// Built-in kinds say it by the format, custom ones by the extension.
    pub(super) fn is_int_or_string(&self) -> bool {
        self.is_int_or_string || self.format == "int-or-string"
    }

    /// The reference that stands for the whole schema, maybe wrapped so that it can have a description.
    ///
    /// Upstream: `refOf`.
    pub(super) fn reference(&self) -> Option<&str> {
        self.reference.as_deref().or_else(|| self.all_of.iter().find_map(Self::reference))
    }

    /// Each reference that [`super::Reader`] may follow.
    fn each_reference(&self, emit: &mut impl FnMut(&str)) {
        if let Some(reference) = self.reference() {
            emit(reference);
            return;
        }
        let parts = self.properties.values().chain(self.items.as_deref()).chain(self.additional_properties.as_deref());
        parts.for_each(|part| part.each_reference(emit));
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A schema; none if something else is there, such as `true`.
fn if_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Schema>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Maybe {
        Schema(Box<Schema>),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Maybe::deserialize(deserializer)? {
        Maybe::Schema(schema) => Some(schema),
        Maybe::Other(_) => None,
    })
}
