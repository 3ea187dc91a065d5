//! The file of the scriptable cloud: what exists in it, and how it misbehaves.
//!
//! The cloud reads the file at each call and writes it back, so tests and people can edit it while the cloud runs, and
//! nothing is lost if the cloud is killed. [`CloudFile::edit`] locks the file; an editor does not.
//!
//! ```json
//! {
//!   "faults": [{"call": "ensureLoadBalancer", "object": "web", "times": 1, "action": {"delay": {"milliseconds": 500}}}],
//!   "state": {"instances": {"node-1": {"exists": false}, "node-2": {"isShutdown": true}}}
//! }
//! ```

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::faults::Fault;
use super::state::CloudState;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CloudFile {
    /// How calls fail. The first fault that fires counts.
    pub faults: Vec<Fault>,
    pub state: CloudState,
    /// The answers of reads with the fault `yesterday` come from here.
    pub yesterday: CloudState,
}

impl CloudFile {
    /// Read the file; one that does not exist is an empty cloud.
    pub fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            text => text.with_context(|| format!("read {}", path.display()))?,
        };
        serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))
    }

    /// Change the file while no other process does.
    pub fn edit<T>(path: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T> {
        // The file itself is replaced, so it cannot carry the lock.
        let lock = File::create(path.with_added_extension("lock")).context("open the lock of the cloud's file")?;
        lock.lock().context("lock the cloud's file")?;
        let mut file = Self::read(path)?;
        let before = file.clone();
        let result = change(&mut file);
        if file != before {
            file.write(path)?;
        }
        Ok(result)
    }

    /// Replace the file at once, so that a reader never sees half of it.
    fn write(&self, path: &Path) -> Result<()> {
        let new = path.with_added_extension("new");
        let text = serde_json::to_vec_pretty(self).context("print the cloud's file")?;
        fs::write(&new, text).with_context(|| format!("write {}", new.display()))?;
        fs::rename(&new, path).with_context(|| format!("replace {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_kept_and_an_edit_without_a_change_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cloud.json");
        CloudFile::edit(&path, |_| ()).unwrap();
        assert!(!path.exists());
        CloudFile::edit(&path, |file| file.state.only_listed_exist = true).unwrap();
        assert!(CloudFile::read(&path).unwrap().state.only_listed_exist);
    }

    #[test]
    fn a_person_writes_only_what_matters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cloud.json");
        let example = include_str!("file.rs").lines().skip_while(|line| *line != "//! ```json").skip(1);
        let text: String = example.map_while(|line| line.strip_prefix("//! ").filter(|line| *line != "```")).collect();
        fs::write(&path, text).unwrap();
        let file = CloudFile::read(&path).unwrap();
        assert_eq!((file.faults.len(), file.state.instances.len()), (1, 2));
        assert!(file.state.instances["node-2"].exists && !file.state.instances["node-1"].exists);
    }

    #[test]
    fn a_word_that_the_file_does_not_have_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cloud.json");
        fs::write(&path, r#"{"fault": []}"#).unwrap();
        let error = format!("{:#}", CloudFile::read(&path).unwrap_err());
        assert!(error.contains("unknown field `fault`"), "{error}");
    }
}
