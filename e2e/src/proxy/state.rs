//! The state that the connections share with the test: rules, open watches, and every request that came by.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, StatusCode};
use tokio::time::Instant;

use super::rules::{self, Rules};
use super::watches::Watches;

/// A request that came by.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub at: Instant,
    pub method: Method,
    pub path: String,
    pub query: String,
    /// The answer the client got; none if it got none, or not yet.
    pub status: Option<StatusCode>,
    /// The answer the apiserver gave; none if it was not asked, or not yet.
    pub upstream_status: Option<StatusCode>,
}

impl Exchange {
    pub fn is_write(&self) -> bool {
        rules::is_write(&self.method)
    }

    /// Whether it asked for the objects of a kind: a list, the first page of one, or a watch that begins with one.
    pub fn is_list(&self) -> bool {
        let has = |parameter: &str| self.query.split('&').any(|other| other.starts_with(parameter));
        let begins = !has("watch=1") && !has("continue=");
        self.method == Method::GET && is_collection(&self.path) && (begins || has("sendInitialEvents=true"))
    }
}

/// Whether a path names all objects of a kind, or those of one namespace.
fn is_collection(path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    match segments.next() {
        Some("api") => segments.next(),
        Some("apis") => segments.nth(1),
        _ => return false,
    };
    matches!(segments.collect::<Vec<_>>()[..], ["namespaces", _, _] | [_])
}

/// The state that the connections share with the test.
#[derive(Default)]
pub(super) struct State {
    pub(super) rules: Rules,
    pub(super) watches: Watches,
    exchanges: Mutex<Vec<Arc<Noted>>>,
}

/// An exchange that may still get its answers.
pub(super) struct Noted(Mutex<Exchange>);

impl Noted {
    pub(super) fn update(&self, change: impl FnOnce(&mut Exchange)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn now(&self) -> Exchange {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl State {
    pub(super) fn note(&self, exchange: Exchange) -> Arc<Noted> {
        let noted = Arc::new(Noted(Mutex::new(exchange)));
        self.exchanges().push(Arc::clone(&noted));
        noted
    }

    pub(super) fn exchanges(&self) -> MutexGuard<'_, Vec<Arc<Noted>>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
