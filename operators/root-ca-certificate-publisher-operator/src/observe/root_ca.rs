//! The CA that is published: as `--root-ca-file` has it now.
//!
//! The file is read every few seconds, whole: its text says that it has changed, however it was replaced (a mounted
//! ConfigMap changes by a link). What is no bundle is logged once and never published.
//! Left out: following the CA of the operator's own kubeconfig or pod. The pod's is mounted from what this operator
//! publishes: following it would make an edit of one ConfigMap the CA of all namespaces.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use shared::api::intern::Text;

/// A rotation has both CAs in the file for hours. This often it costs nothing.
const INTERVAL: Duration = Duration::from_secs(5);

/// A file that holds a CA bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootCaFile {
    /// Where it is.
    pub path: PathBuf,
    /// The CA at the start.
    pub ca: Text,
}

/// The CA to publish.
pub struct RootCa(Mutex<State>);

struct State {
    ca: Option<Text>,
    /// Why the file cannot be used, since it cannot.
    broken: Option<String>,
}

impl RootCa {
    /// Begins with this; none if nobody has said what is to be published.
    pub fn new(ca: Option<Text>) -> Self {
        Self(Mutex::new(State { ca, broken: None }))
    }

    /// As it is now.
    pub fn current(&self) -> Option<Text> {
        self.state().ca.clone()
    }

    /// Takes in what the file holds, and gives whether something else is to be published from now on.
    pub fn take(&self, reading: Result<Text, String>) -> bool {
        let mut state = self.state();
        match reading {
            Ok(ca) => {
                state.broken = None;
                let is_news = state.ca.as_ref() != Some(&ca);
                state.ca = Some(ca);
                is_news
            }
            Err(error) => {
                if state.broken.as_ref() != Some(&error) {
                    tracing::warn!(error, "--root-ca-file has changed for the worse: what it held stays published");
                }
                state.broken = Some(error);
                false
            }
        }
    }

    /// Reads the file again and again, and calls `changed` each time something else is to be published.
    pub async fn follow(&self, file: RootCaFile, changed: impl Fn()) {
        let RootCaFile { path, ca: _ } = file;
        loop {
            tokio::time::sleep(INTERVAL).await;
            if self.take(read(&path)) {
                tracing::info!(path = %path.display(), "--root-ca-file has changed");
                changed();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
