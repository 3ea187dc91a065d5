//! The routes of the cloud, as they were listed last and changed since.
//!
//! The routes of one list are read once and kept, so a Node that changes between two lists is decided about at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloud::Route;
use jiff::Timestamp;
use shared::api::cidr::PodCidr;
use shared::transport::clock::left_of;

use crate::objects::ListedRoute;

/// What is known about the routes of a Node.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    NotYet,
    /// The cloud has no routes to keep.
    Unsupported,
    Routes(Vec<Arc<ListedRoute>>),
}

/// The time for which the cloud wants no call about a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    since: Timestamp,
    wait: Duration,
}

impl Pause {
    /// What is left of it; none if it is over.
    pub fn left(self, now: Timestamp) -> Option<Duration> {
        left_of(self.wait, self.since, now)
    }
}

#[derive(Default)]
pub struct Routes(Mutex<State>);

#[derive(Default)]
struct State {
    is_unsupported: bool,
    listed: Option<Listed>,
    /// The changes since a running list began: it may have been answered before them.
    changes: Option<Vec<Change>>,
    /// By the Node's name.
    pauses: BTreeMap<String, Pause>,
}

#[derive(Default)]
struct Listed {
    by_node: BTreeMap<String, Vec<Arc<ListedRoute>>>,
    by_destination: HashMap<PodCidr, Vec<Arc<ListedRoute>>>,
}

#[derive(Clone)]
enum Change {
    Created(Arc<ListedRoute>),
    Deleted(Arc<ListedRoute>),
}

impl Routes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cloud was asked, and has no routes to keep. Gives whether that is new.
    pub fn unsupported(&self) -> bool {
        !std::mem::replace(&mut self.state().is_unsupported, true)
    }

    pub fn is_listed(&self) -> bool {
        self.state().listed.is_some()
    }

    /// A list begins.
    pub fn begin(&self) {
        self.state().changes = Some(Vec::new());
    }

    /// The list that began last was answered.
    pub fn listed(&self, routes: Vec<Route>) {
        let mut listed = Listed::default();
        for route in routes {
            listed.change(Change::Created(Arc::new(route.into())));
        }
        let mut state = self.state();
        for change in state.changes.take().into_iter().flatten() {
            listed.change(change);
        }
        (state.listed, state.is_unsupported) = (Some(listed), false);
    }

    pub fn created(&self, route: Route) {
        self.note(Change::Created(Arc::new(ListedRoute { is_listed: false, ..route.into() })));
    }

    pub fn deleted(&self, route: &Arc<ListedRoute>) {
        self.note(Change::Deleted(Arc::clone(route)));
    }

    fn note(&self, change: Change) {
        let mut state = self.state();
        if let Some(changes) = &mut state.changes {
            changes.push(change.clone());
        }
        if let Some(listed) = &mut state.listed {
            listed.change(change);
        }
    }

    /// The routes to a Node of this name.
    pub fn of_node(&self, name: &str) -> Known {
        let state = self.state();
        match &state.listed {
            Some(listed) => Known::Routes(listed.by_node.get(name).cloned().unwrap_or_default()),
            None if state.is_unsupported => Known::Unsupported,
            None => Known::NotYet,
        }
    }

    /// The cloud wants no call about this Node from now on.
    pub fn pause(&self, name: &str, wait: Duration, now: Timestamp) {
        let pauses = &mut self.state().pauses;
        pauses.retain(|_, pause| pause.left(now).is_some());
        pauses.insert(name.to_owned(), Pause { since: now, wait });
    }

    /// The last time for which the cloud wanted no call about this Node.
    pub fn pause_of(&self, name: &str) -> Option<Pause> {
        self.state().pauses.get(name).copied()
    }

    /// The routes to these pods, whichever Node they lead to.
    pub fn to(&self, destination: &PodCidr) -> Vec<Arc<ListedRoute>> {
        let state = self.state();
        let found = state.listed.as_ref().and_then(|listed| listed.by_destination.get(destination));
        found.cloned().unwrap_or_default()
    }

    /// The names of the Nodes that routes lead to; `""` if a route names none.
    pub fn targets(&self) -> Vec<String> {
        self.state().listed.iter().flat_map(|listed| listed.by_node.keys().cloned()).collect()
    }
}

impl Listed {
    fn change(&mut self, change: Change) {
        match change {
            Change::Created(route) => {
                let key = route.destination.clone();
                self.by_node.entry(route.route.target_node.clone()).or_default().push(Arc::clone(&route));
                self.by_destination.entry(key).or_default().push(route);
            }
            Change::Deleted(route) => {
                if let Some(routes) = self.by_node.get_mut(&route.route.target_node) {
                    routes.retain(|other| *other != route);
                    if routes.is_empty() {
                        self.by_node.remove(&route.route.target_node);
                    }
                }
                if let Some(routes) = self.by_destination.get_mut(&route.destination) {
                    routes.retain(|other| *other != route);
                    if routes.is_empty() {
                        self.by_destination.remove(&route.destination);
                    }
                }
            }
        }
    }
}
