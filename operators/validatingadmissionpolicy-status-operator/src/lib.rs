//! Checks the types in the expressions of each ValidatingAdmissionPolicy once for each generation, and lists the errors in
//! its status. They do not change what the policy does.
//!
//! Reading order: [`objects`] (the views of a policy) → [`controller`] (one sync) → [`observe`] (the live reads: the policy,
//! discovery, and schemas) → [`plan`] (which kinds are checked, and what is wrong; the checker is the crate `cel-check`) →
//! [`status`] → [`apply`].
//!
//! Upstream: `pkg/controller/validatingadmissionpolicystatus`, and
//! `staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
