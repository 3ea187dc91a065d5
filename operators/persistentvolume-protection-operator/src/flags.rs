//! The flags: those every operator has. Upstream has none for this controller.

/// Keeps each PersistentVolume while it is bound to a claim.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
