//! Where a provider serves.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a provider, and the files that secure the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub(crate) address: Address,
    pub(crate) files: Files,
}

/// Where connections lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A Unix socket, which its folder's rights protect.
    Unix(PathBuf),
    /// TLS. The host is a name or an IP address, without brackets.
    Tls { host: String, port: u16 },
    /// A provider in this process.
    #[cfg(any(test, feature = "testing"))]
    Memory(u64),
}

/// The PEM files of TLS. They are read for each connection, so that they may be renewed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// The CAs that the provider's certificate is verified with.
    pub(crate) ca: Option<PathBuf>,
    /// The certificate that the provider knows this controller by, and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

impl Endpoint {
    /// The same, secured with these files.
    pub(crate) fn secured(mut self, files: Files) -> Result<Self, String> {
        let is_tls = matches!(self.address, Address::Tls { .. });
        if is_tls && files.ca.is_none() {
            return Err("--cloud-provider-ca-file is required for an https:// endpoint".to_owned());
        }
        if !is_tls && files != Files::default() {
            return Err("--cloud-provider-{ca,cert,key}-file need an https:// endpoint".to_owned());
        }
        self.files = files;
        Ok(self)
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = if let Some(path) = text.strip_prefix("unix://") {
            Some(path).filter(|path| path.starts_with('/')).map(|path| Address::Unix(path.into()))
        } else if let Some(authority) = text.strip_prefix("https://") {
            host_and_port(authority)
        } else {
            in_memory(text)
        };
        let address = address.ok_or_else(|| format!("{text:?} is neither unix:///PATH nor https://HOST:PORT"))?;
        Ok(Self { address, files: Files::default() })
    }
}

fn host_and_port(authority: &str) -> Option<Address> {
    let (host, port) = authority.rsplit_once(':')?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let bare = if is_bracketed { host.get(1..host.len() - 1)? } else { host };
    let is_host = !bare.is_empty() && !bare.contains(['/', '@', '[', ']']) && bare.contains(':') == is_bracketed;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    is_host.then(|| Address::Tls { host: bare.to_owned(), port })
}

#[cfg(any(test, feature = "testing"))]
fn in_memory(text: &str) -> Option<Address> {
    text.strip_prefix("memory://")?.parse().ok().map(Address::Memory)
}

#[cfg(not(any(test, feature = "testing")))]
fn in_memory(_: &str) -> Option<Address> {
    None
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
            Address::Tls { host, port } if host.contains(':') => write!(f, "https://[{host}]:{port}"),
            Address::Tls { host, port } => write!(f, "https://{host}:{port}"),
            #[cfg(any(test, feature = "testing"))]
            Address::Memory(number) => write!(f, "memory://{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_endpoint_is_printed_as_it_was_read() {
        for text in ["unix:///run/cloud/provider.sock", "https://cloud.example:8443", "https://[2001:db8::1]:443"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        for text in [
            "",
            "unix://relative.sock",
            "/run/provider.sock",
            "http://127.0.0.1:80",
            "https://cloud.example",
            "https://:443",
            "https://cloud.example:0",
            "https://2001:db8::1:443",
            "https://[cloud.example]:443",
            "https://cloud.example:443/path",
            "https://me@cloud.example:443",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(https|unix)://[\\[\\]:a1/.@]{0,12}") {
            if let Ok(endpoint) = text.parse::<Endpoint>() {
                prop_assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint));
            }
        }
    }
}
