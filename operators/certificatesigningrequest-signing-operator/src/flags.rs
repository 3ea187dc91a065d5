//! The flags: those every operator has, and upstream's of this controller.
//!
//! They are checked with each other where they are read, and the files are read with them, so that a pair which is none
//! ends the process at its start.
//! Left out: reading the files again, which is [`crate::observe::authority`]'s.
//!
//! Upstream: `CSRSigningControllerOptions`, `cmd/kube-controller-manager/app/options/csrsigningcontroller.go`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use shared::process::flags::GoDuration;

use crate::objects::Signer;
use crate::observe::authority::{Authorities, Authority, NamedFile, Signing};

/// Signs approved CertificateSigningRequests, as certificatesigningrequest-signing-controller does.
#[derive(Clone, Debug, clap::Args)]
pub struct GivenFlags {
    /// Filename containing a PEM-encoded X509 CA certificate used to issue cluster-scoped certificates. If specified,
    /// no more specific --cluster-signing-* flag may be specified. All files are read again when they change.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_cert_file: PathBuf,
    /// Filename containing a PEM-encoded RSA or ECDSA private key used to sign cluster-scoped certificates. If
    /// specified, no more specific --cluster-signing-* flag may be specified.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_key_file: PathBuf,
    /// Filename containing a PEM-encoded X509 CA certificate used to issue certificates for the
    /// kubernetes.io/kubelet-serving signer. If specified, --cluster-signing-{cert,key}-file must not be set.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_kubelet_serving_cert_file: PathBuf,
    /// Filename containing a PEM-encoded RSA or ECDSA private key used to sign certificates for the
    /// kubernetes.io/kubelet-serving signer. If specified, --cluster-signing-{cert,key}-file must not be set.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_kubelet_serving_key_file: PathBuf,
    /// Filename containing a PEM-encoded X509 CA certificate used to issue certificates for the
    /// kubernetes.io/kube-apiserver-client-kubelet signer. If specified, --cluster-signing-{cert,key}-file must not be
    /// set.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_kubelet_client_cert_file: PathBuf,
    /// Filename containing a PEM-encoded RSA or ECDSA private key used to sign certificates for the
    /// kubernetes.io/kube-apiserver-client-kubelet signer. If specified, --cluster-signing-{cert,key}-file must not be
    /// set.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_kubelet_client_key_file: PathBuf,
    /// Filename containing a PEM-encoded X509 CA certificate used to issue certificates for the
    /// kubernetes.io/kube-apiserver-client signer. If specified, --cluster-signing-{cert,key}-file must not be set.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_kube_apiserver_client_cert_file: PathBuf,
    /// Filename containing a PEM-encoded RSA or ECDSA private key used to sign certificates for the
    /// kubernetes.io/kube-apiserver-client signer. If specified, --cluster-signing-{cert,key}-file must not be set.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_kube_apiserver_client_key_file: PathBuf,
    /// Filename containing a PEM-encoded X509 CA certificate used to issue certificates for the
    /// kubernetes.io/legacy-unknown signer. If specified, --cluster-signing-{cert,key}-file must not be set.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_legacy_unknown_cert_file: PathBuf,
    /// Filename containing a PEM-encoded RSA or ECDSA private key used to sign certificates for the
    /// kubernetes.io/legacy-unknown signer. If specified, --cluster-signing-{cert,key}-file must not be set.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    pub cluster_signing_legacy_unknown_key_file: PathBuf,
    /// The max length of duration signed certificates will be given. Individual CSRs may request shorter certs by
    /// setting spec.expirationSeconds.
    #[arg(long, default_value = "8760h", value_name = "DURATION")]
    pub cluster_signing_duration: GoDuration,
}

/// The checked flags.
#[derive(Clone, Debug)]
pub struct Flags(pub Signing);

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = GivenFlags::from_arg_matches(matches)?;
        given.checked().map(Self).map_err(|wrong| clap::Error::raw(ErrorKind::ValueValidation, wrong))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        GivenFlags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        GivenFlags::augment_args_for_update(command)
    }
}

