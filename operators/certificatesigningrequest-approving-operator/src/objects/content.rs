//! The content of a certificate request as far as an approval depends on it: the common name, the organizations, and
//! the sorts of alternative names.
//!
//! Somebody else signs what is approved here, so it is read strictly: nothing may stand beside the one PEM block, and
//! there is one common name. A kubelet writes no others.
//! Left out: the signature, which the apiserver checks when a request is made, and the public key.

use std::collections::BTreeSet;

use shared::controllers::certificates::request::{AltName, Attribute, Fault, Request};

/// The content of a request, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The common name of the subject.
    pub common_name: String,
    /// The organizations of the subject, which are the groups of a user.
    pub organizations: Vec<String>,
    /// The sorts of its alternative names.
    pub alt_names: BTreeSet<AltName>,
}

impl Content {
    /// Reads `spec.request`: PEM, in base64.
    ///
    /// Upstream: `ParseCSR`, `pkg/apis/certificates/helpers.go`.
    pub fn read(request: &str) -> Result<Self, Fault> {
        let request = Request::read(request)?;
        let values = |attribute: Attribute| request.values(attribute).map(str::to_owned).collect::<Vec<String>>();
        let [common_name] =
            <[String; 1]>::try_from(values(Attribute::CommonName)).map_err(|_| Fault::NotOneCommonName)?;
        let organizations = values(Attribute::Organization);
        Ok(Self { common_name, organizations, alt_names: request.alt_names.sorts() })
    }
}
