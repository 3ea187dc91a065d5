//! Protects each VolumeAttributesClass with a finalizer for as long as a volume or a claim names it.
//!
//! Reading order: [`objects`] (the views of classes, volumes and claims) → [`controller`] (one sync; its `changes` say what
//! leads to it) → [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/volume/vacprotection`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
