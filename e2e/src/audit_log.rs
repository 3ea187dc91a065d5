//! The apiserver's audit log: one JSON event a line, read while it is written.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result};

/// More bytes than any line has.
const LINE: u64 = 64 << 10;

/// Where the last whole line ends now, in bytes: the next one may be half written.
pub fn end(log: &Path) -> Result<u64> {
    let mut file = open(log)?;
    let length = file.metadata().with_context(|| format!("look at {}", log.display()))?.len();
    let from = length.saturating_sub(LINE);
    file.seek(SeekFrom::Start(from)).context("find the end of the audit log")?;
    let mut last = Vec::new();
    file.take(length - from).read_to_end(&mut last).context("find the end of the audit log")?;
    let whole = last.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Ok(from + u64::try_from(whole)?)
}

/// The whole lines from the byte `from` on.
pub fn lines_since(log: &Path, from: u64) -> Result<Vec<Vec<u8>>> {
    let mut file = open(log)?;
    file.seek(SeekFrom::Start(from)).context("go on in the audit log")?;
    let mut reader = BufReader::new(file);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).context("read the audit log")?;
        if !line.ends_with(b"\n") {
            return Ok(lines);
        }
        lines.push(line);
    }
}

fn open(log: &Path) -> Result<File> {
    File::open(log).with_context(|| format!("open {}", log.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_half_written_comes_when_it_is_whole() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let log = dir.path().join("audit.log");
        std::fs::write(&log, "")?;
        assert_eq!(end(&log)?, 0);
        std::fs::write(&log, "one\ntwo\nthr")?;
        assert_eq!(end(&log)?, 8);
        assert_eq!(lines_since(&log, 4)?, [b"two\n"]);
        std::fs::write(&log, "one\ntwo\nthree\n")?;
        assert_eq!(lines_since(&log, 8)?, [b"three\n"]);
        Ok(())
    }
}
