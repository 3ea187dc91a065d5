//! Leaves nothing running, however this process ends: a small shell, in a process group of its own, holds the reading end
//! of a pipe whose writing end is ours. When we are gone, be it by SIGKILL, it reads the end of the pipe and kills what is
//! still registered.
//! Left out: `PR_SET_PDEATHSIG` (it needs unsafe code, and fires when the spawning thread ends, not the process).

use std::io::{PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Reads `+ PID` and `- PID`; at the end kills the process groups left and removes the data folder it is given.
const WATCH: &str = r#"
trap '' HUP INT QUIT TERM
pids=
while read -r op pid; do
  kept=
  for p in $pids; do [ "$p" = "$pid" ] || kept="$kept $p"; done
  pids=$kept
  [ "$op" = + ] && pids="$pids $pid"
done
for p in $pids; do kill -s KILL -- "-$p"; done 2>/dev/null
rm -rf -- "$1"
"#;

/// Registers itself with the guard and becomes the program. The registration comes before the program exists, and the
/// pipe stays open until then, so there is no moment at which we could die and leave it behind.
const REGISTER: &str = r#"echo "+ $$" >&0 && exec "$@" </dev/null"#;

/// Kills what was started under it once this process is gone or the guard is dropped.
pub struct Guard {
    /// Taken at drop: closing it is the signal.
    pipe: Option<PipeWriter>,
    shell: Child,
}

impl Guard {
    /// A guard that also removes the folder `data` in the end.
    pub fn start(data: &Path) -> Result<Self> {
        let (reader, writer) = std::io::pipe().context("open the guard's pipe")?;
        let shell = Command::new("/bin/sh")
            .args(["-c", WATCH, "guard"])
            .arg(data)
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("start the guard")?;
        Ok(Self { pipe: Some(writer), shell })
    }

    /// Makes a command that runs `program` in its own process group, registered here.
    pub(crate) fn command(&self, program: &Path) -> Result<Command> {
        let pipe = self.pipe.as_ref().context("the guard has ended")?;
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", REGISTER, "sh"])
            .arg(program)
            .stdin(pipe.try_clone().context("share the guard's pipe")?)
            .process_group(0);
        Ok(command)
    }

    pub(crate) fn forget(&self, pid: u32) {
        if let Some(mut pipe) = self.pipe.as_ref() {
            // Fails only if the guard is gone, which then has nothing to forget.
            let _ = writeln!(pipe, "- {pid}");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn start(guard: &Guard) -> Child {
        guard.command(Path::new("/bin/sleep")).unwrap().arg("1000").spawn().unwrap()
    }

    #[test]
    fn what_still_runs_when_the_pipe_closes_is_killed_and_its_data_removed() {
        let data = tempfile::tempdir().unwrap();
        let guard = Guard::start(data.path()).unwrap();
        let mut children = [start(&guard), start(&guard), start(&guard)];
        drop(guard);
        for child in &mut children {
            assert_eq!(child.wait().unwrap().signal(), Some(9));
        }
        assert!(!data.path().exists());
    }

    #[test]
    fn what_was_reaped_is_forgotten() {
        let data = tempfile::tempdir().unwrap();
        let guard = Guard::start(data.path()).unwrap();
        let mut survivor = start(&guard);
        // Only once the shell has become the program is it certain that its registration came first.
        while std::fs::read_to_string(format!("/proc/{}/comm", survivor.id())).unwrap() != "sleep\n" {
            std::thread::yield_now();
        }
        guard.forget(survivor.id());
        drop(guard);
        assert_eq!(survivor.try_wait().unwrap(), None);
        survivor.kill().unwrap();
        survivor.wait().unwrap();
    }
}
