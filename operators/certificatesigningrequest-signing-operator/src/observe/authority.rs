//! The CAs of the signers: pairs of files, which are checked before each signature and reloaded when they change.
//!
//! While the files are invalid, the last valid pair signs.
//!
//! Upstream: `caProvider`, `pkg/controller/certificates/signer/ca_provider.go`; `DynamicCertKeyPairContent`,
//! `staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates/dynamic_serving_content.go`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use zeroize::Zeroizing;

use super::pair::{Pair, PairError};
use crate::objects::Signer;

/// The bits of a file's mode by which others than its owner may read it.
const READABLE_BY_OTHERS: u32 = 0o044;

#[derive(Clone, Debug)]
pub struct Signing {
    pub authorities: Authorities,
    /// `--cluster-signing-duration`: the longest time that a certificate is valid.
    pub duration: Duration,
}

/// The CA of each signer that has one; cheap to clone. Signers with the same files share it.
#[derive(Clone, Debug, Default)]
pub struct Authorities(BTreeMap<Signer, Arc<Authority>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    pub flag: &'static str,
    pub path: PathBuf,
}

/// A CA: the file of its certificate, and the file of its key.
pub struct Authority {
    certificate: NamedFile,
    key: NamedFile,
    current: Mutex<Current>,
}

struct Current {
    stamp: Stamp,
    pair: Arc<Pair>,
}

/// The times, sizes and inodes of both files. A changed Secret is mounted as another file.
type Stamp = [Option<(SystemTime, u64, u64)>; 2];

impl Authorities {
    pub fn new(authorities: impl IntoIterator<Item = (Signer, Arc<Authority>)>) -> Self {
        Self(authorities.into_iter().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The current CA of a signer, if it has files.
    pub fn current(&self, signer: Signer) -> Option<Arc<Pair>> {
        self.0.get(&signer).map(|authority| authority.current())
    }

    /// Logs each key file that others than its owner may read.
    pub(crate) fn warn_of_open_files(&self) {
        let mut told: Vec<&Path> = Vec::new();
        for authority in self.0.values() {
            let NamedFile { flag, path } = &authority.key;
            if !told.contains(&path.as_path()) && is_open(path) {
                tracing::warn!(flag, path = %path.display(), "the file of the CA key is readable by others than its owner");
                told.push(path);
            }
        }
    }
}

impl Authority {
    /// Reads both files; the error names the flag of the one that cannot be used.
    pub fn open(certificate: NamedFile, key: NamedFile) -> Result<Self, String> {
        let stamp = [stamp(&certificate.path), stamp(&key.path)];
        let pair = read(&certificate, &key)?;
        Ok(Self { certificate, key, current: Mutex::new(Current { stamp, pair: Arc::new(pair) }) })
    }

    pub fn current(&self) -> Arc<Pair> {
        let mut current = self.locked();
        let stamp = [stamp(&self.certificate.path), stamp(&self.key.path)];
        if stamp != current.stamp {
            current.stamp = stamp;
            match read(&self.certificate, &self.key) {
                Ok(pair) if pair == *current.pair => {}
                Ok(pair) => {
                    tracing::info!(path = %self.certificate.path.display(), "reloaded CA");
                    current.pair = Arc::new(pair);
                }
                Err(error) => tracing::error!(error, "reloaded CA is invalid; still signing with the previous one"),
            }
        }
        Arc::clone(&current.pair)
    }

    fn locked(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("certificate", &self.certificate)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

fn stamp(path: &Path) -> Option<(SystemTime, u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

fn is_open(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & READABLE_BY_OTHERS != 0)
}

fn read(certificate: &NamedFile, key: &NamedFile) -> Result<Pair, String> {
    let wrong = |NamedFile { flag, path }: &NamedFile, cause: &dyn fmt::Display| {
        format!("cannot use {flag} {}: {cause}", path.display())
    };
    let certificate_text = fs::read(&certificate.path).map_err(|cause| wrong(certificate, &cause))?;
    let key_text = fs::read(&key.path).map(Zeroizing::new).map_err(|cause| wrong(key, &cause))?;
    Pair::read(&certificate_text, &key_text).map_err(|error| match error {
        PairError::Certificate(cause) => wrong(certificate, &cause),
        PairError::Key(cause) => wrong(key, &cause),
        PairError::Mismatch => {
            let cause = format!("it is not the key of {} {}", certificate.flag, certificate.path.display());
            wrong(key, &cause)
        }
    })
}
