//! The next page of each search.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::Key;
use shared::runtime::api_error::ApiError;

/// The continue token of each unfinished search.
#[derive(Default)]
pub struct Searches(Mutex<HashMap<Key, String>>);

impl Searches {
    /// The token of the next page; empty for the first page.
    pub fn next(&self, search: &Key) -> String {
        self.tokens().get(search).cloned().unwrap_or_default()
    }

    /// Note the answer for a page. After an error the same page is next, or the first one if the token has expired.
    pub fn note(&self, search: &Key, listed: &Result<String, ApiError>) {
        match listed {
            Ok(next) if !next.is_empty() => {
                self.tokens().insert(search.clone(), next.clone());
            }
            Err(error) if !error.is_gone() => {}
            Ok(_) | Err(_) => {
                self.tokens().remove(search);
            }
        }
    }

    /// Restart every search.
    pub fn start_over(&self) {
        self.tokens().clear();
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<Key, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
