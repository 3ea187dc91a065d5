//! The flags: those every operator has. Upstream has none for this controller.

/// Removes the entries of dead apiservers from StorageVersions.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
