//! The flags: those of every operator, and upstream's.

use shared::process::flags::{GoDuration, one_to};

/// Lists the pods of each Service in EndpointSlices, as endpointslice-controller does.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of service endpoint syncing operations that will be done concurrently. Larger number = faster endpoint
    /// slice updating, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = syncs, value_name = "NUMBER")]
    pub concurrent_service_endpoint_syncs: usize,
    /// The maximum number of endpoints that will be added to an EndpointSlice. More endpoints per slice will result in
    /// less endpoint slices, but larger resources.
    #[arg(long, default_value_t = 100, value_parser = endpoints, value_name = "NUMBER")]
    pub max_endpoints_per_slice: usize,
    /// The length of endpoint slice updates batching period. Processing of pod changes will be delayed by this duration to
    /// join them with potential upcoming updates and reduce the overall number of endpoints updates. Larger number =
    /// higher endpoint programming latency, but lower number of endpoints revision generated.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub endpointslice_updates_batch_period: GoDuration,
}

/// Upstream: `Validate`, `cmd/kube-controller-manager/app/options/endpointslicecontroller.go`.
fn syncs(text: &str) -> Result<usize, String> {
    one_to(50, "concurrent-service-endpoint-syncs", text)
}

fn endpoints(text: &str) -> Result<usize, String> {
    one_to(1000, "max-endpoints-per-slice", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<(usize, usize, String), String> {
        let args = std::iter::once("endpointslice-operator").chain(args.iter().copied()).map(Into::into);
        let flags =
            shared::process::flags::parse::<Flags>("endpointslice-operator", args).map_err(|exit| exit.text)?.own;
        let batch = flags.endpointslice_updates_batch_period.to_string();
        Ok((flags.concurrent_service_endpoint_syncs, flags.max_endpoints_per_slice, batch))
    }

    #[test]
    fn the_defaults_are_upstreams() {
        assert_eq!(read(&[]), Ok((5, 100, "0s".to_owned())));
    }

    #[test]
    fn the_bounds_are_upstreams() {
        let most = [
            "--concurrent-service-endpoint-syncs=50",
            "--max-endpoints-per-slice=1000",
            "--endpointslice-updates-batch-period=500ms",
        ];
        assert_eq!(read(&most), Ok((50, 1000, "500ms".to_owned())));
        for (flag, value, wrong) in [
            ("concurrent-service-endpoint-syncs", "0", "less than 1"),
            ("concurrent-service-endpoint-syncs", "51", "more than 50"),
            ("max-endpoints-per-slice", "-1", "less than 1"),
            ("max-endpoints-per-slice", "1001", "more than 1000"),
        ] {
            let error = read(&[&format!("--{flag}={value}")]).unwrap_err();
            assert!(error.contains(&format!("{flag} must not be {wrong}, but got {value}")), "{error}");
        }
    }
}
