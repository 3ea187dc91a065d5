//! The part of the changelog that is about one version.
//! Left out: writing it, which people do.

use anyhow::{Context, Result, ensure};

/// The section of this version, such as `v0.1.0`, with its heading.
pub fn section(changelog: &str, version: &str) -> Result<String> {
    let sections = changelog.split("\n## ").skip(1);
    let of_version = |section: &&str| section.split_whitespace().next() == Some(version);
    let section =
        sections.into_iter().find(of_version).with_context(|| format!("CHANGELOG.md has no section {version}"))?;
    ensure!(section.trim().lines().count() > 1, "CHANGELOG.md says nothing of {version}");
    Ok(format!("## {}\n", section.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_its_own_section() {
        let text = "# Changelog\n\n## v0.1.10 (2026-11-29)\n\n- ten\n\n## v0.1.1\n\n- one\n\n### More\n\n- two\n";
        assert_eq!(section(text, "v0.1.1").unwrap(), "## v0.1.1\n\n- one\n\n### More\n\n- two\n");
        assert_eq!(section(text, "v0.1.10").unwrap(), "## v0.1.10 (2026-11-29)\n\n- ten\n");
        assert!(section(text, "v0.1").is_err());
        assert!(section("\n## v1\n\n## v0\n- a\n", "v1").is_err());
    }

    #[test]
    fn the_changelog_has_this_version() {
        section(include_str!("../../CHANGELOG.md"), &format!("v{}", crate::VERSION)).unwrap();
    }
}
