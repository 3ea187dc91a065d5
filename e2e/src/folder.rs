//! Copies of folders.
//! Left out: links, which none of those that are copied has.

use std::path::Path;

use anyhow::{Context, Result};

/// Copies a folder with all that is in it; files keep their modes.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("create {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("list {}", from.display()))? {
        let entry = entry.with_context(|| format!("list {}", from.display()))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            std::fs::copy(&path, &target).with_context(|| format!("copy {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::create_dir_all(from.join("member/wal")).unwrap();
        std::fs::write(from.join("member/wal/0.wal"), "x").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(std::fs::read_to_string(to.join("member/wal/0.wal")).unwrap(), "x");
    }
}
