//! The manifest by which krew installs the kubectl plugin.
//! Left out: systems other than Linux, for which nothing is built.

use serde_json::{Value, json};

use crate::yaml;

/// The plugin, built for one architecture as Go calls it (`amd64`), and packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    pub architecture: String,
    /// In hexadecimal digits.
    pub sha256: String,
}

/// The name of an archive's file.
pub fn file(version: &str, architecture: &str) -> String {
    format!("kubectl-operators-v{version}-linux-{architecture}.tar.gz")
}

/// The manifest of these archives, which are below `url`.
pub fn manifest(version: &str, url: &str, archives: &[Archive]) -> String {
    let platforms: Vec<Value> = archives
        .iter()
        .map(|Archive { architecture, sha256 }| {
            json!({
                "selector": {"matchLabels": {"os": "linux", "arch": architecture}},
                "uri": format!("{url}/{}", file(version, architecture)),
                "sha256": sha256,
                "bin": "kubectl-operators",
                "files": [{"from": "kubectl-operators", "to": "."}, {"from": "LICENSE", "to": "."}],
            })
        })
        .collect();
    yaml::stream(&[json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "operators"},
        "spec": {
            "version": format!("v{version}"),
            "homepage": url,
            "shortDescription": "Explain stuck objects, show operators",
            "description": "Explains why an object is stuck (why), shows the operators that replace kube-controller-manager's \
                            controllers (status), and what a takeover would change (preflight). It writes nothing.\n",
            "platforms": platforms,
        },
    })])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_the_archive_of_each_architecture() {
        let archive = |architecture: &str, digit: &str| Archive {
            architecture: architecture.to_owned(),
            sha256: digit.repeat(64),
        };
        let text = manifest("1.2.3", "https://example.com/v1.2.3", &[archive("amd64", "a"), archive("arm64", "b")]);
        let value: Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(value["spec"]["version"], "v1.2.3");
        let uri = "https://example.com/v1.2.3/kubectl-operators-v1.2.3-linux-arm64.tar.gz";
        let platform = &value["spec"]["platforms"][1];
        assert_eq!((&platform["uri"], &platform["sha256"]), (&json!(uri), &json!("b".repeat(64))));
        assert_eq!(platform["selector"]["matchLabels"]["arch"], "arm64");
    }
}
