//! The facts of all operators: each `operators/<name>/src/facts.rs`, in one table.
//!
//! The build script finds the files. They import their types from `shared`; here that is this crate, which compiles that
//! one file of `shared` itself. So it depends on nothing, and `tidy` builds in seconds.

extern crate self as shared;

#[path = "../../shared/src/api/facts.rs"]
pub mod types;

pub mod api {
    pub use crate::types as facts;
}

pub use types::*;

include!(concat!(env!("OUT_DIR"), "/facts.rs"));

/// The facts of the operator with this name.
pub fn of(operator: &str) -> Option<&'static Facts> {
    ALL.iter().copied().find(|facts| facts.names.operator == operator)
}

/// Whether the operator with this name works with a cloud. kube-controller-manager has no such controller at work.
pub fn needs_cloud(operator: &str) -> bool {
    of(operator).is_some_and(Facts::needs_cloud)
}
