//! A cluster's needs before and after its workloads: namespaces begin and end, owners take their dependents along, and
//! pods go that nobody ends; nodes get their CIDRs, and pods the CA by which they know the apiserver.
//! Left out: the needs of workloads and Services meanwhile.

mod begin;
mod brake;
mod deletion;
mod faults;
mod kinds;
mod lists;
mod migrations;
mod namespaces;
mod node_cidrs;
mod owners;
mod pods;
mod taints;
mod takeover;
mod tree;
mod trust_bundles;
