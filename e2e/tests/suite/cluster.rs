//! What a cluster needs before and after its workloads: namespaces begin and end, owners take their dependents along, and
//! pods go that nobody ends.
//! Left out: what workloads and Services need meanwhile.

mod begin;
mod deletion;
mod faults;
mod kinds;
mod lists;
mod namespaces;
mod owners;
mod pods;
mod takeover;
mod tree;
