//! What an expression may refer to: variables, and the fields of their objects.

use std::collections::BTreeMap;

use crate::declarations::KUBERNETES;
use crate::names::is_keyword;
use crate::schema::SchemaType;
use crate::types::Type;
use crate::undecided::{Budget, Undecided};

/// The variables and objects of one expression, beside Kubernetes' functions.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, Type>,
    objects: BTreeMap<String, BTreeMap<String, Type>>,
    schemas: Vec<SchemaType>,
}

/// What is known about a field of an object.
#[derive(Debug)]
pub(crate) enum Field {
    Of(Type),
    Undefined,
    /// The object's type is one without fields, such as `kubernetes.Quantity`.
    NoObject,
}

impl Environment {
    /// What each policy can refer to, beside its objects and parameters.
    ///
    /// Upstream: `buildEnvSet`, `staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go`;
    /// `BuildRequestType` and `BuildNamespaceType`, `plugin/cel/compile.go`.
    pub fn policy() -> Self {
        let strings = |names: &'static [&'static str]| names.iter().map(|name| (*name, Type::String));
        let string_list = || Type::list(Type::String);
        Self::default()
            .object("kubernetes.GroupVersionKind", strings(&["group", "version", "kind"]))
            .object("kubernetes.GroupVersionResource", strings(&["group", "version", "resource"]))
            .object(
                "kubernetes.UserInfo",
                strings(&["username", "uid"])
                    .chain([("groups", string_list()), ("extra", Type::map(Type::String, string_list()))]),
            )
            .object(
                "kubernetes.AdmissionRequest",
                strings(&["subResource", "requestSubResource", "name", "namespace", "operation"]).chain([
                    ("kind", Type::object("kubernetes.GroupVersionKind")),
                    ("resource", Type::object("kubernetes.GroupVersionResource")),
                    ("requestKind", Type::object("kubernetes.GroupVersionKind")),
                    ("requestResource", Type::object("kubernetes.GroupVersionResource")),
                    ("userInfo", Type::object("kubernetes.UserInfo")),
                    ("dryRun", Type::Bool),
                    ("options", Type::Dyn),
                ]),
            )
            .variable("request", Type::object("kubernetes.AdmissionRequest"))
            .namespace()
            .variable("authorizer", Type::object("kubernetes.authorization.Authorizer"))
    }

    fn namespace(self) -> Self {
        let strings = |names: &'static [&'static str]| names.iter().map(|name| (*name, Type::String));
        let string_map = || Type::map(Type::String, Type::String);
        self.object("kubernetes.NamespaceSpec", [("finalizers", Type::list(Type::String))])
            .object(
                "kubernetes.NamespaceCondition",
                strings(&["status", "type", "message", "reason"]).chain([("lastTransitionTime", Type::Timestamp)]),
            )
            .object(
                "kubernetes.NamespaceStatus",
                strings(&["phase"]).chain([("conditions", Type::list(Type::object("kubernetes.NamespaceCondition")))]),
            )
            .object(
                "kubernetes.NamespaceMetadata",
                strings(&["name", "generateName", "namespace", "UID", "resourceVersion"]).chain([
                    ("labels", string_map()),
                    ("annotations", string_map()),
                    ("creationTimestamp", Type::Timestamp),
                    ("deletionGracePeriodSeconds", Type::Int),
                    ("deletionTimestamp", Type::Timestamp),
                    ("generation", Type::Int),
                    ("finalizers", Type::list(Type::String)),
                ]),
            )
            .object(
                "kubernetes.Namespace",
                [
                    ("metadata", Type::object("kubernetes.NamespaceMetadata")),
                    ("spec", Type::object("kubernetes.NamespaceSpec")),
                    ("status", Type::object("kubernetes.NamespaceStatus")),
                ],
            )
            .variable("namespaceObject", Type::object("kubernetes.Namespace"))
    }

    #[must_use]
    pub fn variable(mut self, name: &str, of: Type) -> Self {
        self.variables.insert(name.to_owned(), of);
        self
    }

    /// An object type with fixed fields.
    #[must_use]
    pub fn object<'a>(mut self, name: &str, fields: impl IntoIterator<Item = (&'a str, Type)>) -> Self {
        let fields = fields.into_iter().map(|(field, of)| (field.to_owned(), of)).collect();
        self.objects.insert(name.to_owned(), fields);
        self
    }

    /// A variable of a schema's type.
    #[must_use]
    pub fn schema(mut self, variables: &[&str], schema: &SchemaType) -> Self {
        for variable in variables {
            self = self.variable(variable, schema.root());
        }
        self.schemas.push(schema.clone());
        self
    }

    /// Adds a field to an object type, or replaces it.
    pub fn set_field(&mut self, object: &str, field: &str, of: Type) {
        self.objects.entry(object.to_owned()).or_default().insert(field.to_owned(), of);
    }

    /// The type of a name that no macro has declared.
    ///
    /// Upstream: `LookupIdent`, `checker/env.go` of cel-go.
    pub(crate) fn identifier(&self, name: &str) -> Result<Option<Type>, Undecided> {
        if let Some(known) = self.variables.get(name).or_else(|| KUBERNETES.type_named(name)) {
            return Ok(Some(known.clone()));
        }
        match name {
            // Upstream's `findScalar` knows these by a name of their own.
            "duration" => return Ok(Some(Type::type_of(Type::Duration))),
            "timestamp" => return Ok(Some(Type::type_of(Type::Timestamp))),
            _ => {}
        }
        // Messages and enums of protocol buffers, and the names of the hand-written types.
        let is_message = name.starts_with("google.") || name.starts_with("kubernetes.");
        if is_message { Err(Undecided::Protobuf) } else { Ok(None) }
    }

    pub(crate) fn field(&self, object: &str, field: &str, budget: &mut Budget) -> Result<Field, Undecided> {
        let with_keyword = is_keyword(field).then(|| format!("__{field}__"));
        let names = [Some(field), with_keyword.as_deref()];
        if let Some(fields) = self.objects.get(object) {
            let known = names.into_iter().flatten().find_map(|name| fields.get(name));
            return Ok(known.map_or(Field::Undefined, |of| Field::Of(of.clone())));
        }
        let Some(schema) = self.schemas.iter().find(|schema| schema.knows(object)) else { return Ok(Field::NoObject) };
        for name in names.into_iter().flatten() {
            if let Some(of) = schema.field(object, name, budget)? {
                return Ok(Field::Of(of));
            }
        }
        Ok(Field::Undefined)
    }
}
