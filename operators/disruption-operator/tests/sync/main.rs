//! The whole operator against an in-process apiserver.

#![expect(clippy::unwrap_used, reason = "an object that is not there is a broken test")]

mod fixtures;
mod life;
mod timely;
