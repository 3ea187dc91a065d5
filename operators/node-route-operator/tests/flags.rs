//! The flags of this operator, and those that contradict each other.

use node_route_operator::flags::Flags;
use shared::process::flags;

const ENDPOINT: &str = "--cloud-provider-endpoint=unix:///run/cloud.sock";

fn read(args: &[&str]) -> Result<Flags, String> {
    let args = std::iter::once("node-route-operator").chain(args.iter().copied()).map(Into::into);
    flags::parse::<Flags>("node-route-operator", args).map(|flags| flags.own).map_err(|exit| exit.text)
}

/// The ranges, with this flag and an endpoint.
fn ranges(arg: &str) -> Result<Vec<String>, String> {
    read(&[arg, ENDPOINT]).map(|flags| flags.cluster_cidr.iter().map(ToString::to_string).collect())
}

#[track_caller]
fn check_wrong(arg: &str, expected: &str) {
    let refused = ranges(arg).expect_err("it is wrong");
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn the_defaults_are_upstreams() {
    let flags = read(&[ENDPOINT]).expect("nothing else is needed");
    assert_eq!((flags.configure_cloud_routes, flags.route_reconciliation_period.0.as_secs()), (true, 10));
    assert!(flags.cluster_cidr.is_empty());
}

#[test]
fn without_an_endpoint_it_does_not_start() {
    let refused = read(&["--cluster-cidr=10.0.0.0/16"]).expect_err("there is no cloud");
    assert!(refused.contains("--cloud-provider-endpoint is required"), "{refused}");
}

/// Upstream: `startRouteController`, `k8s.io/cloud-provider/app/core.go`.
#[test]
fn the_ranges_are_one_or_one_of_each_family() {
    assert_eq!(ranges("--cluster-cidr="), Ok(Vec::new()));
    assert_eq!(ranges("--cluster-cidr=10.0.0.1/16"), Ok(vec!["10.0.0.0/16".to_owned()]));
    let dual = vec!["10.0.0.0/16".to_owned(), "fd00::/48".to_owned()];
    assert_eq!(ranges("--cluster-cidr=10.0.0.0/16,fd00::/48"), Ok(dual));
    check_wrong("--route-reconciliation-period=0s", "must be greater than 0");
    check_wrong("--cluster-cidr=10.0.0.0", "invalid CIDR[0]: <nil> (invalid CIDR address: 10.0.0.0)");
    check_wrong(
        "--cluster-cidr=10.0.0.0/16,10.1.0.0/16",
        "len of ClusterCIDRs==2 and they are not configured as dual stack (at least one from each IPFamily",
    );
    check_wrong(
        "--cluster-cidr=10.0.0.0/16,fd00::/48,10.1.0.0/16",
        "length of clusterCIDRs is:3 more than max allowed of 2",
    );
}
