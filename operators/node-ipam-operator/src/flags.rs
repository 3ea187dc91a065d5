//! The flags: those every operator has, and upstream's of this controller.
//!
//! They are checked with each other where they are read, in upstream's words and order.
//! Left out: `--configure-cloud-routes`, which is the cloud's.
//!
//! Upstream: `newNodeIpamController`, `cmd/kube-controller-manager/app/core.go`.

use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};
use shared::api::cidr::{Cidr, Family, cluster_cidrs, is_dual_stack};
use shared::process::flags::parse_bool;

use crate::objects::cidr_set::CidrSet;

/// The only allocator without a cloud.
const RANGE_ALLOCATOR: &str = "RangeAllocator";
/// Upstream: `defaultNodeMaskCIDRIPv4`.
const MASK_SIZE_IPV4: i32 = 24;
/// Upstream: `defaultNodeMaskCIDRIPv6`.
const MASK_SIZE_IPV6: i32 = 64;

/// Assigns each Node the CIDRs of its pods, as node-ipam-controller does.
#[derive(Clone, Debug, clap::Args)]
pub struct GivenFlags {
    /// Should CIDRs for Pods be allocated and set on the Nodes. Requires --cluster-cidr.
    #[arg(long, action = ArgAction::Set, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub allocate_node_cidrs: bool,
    /// Type of CIDR allocator to use. There is no other than the default.
    #[arg(long, default_value = RANGE_ALLOCATOR, value_name = "TYPE")]
    pub cidr_allocator_type: String,
    /// CIDR Range for Pods in cluster, or one of IPv4 and one of IPv6 with a comma between them. Only used when
    /// --allocate-node-cidrs=true; if false, this option will be ignored.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "CIDRS")]
    pub cluster_cidr: String,
    /// CIDR Range for Services in cluster, or one of each family: no Node gets a part of it. Only used when
    /// --allocate-node-cidrs=true; if false, this option will be ignored.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "CIDRS")]
    pub service_cluster_ip_range: String,
    /// Mask size for node cidr in cluster. Default is 24 for IPv4 and 64 for IPv6.
    #[arg(long, default_value_t = 0, value_name = "BITS")]
    pub node_cidr_mask_size: i32,
    /// Mask size for IPv4 node cidr in dual-stack cluster. Default is 24.
    #[arg(long, default_value_t = 0, value_name = "BITS")]
    pub node_cidr_mask_size_ipv4: i32,
    /// Mask size for IPv6 node cidr in dual-stack cluster. Default is 64.
    #[arg(long, default_value_t = 0, value_name = "BITS")]
    pub node_cidr_mask_size_ipv6: i32,
}

/// The checked flags: a set for each range of `--cluster-cidr`, in which the range of Services is taken; none if
/// nothing is to be allocated.
#[derive(Clone, Debug)]
pub struct Flags(pub Option<Vec<CidrSet>>);

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = GivenFlags::from_arg_matches(matches)?;
        given.checked().map(Self).map_err(|wrong| clap::Error::raw(ErrorKind::ValueValidation, wrong))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        GivenFlags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        GivenFlags::augment_args_for_update(command)
    }
}

impl GivenFlags {
    /// The first contradiction is the error. Flags that are ignored are not looked at, as upstream.
    ///
    /// Upstream: `Validate`, `cmd/kube-controller-manager/app/options/options.go` and `nodeipamcontroller.go`.
    fn checked(&self) -> Result<Option<Vec<CidrSet>>, String> {
        let allocator = self.cidr_allocator_type.as_str();
        if !["", RANGE_ALLOCATOR].contains(&allocator) {
            return Err(format!("built-in cloud providers are disabled. The ipam {allocator} is not available"));
        }
        if self.service_cluster_ip_range.split(',').count() > 2 {
            return Err("--service-cluster-ip-range can not contain more than two entries".to_owned());
        }
        if !self.allocate_node_cidrs {
            return Ok(None);
        }
        if allocator.is_empty() {
            return Err("invalid CIDR allocator type: ".to_owned());
        }
        if self.cluster_cidr.trim().is_empty() {
            return Err("Controller: Must specify --cluster-cidr if --allocate-node-cidrs is set".to_owned());
        }
        let cluster_cidrs = cluster_cidrs(&self.cluster_cidr)?;
        let services = self.services()?;
        let (ipv4, ipv6) = self.mask_sizes(&cluster_cidrs)?;
        let set = |cidr: &Cidr| match cidr.family() {
            Family::V4 => CidrSet::new(*cidr, ipv4),
            Family::V6 => CidrSet::new(*cidr, ipv6),
        };
        let mut sets: Vec<CidrSet> = cluster_cidrs.iter().map(set).collect::<Result<_, _>>()?;
        for set in &mut sets {
            for service in &services {
                set.occupy(*service);
            }
        }
        Ok(Some(sets))
    }

    /// A range that cannot be read is an error: upstream warns, and gives its addresses to pods too.
    fn services(&self) -> Result<Vec<Cidr>, String> {
        let texts = self.service_cluster_ip_range.split(',').map(str::trim).filter(|text| !text.is_empty());
        let read = |text: &str| text.parse::<Cidr>().map_err(|error| format!("--service-cluster-ip-range: {error}"));
        let services: Vec<Cidr> = texts.map(read).collect::<Result<_, _>>()?;
        if services.len() > 1 && !is_dual_stack(&services) {
            return Err("serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)".to_owned());
        }
        Ok(services)
    }

    /// Of IPv4 and of IPv6.
    ///
    /// Upstream: `setNodeCIDRMaskSizes`.
    fn mask_sizes(&self, cluster_cidrs: &[Cidr]) -> Result<(i32, i32), &'static str> {
        let given = |size: i32| Some(size).filter(|size| *size != 0);
        let (ipv4, ipv6) = (given(self.node_cidr_mask_size_ipv4), given(self.node_cidr_mask_size_ipv6));
        let has = |family: Family| cluster_cidrs.iter().any(|cidr| cidr.family() == family);
        match given(self.node_cidr_mask_size) {
            Some(_) if cluster_cidrs.len() > 1 => {
                Err("usage of --node-cidr-mask-size is not allowed with dual-stack clusters")
            }
            Some(_) if ipv4.is_some() || ipv6.is_some() => {
                Err("usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if \
                     --node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific \
                     flags")
            }
            Some(size) => Ok((size, size)),
            None if ipv4.is_some() && !has(Family::V4) => {
                Err("usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster")
            }
            None if ipv6.is_some() && !has(Family::V6) => {
                Err("usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster")
            }
            None => Ok((ipv4.unwrap_or(MASK_SIZE_IPV4), ipv6.unwrap_or(MASK_SIZE_IPV6))),
        }
    }
}
