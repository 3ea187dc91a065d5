//! The flags: those every operator has, and upstream's of this controller.
//!
//! The CA is read with the flags, so that a file which is none ends the process at its start, as upstream's does.
//! Left out: reading it again, which is [`crate::root_ca`]'s.

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use shared::api::intern::Text;

/// Publishes the apiserver's CA in every namespace.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// A PEM-encoded CA bundle: what is published. Without it: the CA by which this operator verifies the apiserver, of
    /// its kubeconfig or of its pod's ServiceAccount.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = root_ca_file())]
    pub root_ca_file: GivenRootCaFile,
}

/// `--root-ca-file`; none if it was not given, or given as `""`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenRootCaFile(pub Option<RootCaFile>);

/// A file that holds a CA bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootCaFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it held at the start.
    pub ca: Text,
}

fn root_ca_file() -> impl TypedValueParser<Value = GivenRootCaFile> {
    OsStringValueParser::new().try_map(|path| {
        if path.is_empty() {
            return Ok::<_, String>(GivenRootCaFile(None));
        }
        let path = PathBuf::from(path);
        let ca = read(&path)?;
        Ok(GivenRootCaFile(Some(RootCaFile { path, ca })))
    })
}

/// The bundle that this file holds, word for word.
///
/// Upstream: `readCA`, `cmd/kube-controller-manager/app/controllermanager.go`.
pub(crate) fn read(path: &Path) -> Result<Text, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut certificates = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        certificates.add(certificate).map_err(|error| error.to_string())?;
    }
    if certificates.is_empty() {
        return Err("it contains no certificate".to_owned());
    }
    Ok(Text::new(&text))
}
