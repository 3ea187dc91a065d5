//! Being a process: flags, metrics, leadership, what is served, and an operator's main.

pub(crate) mod explain;
pub mod flags;
pub mod leader;
pub mod metrics;
pub mod run;
pub mod serving;
pub mod shadow;
pub mod telemetry;
