//! Connections to a provider: over a Unix socket, or over TLS.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tower::Service;

use crate::endpoint::{Address, Endpoint, Files};

/// A byte stream in both directions.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Duplex for T {}

/// A connection, whatever carries it.
pub(crate) struct Stream(Box<dyn Duplex>);

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Connects to one endpoint, whatever the request's address says.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Endpoint>);

impl Connector {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self(Arc::new(endpoint))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let endpoint = Arc::clone(&self.0);
        Box::pin(async move {
            let stream = connect(&endpoint).await.map_err(|cause| {
                io::Error::new(cause.kind(), format!("cannot connect to the cloud provider at {endpoint}: {cause}"))
            })?;
            Ok(TokioIo::new(stream))
        })
    }
}

async fn connect(Endpoint { address, files }: &Endpoint) -> io::Result<Stream> {
    Ok(Stream(match address {
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
        Address::Tls { host, port } => {
            let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
            let tls = TlsConnector::from(Arc::new(client_config(files)?));
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            Box::new(tls.connect(name, stream).await?)
        }
        #[cfg(any(test, feature = "testing"))]
        Address::Memory(number) => Box::new(crate::testing::connect(*number)?),
    }))
}

/// TLS with what the files hold now.
fn client_config(Files { ca, identity }: &Files) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|cause| unusable(path, &cause))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let mut config = match identity {
        Some((certificate, key)) => {
            let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|cause| unusable(key, &cause))?;
            config
                .with_client_auth_cert(certificates(certificate)?, private)
                .map_err(|cause| unusable(certificate, &cause))?
        }
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|cause| unusable(path, &cause))?;
    if found.is_empty() { Err(unusable(path, &"it has no certificate")) } else { Ok(found) }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|cause| unusable(path, &cause))
}

fn unusable(path: &Path, cause: &dyn Display) -> io::Error {
    io::Error::other(format!("cannot use {}: {cause}", path.display()))
}
