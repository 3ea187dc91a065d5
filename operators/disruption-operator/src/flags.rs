//! The flags: those every operator has. Upstream has none for this controller.

/// Counts how many pods of each PodDisruptionBudget may be evicted.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
