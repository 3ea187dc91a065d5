//! The flags: those of every operator, and upstream's.

use shared::process::flags::{GoDuration, one_to};

/// Mirrors the Endpoints of Services without a selector in EndpointSlices, as endpointslice-mirroring-controller does.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of service endpoint syncing operations that will be done concurrently. Larger number = faster endpoint
    /// slice updating, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = syncs, value_name = "NUMBER")]
    pub mirroring_concurrent_service_endpoint_syncs: usize,
    /// The maximum number of endpoints that will be added to an EndpointSlice. More endpoints per slice will result in
    /// less endpoint slices, but larger resources.
    #[arg(long, default_value_t = 1000, value_parser = endpoints, value_name = "NUMBER")]
    pub mirroring_max_endpoints_per_subset: usize,
    /// The length of EndpointSlice updates batching period. Processing of EndpointSlice changes will be delayed by this
    /// duration to join them with potential upcoming updates and reduce the overall number of EndpointSlice updates.
    /// Larger number = higher endpoint programming latency, but lower number of endpoints revision generated.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub mirroring_endpointslice_updates_batch_period: GoDuration,
}

/// Upstream: `Validate`, `cmd/kube-controller-manager/app/options/endpointslicemirroringcontroller.go`.
fn syncs(text: &str) -> Result<usize, String> {
    one_to(50, "mirroring-concurrent-service-endpoint-syncs", text)
}

fn endpoints(text: &str) -> Result<usize, String> {
    one_to(1000, "mirroring-max-endpoints-per-subset", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<(usize, usize, String), String> {
        let name = "endpointslice-mirroring-operator";
        let args = std::iter::once(name).chain(args.iter().copied()).map(Into::into);
        let flags = shared::process::flags::parse::<Flags>(name, args).map_err(|exit| exit.text)?.own;
        let batch = flags.mirroring_endpointslice_updates_batch_period.to_string();
        Ok((flags.mirroring_concurrent_service_endpoint_syncs, flags.mirroring_max_endpoints_per_subset, batch))
    }

    #[test]
    fn the_defaults_are_upstreams() {
        assert_eq!(read(&[]), Ok((5, 1000, "0s".to_owned())));
    }

    #[test]
    fn the_bounds_are_upstreams() {
        let least = [
            "--mirroring-concurrent-service-endpoint-syncs=50",
            "--mirroring-max-endpoints-per-subset=1",
            "--mirroring-endpointslice-updates-batch-period=500ms",
        ];
        assert_eq!(read(&least), Ok((50, 1, "500ms".to_owned())));
        for (flag, value, wrong) in [
            ("mirroring-concurrent-service-endpoint-syncs", "0", "less than 1"),
            ("mirroring-concurrent-service-endpoint-syncs", "51", "more than 50"),
            ("mirroring-max-endpoints-per-subset", "-1", "less than 1"),
            ("mirroring-max-endpoints-per-subset", "1001", "more than 1000"),
        ] {
            let error = read(&[&format!("--{flag}={value}")]).unwrap_err();
            assert!(error.contains(&format!("{flag} must not be {wrong}, but got {value}")), "{error}");
        }
    }
}
