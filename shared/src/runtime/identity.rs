//! The names and versions by which a process is known.

/// This build's version.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// The Kubernetes release whose behaviour this build has.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// The names of one operator. Upstream has three for each controller, and they disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The binary, image, manifest folder and Lease: `deployment-operator`.
    pub operator: &'static str,
    /// Upstream's canonical name: `deployment-controller`.
    pub controller: &'static str,
    /// The component that events come from: `deployment-controller`.
    pub event_source: &'static str,
}
