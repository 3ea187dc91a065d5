//! Deletes old tokens of ServiceAccounts: Secrets that were once made for every account, once nothing has used them for
//! long, and after a warning of the same time.
//!
//! Reading order: [`objects`] (the views of Secrets, accounts and pods) → [`controller`] (a round over all tokens) →
//! [`observe`] → [`plan`] → [`apply`]. Left out: a status room, because a Secret has no status; and noting that a token
//! is used, and refusing one that is invalid, which the apiserver does.
//!
//! Upstream: `pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
