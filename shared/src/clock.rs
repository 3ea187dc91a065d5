//! The one place that reads the wall clock; everything that decides takes `now` as an argument.
//!
//! Left out: sleeping. Delays belong to [`crate::queue`], and tests drive tokio's paused time.

use std::sync::Arc;

use jiff::Timestamp;

/// A source of the current time: the system's, or a test's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The system's wall clock.
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    pub fn system() -> Self {
        Self(Arc::new(Timestamp::now))
    }

    /// A clock that answers as `read` says.
    pub fn new(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}
