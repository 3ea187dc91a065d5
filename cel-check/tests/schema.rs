//! Documents of `/openapi/v3`, and what of them expressions see.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use cel_check::{Budget, Definitions, Document, Environment, Expression, SchemaType, Verdict};

const DOCUMENT: &str = r##"{"openapi": "3.0.0", "paths": {"/a": {}}, "components": {"schemas": {
  "io.k8s.api.core.v1.Pod": {
    "description": "a pod", "type": "object",
    "x-kubernetes-group-version-kind": [{"group": "", "kind": "Pod", "version": "v1"}],
    "properties": {
      "apiVersion": {"type": "string"},
      "kind": {"type": "string"},
      "metadata": {"allOf": [{"$ref": "#/components/schemas/ObjectMeta"}], "default": {}, "description": "its metadata"},
      "spec": {"allOf": [{"$ref": "#/components/schemas/PodSpec"}], "default": {}},
      "self": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"},
      "selves": {"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"}}
    }
  },
  "ObjectMeta": {"type": "object", "properties": {
    "name": {"type": "string"}, "generateName": {"type": "string"},
    "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}}
  }},
  "PodSpec": {"type": "object", "properties": {
    "limits": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}},
    "port": {"$ref": "#/components/schemas/IntOrString"},
    "alias": {"$ref": "#/components/schemas/Alias"}
  }},
  "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
  "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
  "Alias": {"$ref": "#/components/schemas/ObjectMeta"},
  "Broken": {
    "type": "object", "x-kubernetes-group-version-kind": [{"group": "g", "kind": "Broken", "version": "v1"}],
    "properties": {"a": {"$ref": "#/components/schemas/Nothing"}}
  },
  "Bare": {
    "type": "object", "x-kubernetes-group-version-kind": [
      {"group": "g", "kind": "Other", "version": "v1"}, {"group": "g", "kind": "Bare", "version": "v1"}
    ]
  },
  "Any": {"x-kubernetes-group-version-kind": [{"group": "g", "kind": "Any", "version": "v1"}]},
  "Strings": {"type": "array", "items": {"type": "string"}, "x-kubernetes-group-version-kind": [{"group": "g", "kind": "Strings", "version": "v1"}]}
}}}"##;

fn read(group: &str, kind: &str) -> Option<Definitions> {
    Document::read(DOCUMENT.as_bytes()).unwrap().definitions(group, "v1", kind).unwrap()
}

/// The type of an expression, or its first error.
fn check(group: &str, kind: &str, expression: &str) -> String {
    let object = SchemaType::new("Kind0", Arc::new(read(group, kind).unwrap())).unwrap();
    let environment = Environment::policy().schema(&["object"], &object);
    match Expression::parse(expression).unwrap().check(&environment, &mut Budget::of(100_000)).unwrap() {
        Verdict::Valid(of) => of.to_string(),
        Verdict::Invalid(errors) => errors.lines().next().unwrap().to_owned(),
    }
}

#[test]
fn fields_behind_references_have_their_types() {
    let rows = [
        ("object.metadata.labels['a']", "string"),
        ("object.metadata.annotations", "ERROR: <input>:1:16: undefined field 'annotations'"),
        ("object.spec", "Kind0.spec"),
        ("object.spec.limits", "map(string, string)"),
        ("object.spec.limits['cpu'] == '1'", "bool"),
        ("object.spec.port", "dyn"),
        ("object.self", "Kind0.self"),
        ("object.self.spec", "ERROR: <input>:1:12: undefined field 'spec'"),
        ("object.selves", "list(Kind0.selves.@idx)"),
        ("object.selves[0].spec", "ERROR: <input>:1:17: undefined field 'spec'"),
        // A reference to a reference is not followed.
        ("object.spec.alias", "ERROR: <input>:1:12: undefined field 'alias'"),
        ("object.status", "ERROR: <input>:1:7: undefined field 'status'"),
    ];
    for (expression, expected) in rows {
        assert_eq!(check("", "Pod", expression), expected, "{expression}");
    }
}

#[test]
fn a_kind_is_found_by_its_group_version_and_kind() {
    assert!(read("", "Pod").is_some());
    assert!(read("apps", "Pod").is_none());
    assert!(read("", "Node").is_none());
    assert_eq!(check("g", "Bare", "object.metadata.name"), "string");
    assert_eq!(check("g", "Bare", "object.spec"), "ERROR: <input>:1:7: undefined field 'spec'");
}

#[test]
fn a_kind_that_refers_to_what_its_document_lacks_is_unknown() {
    assert!(read("g", "Broken").is_none());
}

#[test]
fn objects_without_a_type_may_be_anything() {
    assert_eq!(check("g", "Any", "object.a.b[1] == 'c'"), "bool");
    assert_eq!(check("g", "Any", "object"), "dyn");
}

#[test]
fn the_root_may_be_another_type_than_an_object() {
    assert_eq!(check("g", "Strings", "object"), "list(string)");
}

#[test]
fn what_is_no_document_is_an_error() {
    for document in ["", "{}", "[]", r#"{"components": {}}"#, r#"{"components": {"schemas": {"A": 1}}}"#] {
        let read = Document::read(document.as_bytes()).and_then(|read| read.definitions("", "v1", "Pod"));
        assert!(read.is_err(), "{document}");
    }
}
