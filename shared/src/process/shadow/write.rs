//! One refused write, as RBAC and people call it.
//!
//! Left out: query parameters, which name only the manager of an apply.

use bytes::Bytes;
use http::{HeaderValue, Method};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::working::control::review::ACCESS_REVIEWS;

/// The resources that review who may do something; they store nothing. `selfsubject…` are kubectl's.
const REVIEWS: [&str; 4] = [
    "/apis/authentication.k8s.io/v1/tokenreviews",
    ACCESS_REVIEWS,
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
];

/// Whether a request may change something that is stored.
pub(super) fn is_write(method: &Method, path: &str) -> bool {
    *method != Method::GET && !(*method == Method::POST && REVIEWS.contains(&path))
}

/// A write without its content: two syncs that want the same of one object have the same target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub(super) verb: &'static str,
    /// `deployments.apps/status`.
    pub(super) resource: String,
    /// `namespace/name`, of a creation under a generated name its prefix, of a collection its namespace.
    pub(super) object: String,
}

/// How the body says what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Merge,
    StrategicMerge,
    Json,
    None,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Write {
    pub(super) target: Target,
    pub(super) object_path: String,
    pub(super) subresource: String,
    pub(super) form: Form,
    pub(super) body: Bytes,
}

impl Write {
    /// Whether it says what an object that is there is to become.
    pub(super) fn changes_an_object(&self) -> bool {
        self.form != Form::None
    }

    pub(super) fn read(method: &Method, path: &str, content_type: Option<&HeaderValue>, body: &Bytes) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let (group, rest) = match &*segments {
            ["api", _version, rest @ ..] => ("", rest),
            ["apis", group, _version, rest @ ..] => (*group, rest),
            other => ("", other),
        };
        let (namespace, rest) = match rest {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            _ => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [] => ("", "", ""),
            [plural] => (*plural, "", ""),
            [plural, name] => (*plural, *name, ""),
            [plural, name, subresource, ..] => (*plural, *name, *subresource),
        };
        let object_path = path.strip_suffix(&format!("/{subresource}")).filter(|_| !subresource.is_empty());
        Self {
            target: Target {
                verb: verb(method, name),
                resource: resource(plural, group, subresource),
                object: if name.is_empty() {
                    unnamed(namespace, &created_name(method, body))
                } else {
                    of(namespace, &percent_decode_str(name).decode_utf8_lossy())
                },
            },
            object_path: object_path.unwrap_or(path).to_owned(),
            subresource: subresource.to_owned(),
            form: form(method, content_type),
            body: body.clone(),
        }
    }
}

fn verb(method: &Method, name: &str) -> &'static str {
    match (method.as_str(), name) {
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", "") => "deletecollection",
        _ => "delete",
    }
}

fn form(method: &Method, content_type: Option<&HeaderValue>) -> Form {
    match (method.as_str(), content_type.and_then(|kind| kind.to_str().ok()).unwrap_or_default()) {
        ("PUT", _) => Form::Whole,
        // Of an apply, too, each field in it replaces the object's, and other fields stay: controllers apply the same
        // fields each time.
        ("PATCH", "application/merge-patch+json" | "application/apply-patch+yaml") => Form::Merge,
        ("PATCH", "application/strategic-merge-patch+json") => Form::StrategicMerge,
        ("PATCH", _) => Form::Json,
        _ => Form::None,
    }
}

fn resource(plural: &str, group: &str, subresource: &str) -> String {
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    let subresource = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
    format!("{plural}{group}{subresource}")
}

fn of(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

fn unnamed(namespace: &str, name: &str) -> String {
    if name.is_empty() { namespace.to_owned() } else { of(namespace, name) }
}

fn created_name(method: &Method, body: &[u8]) -> String {
    if *method != Method::POST {
        return String::new();
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let names = ["/metadata/name", "/metadata/generateName"];
    let name = names.into_iter().filter_map(|at| body.pointer(at)?.as_str()).find(|name| !name.is_empty());
    name.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &Method, path: &str, body: &'static str, expected: &str, object_path: &str) {
        let write = Write::read(method, path, None, &Bytes::from_static(body.as_bytes()));
        let Target { verb, resource, object } = &write.target;
        assert_eq!(format!("{verb} {resource} {object}"), expected);
        assert_eq!(write.object_path, object_path);
    }

    #[test]
    fn a_write_is_called_as_rbac_and_people_call_it() {
        let pods = "/api/v1/namespaces/ns/pods";
        check(&Method::POST, pods, r#"{"metadata":{"generateName":"web-"}}"#, "create pods ns/web-", pods);
        check(&Method::POST, pods, r#"{"metadata":{"name":"a","generateName":"b"}}"#, "create pods ns/a", pods);
        check(&Method::DELETE, pods, "", "deletecollection pods ns", pods);
        let web = "/apis/apps/v1/namespaces/ns/deployments/web";
        check(&Method::PATCH, &format!("{web}/status"), "{}", "patch deployments.apps/status ns/web", web);
        check(&Method::DELETE, web, "", "delete deployments.apps ns/web", web);
        let namespace = "/api/v1/namespaces/ns";
        check(&Method::PUT, "/api/v1/namespaces/ns/finalize", "{}", "update namespaces/finalize ns", namespace);
        check(&Method::PUT, namespace, "{}", "update namespaces ns", namespace);
        check(&Method::PATCH, "/api/v1/nodes/n/status", "{}", "patch nodes/status n", "/api/v1/nodes/n");
        let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/a";
        let applied = format!("{role}?fieldManager=m&force=true");
        check(&Method::PATCH, &applied, "{}", "patch clusterroles.rbac.authorization.k8s.io a", role);
    }

    #[test]
    fn a_name_is_read_without_its_escapes() {
        let route = "/apis/cloud/v1/routes/10.0.0.0%2F24";
        check(&Method::DELETE, route, "", "delete routes.cloud 10.0.0.0/24", route);
    }

    #[test]
    fn a_review_stores_nothing() {
        for review in REVIEWS {
            assert!(!is_write(&Method::POST, review), "{review}");
            assert!(is_write(&Method::DELETE, review), "{review}");
        }
        assert!(!is_write(&Method::GET, "/api/v1/pods"));
        assert!(is_write(&Method::POST, "/api/v1/namespaces/ns/serviceaccounts/a/token"));
        assert!(is_write(&Method::POST, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"));
        assert!(is_write(&Method::POST, "/api/v1/namespaces/ns/events"));
    }
}
