//! Chains of changes across operators, joined from the decisions that operators record.

pub(crate) mod gather;
mod join;
mod story;
mod text;

pub use join::join;
pub use story::{Link, Origin, Step, Story, Trace, Writer};

#[cfg(test)]
mod tests;
