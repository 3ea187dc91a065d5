//! Watches: the history from where each of them stands, as lines of JSON or as frames of protobuf, at once or when a test
//! lets them go on.
//!
//! A bookmark follows whatever a watch does not see, at once; a real apiserver lets some time pass.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::filter::Filter;
use super::request::{Call, metadata_only};
use super::store::{Change, Store, text};
use crate::api::resource::Resource;
use crate::testing::protobuf;

/// How much higher the versions of the store are than those of a resource in an etcd of its own.
pub(super) const AHEAD: u64 = 1_000_000;

/// All watches that are open.
#[derive(Default)]
pub(super) struct Watches {
    open: Vec<Watch>,
    held: BTreeSet<String>,
    /// Up to which version nothing is known any more, by resource.
    forgotten: BTreeMap<String, u64>,
    /// The resources in an etcd of their own.
    apart: BTreeSet<String>,
}

struct Watch {
    resource: Resource,
    filter: Filter,
    metadata_only: bool,
    is_for_protobuf: bool,
    /// Whether its resource is in an etcd of its own.
    is_apart: bool,
    /// None before the initial events.
    sent: Option<u64>,
    events: UnboundedSender<Bytes>,
}

impl Watches {
    /// Opens a watch; what it gives are its events.
    pub(super) fn open(&mut self, call: &Call) -> UnboundedReceiver<Bytes> {
        let (events, received) = unbounded_channel();
        let is_apart = self.is_apart(&call.resource.plural);
        let version: Option<u64> = call.query.get("resourceVersion").and_then(|version| version.parse().ok());
        let version = version.map(|version| if is_apart { version + AHEAD } else { version });
        let sent = version.filter(|_| !call.query.contains_key("sendInitialEvents"));
        let watch = Watch {
            resource: call.resource.clone(),
            filter: call.filter.clone(),
            metadata_only: call.metadata_only,
            is_for_protobuf: call.is_for_protobuf,
            is_apart,
            sent,
            events,
        };
        let forgotten = self.forgotten.get(&*call.resource.plural).copied().unwrap_or_default();
        if sent.is_some_and(|version| version < forgotten) {
            watch.expire();
        } else {
            self.open.push(watch);
        }
        received
    }

    /// Sends every watch what it has not seen, but those that are held.
    pub(super) fn send(&mut self, store: &Store) {
        let held = &self.held;
        self.open.retain_mut(|watch| held.contains(&*watch.resource.plural) || watch.send(store));
    }

    pub(super) fn hold(&mut self, plural: &str) {
        self.held.insert(plural.to_owned());
    }

    pub(super) fn release(&mut self, plural: &str) {
        self.held.remove(plural);
    }

    pub(super) fn set_apart(&mut self, plural: &str) {
        self.apart.insert(plural.to_owned());
    }

    pub(super) fn is_apart(&self, plural: &str) -> bool {
        self.apart.contains(plural)
    }

    /// How many watches of a resource have a reader.
    pub(super) fn count(&self, plural: &str) -> usize {
        self.open.iter().filter(|watch| watch.resource.plural == plural && !watch.events.is_closed()).count()
    }

    /// Ends the watches of a resource.
    pub(super) fn cut(&mut self, plural: &str) {
        self.open.retain(|watch| watch.resource.plural != plural);
    }

    /// Ends all watches.
    pub(super) fn cut_all(&mut self) {
        self.open.clear();
    }

    /// Ends the watches of a resource with 410, and forgets what they have not seen.
    pub(super) fn expire(&mut self, plural: &str, version: u64) {
        self.forgotten.insert(plural.to_owned(), version);
        let (expired, open) = self.open.drain(..).partition(|watch| watch.resource.plural == plural);
        self.open = open;
        let expired: Vec<Watch> = expired;
        expired.iter().for_each(Watch::expire);
    }
}

impl Watch {
    /// Gives whether anybody listens.
    fn send(&mut self, store: &Store) -> bool {
        let Some(sent) = self.sent else {
            let mut is_heard = true;
            for object in store.list(&self.resource, &self.filter) {
                is_heard &= self.event("ADDED", object);
            }
            self.sent = Some(store.version);
            return is_heard && self.bookmark(store.version, true);
        };
        let from = store.history.partition_point(|change| change.version <= sent);
        let mut is_heard = !self.events.is_closed();
        for change in store.history.iter().skip(from).filter(|change| change.id.resource == self.resource) {
            is_heard &= match self.kind(change) {
                Some(kind) => self.event(kind, &shown(change, kind)),
                None => self.bookmark(change.version, false),
            };
        }
        // A watch from a version that a restored etcd has not reached stays silent until it has.
        self.sent = Some(sent.max(store.version));
        is_heard
    }

    /// The watch event of a change: an object that matches no more is deleted for this watch.
    fn kind(&self, change: &Change) -> Option<&'static str> {
        let matched = change.before.as_ref().is_some_and(|before| self.filter.matches(before));
        let matches = !change.is_deleted && self.filter.matches(&change.after);
        match (matched, matches) {
            (false, false) => None,
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
        }
    }

    fn event(&self, kind: &str, object: &Value) -> bool {
        let object = if self.metadata_only && kind != "ERROR" { metadata_only(object) } else { object.clone() };
        let object = if self.is_apart { apart(object) } else { object };
        let of = match kind {
            "ERROR" => ("v1", "Status"),
            _ if self.metadata_only => ("meta.k8s.io/v1", "PartialObjectMetadata"),
            _ => (&*self.resource.version, &*self.resource.kind),
        };
        let frame = if self.is_for_protobuf { protobuf::event(kind, of, &object) } else { None };
        let line = || format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into();
        self.events.send(frame.unwrap_or_else(line)).is_ok()
    }

    fn bookmark(&self, version: u64, ends_list: bool) -> bool {
        let annotations = if ends_list { json!({ "k8s.io/initial-events-end": "true" }) } else { json!({}) };
        let metadata = json!({ "resourceVersion": version.to_string(), "annotations": annotations });
        self.event("BOOKMARK", &json!({ "metadata": metadata }))
    }

    fn expire(&self) {
        let status =
            json!({ "kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version" });
        self.event("ERROR", &status);
    }
}

/// An object or a list with the version that it has in an etcd of its own.
pub(super) fn apart(mut object: Value) -> Value {
    let version: Option<u64> = text(&object, "/metadata/resourceVersion").parse().ok();
    if let Some(lower) = version.and_then(|version| version.checked_sub(AHEAD)) {
        object["metadata"]["resourceVersion"] = lower.to_string().into();
    }
    object
}

/// The watch event of a change. An object that matches no more comes with its former content and its new version.
///
/// Upstream: `convertToWatchEvent`, `staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go`.
fn shown(change: &Change, kind: &str) -> Value {
    match &change.before {
        Some(before) if kind == "DELETED" && !change.is_deleted => {
            let mut left = before.clone();
            left["metadata"]["resourceVersion"] = change.after["metadata"]["resourceVersion"].clone();
            left
        }
        _ => change.after.clone(),
    }
}
