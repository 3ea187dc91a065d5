//! CertificateSigningRequests as several controllers know them: the decisions that their conditions name, the content
//! of a request proper, and what a kubelet may ask for.
//!
//! Left out: the view of a request. One controller reads when each condition was written, another one what was asked
//! for.

pub mod kubelet;
pub mod request;

/// The condition of a request that may be signed.
pub const APPROVED: &str = "Approved";
/// The condition of a request that will not be signed.
pub const DENIED: &str = "Denied";
/// The condition of a request that could not be signed.
pub const FAILED: &str = "Failed";
