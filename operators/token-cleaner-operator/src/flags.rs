//! The flags: those every operator has. Upstream has none for this controller, which has one worker there too.

/// Deletes bootstrap tokens when they expire.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
