//! The server's certificate: from files, read again when they change, or self-signed in memory.
//!
//! Left out: `--cert-dir`, SNI, and choice of ciphers: rustls offers none that is unsafe.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

const CERTIFICATE: &str = "--tls-cert-file";
const KEY: &str = "--tls-private-key-file";

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read, or holds something else.
    #[error("cannot use {flag} {}: {cause}", path.display())]
    File { flag: &'static str, path: PathBuf, cause: String },
    /// The two files don't belong together, or the key is of no known kind.
    #[error("cannot use {CERTIFICATE} {} with {KEY} {}: {cause}", certificate.display(), key.display())]
    Pair {
        /// `--tls-cert-file`.
        certificate: PathBuf,
        /// `--tls-private-key-file`.
        key: PathBuf,
        cause: String,
    },
    /// None could be made.
    #[error("cannot make a self-signed certificate: {0}")]
    SelfSigned(String),
}

/// TLS as it is served: HTTP/1.1, no resumption (it would cost memory for each visitor).
pub(super) fn server_config(files: Option<(&Path, &Path)>) -> Result<Arc<ServerConfig>, CertificateError> {
    let provider = Arc::new(ring::default_provider());
    let resolver: Arc<dyn ResolvesServerCert> = match files {
        Some((certificate, key)) => Arc::new(Files::new(certificate, key, Arc::clone(&provider))?),
        None => Arc::new(Fixed(Arc::new(self_signed(&provider)?))),
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| CertificateError::SelfSigned(cause.to_string()))?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn self_signed(provider: &CryptoProvider) -> Result<CertifiedKey, CertificateError> {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let made =
        rcgen::generate_simple_self_signed(names).map_err(|cause| CertificateError::SelfSigned(cause.to_string()))?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .map_err(|cause| CertificateError::SelfSigned(cause.to_owned()))?;
    CertifiedKey::from_der(vec![made.cert.der().clone()], key, provider)
        .map_err(|cause| CertificateError::SelfSigned(cause.to_string()))
}

#[derive(Debug)]
struct Fixed(Arc<CertifiedKey>);

impl ResolvesServerCert for Fixed {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// The times and sizes of both files. When a mounted Secret changes, its link's target has another time.
type Stamp = [Option<(SystemTime, u64)>; 2];

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    current: Mutex<(Stamp, Arc<CertifiedKey>)>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("certificate", &self.certificate).field("key", &self.key).finish_non_exhaustive()
    }
}

impl Files {
    fn new(certificate: &Path, key: &Path, provider: Arc<CryptoProvider>) -> Result<Self, CertificateError> {
        let stamp = stamp(certificate, key);
        let pair = read(certificate, key, &provider)?;
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Self { certificate, key, provider, current: Mutex::new((stamp, Arc::new(pair))) })
    }

    /// The pair as it is now; while the files are being replaced or are broken, the last one that worked.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.certificate, &self.key);
        if stamp != current.0 {
            current.0 = stamp;
            match read(&self.certificate, &self.key, &self.provider) {
                Ok(pair) => {
                    tracing::info!(path = %self.certificate.display(), "certificate reloaded");
                    current.1 = Arc::new(pair);
                }
                Err(error) => tracing::warn!(%error, "reloaded certificate is invalid; keeping the previous one"),
            }
        }
        Arc::clone(&current.1)
    }
}

impl ResolvesServerCert for Files {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

fn stamp(certificate: &Path, key: &Path) -> Stamp {
    [certificate, key].map(|path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}

fn read(certificate: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, CertificateError> {
    let chain = CertificateDer::pem_slice_iter(&file(CERTIFICATE, certificate)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|cause| wrong(CERTIFICATE, certificate, &cause))?;
    if chain.is_empty() {
        return Err(wrong(CERTIFICATE, certificate, &"no certificate in PEM form"));
    }
    let private = PrivateKeyDer::from_pem_slice(&file(KEY, key)?).map_err(|cause| {
        let is_empty = matches!(cause, rustls::pki_types::pem::Error::NoItemsFound);
        if is_empty { wrong(KEY, key, &"no private key in PEM form") } else { wrong(KEY, key, &cause) }
    })?;
    CertifiedKey::from_der(chain, private, provider).map_err(|cause| CertificateError::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        cause: cause.to_string(),
    })
}

fn file(flag: &'static str, path: &Path) -> Result<Vec<u8>, CertificateError> {
    fs::read(path).map_err(|cause: io::Error| wrong(flag, path, &cause))
}

fn wrong(flag: &'static str, path: &Path, cause: &dyn fmt::Display) -> CertificateError {
    CertificateError::File { flag, path: path.to_owned(), cause: cause.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn broken_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let ((certificate, key), (_, other_key)) = (pair(), pair());
        fs::write(path("cert"), certificate).unwrap();
        fs::write(path("key"), key).unwrap();
        fs::write(path("other-key"), other_key).unwrap();
        fs::write(path("empty"), "").unwrap();
        fs::write(path("broken"), "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
        for (certificate, key, expected) in [
            ("missing", "key", "missing: No such file or directory (os error 2)"),
            ("cert", "missing", "missing: No such file or directory (os error 2)"),
            ("empty", "key", "empty: no certificate in PEM form"),
            ("cert", "empty", "empty: no private key in PEM form"),
            ("broken", "key", "broken: "),
            ("cert", "other-key", "other-key: "),
        ] {
            let error = server_config(Some((&path(certificate), &path(key)))).unwrap_err().to_string();
            assert!(error.starts_with("cannot use --tls-") && error.contains(expected), "{certificate} {key}: {error}");
        }
        assert!(server_config(Some((&path("cert"), &path("key")))).is_ok());
    }

    #[test]
    fn a_replaced_certificate_is_used_and_a_broken_one_not() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate_path, key_path) = (folder.path().join("cert"), folder.path().join("key"));
        let write = |(certificate, key): &(String, String)| {
            fs::write(&certificate_path, certificate).unwrap();
            fs::write(&key_path, key).unwrap();
        };
        let (first, mut second) = (pair(), pair());
        // Another length tells them apart even within one tick of the file system's clock.
        second.0.push('\n');
        write(&first);
        let files = Files::new(&certificate_path, &key_path, Arc::new(ring::default_provider())).unwrap();
        let used = files.current();
        assert!(Arc::ptr_eq(&used, &files.current()));
        fs::write(&certificate_path, "broken").unwrap();
        assert!(Arc::ptr_eq(&used, &files.current()));
        write(&second);
        assert_ne!(used.cert, files.current().cert);
    }
}
