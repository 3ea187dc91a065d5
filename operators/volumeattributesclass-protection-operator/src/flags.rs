//! The flags: those every operator has. Upstream has none for this controller.

/// Keeps each VolumeAttributesClass while a volume or a claim names it.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
