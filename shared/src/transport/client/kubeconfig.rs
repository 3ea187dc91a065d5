//! Reads a kubeconfig into kube's types.
//!
//! kube's own reader is not used: its YAML reader is compiled once for each of its dozens of types, half a MiB in each
//! operator. Here YAML becomes JSON first, as in client-go, so a text must be a string and no number.
//! Left out: merging the files of `$KUBECONFIG`; `--kubeconfig` names one.

use std::path::Path;

use kube::config::{AuthInfo, Cluster, Context, Kubeconfig};
use serde_json::Value;

use super::ConfigError;
use crate::transport::api_error::chain;

/// The file's contents; relative paths in it are relative to its folder.
///
/// Upstream: `LoadFromFile`, `ResolveLocalPaths`, staging/src/k8s.io/client-go/tools/clientcmd/loader.go.
pub(super) fn read(path: &Path) -> Result<Kubeconfig, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|cause| unusable(path, &chain(&cause)))?;
    let documents: Vec<Value> = serde_yaml::from_multiple(&text).map_err(|cause| unusable(path, &chain(&cause)))?;
    let mut merged = Kubeconfig::default();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let document = serde_json::from_value(document).map_err(|cause| unusable(path, &chain(&cause)))?;
        merged = merged.merge(document).map_err(|cause| unusable(path, &chain(&cause)))?;
    }
    if let Some(folder) = path.parent() {
        resolve(&mut merged, folder);
    }
    Ok(merged)
}

pub(super) fn unusable(path: &Path, cause: &str) -> ConfigError {
    ConfigError::Kubeconfig {
        path: path.display().to_string(),
        // The reader of YAML calls an error one, as the line in which it is told does, and adds a picture of the line.
        cause: cause.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    }
}

/// Makes each path that a kubeconfig may have absolute.
fn resolve(kubeconfig: &mut Kubeconfig, folder: &Path) {
    // An empty path is none.
    let against_folder = |file: &mut Option<String>| {
        let path = file.take().filter(|file| !file.is_empty());
        *file = path.map(|path| folder.join(&path).to_str().map_or(path, str::to_owned));
    };
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        against_folder(&mut cluster.certificate_authority);
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        against_folder(&mut user.client_certificate);
        against_folder(&mut user.client_key);
        against_folder(&mut user.token_file);
        // A name alone is looked for on the PATH.
        if let Some(plugin) = &mut user.exec
            && plugin.command.as_ref().is_some_and(|command| command.contains('/'))
        {
            against_folder(&mut plugin.command);
        }
    }
}

fn current_context(kubeconfig: &Kubeconfig) -> Option<&Context> {
    let name = kubeconfig.current_context.as_ref()?;
    kubeconfig.contexts.iter().find(|context| context.name == *name)?.context.as_ref()
}

pub(super) fn current_cluster(kubeconfig: &Kubeconfig) -> Option<&Cluster> {
    let name = &current_context(kubeconfig)?.cluster;
    kubeconfig.clusters.iter().find(|cluster| cluster.name == *name)?.cluster.as_ref()
}

pub(super) fn current_user(kubeconfig: &Kubeconfig) -> Option<&AuthInfo> {
    let name = current_context(kubeconfig)?.user.as_ref()?;
    kubeconfig.auth_infos.iter().find(|user| user.name == *name)?.auth_info.as_ref()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    const FILE: &str = "
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: https://a, certificate-authority: pki/ca.crt}}]
users:
- name: a
  user:
    client-certificate: /absolute.crt
    client-key: a.key
    tokenFile: token
    exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login}
- name: b
  user:
    client-certificate: ''
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login}
";

    fn file(text: &str) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn read_text(text: &str) -> Kubeconfig {
        let (_folder, path) = file(text);
        read(&path).unwrap()
    }

    /// The error, as if the file's folder was `/etc`.
    fn error_of(text: &str) -> String {
        let (folder, path) = file(text);
        read(&path).unwrap_err().to_string().replace(folder.path().to_str().unwrap(), "/etc")
    }

    #[test]
    fn paths_are_relative_to_the_files_folder_and_a_plugins_name_is_not() {
        let (folder, path) = file(FILE);
        let read = read(&path).unwrap();
        let users = serde_json::to_string(&read.auth_infos).unwrap();
        let users = users.replace(folder.path().to_str().unwrap(), "/etc");
        let cluster = current_cluster(&read).unwrap();
        assert!(cluster.certificate_authority.as_ref().unwrap().ends_with("/pki/ca.crt"), "{cluster:?}");
        for said in [
            r#""client-certificate":"/absolute.crt""#,
            r#""client-key":"/etc/a.key""#,
            r#""tokenFile":"/etc/token""#,
            r#""command":"/etc/bin/login""#,
            r#""command":"login""#,
        ] {
            assert!(users.contains(said), "{users}");
        }
        assert_eq!(current_user(&read).unwrap().client_certificate.as_deref(), Some("/absolute.crt"));
        assert_eq!(read.auth_infos[1].auth_info.as_ref().unwrap().client_certificate, None, "an empty path");
    }

    #[test]
    fn json_and_several_documents_are_read_too() {
        let read = read_text(r#"{"current-context": "b", "clusters": []}"#);
        assert_eq!(read.current_context.as_deref(), Some("b"));
        let read = read_text(&format!("---\n{FILE}\n---\ncurrent-context: b\nclusters: []\n---\n"));
        assert_eq!((read.current_context.as_deref(), read.clusters.len()), (Some("a"), 1));
        assert!(read_text("").current_context.is_none());
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (text, expected) in [
            ("current-context: [", "cannot use kubeconfig /etc/kubeconfig: "),
            (
                "current-context: 5",
                "cannot use kubeconfig /etc/kubeconfig: invalid type: integer `5`, expected a string",
            ),
            ("just a text", "cannot use kubeconfig /etc/kubeconfig: invalid type: string \"just a text\""),
        ] {
            let error = error_of(text);
            assert!(error.starts_with(expected) && !error.contains('\n') && !error.contains("error:"), "{error}");
        }
    }
}
