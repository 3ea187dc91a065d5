//! The keys and certificates of one cluster, made in process.
//! Left out: a front proxy (who serves an aggregated API here does not ask who comes), renewal (a run is shorter than a
//! certificate), and encryption of the keys on disk (they open a cluster that lives for one run).

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// A certificate authority, and the folder its files go to.
pub struct Pki {
    dir: PathBuf,
    ca_pem: String,
    ca_der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Pki {
    /// Makes the authority, the apiserver's certificate and the key pair that signs service accounts' tokens.
    pub fn create(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        let key = KeyPair::generate().context("make the authority's key")?;
        let mut params = named("e2e");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).context("sign the authority's certificate")?;
        let ca_key_pem = key.serialize_pem();
        let pki = Self {
            dir: dir.to_owned(),
            ca_pem: certificate.pem(),
            ca_der: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        };
        pki.write("ca.crt", &pki.ca_pem)?;
        pki.write("ca.key", &ca_key_pem)?;
        let server = pki.server("kube-apiserver")?;
        pki.write("apiserver.crt", &server.certificate)?;
        pki.write("apiserver.key", &server.key)?;
        let accounts = KeyPair::generate().context("make the service accounts' key")?;
        pki.write("sa.key", &accounts.serialize_pem())?;
        pki.write("sa.pub", &accounts.public_key_pem())?;
        Ok(pki)
    }

    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    pub fn ca_der(&self) -> CertificateDer<'static> {
        self.ca_der.clone()
    }

    pub fn folder(&self) -> &Path {
        &self.dir
    }

    /// Where the file `name` is (or would be).
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A client certificate: `user` is its common name, `group` its organization.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = named(user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (certificate, key) = self.sign(params)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    pub fn server(&self, name: &str) -> Result<Identity> {
        let (certificate, key) = self.sign(server_params(name)?)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// The configuration of a TLS server of ours on this machine.
    pub fn tls(&self, name: &str) -> Result<ServerConfig> {
        let (certificate, key) = self.sign(server_params(name)?)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("choose TLS versions")?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .with_context(|| format!("use the certificate of {name}"))
    }

    fn sign(&self, mut params: CertificateParams) -> Result<(rcgen::Certificate, KeyPair)> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().context("make a key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("sign a certificate")?;
        Ok((certificate, key))
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.file(name);
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    }
}

/// A request for a client certificate, as PEM: `user` is its common name, `group` its organization. Nobody keeps the key.
pub fn certificate_request(user: &str, group: &str) -> Result<String> {
    Ok(Requested::new(user, group, &[])?.request)
}

/// A request for a certificate and the key that it is for, as PEM.
pub struct Requested {
    pub request: String,
    pub key: String,
}

impl Requested {
    pub fn new(user: &str, group: &str, names: &[&str]) -> Result<Self> {
        let mut params = named(user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        for name in names {
            params.subject_alt_names.push(SanType::DnsName((*name).try_into().context("a DNS name")?));
        }
        let key = KeyPair::generate().context("make a key")?;
        let request = params.serialize_request(&key).context("sign a request")?;
        Ok(Self { request: request.pem().context("write a request as PEM")?, key: key.serialize_pem() })
    }

    pub fn signed(self, certificate: String) -> Identity {
        Identity { certificate, key: self.key }
    }
}

fn named(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

fn server_params(name: &str) -> Result<CertificateParams> {
    let mut params = named(name);
    params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
    for dns in ["localhost", "kubernetes.default.svc"] {
        params.subject_alt_names.push(SanType::DnsName(dns.try_into().context("a DNS name")?));
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}
