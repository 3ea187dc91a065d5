//! Objects with what the apiserver gives them: uids, versions, generations, generated names, and a life that ends once
//! finalizers and grace are over.
//!
//! Left out: validation, defaults but a new pod's and a new namespace's phase, and admission but the refusal to create
//! something in a namespace that is being deleted.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::filter::Filter;
use crate::api::resource::Resource;

/// Why a request was refused: a `metav1.Status`.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) body: Value,
}

impl Refusal {
    pub(super) fn new(resource: &Resource, name: &str, code: u16, reason: &str, message: &str) -> Self {
        let details = json!({ "name": name, "group": resource.group, "kind": resource.plural });
        let body = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": code, "reason": reason, "message": message, "details": details,
        });
        Self { code, body }
    }

    pub(super) fn with_cause(mut self, reason: &str) -> Self {
        self.body["details"]["causes"] = json!([{ "reason": reason }]);
        self
    }
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) resource: Resource,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Id {
    pub(super) fn new(resource: &Resource, namespace: &str, name: &str) -> Self {
        Self { resource: resource.clone(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    fn refusal(&self, code: u16, reason: &str, message: &str) -> Refusal {
        Refusal::new(&self.resource, &self.name, code, reason, message)
    }

    fn not_found(&self) -> Refusal {
        self.refusal(404, "NotFound", &format!("{} {:?} not found", self.resource, self.name))
    }

    fn conflict(&self, why: &str) -> Refusal {
        let message = format!("Operation cannot be fulfilled on {} {:?}: {why}", self.resource, self.name);
        self.refusal(409, "Conflict", &message)
    }
}

/// One change; watches are made of these.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) id: Id,
    pub(super) before: Option<Value>,
    /// Of a deleted object its last state.
    pub(super) after: Value,
    pub(super) is_deleted: bool,
}

/// The stored objects and their history.
#[derive(Clone, Default)]
pub(super) struct Store {
    objects: BTreeMap<Id, Value>,
    pub(super) history: Vec<Change>,
    pub(super) version: u64,
    created: u64,
}

impl Store {
    pub(super) fn get(&self, id: &Id) -> Result<&Value, Refusal> {
        self.objects.get(id).ok_or_else(|| id.not_found())
    }

    pub(super) fn list(&self, resource: &Resource, filter: &Filter) -> impl Iterator<Item = &Value> {
        let of_resource = self.objects.iter().filter(move |(id, _)| id.resource == *resource);
        of_resource.map(|(_, object)| object).filter(|object| filter.matches(object))
    }

    /// Stores an object as it is, but for what it lacks.
    pub(super) fn insert(&mut self, resource: &Resource, mut object: Value, now: Timestamp) -> Result<Value, Refusal> {
        self.created += 1;
        let metadata: &mut Map<String, Value> = child(&mut object["metadata"]);
        if let (None, Some(Value::String(prefix))) = (metadata.get("name"), metadata.get("generateName")) {
            let name = format!("{prefix}{}", suffix(self.created));
            metadata.insert("name".to_owned(), name.into());
        }
        let uid = format!("{:08x}-0000-4000-8000-000000000000", self.created);
        for (field, value) in
            [("uid", json!(uid)), ("creationTimestamp", json!(now.to_string())), ("generation", json!(1))]
        {
            metadata.entry(field).or_insert(value);
        }
        let id = Id::new(resource, text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
        if self.objects.contains_key(&id) {
            let message = format!("{resource} {:?} already exists", id.name);
            return Err(id.refusal(409, "AlreadyExists", &message));
        }
        Ok(self.commit(id, object))
    }

    /// POST.
    pub(super) fn create(
        &mut self,
        resource: &Resource,
        namespace: &str,
        mut object: Value,
        now: Timestamp,
    ) -> Result<Value, Refusal> {
        if self.is_terminating(namespace) {
            let message =
                format!("unable to create new content in namespace {namespace} because it is being terminated");
            return Err(Refusal::new(resource, "", 403, "Forbidden", &message).with_cause("NamespaceTerminating"));
        }
        let metadata: &mut Map<String, Value> = child(&mut object["metadata"]);
        for given in ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation"] {
            metadata.remove(given);
        }
        if resource.namespaced {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        let fields: &mut Map<String, Value> = child(&mut object);
        fields.insert("apiVersion".to_owned(), resource.api_version().into());
        fields.insert("kind".to_owned(), resource.kind.clone().into());
        fields.remove("status");
        match &*resource.plural {
            "pods" => object["status"]["phase"] = "Pending".into(),
            "namespaces" => {
                object["status"]["phase"] = "Active".into();
                object["spec"]["finalizers"] = json!(["kubernetes"]);
            }
            _ => {}
        }
        self.insert(resource, object, now)
    }

    fn is_terminating(&self, namespace: &str) -> bool {
        let is_it = |id: &Id| id.resource == crate::api::resource::NAMESPACES && id.name == namespace;
        self.objects.iter().any(|(id, object)| is_it(id) && !object["metadata"]["deletionTimestamp"].is_null())
    }

    /// PUT, or what a patch has made of the object.
    pub(super) fn update(&mut self, id: &Id, subresource: &str, sent: &Value) -> Result<Value, Refusal> {
        let old = self.get(id)?.clone();
        if let Some(version) = sent["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty())
            && old["metadata"]["resourceVersion"] != version
        {
            return Err(id.conflict("the object has been modified; please apply your changes to the latest version"));
        }
        if !sent["metadata"]["uid"].is_null() && sent["metadata"]["uid"] != old["metadata"]["uid"] {
            return Err(id.refusal(422, "Invalid", "metadata.uid: Invalid value: field is immutable"));
        }
        let new = updated(&old, sent, subresource);
        if new == old {
            return Ok(old);
        }
        Ok(self.commit(id.clone(), new))
    }

    /// Changes an object as a test wants, without the checks of an update.
    pub(super) fn change(&mut self, id: &Id, change: impl FnOnce(&mut Value)) -> Result<Value, Refusal> {
        let old = self.get(id)?;
        let mut new = old.clone();
        change(&mut new);
        if new == *old {
            return Ok(new);
        }
        if new["spec"] != old["spec"] {
            new["metadata"]["generation"] = next_generation(old);
        }
        Ok(self.commit(id.clone(), new))
    }

    /// An object as a newer apiserver serves it, which sets another default: no edit, so the generation stays.
    pub(super) fn set_default(&mut self, id: &Id, change: impl FnOnce(&mut Value)) -> Result<Value, Refusal> {
        let mut new = self.get(id)?.clone();
        change(&mut new);
        Ok(self.commit(id.clone(), new))
    }

    /// DELETE.
    ///
    /// Upstream: `BeforeDelete`, staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go.
    pub(super) fn delete(&mut self, id: &Id, options: &Value, now: Timestamp) -> Result<Value, Refusal> {
        let mut object = self.get(id)?.clone();
        for (field, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let wanted = &options["preconditions"][field];
            if !wanted.is_null() && *wanted != object["metadata"][field] {
                return Err(id.conflict(&format!("Precondition failed: {what} in precondition: {wanted}")));
            }
        }
        let finalizer = match options["propagationPolicy"].as_str() {
            Some("Foreground") => Some("foregroundDeletion"),
            Some("Orphan") => Some("orphan"),
            _ => None,
        };
        if let Some(finalizer) = finalizer {
            let finalizers = list_of(&mut object["metadata"], "finalizers");
            if !finalizers.contains(&json!(finalizer)) {
                finalizers.push(finalizer.into());
            }
        }
        let grace = grace(&id.resource, &object, options);
        let metadata: &mut Map<String, Value> = child(&mut object["metadata"]);
        let at = now + SignedDuration::from_secs(grace);
        metadata.entry("deletionTimestamp").or_insert_with(|| at.to_string().into());
        metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
        if id.resource == crate::api::resource::NAMESPACES {
            object["status"]["phase"] = "Terminating".into();
        }
        if object == *self.get(id)? {
            return Ok(object);
        }
        Ok(self.commit(id.clone(), object))
    }

    /// Stores an object, unless nothing keeps it any more.
    fn commit(&mut self, id: Id, mut after: Value) -> Value {
        self.version += 1;
        after["metadata"]["resourceVersion"] = self.version.to_string().into();
        let before = self.objects.remove(&id);
        let is_deleted = is_over(&id.resource, &after);
        if !is_deleted {
            self.objects.insert(id.clone(), after.clone());
        }
        self.history.push(Change { version: self.version, id, before, after: after.clone(), is_deleted });
        after
    }
}

/// The object after an update: the server's fields stay the server's, and a status is written with the metadata beside
/// it.
fn updated(old: &Value, sent: &Value, subresource: &str) -> Value {
    let mut new = sent.clone();
    match subresource {
        "" => set(&mut new, "status", old.get("status")),
        "finalize" => {
            new = old.clone();
            new["spec"]["finalizers"] = sent["spec"]["finalizers"].clone();
        }
        "scale" => {
            new = old.clone();
            new["spec"]["replicas"] = sent["spec"]["replicas"].clone();
        }
        _ => set(&mut new, "spec", old.get("spec")),
    }
    let servers = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ];
    for field in servers {
        set(&mut new["metadata"], field, old["metadata"].get(field));
    }
    if new.get("spec") != old.get("spec") {
        new["metadata"]["generation"] = next_generation(old);
    }
    new
}

fn next_generation(object: &Value) -> Value {
    (object["metadata"]["generation"].as_i64().unwrap_or_default() + 1).into()
}

fn set(object: &mut Value, field: &str, value: Option<&Value>) {
    let fields: &mut Map<String, Value> = child(object);
    match value {
        Some(value) => drop(fields.insert(field.to_owned(), value.clone())),
        None => drop(fields.remove(field)),
    }
}

/// How many seconds a kubelet has to stop a pod; nothing else has any.
///
/// Upstream: `CheckGracefulDelete`, pkg/registry/core/pod/strategy.go.
fn grace(resource: &Resource, object: &Value, options: &Value) -> i64 {
    let is_finished = matches!(text(object, "/status/phase"), "Succeeded" | "Failed");
    if resource.plural != "pods" || text(object, "/spec/nodeName").is_empty() || is_finished {
        return 0;
    }
    let asked = options["gracePeriodSeconds"].as_i64();
    asked.or(object["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30)
}

/// Whether nothing keeps an object that is being deleted.
fn is_over(resource: &Resource, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let is_namespace = *resource == crate::api::resource::NAMESPACES;
    !metadata["deletionTimestamp"].is_null()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && is_empty(&metadata["finalizers"])
        && (!is_namespace || is_empty(&object["spec"]["finalizers"]))
}

/// The five characters that end the n-th generated name.
fn suffix(n: u64) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digit =
        |place: u32| ALPHABET.iter().cycle().nth(usize::try_from(n / 27_u64.pow(place) % 27).unwrap_or_default());
    (0..5).rev().filter_map(digit).map(|byte| char::from(*byte)).collect()
}

/// The text at a JSON pointer; `""` where there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The fields of what is an object, or is made one.
pub(super) fn child(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => unreachable!(),
    }
}

fn list_of<'a>(object: &'a mut Value, field: &str) -> &'a mut Vec<Value> {
    let list = &mut object[field];
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    match list {
        Value::Array(items) => items,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => unreachable!(),
    }
}
