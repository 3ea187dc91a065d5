//! The API's nouns as lean values: what every cached object has, shared and small, and pure helpers, one noun each.
//!
//! Reading order: [`object`] (what all objects have) → [`labels`], [`selector`], [`owner`] (who belongs to whom) → the rest.
//! Left out: whatever waits, reads a cluster or knows the time.

pub mod bootstrap_token;
pub mod cidr;
pub mod condition;
pub mod csi_translation;
pub mod explain;
pub mod facts;
pub mod hash;
pub mod int_or_percent;
pub mod intern;
pub mod kept;
pub mod labels;
pub mod list;
pub mod names;
pub mod namespace;
pub mod object;
pub mod owner;
pub mod pod;
pub mod protobuf;
pub mod quantity;
pub mod raw;
pub mod resource;
pub mod selector;
pub mod taint;
pub mod template;
pub mod time;
pub(crate) mod unreadable;
pub mod url;
pub(crate) mod versions;
pub mod volume_name;

pub fn json(body: &impl serde::Serialize) -> bytes::Bytes {
    // Only maps with keys that are no strings, or a failing writer, can fail; requests have neither.
    serde_json::to_vec(body).unwrap_or_default().into()
}
