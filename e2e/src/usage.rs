//! The costs of a process, as the kernel counts them: `/proc/PID/{smaps_rollup,status,stat}`.
//! Left out: sampling over time, which is the benchmark's.

use std::iter::Sum;
use std::time::Duration;

use anyhow::{Context, Result};

/// Memory in bytes, and the processor time used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub pss: u64,
    pub rss: u64,
    /// Of it what belongs to no file: heap and stacks.
    pub anonymous: u64,
    pub peak_rss: u64,
    /// User and system time, in steps of a clock tick (10 ms).
    pub cpu: Duration,
}

impl Usage {
    pub fn of(pid: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            std::fs::read_to_string(&path).with_context(|| format!("read {path}"))
        };
        let rollup = read("smaps_rollup")?;
        Ok(Self {
            pss: kib_field(&rollup, "Pss:")?,
            rss: kib_field(&rollup, "Rss:")?,
            anonymous: kib_field(&rollup, "Anonymous:")?,
            peak_rss: kib_field(&read("status")?, "VmHWM:")?,
            cpu: cpu_time(&read("stat")?, rustix::param::clock_ticks_per_second())?,
        })
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            pss: sum.pss + one.pss,
            rss: sum.rss + one.rss,
            anonymous: sum.anonymous + one.anonymous,
            peak_rss: sum.peak_rss + one.peak_rss,
            cpu: sum.cpu + one.cpu,
        })
    }
}

/// The value in bytes of the line that begins with `name`.
fn kib_field(text: &str, name: &str) -> Result<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .with_context(|| format!("no {name} in kB"))?;
    Ok(value.parse::<u64>().with_context(|| format!("{name} {value}"))? * 1024)
}

/// The 14th and 15th field of `stat`; the second, the program's name, may hold anything and is skipped by its bracket.
fn cpu_time(stat: &str, ticks_per_second: u64) -> Result<Duration> {
    let (_, fields) = stat.rsplit_once(')').context("no program name in stat")?;
    let mut times = fields.split_whitespace().skip(11).take(2);
    let mut ticks = || times.next().context("no times in stat")?.parse::<u64>().context("times in stat");
    let total = ticks()? + ticks()?;
    Ok(Duration::from_millis(total * 1000 / ticks_per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files_are_read() {
        assert_eq!(kib_field("Rss:            1932 kB\nPss:             432 kB\n", "Pss:").unwrap(), 432 * 1024);
        assert!(kib_field("Rss: 1 kB", "Pss:").is_err());
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 1 1 1";
        assert_eq!(cpu_time(stat, 100).unwrap(), Duration::from_secs(3));
    }

    #[test]
    fn this_process_uses_memory() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.rss > 0 && usage.peak_rss >= usage.rss && usage.anonymous > 0, "{usage:?}");
    }
}
