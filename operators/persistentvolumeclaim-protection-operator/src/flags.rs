//! The flags: those every operator has. Upstream has none for this controller.

/// Keeps each PersistentVolumeClaim while a pod uses it.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
