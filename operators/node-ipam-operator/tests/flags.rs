//! The flags of this operator, and those that contradict each other.

use node_ipam_operator::flags::Flags;
use node_ipam_operator::objects::cidr_set::CidrSet;
use shared::process::flags;

/// The ranges with the mask sizes of their blocks and how many are free, or the error.
fn read(args: &[&str]) -> String {
    let args = std::iter::once("node-ipam-operator").chain(args.iter().copied()).map(Into::into);
    match flags::parse::<Flags>("node-ipam-operator", args) {
        Ok(flags) => {
            let Flags(Some(sets)) = flags.own else { return "off".to_owned() };
            let show = |set: &CidrSet| format!("{} by {}, free: {}", set.cluster_cidr(), set.block(0), set.free());
            sets.iter().map(show).collect::<Vec<_>>().join("; ")
        }
        Err(exit) => exit.text,
    }
}

/// With these besides `--allocate-node-cidrs=true`.
#[track_caller]
fn check(args: &str, expected: &str) {
    let args: Vec<&str> = args.split(' ').filter(|arg| !arg.is_empty()).chain(["--allocate-node-cidrs=true"]).collect();
    assert_eq!(read(&args), expected, "{args:?}");
}

#[track_caller]
fn check_wrong(args: &str, expected: &str) {
    check(args, &format!("error: {expected} (see --help)\n"));
}

#[test]
fn nothing_is_allocated_unless_that_is_asked_for() {
    assert_eq!(read(&[]), "off");
    assert_eq!(read(&["--allocate-node-cidrs=false", "--cluster-cidr=none"]), "off");
    assert_eq!(read(&["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"]), "10.0.0.0/16 by 10.0.0.0/24, free: 256");
}

#[test]
fn a_range_of_each_family_is_cut_by_the_mask_size_of_its_family() {
    check("--cluster-cidr=10.0.0.0/16", "10.0.0.0/16 by 10.0.0.0/24, free: 256");
    check("--cluster-cidr=10.0.0.1/16 --node-cidr-mask-size=20", "10.0.0.0/16 by 10.0.0.0/20, free: 16");
    check("--cluster-cidr=10.0.0.0/16 --node-cidr-mask-size-ipv4=17", "10.0.0.0/16 by 10.0.0.0/17, free: 2");
    check("--cluster-cidr=fd00::/48", "fd00::/48 by fd00::/64, free: 65536");
    check("--cluster-cidr=fd00::/64 --node-cidr-mask-size=80", "fd00::/64 by fd00::/80, free: 65536");
    check("--cluster-cidr=fd00::/64 --node-cidr-mask-size-ipv6=65", "fd00::/64 by fd00::/65, free: 2");
    let dual = "--cluster-cidr=fd00::/48,10.0.0.0/16";
    check(dual, "fd00::/48 by fd00::/64, free: 65536; 10.0.0.0/16 by 10.0.0.0/24, free: 256");
    check(
        &format!("{dual} --node-cidr-mask-size-ipv4=26 --node-cidr-mask-size-ipv6=49"),
        "fd00::/48 by fd00::/49, free: 2; 10.0.0.0/16 by 10.0.0.0/26, free: 1024",
    );
}

/// Upstream: `filterOutServiceRange`.
#[test]
fn the_range_of_services_is_taken() {
    let check = |services: &str, free: u64| {
        let expected = format!("10.0.0.0/16 by 10.0.0.0/24, free: {free}");
        check(&format!("--cluster-cidr=10.0.0.0/16 --service-cluster-ip-range={services}"), &expected);
    };
    check("", 256);
    check("10.0.0.0/20", 240);
    check("10.0.0.0/8", 0);
    check("10.0.7.0/28", 255);
    check("10.1.0.0/16", 256);
    check("fd00::/112,10.0.128.0/17", 128);
}

