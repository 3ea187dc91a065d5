//! What a release has beside programs and images, made from the manifests as kustomize renders them: the Helm chart, and one
//! YAML file for each form; the manifest of the plugin, the notices of licences, and the changelog of the version.
//! Left out: packing and checksums, which `make release` does.

pub mod changelog;
pub mod chart;
pub mod images;
pub mod krew;
pub mod manifests;
pub mod notices;
pub mod yaml;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use chart::Files;
use manifests::Manifests;

/// The version of this source tree, as a number.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The YAML file of each form, and the folder of the manifests that it is.
pub const FORMS: [(&str, &str); 4] = [
    ("operators.yaml", "."),
    ("families.yaml", "groups"),
    ("one-process.yaml", "one-process"),
    ("one-process-accounts.yaml", "one-process/accounts"),
];

/// The process as a static pod, for a node that has the objects of `one-process-accounts.yaml` in its cluster.
pub const STATIC_POD: &str = "one-process/static-pod.yaml";

/// The YAML files that `kubectl apply --filename` takes, with images of this registry.
pub fn forms(manifests: &Manifests, registry: &str) -> Result<Files> {
    let mut files = Files::new();
    let mut add = |name: &str, mut objects: Vec<Value>| {
        for object in &mut objects {
            images::set(object, registry, &format!("v{VERSION}"));
        }
        files.insert(PathBuf::from(name), yaml::stream(&objects));
    };
    for (name, folder) in FORMS {
        add(name, manifests.render(folder)?);
    }
    add("static-pod.yaml", vec![manifests.file(STATIC_POD)?]);
    Ok(files)
}

/// Writes the files into a folder.
pub fn write(files: &Files, folder: &Path) -> Result<()> {
    for (path, text) in files {
        let path = folder.join(path);
        let parent = path.parent().with_context(|| format!("{} has no folder", path.display()))?;
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
