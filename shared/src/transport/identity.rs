//! The versions by which a process is known.

use std::sync::LazyLock;

pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// The Kubernetes release whose behaviour this build has, and against which it was checked.
pub const KUBERNETES_VERSION: &str = "v1.36.3";
/// The commit of this build. `make build` and similar targets set it; a plain build does not, because each commit would
/// rebuild everything.
const COMMIT: Option<&str> = option_env!("OPERATORS_COMMIT");

/// What `--version` says after the program's name.
pub fn version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| text(COMMIT.unwrap_or_default()));
    &TEXT
}

fn text(commit: &str) -> String {
    let commit = if commit.is_empty() { String::new() } else { format!(", commit {commit}") };
    format!("{VERSION} (as Kubernetes {KUBERNETES_VERSION}{commit})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_names_the_commit_if_it_is_known() {
        assert_eq!(text(""), format!("{VERSION} (as Kubernetes v1.36.3)"));
        assert_eq!(text("320770962dc8"), format!("{VERSION} (as Kubernetes v1.36.3, commit 320770962dc8)"));
    }
}
