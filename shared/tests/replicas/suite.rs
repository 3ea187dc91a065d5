//! The suite of every operator that keeps a number of pods. It is a module of the operator's own tests, whose root gives
//! `KIND`, `Owner`, `Operator`, `QUEUE` and `why`, and tests what only that operator does.

pub(crate) mod fixtures;
mod lives;
pub(crate) mod plan;
mod properties;
pub(crate) mod status;
mod sync;
