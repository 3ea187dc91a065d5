//! The flags: those every operator has. Upstream has none for this controller.

/// Lets a PodGroup go once each of its pods has ended or is gone.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
