//! Addresses of operators that run in no pod.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use http::Uri;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

pub type Servers = BTreeMap<String, Server>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub(super) address: Uri,
    /// The only certificate to accept; without one, any.
    pub(super) certificate: Option<CertificateDer<'static>>,
}

impl Server {
    pub(crate) fn pinned(port: u16, certificate: CertificateDer<'static>) -> Result<Self> {
        let address = format!("https://127.0.0.1:{port}").parse().context("invalid address")?;
        Ok(Self { address, certificate: Some(certificate) })
    }

    pub(super) fn host(&self) -> &str {
        self.address.host().unwrap_or_default().trim_matches(['[', ']'])
    }

    fn is_on_this_machine(&self) -> bool {
        self.host() == "localhost" || self.host().parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

/// Parses `deployment-operator=https://127.0.0.1:1234`, which a file in PEM form may follow after a comma: the
/// certificate that this server has.
pub fn parse_server(text: &str) -> Result<(String, Server), String> {
    let (name, server) = text.split_once('=').ok_or("expected OPERATOR=https://HOST:PORT[,CERTIFICATE]")?;
    let (address, file) = server.split_once(',').map_or((server, None), |(address, file)| (address, Some(file)));
    let address: Uri = address.trim().parse().map_err(|error| format!("{address}: {error}"))?;
    if address.scheme_str() != Some("https") || address.port_u16().is_none() {
        return Err(format!("{address}: expected https://HOST:PORT"));
    }
    let certificate =
        file.map(|file| CertificateDer::from_pem_file(file.trim()).map_err(|error| format!("{file}: {error}")));
    let server = Server { address, certificate: certificate.transpose()? };
    if server.certificate.is_none() && !server.is_on_this_machine() {
        return Err(format!("{}: not on this machine; append the file of its certificate: URL,FILE", server.address));
    }
    Ok((name.trim().to_owned(), server))
}

/// Reads a file with one `--server` a line.
pub fn read_servers(path: &Path) -> Result<Servers> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse_server(line).map_err(|error| anyhow!("{}: {line}: {error}", path.display()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked_where_it_is_given() {
        let port = |text: &str| parse_server(text).map(|(name, server)| (name, server.address.port_u16()));
        for local in ["a=https://127.0.0.1:1", "a=https://127.1.2.3:1", "a=https://[::1]:1", "a=https://localhost:1"] {
            assert_eq!(port(local), Ok(("a".to_owned(), Some(1))), "{local}");
        }
        assert!(parse_server("a").is_err());
        assert_eq!(port("a=http://b:1"), Err("http://b:1/: expected https://HOST:PORT".to_owned()));
        assert!(parse_server("a=https://b").is_err());
    }

    #[test]
    fn an_address_elsewhere_needs_its_certificate() {
        let made = rcgen::generate_simple_self_signed(["b".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tls.crt").display().to_string();
        std::fs::write(&file, made.cert.pem()).unwrap();
        for elsewhere in ["10.0.0.1", "b", "localhost.example", "[::ffff:127.0.0.1]"] {
            let error = parse_server(&format!("a=https://{elsewhere}:1")).unwrap_err();
            assert!(error.contains("not on this machine"), "{elsewhere}: {error}");
            let (_, server) = parse_server(&format!("a=https://{elsewhere}:1,{file}")).unwrap();
            assert_eq!(server.certificate.as_ref(), Some(made.cert.der()));
        }
        assert!(parse_server(&format!("a=https://127.0.0.1:1,{file}.missing")).is_err());
    }
}
