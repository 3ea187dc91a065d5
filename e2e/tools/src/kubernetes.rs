//! The versions of Kubernetes that a local cluster can have.

use anyhow::{Result, bail};

/// The Kubernetes version this project follows.
pub const KUBERNETES_VERSION: &str = Kubernetes::FOLLOWED.version;

/// The variable that names the minor version of a local cluster.
const CHOICE: &str = "KUBERNETES";

/// A version of kube-apiserver, kube-scheduler and kube-controller-manager. Every other program is the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kubernetes {
    /// `1.36`.
    pub(crate) minor: &'static str,
    pub(crate) version: &'static str,
    /// The folder of the Go module that pins it.
    pub(crate) module: &'static str,
    pub(crate) flags: &'static str,
}

/// A version by its minor and patch number, and the folder of its module.
macro_rules! kubernetes {
    ($minor:literal, $patch:literal, $folder:literal) => {
        Kubernetes {
            minor: concat!("1.", $minor),
            version: concat!("v1.", $minor, ".", $patch),
            module: concat!(env!("CARGO_MANIFEST_DIR"), $folder),
            flags: concat!(
                "-s -w -X k8s.io/component-base/version.gitVersion=v1.",
                $minor,
                ".",
                $patch,
                " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=",
                $minor
            ),
        }
    };
}

impl Kubernetes {
    /// The one this project follows.
    pub(crate) const FOLLOWED: Self = kubernetes!("36", "3", "/kubernetes");

    /// What operators of this version meet: the apiserver before an upgrade, their own, and the one after.
    const ALL: [Self; 3] =
        [kubernetes!("35", "4", "/kubernetes-1.35"), Self::FOLLOWED, kubernetes!("37", "2", "/kubernetes-1.37")];

    /// The one that the environment asks for (`KUBERNETES=1.37`), or [`Self::FOLLOWED`].
    pub(crate) fn chosen() -> Result<Self> {
        match std::env::var_os(CHOICE) {
            Some(minor) if !minor.is_empty() => Self::named(&minor.to_string_lossy()),
            Some(_) | None => Ok(Self::FOLLOWED),
        }
    }

    fn named(minor: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|known| known.minor == minor) {
            Some(known) => Ok(known),
            None => bail!("{CHOICE}={minor} is unknown; known are {}", Self::ALL.map(|known| known.minor).join(", ")),
        }
    }
}

/// Whether the chosen version is newer than [`KUBERNETES_VERSION`]. A choice that is not known fails where its programs are
/// built.
pub fn is_newer_than_followed() -> bool {
    let minor = |of: &Kubernetes| of.minor.rsplit('.').next().and_then(|minor| minor.parse::<u32>().ok());
    Kubernetes::chosen().is_ok_and(|chosen| minor(&chosen) > minor(&Kubernetes::FOLLOWED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_called_what_its_module_pins() {
        for Kubernetes { minor, version, module, flags } in Kubernetes::ALL {
            let pins = std::fs::read_to_string(format!("{module}/go.mod")).unwrap();
            assert!(pins.contains(&format!("k8s.io/kubernetes {version}")), "{module}");
            assert!(flags.contains(&format!("gitVersion={version} ")), "{flags}");
            let (_, number) = minor.split_once('.').unwrap();
            assert!(version.starts_with(&format!("v{minor}.")) && flags.ends_with(&format!("gitMinor={number}")));
        }
    }

    #[test]
    fn a_version_that_is_not_known_is_refused_with_those_that_are() {
        assert_eq!(Kubernetes::named("1.36").unwrap(), Kubernetes::FOLLOWED);
        let error = Kubernetes::named("1.20").unwrap_err().to_string();
        assert_eq!(error, "KUBERNETES=1.20 is unknown; known are 1.35, 1.36, 1.37");
    }
}