/// Upstream: `TestValidateFlags`, and `New`, `pkg/controller/nodeipam/ipam/cidr_allocator.go`.
#[test]
fn there_is_one_allocator() {
    check("--cluster-cidr=10.0.0.0/16 --cidr-allocator-type=RangeAllocator", "10.0.0.0/16 by 10.0.0.0/24, free: 256");
    for other in ["CloudAllocator", "IPAMFromCloud", "IPAMFromCluster", "rangeallocator"] {
        let expected = format!("built-in cloud providers are disabled. The ipam {other} is not available");
        check_wrong(&format!("--cidr-allocator-type={other}"), &expected);
    }
    let refused = read(&["--cidr-allocator-type=CloudAllocator"]);
    assert!(refused.starts_with("error: built-in cloud providers are disabled."), "{refused}");
    check_wrong("--cluster-cidr=10.0.0.0/16 --cidr-allocator-type=", "invalid CIDR allocator type:");
}

/// Upstream: `validateCIDRs`.
#[test]
fn the_ranges_for_pods_are_one_or_one_of_each_family() {
    check_wrong("", "Controller: Must specify --cluster-cidr if --allocate-node-cidrs is set");
    check_wrong("--cluster-cidr=10.0.0.0", "invalid CIDR[0]: <nil> (invalid CIDR address: 10.0.0.0)");
    check_wrong("--cluster-cidr=10.0.0.0/16,x", "invalid CIDR[1]: <nil> (invalid CIDR address: x)");
    check_wrong(
        "--cluster-cidr=10.0.0.0/16,10.1.0.0/16",
        "len of ClusterCIDRs==2 and they are not configured as dual stack (at least one from each IPFamily",
    );
    check_wrong(
        "--cluster-cidr=10.0.0.0/16,fd00::/48,10.1.0.0/16",
        "length of clusterCIDRs is:3 more than max allowed of 2",
    );
}

/// Upstream: `newNodeIpamController`, and `Validate` of its options.
#[test]
fn the_ranges_of_services_are_at_most_one_of_each_family() {
    let services = |text: &str| format!("--cluster-cidr=10.0.0.0/16 --service-cluster-ip-range={text}");
    let three = services("10.1.0.0/16,fd00::/112,10.2.0.0/16");
    check_wrong(&three, "--service-cluster-ip-range can not contain more than two entries");
    check_wrong(
        &services("10.1.0.0/16,10.2.0.0/16"),
        "serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)",
    );
    check_wrong(&services("x"), "--service-cluster-ip-range: invalid CIDR address: x");
}

/// Upstream: `setNodeCIDRMaskSizes`, `NewNodeIpamController` and `NewCIDRSet`.
#[test]
fn the_mask_sizes_fit_the_ranges() {
    let (ipv4, ipv6, dual) =
        ("--cluster-cidr=10.0.0.0/16", "--cluster-cidr=fd00::/48", "--cluster-cidr=10.0.0.0/16,fd00::/48");
    let not_dual = "usage of --node-cidr-mask-size is not allowed with dual-stack clusters";
    check_wrong(&format!("{dual} --node-cidr-mask-size=24"), not_dual);
    let both = "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if \
                --node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags";
    check_wrong(&format!("{ipv4} --node-cidr-mask-size=24 --node-cidr-mask-size-ipv4=24"), both);
    check_wrong(&format!("{ipv4} --node-cidr-mask-size=24 --node-cidr-mask-size-ipv6=64"), both);
    let not_ipv4 = "usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster";
    check_wrong(&format!("{ipv6} --node-cidr-mask-size-ipv4=24"), not_ipv4);
    let not_ipv6 = "usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster";
    check_wrong(&format!("{ipv4} --node-cidr-mask-size-ipv6=64"), not_ipv6);
    let too_large = "Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to \
                     --node-cidr-mask-size configured for CIDR family";
    check_wrong(&format!("{ipv4} --node-cidr-mask-size=15"), too_large);
    check_wrong(&format!("{ipv4} --node-cidr-mask-size=-1"), too_large);
    check_wrong("--cluster-cidr=fd00::/72", too_large);
    check_wrong("--cluster-cidr=fd00::/32", "New CIDR set failed; the node CIDR size is too big");
    check_wrong(
        &format!("{ipv4} --node-cidr-mask-size=33"),
        "the mask of a node CIDR of 10.0.0.0/16 cannot have 33 bits",
    );
}
