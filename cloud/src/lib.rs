//! The protocol between the controllers of clouds and a provider, the program that knows one cloud; from both sides.
//!
//! `proto/cloud/v1/cloud.proto` is the contract. A controller has a [`Client`] for the [`Endpoint`] of its [`flags`]. A
//! provider in Rust implements [`server::Provider`].
//!
//! Reading order: [`objects`] → [`error`] → `messages` and `methods` (the contract's, in Rust) → [`endpoint`] and
//! `connector` → [`client`] → [`server`]. [`sanity`] checks any provider against the contract.

use std::time::Duration;

pub mod client;
mod connector;
pub mod endpoint;
pub mod error;
pub mod flags;
mod messages;
mod methods;
pub mod objects;
pub mod sanity;
pub mod server;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use client::Client;
pub use endpoint::Endpoint;
pub use error::CloudError;
pub use objects::{Info, InstanceMetadata, LoadBalancer, NodeAddress, Route};

/// The time until a controller asks again whether the provider has a capability that it lacked.
pub const REST: Duration = Duration::from_mins(1);

/// The largest message that both sides accept: a call with 5,000 nodes has about 15 MiB.
const MESSAGE_MAX: usize = 64 << 20;
