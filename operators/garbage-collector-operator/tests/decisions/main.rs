//! What the graph makes of events, and what is decided about one object.

mod fixtures;
mod graph;
mod properties;
