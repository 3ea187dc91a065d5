//! CertificateSigningRequests, for several controllers: their conditions, the content of `spec.request`, and the
//! requests of kubelets.

pub mod kubelet;
pub mod request;

pub const APPROVED: &str = "Approved";
pub const DENIED: &str = "Denied";
/// The condition of a request that its signer refused.
pub const FAILED: &str = "Failed";
