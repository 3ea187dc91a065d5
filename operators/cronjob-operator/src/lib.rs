//! Starts the Jobs of CronJobs when they are due, lists the active ones, and deletes old ones.
//!
//! Reading order: [`objects`] (what is read) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`], with [`memory`] → [`plan`], with [`plan::cron`] (what a schedule means) and [`plan::schedule`] (what is
//! due) → [`apply`] → [`status`].
//!
//! Upstream: `pkg/controller/cronjob`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
