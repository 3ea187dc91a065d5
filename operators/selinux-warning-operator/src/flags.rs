//! The flags: those every operator has. Upstream has none for this controller.

/// Warns of pods that use one volume with different SELinux labels.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
