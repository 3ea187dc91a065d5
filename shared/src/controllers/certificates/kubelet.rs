//! The requests of kubelets for client and serving certificates.
//!
//! Whether the names of a serving certificate belong to the node cannot be checked by the request.
//!
//! Upstream: `pkg/apis/certificates/helpers.go`.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::request::AltName;

pub const NODES: &str = "system:nodes";
pub const NODE_PREFIX: &str = "system:node:";
/// The usages of a client certificate with an RSA key, in order. Upstream: `kubeletClientRequiredUsages`.
const CLIENT_USAGES: [&str; 3] = ["client auth", DIGITAL_SIGNATURE, KEY_ENCIPHERMENT];
/// The usages of a serving certificate with an RSA key, in order. Upstream: `kubeletServingRequiredUsages`.
const SERVING_USAGES: [&str; 3] = [DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, "server auth"];
const DIGITAL_SIGNATURE: &str = "digital signature";
/// The usage for RSA keys only.
const KEY_ENCIPHERMENT: &str = "key encipherment";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The common name; `""` if there is none.
    pub common_name: &'a str,
    pub organizations: Vec<&'a str>,
    pub alt_names: BTreeSet<AltName>,
    pub usages: BTreeSet<&'a str>,
}

/// The first difference between a request and a kubelet's, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Mismatch {
    /// The subject does not have exactly the organization of nodes.
    Organization,
    /// There is no DNS name and no IP address for a serving certificate.
    NoHost,
    AltName {
        sort: AltName,
    },
    /// The common name is not a node's.
    CommonName,
    /// The usages are not those of a client certificate.
    Usages,
    /// The usages are not those of a serving certificate.
    ServingUsages,
}

impl Asked<'_> {
    /// The first difference from a kubelet's request for a client certificate.
    ///
    /// Upstream: `ValidateKubeletClientCSR`.
    pub fn client_mismatch(&self) -> Option<Mismatch> {
        if self.organizations != [NODES] {
            Some(Mismatch::Organization)
        } else if let Some(sort) = self.alt_names.first() {
            Some(Mismatch::AltName { sort: *sort })
        } else if !self.common_name.starts_with(NODE_PREFIX) {
            Some(Mismatch::CommonName)
        } else if !self.has_usages(CLIENT_USAGES) {
            Some(Mismatch::Usages)
        } else {
            None
        }
    }

    /// The first difference from a kubelet's request for a serving certificate.
    ///
    /// Upstream: `ValidateKubeletServingCSR`.
    pub fn serving_mismatch(&self) -> Option<Mismatch> {
        let has = |sort: AltName| self.alt_names.contains(&sort);
        if self.organizations != [NODES] {
            Some(Mismatch::Organization)
        } else if !has(AltName::Dns) && !has(AltName::Ip) {
            Some(Mismatch::NoHost)
        } else if let Some(sort) = [AltName::Email, AltName::Uri].into_iter().find(|sort| has(*sort)) {
            Some(Mismatch::AltName { sort })
        } else if !self.has_usages(SERVING_USAGES) {
            Some(Mismatch::ServingUsages)
        } else if !self.common_name.starts_with(NODE_PREFIX) {
            Some(Mismatch::CommonName)
        } else {
            None
        }
    }

    /// Whether exactly these usages are requested, with or without the one for RSA keys.
    fn has_usages(&self, usages: [&'static str; 3]) -> bool {
        let mut wanted = BTreeSet::from(usages);
        if self.usages == wanted {
            return true;
        }
        wanted.remove(KEY_ENCIPHERMENT);
        self.usages == wanted
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Organization => write!(f, "subject organization is not {NODES}"),
            Self::NoHost => f.write_str("DNS or IP subjectAltName is required"),
            Self::AltName { sort: AltName::Dns } => f.write_str("DNS subjectAltNames are not allowed"),
            Self::AltName { sort: AltName::Email } => f.write_str("Email subjectAltNames are not allowed"),
            Self::AltName { sort: AltName::Ip } => f.write_str("IP subjectAltNames are not allowed"),
            Self::AltName { sort: AltName::Uri } => f.write_str("URI subjectAltNames are not allowed"),
            Self::CommonName => write!(f, "subject common name does not begin with {NODE_PREFIX}"),
            Self::Usages => write!(f, "usages did not match [{}]", CLIENT_USAGES.join(" ")),
            Self::ServingUsages => write!(f, "usages did not match [{}]", SERVING_USAGES.join(" ")),
        }
    }
}
