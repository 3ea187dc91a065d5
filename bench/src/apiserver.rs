//! The apiserver's own counts: the watches that it holds open, and the bytes that it sends to readers and allocates.
//! Left out: answers to writes, whose size it does not count.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::Client;
use tokio::time::{Instant, sleep};

/// Once their number has been the same for so long, whoever starts with the apiserver has opened its watches.
const SETTLED: Duration = Duration::from_secs(3);
const DEADLINE: Duration = Duration::from_secs(60);

/// How it stands with the apiserver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) watches: f64,
    /// The bytes sent to readers since its start. Lists of one namespace are not counted: these are the benchmark's own
    /// looks at how far a step has come.
    pub(crate) sent_bytes: f64,
    /// The bytes allocated since its start, those freed again included.
    pub(crate) allocated_bytes: f64,
}

pub(crate) async fn counts(client: &Client) -> Result<Counts> {
    let request = http::Request::get("/metrics").body(Vec::new()).context("ask for metrics")?;
    Ok(read(&client.request_text(request).await.context("ask the apiserver for its metrics")?))
}

/// How many watches are open when no more are being opened: the apiserver opens its own while it answers already.
pub(crate) async fn settled_watches(client: &Client) -> Result<f64> {
    let start = Instant::now();
    let mut last = (f64::NAN, start);
    while last.1.elapsed() < SETTLED {
        ensure!(start.elapsed() < DEADLINE, "the apiserver's watches still change, {} now", last.0);
        let watches = counts(client).await?.watches;
        if watches.total_cmp(&last.0).is_ne() {
            last = (watches, Instant::now());
        }
        sleep(Duration::from_millis(200)).await;
    }
    Ok(last.0)
}

fn read(metrics: &str) -> Counts {
    let mut counts = Counts::default();
    for (series, value) in metrics.lines().filter_map(|line| line.rsplit_once(' ')) {
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let has = |label: &str| labels.contains(label);
        let value: f64 = value.parse().unwrap_or_default();
        match name {
            "apiserver_longrunning_requests" if has(r#"verb="WATCH""#) => counts.watches += value,
            "go_memstats_alloc_bytes_total" => counts.allocated_bytes += value,
            "apiserver_watch_events_sizes_sum" => counts.sent_bytes += value,
            "apiserver_response_sizes_sum" if has(r#"scope="cluster""#) || has(r#"scope="resource""#) => {
                counts.sent_bytes += value;
            }
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_and_bytes_are_summed_without_looks_at_a_namespace() {
        let metrics = "\
# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{resource=\"pods\",scope=\"cluster\",verb=\"WATCH\"} 3
apiserver_longrunning_requests{resource=\"configmaps\",scope=\"resource\",verb=\"WATCH\"} 2
apiserver_longrunning_requests{resource=\"pods\",scope=\"resource\",verb=\"CONNECT\"} 7
apiserver_watch_events_sizes_sum{resource=\"pods\"} 1.5e+06
apiserver_watch_events_sizes_count{resource=\"pods\"} 1000
apiserver_response_sizes_sum{resource=\"pods\",scope=\"cluster\",verb=\"LIST\"} 400
apiserver_response_sizes_sum{resource=\"pods\",scope=\"namespace\",verb=\"LIST\"} 90000
apiserver_response_sizes_sum{resource=\"pods\",scope=\"resource\",verb=\"GET\"} 100
go_memstats_alloc_bytes_total 7e+06
";
        assert_eq!(read(metrics), Counts { watches: 5.0, sent_bytes: 1_500_500.0, allocated_bytes: 7_000_000.0 });
    }
}
