//! Rewrites the objects of a resource in its current storage version, as a StorageVersionMigration asks for it.
//!
//! Two controllers: that of resources starts one migration of each at a time and gives it the version up to which objects
//! are rewritten; that of migrations rewrites them page by page.
//!
//! Reading order: [`objects`] (what is read of migrations and of custom resource definitions) → [`controller`] (the two
//! controllers; its `changes` say what leads to a sync) → [`observe`] → [`plan`] → [`apply`] → [`status`] → [`metrics`].
//!
//! Upstream: `pkg/controller/storageversionmigrator`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
