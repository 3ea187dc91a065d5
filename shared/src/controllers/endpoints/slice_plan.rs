//! Writes of the slices of one owner, as values with reasons.

use std::collections::BTreeMap;
use std::fmt;

use super::address::AddressType;
use super::slice::{Endpoint, EndpointPort, EndpointSlice};
use crate::api::intern::Text;
use crate::api::labels::Labels;
use crate::api::object::{Key, ResourceVersion, Uid};

/// The writes, with types for the targets of endpoints (`T`), for changes (`C`) and for the reasons of deletions (`W`).
#[derive(Clone, Debug, PartialEq)]
pub struct Writes<T, C, W> {
    /// Creations; they come first.
    pub create: Vec<Creation<T>>,
    pub update: Vec<Update<T, C>>,
    /// Deletions; they come last.
    pub delete: Vec<Deletion<W>>,
    /// The number of slices that are not created because the owner is being deleted.
    pub withheld: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Creation<T> {
    pub address_type: AddressType,
    pub labels: Labels,
    pub annotations: Labels,
    pub ports: Vec<EndpointPort>,
    pub endpoints: Vec<Endpoint<T>>,
}

/// Changes of a slice, on condition that it is unchanged since the decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<T, C> {
    pub key: Key,
    pub uid: Uid,
    pub resource_version: ResourceVersion,
    /// The labels to change; `None` removes one.
    pub labels: BTreeMap<Text, Option<Text>>,
    /// The annotations to change; `None` removes one.
    pub annotations: BTreeMap<Text, Option<Text>>,
    /// Whether to replace the owner reference, because another object owns it.
    pub sets_owner: bool,
    /// Its ports, if they change.
    pub ports: Option<Vec<EndpointPort>>,
    /// Its endpoints, if they change.
    pub endpoints: Option<Vec<Endpoint<T>>>,
    pub changes: C,
}

/// The deletion of a slice, on condition that its uid is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion<W> {
    pub key: Key,
    pub uid: Uid,
    pub why: W,
}

impl<T, C, W> Default for Writes<T, C, W> {
    fn default() -> Self {
        Self { create: Vec::new(), update: Vec::new(), delete: Vec::new(), withheld: 0 }
    }
}

impl<T, C, W> Writes<T, C, W> {
    pub fn count(&self) -> usize {
        self.create.len() + self.update.len() + self.delete.len()
    }
}

impl<T, C: fmt::Display, W: fmt::Display> Writes<T, C, W> {
    /// The text of each write; `creation` gives that of a creation. `owner` is the subject of "being deleted", such as
    /// `the service is`.
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
            (self.sets_owner, "owner"),
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

/// The counts that are not 0: `1 added, 2 removed`.
pub fn counted(counts: &[(usize, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    counts.collect::<Vec<_>>().join(", ")
}
