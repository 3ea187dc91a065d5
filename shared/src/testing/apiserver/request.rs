//! A request, decoded: its verb as RBAC has it, the object or collection, selectors, and the form of the answer.
//!
//! Left out: impersonation, dry runs, and every query parameter that no controller sends.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use serde_json::{Value, json};

use super::filter::Filter;
use super::store::{Refusal, text};
use crate::api::resource::Resource;

/// The subresource of a pod that is created to delete it.
pub(super) const EVICTION: &str = "eviction";

/// One request.
pub(super) struct Call {
    pub(super) verb: &'static str,
    pub(super) resource: Resource,
    pub(super) subresource: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) filter: Filter,
    pub(super) query: BTreeMap<String, String>,
    pub(super) metadata_only: bool,
    /// Whether protobuf comes first of the forms that are asked for.
    pub(super) is_for_protobuf: bool,
    pub(super) content_type: String,
    pub(super) body: Value,
}

impl Call {
    /// Reads a request; none where nothing is served at its path.
    pub(super) fn read(head: &Parts, body: &Bytes, served: &[Resource]) -> Option<Self> {
        let segments: Vec<String> = head.uri.path().split('/').skip(1).map(decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match &*segments {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            _ => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", ""),
            [plural, name] => (*plural, *name, ""),
            [plural, name, subresource] => (*plural, *name, *subresource),
            _ => return None,
        };
        let is_asked = |found: &&Resource| found.group == group && found.version == version && found.plural == plural;
        let resource = served.iter().find(is_asked)?.clone();
        let query: BTreeMap<String, String> = head
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), decode(value)))
            .collect();
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Some(Self {
            verb: verb(head.method.as_str(), (name, subresource), &query)?,
            filter: Filter::read(namespace, &query),
            resource,
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            query,
            metadata_only: header(ACCEPT).contains("as=PartialObjectMetadata"),
            is_for_protobuf: header(ACCEPT).starts_with("application/vnd.kubernetes.protobuf"),
            content_type: header(CONTENT_TYPE).to_owned(),
            body: serde_json::from_slice(body).unwrap_or_default(),
        })
    }

    /// `pods` or `pods/status`, as in RBAC rules.
    pub(super) fn target(&self) -> String {
        match &*self.subresource {
            "" => self.resource.plural.to_string(),
            subresource => format!("{}/{subresource}", self.resource.plural),
        }
    }

    /// Whether it changes something, Events and Leases aside.
    pub(super) fn is_write(&self) -> bool {
        let plural = &*self.resource.plural;
        !matches!(self.verb, "get" | "list" | "watch")
            && !matches!(plural, "events" | "leases" | "subjectaccessreviews")
    }

    /// The form of an object in the answer.
    pub(super) fn shown(&self, object: &Value) -> Value {
        if self.metadata_only { metadata_only(object) } else { object.clone() }
    }

    pub(super) fn refusal(&self, code: u16, reason: &str, message: &str) -> Refusal {
        Refusal::new(&self.resource, &self.name, code, reason, message)
    }
}

/// `create pods default/web-`: of an object without a name its `generateName`.
impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of_body = |pointer| Some(text(&self.body, pointer)).filter(|name| !name.is_empty());
        let sent = || of_body("/metadata/name").or(of_body("/metadata/generateName")).unwrap_or_default();
        let name = if self.verb == "create" { sent() } else { &self.name };
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        let line = format!("{} {} {}{slash}{name}", self.verb, self.target(), self.namespace);
        f.write_str(line.trim_end())
    }
}

pub(super) fn metadata_only(object: &Value) -> Value {
    json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"] })
}

fn verb(method: &str, (name, subresource): (&str, &str), query: &BTreeMap<String, String>) -> Option<&'static str> {
    Some(match (method, name) {
        ("GET", "") if query.contains_key("watch") => "watch",
        ("GET", "") => "list",
        ("GET", _) => "get",
        ("POST", "") => "create",
        ("POST", _) if subresource == EVICTION => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", "") => "deletecollection",
        ("DELETE", _) => "delete",
        _ => return None,
    })
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = (*first == b'%').then(|| after.get(..2)).flatten();
        let decoded = digits.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
