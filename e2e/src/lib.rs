//! The local cluster and what tests need around it.
//!
//! In reading order: the crate [`tools`] finds the programs, [`cluster`] runs them, [`operator`] runs operators against it,
//! [`proxy`] stands between an operator and the apiserver and breaks things, [`cloud`] is a cloud that breaks when it is told,
//! [`dashboard`] draws what [`prometheus`] has seen of operators.
//! Left out: anything about what an operator does, and what its tests are written with. That is in `tests/`, and this crate
//! knows no operator.

pub mod apply;
pub mod audit_log;
pub mod cloud;
pub mod cluster;
pub mod dashboard;
mod folder;
pub mod guard;
pub mod helm;
pub mod kubeconfig;
pub mod kubectl;
pub mod metrics;
pub mod operator;
pub mod pki;
pub mod ports;
pub mod process;
pub mod prometheus;
pub mod proxy;
pub mod rbac;
mod serving;
pub mod static_pods;
pub mod terminal;
pub mod usage;

pub use tools::progress;
