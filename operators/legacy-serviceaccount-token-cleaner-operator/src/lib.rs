//! Deletes ServiceAccount tokens in Secrets that have long been unused: first it invalidates them, and one period later
//! it deletes them.
//!
//! Reading order: [`objects`] (the views of Secrets, accounts and pods) → [`controller`] (a round over all tokens) →
//! [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
