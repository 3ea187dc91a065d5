//! Binds each claim to a volume and each volume to a claim, has volumes provisioned for claims that none fits, and
//! reclaims those whose claim is gone.
//!
//! Reading order: [`objects`] (the views of claims, volumes, classes and pods) → [`controller`] (the syncs of a claim and
//! of a volume; its `changes` say what leads to them) → [`memory`] → [`observe`] → [`plan`] → [`status`] → [`apply`].
//!
//! Upstream: `pkg/controller/volume/persistentvolume`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
