//! The flags of every controller of a cloud.

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::endpoint::{Endpoint, Files};

/// Where the provider serves.
#[derive(Clone, Debug, clap::Args)]
pub struct ProviderFlags {
    /// Address of the cloud provider: unix:///PATH of its socket, or https://HOST:PORT.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "ADDRESS")]
    pub cloud_provider_endpoint: String,
    /// File with the PEM-encoded certificates of the CAs that verify the cloud provider's certificate. Required for an
    /// https:// endpoint. The files are read again for each connection.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cloud_provider_ca_file: PathBuf,
    /// File with the PEM-encoded certificate that the cloud provider knows this controller by.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cloud_provider_cert_file: PathBuf,
    /// File with the PEM-encoded private key of --cloud-provider-cert-file.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cloud_provider_key_file: PathBuf,
}

/// The flags of a controller that has no other way to a cloud: they are checked where they are read.
#[derive(Clone, Debug)]
pub struct RequiredProvider(Endpoint);

impl RequiredProvider {
    pub fn endpoint(&self) -> &Endpoint {
        &self.0
    }
}

impl FromArgMatches for RequiredProvider {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let endpoint = ProviderFlags::from_arg_matches(matches)?.required_endpoint();
        endpoint.map(Self).map_err(|wrong| clap::Error::raw(ErrorKind::ValueValidation, wrong))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RequiredProvider {
    fn augment_args(command: Command) -> Command {
        ProviderFlags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ProviderFlags::augment_args_for_update(command)
    }
}

/// The name of the cluster, for resources of a cloud that belong to it.
#[derive(Clone, Debug, clap::Args)]
pub struct ClusterFlags {
    /// The instance prefix for the cluster.
    #[arg(long, default_value = "kubernetes", value_name = "NAME")]
    pub cluster_name: String,
}

impl ProviderFlags {
    /// The endpoint; none if `--cloud-provider-endpoint` is not given.
    ///
    /// # Errors
    /// When the address is none, or the files do not fit it.
    pub fn endpoint(&self) -> Result<Option<Endpoint>, String> {
        let files = self.files()?;
        if self.cloud_provider_endpoint.is_empty() {
            let is_alone = files == Files::default();
            return is_alone
                .then_some(None)
                .ok_or_else(|| "--cloud-provider-{ca,cert,key}-file need --cloud-provider-endpoint".to_owned());
        }
        let endpoint: Endpoint = self
            .cloud_provider_endpoint
            .parse()
            .map_err(|wrong| format!("invalid value for --cloud-provider-endpoint: {wrong}"))?;
        endpoint.secured(files).map(Some)
    }

    /// The endpoint of a controller that has no other way to a cloud.
    ///
    /// # Errors
    /// As [`Self::endpoint`], and when `--cloud-provider-endpoint` is not given.
    pub fn required_endpoint(&self) -> Result<Endpoint, String> {
        self.endpoint()?.ok_or_else(|| "--cloud-provider-endpoint is required".to_owned())
    }

    fn files(&self) -> Result<Files, String> {
        let ca = given(&self.cloud_provider_ca_file);
        let identity = match (given(&self.cloud_provider_cert_file), given(&self.cloud_provider_key_file)) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                let wrong = "--cloud-provider-cert-file and --cloud-provider-key-file must be given together";
                return Err(wrong.to_owned());
            }
        };
        Ok(Files { ca, identity })
    }
}

/// A path that may be empty, as Go's flags may.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

fn given(path: &Path) -> Option<PathBuf> {
    Some(path).filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(flags: &[&str], expected: Result<Option<&str>, &str>) {
        let program = std::iter::once("operator").chain(flags.iter().copied());
        let matches = ProviderFlags::augment_args(Command::new("operator")).try_get_matches_from(program).unwrap();
        let endpoint = ProviderFlags::from_arg_matches(&matches).unwrap().endpoint();
        let endpoint = endpoint.map(|endpoint| endpoint.map(|endpoint| endpoint.to_string()));
        let expected = expected.map(|endpoint| endpoint.map(str::to_owned)).map_err(str::to_owned);
        assert_eq!(endpoint, expected);
    }

    #[test]
    fn an_endpoint_has_the_files_that_it_needs_and_no_others() {
        check(&[], Ok(None));
        check(&["--cloud-provider-endpoint=unix:///a.sock"], Ok(Some("unix:///a.sock")));
        let tls = "--cloud-provider-endpoint=https://cloud:443";
        check(&[tls, "--cloud-provider-ca-file=ca.pem"], Ok(Some("https://cloud:443")));
        let pair = ["--cloud-provider-cert-file=c.pem", "--cloud-provider-key-file=k.pem"];
        check(&[tls, "--cloud-provider-ca-file=ca.pem", pair[0], pair[1]], Ok(Some("https://cloud:443")));
        check(&[tls], Err("--cloud-provider-ca-file is required for an https:// endpoint"));
        check(&[tls, pair[0]], Err("--cloud-provider-cert-file and --cloud-provider-key-file must be given together"));
        check(
            &["--cloud-provider-endpoint=unix:///a.sock", "--cloud-provider-ca-file=ca.pem"],
            Err("--cloud-provider-{ca,cert,key}-file need an https:// endpoint"),
        );
        check(&pair, Err("--cloud-provider-{ca,cert,key}-file need --cloud-provider-endpoint"));
        check(
            &["--cloud-provider-endpoint=a.sock"],
            Err(
                "invalid value for --cloud-provider-endpoint: \"a.sock\" is neither unix:///PATH nor https://HOST:PORT",
            ),
        );
    }

    #[test]
    fn a_controller_that_needs_a_provider_names_the_missing_flag() {
        let command = RequiredProvider::augment_args(Command::new("operator"));
        let matches = command.try_get_matches_from(["operator"]).unwrap();
        let error = RequiredProvider::from_arg_matches(&matches).unwrap_err();
        assert!(error.to_string().contains("--cloud-provider-endpoint is required"), "{error}");
    }
}
