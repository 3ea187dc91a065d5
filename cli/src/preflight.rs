//! Preview of a takeover: runs a shadow of each operator and checks the installation.

mod checks;
pub(crate) mod command;
mod documented;
mod flags;
mod look;
mod report;
mod roles;
mod shadows;
mod text;

pub use look::{PreflightOptions, preflight};
pub use report::{Answer, Check, Inspected, Level, Outcome, Preflight};
pub use roles::operators;

#[cfg(test)]
mod tests;
