//! The CA by which a client verifies the apiserver: as text, for operators that publish it, and the file it is from.
//!
//! Left out: noticing that it has changed, which is in `credentials`.

use std::path::{Path, PathBuf};

use kube::config::{ExecAuthCluster, Kubeconfig, KubeconfigError};

use super::kubeconfig::{self, unusable};
use super::{ConfigError, chain};

const IN_CLUSTER: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// The CA bundle that [`super::load_config`] with the same arguments verifies the apiserver by: PEM, unchanged but for a
/// newline at the end. None if neither the kubeconfig nor the pod has one.
///
/// Upstream: `getKubeAPIServerCAFileContents`, cmd/kube-controller-manager/app/certificates.go. It ignores a CA that the
/// kubeconfig names by its file.
pub fn load_ca(kubeconfig: Option<&Path>, master: Option<&str>) -> Result<Option<String>, ConfigError> {
    match (kubeconfig, master) {
        (Some(path), _) => {
            let bytes = of_current(&kubeconfig::read(path)?).map_err(|cause| unusable(path, &chain(&cause)))?;
            bytes.map(String::from_utf8).transpose().map_err(|cause| unusable(path, &chain(&cause)))
        }
        (None, Some(_)) => Ok(None),
        (None, None) => {
            let read = std::fs::read_to_string(IN_CLUSTER);
            read.map(Some).map_err(|cause| ConfigError::NotInCluster(format!("{IN_CLUSTER}: {cause}")))
        }
    }
}

/// The file of that CA; none where the kubeconfig itself has it.
pub(super) fn ca_file(kubeconfig: Option<&Kubeconfig>, master: Option<&str>) -> Option<PathBuf> {
    match (kubeconfig, master) {
        (Some(read), _) => {
            let cluster = kubeconfig::current_cluster(read);
            let named = cluster.filter(|cluster| cluster.certificate_authority_data.is_none());
            named.and_then(|cluster| cluster.certificate_authority.as_ref()).map(PathBuf::from)
        }
        (None, Some(_)) => None,
        (None, None) => Some(PathBuf::from(IN_CLUSTER)),
    }
}

fn of_current(read: &Kubeconfig) -> Result<Option<Vec<u8>>, KubeconfigError> {
    kubeconfig::current_cluster(read).map_or(Ok(None), |cluster| {
        // kube reads a CA, from wherever it is, only to pass it on to a credential plugin.
        ExecAuthCluster::try_from(cluster).map(|cluster| cluster.certificate_authority_data)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CA, as text, and its file, of a kubeconfig whose current context's cluster says this.
    fn load(cluster: &str) -> String {
        read(cluster).0
    }

    fn read(cluster: &str) -> (String, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.crt"), "from a file\n").unwrap();
        let text = format!(
            "current-context: b
contexts: [{{name: a, context: {{cluster: other}}}}, {{name: b, context: {{cluster: this}}}}]
clusters: [{{name: other, cluster: {{certificate-authority-data: eA==}}}}, {{name: this, cluster: {cluster}}}]
"
        );
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, text).unwrap();
        let text = match load_ca(Some(&path), Some("https://elsewhere")) {
            Ok(Some(ca)) => ca,
            Ok(None) => "none".to_owned(),
            Err(_) => "error".to_owned(),
        };
        let file = ca_file(Some(&kubeconfig::read(&path).unwrap()), Some("https://elsewhere"));
        (text, file.map(|file| file.strip_prefix(folder.path()).unwrap().display().to_string()))
    }

    #[test]
    fn the_ca_is_that_of_the_current_contexts_cluster() {
        assert_eq!(load("{certificate-authority-data: aW5saW5lCg==}"), "inline\n");
        assert_eq!(load("{certificate-authority: ca.crt}"), "from a file\n");
        assert_eq!(load("{server: https://a}"), "none");
    }

    #[test]
    fn the_file_is_that_of_the_ca_which_is_used() {
        let file = |cluster| read(cluster).1;
        assert_eq!(file("{certificate-authority: ca.crt}").as_deref(), Some("ca.crt"));
        assert_eq!(file("{certificate-authority: ca.crt, certificate-authority-data: aW5saW5lCg==}"), None);
        assert_eq!(file("{server: https://a}"), None);
        assert_eq!(ca_file(None, Some("https://a")), None);
        assert_eq!(ca_file(None, None).as_deref(), Some(Path::new(IN_CLUSTER)));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        assert_eq!(load("{certificate-authority: not-there.crt}"), "error");
        assert_eq!(load("{certificate-authority-data: '*'}"), "error");
        assert!(load_ca(Some(Path::new("/not/there")), None).is_err());
    }

    #[test]
    fn an_address_alone_has_no_ca() {
        assert_eq!(load_ca(None, Some("https://a")).unwrap(), None);
    }
}
