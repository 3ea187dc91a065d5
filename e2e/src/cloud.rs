//! The scriptable cloud: a process that serves the cloud protocol over a Unix socket from a file.
//!
//! In reading order: [`CloudFile`] has what exists and what goes wrong, [`CloudState`] decides what a call reads and changes,
//! [`Fault`] which calls are struck, and `provider` puts them together. [`Noted`] is a line of the log of calls.
//! `e2e cloud FILE SOCKET` is the process, and [`ScriptedCloud`] starts it beside a local cluster.
//! Left out: time. A balancer is there at once unless a fault delays the call.

mod calls;
mod faults;
mod file;
mod provider;
mod state;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::guard::Guard;
use crate::process::{Process, Program};

pub use calls::{Call, Noted};
pub use faults::{Action, Fault, Refusal};
pub use file::CloudFile;
pub use provider::serve;
pub use state::{Balancer, CloudState, Instance, Route};

/// How long its start or its death may take.
const DEADLINE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// The file and the socket of a cluster's cloud, in the folder of its run.
const FILE: &str = "cloud.json";
const SOCKET: &str = "cloud.sock";

/// The process of a cloud; killed when dropped. Its file stays.
pub struct ScriptedCloud {
    file: PathBuf,
    socket: PathBuf,
    guard: Arc<Guard>,
    program: Program,
    process: Mutex<Process>,
}

impl ScriptedCloud {
    /// Starts a cloud in this folder, and waits until it serves.
    pub(crate) async fn start(guard: &Arc<Guard>, folder: &Path, log: PathBuf) -> Result<Self> {
        let (file, socket) = (folder.join(FILE), folder.join(SOCKET));
        let program = Program::new(program()?, log).args(["cloud".as_ref(), file.as_os_str(), socket.as_os_str()]);
        let process = Mutex::new(Process::start(guard, &program)?);
        let cloud = Self { file, socket, guard: Arc::clone(guard), program, process };
        cloud.wait_serving().await?;
        Ok(cloud)
    }

    pub fn read(&self) -> Result<CloudFile> {
        CloudFile::read(&self.file)
    }

    /// What exists.
    pub fn state(&self) -> Result<CloudState> {
        Ok(self.read()?.state)
    }

    pub fn edit<T>(&self, change: impl FnOnce(&mut CloudFile) -> T) -> Result<T> {
        CloudFile::edit(&self.file, change)
    }

    /// Adds a fault behind those that there are.
    pub fn add(&self, fault: Fault) -> Result<()> {
        self.edit(|file| file.faults.push(fault))
    }

    /// Forgets all faults.
    pub fn clear(&self) -> Result<()> {
        self.edit(|file| file.faults.clear())
    }

    /// Keeps what exists now as the answers of the fault `yesterday`.
    pub fn keep_yesterday(&self) -> Result<()> {
        self.edit(|file| file.yesterday = file.state.clone())
    }

    /// The calls of this kind about an object so far, in the order of their ends.
    pub fn calls_about(&self, call: Call, object: &str) -> Result<Vec<Noted>> {
        let mut calls = Noted::read(&self.file)?;
        calls.retain(|noted| noted.call == call && noted.object == object);
        Ok(calls)
    }

    /// Waits until a fault has ended the process.
    pub async fn died(&self) -> Result<()> {
        let end = Instant::now() + DEADLINE;
        while self.lock().status().is_none() {
            if Instant::now() >= end {
                bail!("the cloud still runs after {} s", DEADLINE.as_secs());
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Starts it again with the same file; what still runs is killed first.
    pub async fn restart(&self) -> Result<()> {
        self.lock().kill();
        let process = Process::start(&self.guard, &self.program)?;
        *self.lock() = process;
        self.wait_serving().await
    }

    async fn wait_serving(&self) -> Result<()> {
        let end = Instant::now() + DEADLINE;
        while UnixStream::connect(&self.socket).await.is_err() {
            self.lock().check_running()?;
            if Instant::now() >= end {
                bail!("the cloud does not serve at {}", self.socket.display());
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The endpoint of the cloud of the cluster whose run has this folder, whether it runs or not.
pub(crate) fn endpoint_in(folder: &Path) -> String {
    format!("unix://{}", folder.join(SOCKET).display())
}

/// The program of this crate. The one that runs is it, or stands beside it, or is a test in a folder beside it.
fn program() -> Result<PathBuf> {
    let current = std::env::current_exe().context("find this program")?;
    let folders = current.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("e2e")).find(|program| program.is_file());
    found.with_context(|| format!("e2e is not built: it is not beside {}", current.display()))
}
