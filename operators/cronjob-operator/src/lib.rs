//! Starts a CronJob's Jobs when they are due, notes which of them run, and deletes the old ones.
//!
//! Reading order: [`objects`] (what is read) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`] → [`plan`], with [`plan::cron`] (what a schedule means) and [`plan::schedule`] (what is due) → [`apply`] →
//! [`status`].
//! Left out: everything a Job does once it is there, which is the job-operator's.
//!
//! Upstream: `pkg/controller/cronjob`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
