//! Code that several controllers share above the runtime. Code with a single user stays with that operator.

pub mod brake;
pub mod by_label;
pub mod certificates;
pub mod claims;
pub mod deletion_metrics;
pub mod endpoints;
pub mod live_spec;
pub mod pod_control;
pub mod protection;
pub mod rejections;
pub mod replicas;
pub mod revisions;
pub mod root_ca;
pub mod status_throttle;
pub mod status_writer;
