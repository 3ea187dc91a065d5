//! Writes of the slices of one owner, as values with reasons, and in words.
//!
//! Left out: the decision, which is that of each controller, and single addresses.

use std::collections::BTreeMap;
use std::fmt;

use super::address::AddressType;
use super::slice::{Endpoint, EndpointPort, EndpointSlice};
use crate::api::intern::Text;
use crate::api::labels::Labels;
use crate::api::object::{Key, ResourceVersion, Uid};

/// What is written: with what the endpoints lead to (`T`), which of them change (`C`), and why slices go (`W`).
#[derive(Clone, Debug, PartialEq)]
pub struct Writes<T, C, W> {
    /// First.
    pub create: Vec<Creation<T>>,
    /// Then.
    pub update: Vec<Update<T, C>>,
    /// Last.
    pub delete: Vec<Deletion<W>>,
    /// How many slices are not created because the owner is being deleted.
    pub withheld: usize,
}

/// A new slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Creation<T> {
    /// The type of its addresses.
    pub address_type: AddressType,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: Labels,
    /// Its ports.
    pub ports: Vec<EndpointPort>,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint<T>>,
}

/// Changes of a slice, if it is still in the state they were decided on.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<T, C> {
    /// Its namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: Uid,
    /// Its state.
    pub resource_version: ResourceVersion,
    /// Its labels that change, and what they become.
    pub labels: BTreeMap<Text, Option<Text>>,
    /// Its annotations that change, and what they become.
    pub annotations: BTreeMap<Text, Option<Text>>,
    /// Whether it was another's, and becomes the owner's.
    pub is_of_another: bool,
    /// Its ports, if they change.
    pub ports: Option<Vec<EndpointPort>>,
    /// Its endpoints, if they change.
    pub endpoints: Option<Vec<Endpoint<T>>>,
    /// Which of them change.
    pub changes: C,
}

/// A slice to be deleted, if it is still this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion<W> {
    /// Its namespace and name.
    pub key: Key,
    /// Its identity.
    pub uid: Uid,
    /// Why.
    pub why: W,
}

impl<T, C, W> Default for Writes<T, C, W> {
    fn default() -> Self {
        Self { create: Vec::new(), update: Vec::new(), delete: Vec::new(), withheld: 0 }
    }
}

impl<T, C, W> Writes<T, C, W> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.create.len() + self.update.len() + self.delete.len()
    }
}

impl<T, C: fmt::Display, W: fmt::Display> Writes<T, C, W> {
    /// Each in words, a creation in those given; then what is not created for the sake of the owner, of which it is said
    /// how it is.
    pub fn steps(&self, creation: impl FnMut(&Creation<T>) -> String, owner: &str) -> Vec<String> {
        let mut steps: Vec<String> = self.create.iter().map(creation).collect();
        steps.extend(self.update.iter().map(ToString::to_string));
        steps.extend(self.delete.iter().map(ToString::to_string));
        if self.withheld > 0 {
            steps.push(format!("do not create {} ({owner} being deleted)", self.withheld));
        }
        steps
    }
}

impl<W> Deletion<W> {
    /// That of a slice.
    pub fn of<A, T>(slice: &EndpointSlice<A, T>, why: W) -> Self {
        Self { key: slice.metadata.key.clone(), uid: slice.metadata.uid, why }
    }
}

/// `update web-x to 3 (1 added, ports)`.
impl<T, C: fmt::Display> fmt::Display for Update<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.ports.is_some(), "ports"),
            (!self.labels.is_empty(), "labels"),
            (!self.annotations.is_empty(), "annotations"),
            (self.is_of_another, "owner"),
        ];
        let parts = parts.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what.to_owned());
        let counts = Some(self.changes.to_string()).filter(|counts| !counts.is_empty());
        let mut reasons: Vec<String> = counts.into_iter().chain(parts).collect();
        if reasons.is_empty() && self.endpoints.is_some() {
            reasons.push("order".to_owned());
        }
        write!(f, "update {}", self.key.name())?;
        if let Some(endpoints) = &self.endpoints {
            write!(f, " to {}", endpoints.len())?;
        }
        write!(f, " ({})", reasons.join(", "))
    }
}

impl<W: fmt::Display> fmt::Display for Deletion<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delete {} ({})", self.key.name(), self.why)
    }
}

/// `1 added, 2 removed`: those that are not 0.
pub fn counted(counts: &[(usize, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    counts.collect::<Vec<_>>().join(", ")
}
