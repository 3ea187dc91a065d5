//! Progress on stderr: one line that is rewritten on a terminal, one line per distinct step elsewhere.
//! Left out: logging. What the parts say is in their log files.

use std::io::{IsTerminal, Write};

/// A line that says what is going on right now.
pub struct Progress {
    terminal: bool,
    shown: String,
}

impl Default for Progress {
    fn default() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), shown: String::new() }
    }
}

impl Progress {
    /// Shows `step` in place of what was shown before; off a terminal only if it differs.
    pub fn show(&mut self, step: &str) {
        if step == self.shown {
            return;
        }
        step.clone_into(&mut self.shown);
        if self.terminal {
            print_stderr(&format!("\r\x1b[2K{step}"));
        } else {
            print_stderr(&format!("{step}\n"));
        }
    }

    /// As [`Self::show`], but only on a terminal: for what changes many times a second.
    pub fn show_live(&mut self, step: &str) {
        if self.terminal {
            self.show(step);
        }
    }

    /// Ends the line, which then stays.
    pub fn finish(&mut self, last: &str) {
        self.show(last);
        if self.terminal {
            print_stderr("\n");
        }
        self.shown.clear();
    }
}

/// A closed stderr is no reason to fail.
fn print_stderr(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
