//! Events about objects. (The recorder behind this interface is on its way.)

use crate::object::{Key, ResourceVersion, Uid};
use crate::resource::Resource;

/// Normal or Warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Information.
    Normal,
    /// Something a person should look at.
    Warning,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReference {
    /// Its kind.
    pub resource: Resource,
    /// Namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: Uid,
    /// The state the event speaks of.
    pub resource_version: ResourceVersion,
}

/// Posts events; cheap to clone, never blocks.
#[derive(Clone, Default)]
pub struct Recorder;

impl Recorder {
    /// Queues an event.
    pub fn event(&self, about: &ObjectReference, kind: EventType, reason: &str, message: String) {
        tracing::info!(key = %about.key, ?kind, reason, message);
    }
}
