//! The flags: those every operator has. Upstream has none for this controller, which has five workers there too.

/// Tells kubelets how long they may cache objects, by the number of Nodes.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
