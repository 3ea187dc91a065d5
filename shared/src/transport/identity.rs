//! The versions by which a process is known.

pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// The Kubernetes release whose behaviour this build has.
pub const KUBERNETES_VERSION: &str = "v1.36.3";
