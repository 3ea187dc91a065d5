//! The next page of the search for pods.

use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::transport::api_error::ApiError;

/// The continue token of an unfinished search; empty before the first page.
#[derive(Default)]
pub struct NextPage(Mutex<String>);

impl NextPage {
    pub fn token(&self) -> String {
        self.next().clone()
    }

    /// Note the answer for a page. After an error the same page is next, or the first one if the token has expired.
    pub fn note(&self, listed: &Result<String, ApiError>) {
        match listed {
            Ok(next) => self.next().clone_from(next),
            Err(error) if error.is_gone() => self.next().clear(),
            Err(_) => {}
        }
    }

    pub fn start_over(&self) {
        self.next().clear();
    }

    fn next(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
