//! The CA that verifies the apiserver, for operators that publish it: the current content of `--root-ca-file`.
//!
//! The file is read every few seconds, because a mounted ConfigMap is replaced by a link. Invalid content is logged once
//! and never used.
//! Left out: reloading the CA of the operator's own kubeconfig or pod. The pod's is mounted from what an operator
//! publishes: reloading it would spread an edit of one ConfigMap to all namespaces.

pub mod metrics;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::watch;

use crate::api::intern::Text;
use crate::following::cache::Progress;
use crate::process::flags::SharedFlags;
use crate::process::run::Setup;
use crate::transport::client::load_ca;

/// The time between two reads. A rotation keeps both CAs in the file for hours, so seconds are enough.
const INTERVAL: Duration = Duration::from_secs(5);

/// A file that holds a CA bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootCaFile {
    /// Its path.
    pub path: PathBuf,
    /// The CA at the start.
    pub ca: Text,
}

/// `--root-ca-file`; none if it was not given, or given as `""`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenRootCaFile(pub Option<RootCaFile>);

/// Parses the flag and reads the file. A file that is not a bundle ends the process at its start, as upstream.
pub fn root_ca_file() -> impl TypedValueParser<Value = GivenRootCaFile> {
    OsStringValueParser::new().try_map(|path| {
        if path.is_empty() {
            return Ok::<_, String>(GivenRootCaFile(None));
        }
        let path = PathBuf::from(path);
        let ca = read(&path)?;
        Ok(GivenRootCaFile(Some(RootCaFile { path, ca })))
    })
}

/// The CA to publish.
pub struct RootCa(Mutex<State>);

struct State {
    ca: Option<Text>,
    /// The error of the last read, if it failed.
    error: Option<String>,
}

impl RootCa {
    /// Starts with this CA, if one is known.
    fn new(ca: Option<Text>) -> Self {
        Self(Mutex::new(State { ca, error: None }))
    }

    /// The CA of this flag; without the flag, the one with which this process verifies the apiserver.
    pub fn of_flags(given: &GivenRootCaFile, flags: &SharedFlags) -> Arc<Self> {
        let GivenRootCaFile(file) = given;
        let ca = file.as_ref().map(|file| file.ca.clone()).or_else(|| own_ca(flags));
        Arc::new(Self::new(ca))
    }

    /// Reloads the file, if there is one, for as long as the process runs, and calls `changed` after each change of the
    /// CA.
    pub fn follow_flags(
        self: &Arc<Self>,
        given: &GivenRootCaFile,
        setup: &mut Setup,
        changed: impl Fn() + Send + 'static,
    ) {
        let GivenRootCaFile(Some(file)) = given.clone() else { return };
        let root_ca = Arc::clone(self);
        // The CA was read with the flags.
        let (_, ready) = watch::channel(Progress { synced: true, ..Progress::default() });
        setup.run("root-ca-file", ready, async move { root_ca.follow(file, changed).await });
    }

    /// The current CA.
    pub fn current(&self) -> Option<Text> {
        self.state().ca.clone()
    }

    /// Stores the result of a read. Returns whether the CA has changed.
    fn take(&self, reading: Result<Text, String>) -> bool {
        let mut state = self.state();
        match reading {
            Ok(ca) => {
                state.error = None;
                let is_changed = state.ca.as_ref() != Some(&ca);
                state.ca = Some(ca);
                is_changed
            }
            Err(error) => {
                if state.error.as_ref() != Some(&error) {
                    tracing::warn!(error, "reload of --root-ca-file failed; keeping the previous CA");
                }
                state.error = Some(error);
                false
            }
        }
    }

    /// Reloads the file periodically, and calls `changed` after each change of the CA.
    async fn follow(&self, file: RootCaFile, changed: impl Fn()) {
        let RootCaFile { path, ca: _ } = file;
        loop {
            tokio::time::sleep(INTERVAL).await;
            if self.take(read(&path)) {
                tracing::info!(path = %path.display(), "reloaded --root-ca-file");
                changed();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The CA with which this process verifies the apiserver; none if there is none or it cannot be read.
fn own_ca(flags: &SharedFlags) -> Option<Text> {
    let loaded = load_ca(flags.kubeconfig(), flags.master());
    if let Err(error) = &loaded {
        tracing::warn!(%error, "cannot read the CA that verifies the apiserver");
    }
    loaded.ok().flatten().map(|ca| Text::new(&ca))
}

/// The bundle in this file, byte for byte.
///
/// Upstream: `readCA`, `cmd/kube-controller-manager/app/controllermanager.go`.
fn read(path: &Path) -> Result<Text, String> {
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

#[cfg(test)]
mod tests;
