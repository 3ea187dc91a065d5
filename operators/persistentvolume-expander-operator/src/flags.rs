//! The flags: those every operator has. Upstream has none for this controller.

/// Hands the expansion of volumes to external resizers.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
