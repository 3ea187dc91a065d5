//! The parts of a certificate request that an approval depends on.
//!
//! Another controller signs what is approved here and may read it differently, so it is read strictly: one PEM block
//! with nothing around it, and one common name. The apiserver checks the signature when a request is created.

use std::collections::BTreeSet;

use shared::controllers::certificates::request::{AltName, Attribute, Fault, Request};

/// The common name, the organizations, and the sorts of alternative names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub common_name: String,
    /// The organizations of the subject: the groups of the user.
    pub organizations: Vec<String>,
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
