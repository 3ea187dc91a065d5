//! When nodes are silent, which taints and labels they have, how zones slow that down: upstream's tables, and rules for
//! all nodes.

mod fixtures;
mod gap;
mod nodes;
mod pods;
mod properties;
mod rounds;
mod status;
mod zones;