/// A path that may be empty, as Go's flags may.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

fn is_given(NamedFile { flag: _, path }: &NamedFile) -> bool {
    !path.as_os_str().is_empty()
}

/// The CA in these files; none if neither is given.
///
/// Upstream: `csrSigningFilesValid`.
fn open([certificate, key]: [NamedFile; 2]) -> Result<Option<Arc<Authority>>, String> {
    match (is_given(&certificate), is_given(&key)) {
        (false, false) => Ok(None),
        (true, true) => Authority::open(certificate, key).map(|authority| Some(Arc::new(authority))),
        (false, true) => Err(format!("{} cannot be specified without {}", key.flag, certificate.flag)),
        (true, false) => Err(format!("{} cannot be specified without {}", certificate.flag, key.flag)),
    }
}

impl GivenFlags {
    /// Upstream: `Validate`; `newCertificateSigningRequestSigningController`,
    /// `cmd/kube-controller-manager/app/certificates.go`.
    fn checked(self) -> Result<Signing, String> {
        let duration = self.cluster_signing_duration.0;
        let (of_all, of_each) = self.files();
        let is_one_given = |files: &[NamedFile; 2]| files.iter().any(is_given);
        if is_one_given(&of_all) && of_each.iter().any(|(_, files)| is_one_given(files)) {
            let wrong = "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at \
                         the same time";
            return Err(wrong.to_owned());
        }
        if let Some(authority) = open(of_all)? {
            let of_each = Signer::ALL.map(|signer| (signer, Arc::clone(&authority)));
            return Ok(Signing { authorities: Authorities::new(of_each), duration });
        }
        let mut authorities = Vec::new();
        for (signer, files) in of_each {
            authorities.extend(open(files)?.map(|authority| (signer, authority)));
        }
        Ok(Signing { authorities: Authorities::new(authorities), duration })
    }

    /// The pair for all signers, and the pair for each.
    fn files(self) -> ([NamedFile; 2], [(Signer, [NamedFile; 2]); 4]) {
        let file = |flag: &'static str, path: PathBuf| NamedFile { flag, path };
        let of_all = [
            file("--cluster-signing-cert-file", self.cluster_signing_cert_file),
            file("--cluster-signing-key-file", self.cluster_signing_key_file),
        ];
        let kubelet_serving = [
            file("--cluster-signing-kubelet-serving-cert-file", self.cluster_signing_kubelet_serving_cert_file),
            file("--cluster-signing-kubelet-serving-key-file", self.cluster_signing_kubelet_serving_key_file),
        ];
        let kubelet_client = [
            file("--cluster-signing-kubelet-client-cert-file", self.cluster_signing_kubelet_client_cert_file),
            file("--cluster-signing-kubelet-client-key-file", self.cluster_signing_kubelet_client_key_file),
        ];
        let kube_apiserver_client = [
            file(
                "--cluster-signing-kube-apiserver-client-cert-file",
                self.cluster_signing_kube_apiserver_client_cert_file,
            ),
            file(
                "--cluster-signing-kube-apiserver-client-key-file",
                self.cluster_signing_kube_apiserver_client_key_file,
            ),
        ];
        let legacy_unknown = [
            file("--cluster-signing-legacy-unknown-cert-file", self.cluster_signing_legacy_unknown_cert_file),
            file("--cluster-signing-legacy-unknown-key-file", self.cluster_signing_legacy_unknown_key_file),
        ];
        let of_each = [
            (Signer::KubeletServing, kubelet_serving),
            (Signer::KubeletClient, kubelet_client),
            (Signer::KubeApiserverClient, kube_apiserver_client),
            (Signer::LegacyUnknown, legacy_unknown),
        ];
        (of_all, of_each)
    }
}
