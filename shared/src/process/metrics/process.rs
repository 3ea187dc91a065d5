//! `process_*`: what the kernel knows of this process, under the names every Prometheus client library uses.
//!
//! Left out: anything but Linux, where there is no /proc and hence no such metric.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The unit of times in /proc: the same on every Linux a container runs on.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let read = |path| fs::read_to_string(path).ok();
        let stat = read("/proc/self/stat").and_then(|text| Stat::parse(&text));
        let boot = read("/proc/stat").and_then(|text| after(&text, "btime "));
        let resident = read("/proc/self/status").and_then(|text| after(&text, "VmRSS:"));
        let limit = read("/proc/self/limits").and_then(|text| after(&text, "Max open files"));
        let open =
            fs::read_dir("/proc/self/fd").ok().map(|entries| f64::from(u32::try_from(entries.count()).unwrap_or(0)));

        let help = "Total user and system CPU time spent in seconds";
        let cpu = stat.as_ref().map(|stat| ConstCounter::new(stat.cpu_ticks / TICKS_PER_SECOND));
        single(&mut encoder, "process_cpu_seconds", help, cpu)?;
        let started = stat.as_ref().zip(boot).map(|(stat, boot)| boot + stat.start_ticks / TICKS_PER_SECOND);
        let help = "Start time of the process since unix epoch in seconds";
        single(&mut encoder, "process_start_time_seconds", help, started.map(ConstGauge::new))?;
        let resident = resident.map(|kibibytes| ConstGauge::new(kibibytes * 1024.0));
        single(&mut encoder, "process_resident_memory_bytes", "Resident memory size in bytes", resident)?;
        let virtual_bytes = stat.map(|stat| ConstGauge::new(stat.virtual_bytes));
        single(&mut encoder, "process_virtual_memory_bytes", "Virtual memory size in bytes", virtual_bytes)?;
        single(&mut encoder, "process_open_fds", "Number of open file descriptors", open.map(ConstGauge::new))?;
        let help = "Maximum number of open file descriptors";
        single(&mut encoder, "process_max_fds", help, limit.map(ConstGauge::new))
    }
}

fn single(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: Option<impl EncodeMetric>,
) -> fmt::Result {
    let Some(metric) = metric else { return Ok(()) };
    metric.encode(encoder.encode_descriptor(name, &format!("{help}."), None, metric.metric_type())?)
}

#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: f64,
    start_ticks: f64,
    virtual_bytes: f64,
}

impl Stat {
    /// The second field is the program's name in parentheses and may hold anything, more parentheses included.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        // Numbered as proc_pid_stat(5) does; the first field after the name is number 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        Some(Self { cpu_ticks: field(14)? + field(15)?, start_ticks: field(22)?, virtual_bytes: field(23)? })
    }
}

/// The first number after `name` at the start of a line.
fn after(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let stat = "42 (odd ) name) S 1 42 42 0 -1 4194560 900 0 0 0 150 50 0 0 20 0 1 0 2500 8388608 700 18446744073709551615";
        assert_eq!(Stat::parse(stat), Some(Stat { cpu_ticks: 200.0, start_ticks: 2500.0, virtual_bytes: 8_388_608.0 }));
        assert_eq!(Stat::parse("42 (x) S 1"), None);
        assert_eq!(after("VmHWM:\t 9 kB\nVmRSS:\t     6144 kB\n", "VmRSS:"), Some(6144.0));
        let limits = "Limit Soft Limit Hard Limit Units\nMax open files            1024                 4096  files\n";
        assert_eq!(after(limits, "Max open files"), Some(1024.0));
        assert_eq!(after("Max open files unlimited unlimited files", "Max open files"), None);
    }
}
