//! What is remembered between syncs: the charges of the apiserver, and the kinds that an event has reported.

pub mod charges;
pub mod reported;
