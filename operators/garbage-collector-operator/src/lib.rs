//! Deletes what its owners leave behind.

pub mod graph;
pub mod objects;
