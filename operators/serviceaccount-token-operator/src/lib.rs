//! Fills in Secrets of the type `kubernetes.io/service-account-token`: each that names a ServiceAccount gets a token of
//! that account, which never expires, and is deleted with the account.
//!
//! Reading order: [`objects`] (the views of Secrets and accounts) → [`controller`] (one sync; its `changes` say which
//! Secrets a change concerns) → [`observe`], with [`memory`] → [`plan`] (and [`plan::jwt`], the token's text) →
//! [`apply`] (and [`apply::key`], the signature).
//!
//! Upstream: `pkg/controller/serviceaccount/tokens_controller.go`; `jwt.go` and `legacy.go` of `pkg/serviceaccount`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod objects;
pub mod observe;
pub mod plan;
