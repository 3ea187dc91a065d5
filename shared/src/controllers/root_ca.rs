//! The CA that verifies the apiserver, for operators that hand it out: as `--root-ca-file` has it now.
//!
//! The file is read every few seconds, whole: its text says that it has changed, however it was replaced (a mounted
//! ConfigMap changes by a link). What is no bundle is logged once and never used.
//! Left out: following the CA of the operator's own kubeconfig or pod. The pod's is mounted from what an operator
//! publishes: following it would make an edit of one ConfigMap the CA of all namespaces.

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
use crate::runtime::cache::Progress;
use crate::runtime::client::load_ca;
use crate::runtime::flags::SharedFlags;
use crate::runtime::run::Setup;

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

/// `--root-ca-file`; none if it was not given, or given as `""`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenRootCaFile(pub Option<RootCaFile>);

/// Reads the flag and the file, so that a file which is no bundle ends the process at its start, as upstream's does.
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

/// The CA to hand out.
pub struct RootCa(Mutex<State>);

struct State {
    ca: Option<Text>,
    /// Why the file cannot be used, since it cannot.
    broken: Option<String>,
}

impl RootCa {
    /// Begins with this; none if nobody has said which it is.
    fn new(ca: Option<Text>) -> Self {
        Self(Mutex::new(State { ca, broken: None }))
    }

    /// The CA by this flag, or without it the one by which this process verifies the apiserver.
    pub fn of_flags(given: &GivenRootCaFile, flags: &SharedFlags) -> Arc<Self> {
        let GivenRootCaFile(file) = given;
        let ca = file.as_ref().map(|file| file.ca.clone()).or_else(|| own_ca(flags));
        Arc::new(Self::new(ca))
    }

    /// Has the process follow the file, if there is one, and call `changed` each time another CA is to be handed out.
    pub fn follow_flags(
        self: &Arc<Self>,
        given: &GivenRootCaFile,
        setup: &mut Setup,
        changed: impl Fn() + Send + 'static,
    ) {
        let GivenRootCaFile(Some(file)) = given.clone() else { return };
        let root_ca = Arc::clone(self);
        // The CA that was read with the flags is there already.
        let (_, ready) = watch::channel(Progress { synced: true, ..Progress::default() });
        setup.run("root-ca-file", ready, async move { root_ca.follow(file, changed).await });
    }

    /// As it is now.
    pub fn current(&self) -> Option<Text> {
        self.state().ca.clone()
    }

    /// Takes in what the file holds, and gives whether another CA is to be handed out from now on.
    fn take(&self, reading: Result<Text, String>) -> bool {
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
                    tracing::warn!(error, "--root-ca-file has changed for the worse: what it held stays in use");
                }
                state.broken = Some(error);
                false
            }
        }
    }

    /// Reads the file again and again, and calls `changed` each time another CA is to be handed out.
    async fn follow(&self, file: RootCaFile, changed: impl Fn()) {
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

/// The CA by which this process verifies the apiserver; none where it knows none, or cannot read it.
fn own_ca(flags: &SharedFlags) -> Option<Text> {
    let loaded = load_ca(flags.kubeconfig(), flags.master());
    if let Err(error) = &loaded {
        tracing::warn!(%error, "cannot read the CA that verifies the apiserver");
    }
    loaded.ok().flatten().map(|ca| Text::new(&ca))
}

/// The bundle that this file holds, word for word.
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
