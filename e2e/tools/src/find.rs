//! Finds programs, and has those built that are missing.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::go;
use crate::kubernetes::Kubernetes;
use crate::places::{built, built_dir, installed};
use crate::progress::Progress;
use crate::tool::Tool;

/// Programs that were found.
#[derive(Clone, Debug)]
pub struct Tools {
    paths: BTreeMap<Tool, PathBuf>,
}

impl Tools {
    /// Finds these programs; builds what is missing, which takes minutes the first time.
    pub fn find(wanted: &[Tool], progress: &mut Progress) -> Result<Self> {
        let kubernetes = Kubernetes::chosen()?;
        let find = |tool: &Tool| Some((*tool, installed(*tool, kubernetes).or_else(|| built(*tool, kubernetes))?));
        let mut tools = Self { paths: wanted.iter().filter_map(find).collect() };
        let missing: Vec<Tool> = wanted.iter().copied().filter(|tool| !tools.paths.contains_key(tool)).collect();
        if !missing.is_empty() {
            tools.build_missing(missing, kubernetes, progress)?;
        }
        Ok(tools)
    }

    /// Takes over what others have found.
    pub fn add(&mut self, others: Self) {
        self.paths.extend(others.paths);
    }

    /// Where `tool` is.
    pub fn path(&self, tool: Tool) -> &Path {
        &self.paths[&tool]
    }

    /// Only one process builds; the others wait for it and then find its work.
    fn build_missing(&mut self, missing: Vec<Tool>, kubernetes: Kubernetes, progress: &mut Progress) -> Result<()> {
        let cache = built_dir(Kubernetes::FOLLOWED)?;
        std::fs::create_dir_all(&cache).with_context(|| format!("create {}", cache.display()))?;
        let lock = File::create(cache.join(".lock")).context("create the lock file of the tools")?;
        while lock.try_lock().is_err() {
            progress.show("waiting for another process that builds the same programs");
            thread::sleep(Duration::from_millis(200));
        }
        let unbuilt: Vec<Tool> = missing.iter().copied().filter(|tool| built(*tool, kubernetes).is_none()).collect();
        go::build(&unbuilt, kubernetes, progress)?;
        for tool in missing {
            let path =
                built(tool, kubernetes).with_context(|| format!("{} was built, but does not run", tool.name()))?;
            self.paths.insert(tool, path);
        }
        Ok(())
    }
}
