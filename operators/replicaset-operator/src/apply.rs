//! Carries out a plan: claims, then creations in a slow start, or deletions all at once; then the status.
//!
//! Left out: deciding anything. The writes are the same for both kinds.

pub use shared::replicas::apply::Writer;
