//! A namespace of which only the metadata matters: what it is called, and whether it is being deleted.
//!
//! Left out: the phase, by which a field selector leaves out those that end, and the finalizers of its spec.

use serde::Deserialize;

use crate::api::object::Meta;
use crate::api::resource::NAMESPACES;

#[derive(Debug, Deserialize)]
pub struct Namespace {
    pub metadata: Meta,
}

crate::view!(Namespace, NAMESPACES);
