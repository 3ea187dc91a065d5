//! The flags: those every operator has. Upstream has none for this controller, which has five workers there too.

/// Approves the requests of kubelets for client certificates.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
