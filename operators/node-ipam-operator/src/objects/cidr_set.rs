//! One range of `--cluster-cidr`, cut into blocks of one size: which are taken, and which is the next free one.
//!
//! Upstream keeps a bit for each block. Here each CIDR in the range has a number of holders, so a block with two holders
//! is free only after both have released it.
//!
//! Upstream: `pkg/controller/nodeipam/ipam/cidrset/cidr_set.go`.

use shared::api::cidr::{Cidr, Family};
use std::collections::BTreeMap;

/// How many bits longer a block's mask may be than that of its range, if they are IPv6.
///
/// Upstream: `clusterSubnetMaxDiff`.
const IPV6_BITS_MAX: u8 = 16;

/// The first and the last of some blocks in a row, by number.
type Run = (u64, u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CidrSet {
    cluster_cidr: Cidr,
    mask_size: u8,
    /// The CIDRs that take blocks, each with the number of its holders.
    holders: BTreeMap<Cidr, usize>,
    /// How many blocks are taken.
    used: u64,
    /// The number of the block at which the search for a free one begins.
    next: u64,
}

impl CidrSet {
    /// The blocks of this range that have this mask size; all of them are free.
    ///
    /// Upstream: `NewNodeIpamController`, `pkg/controller/nodeipam/node_ipam_controller.go`, and `NewCIDRSet`.
    pub fn new(cluster_cidr: Cidr, mask_size: i32) -> Result<Self, String> {
        let (family, cluster_mask_size) = (cluster_cidr.family(), cluster_cidr.mask_size());
        if mask_size < i32::from(cluster_mask_size) {
            return Err("Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to \
                        --node-cidr-mask-size configured for CIDR family"
                .to_owned());
        }
        let too_long = || format!("the mask of a node CIDR of {cluster_cidr} cannot have {mask_size} bits");
        let mask_size = u8::try_from(mask_size).ok().filter(|size| *size <= family.bits()).ok_or_else(too_long)?;
        if family == Family::V6 && mask_size - cluster_mask_size > IPV6_BITS_MAX {
            return Err("New CIDR set failed; the node CIDR size is too big".to_owned());
        }
        Ok(Self { cluster_cidr, mask_size, holders: BTreeMap::new(), used: 0, next: 0 })
    }

    pub fn cluster_cidr(&self) -> Cidr {
        self.cluster_cidr
    }

    /// How many blocks the range has.
    ///
    /// Upstream: `getMaxCIDRs`.
    pub fn max_cidrs(&self) -> u64 {
        1_u64 << (self.mask_size - self.cluster_cidr.mask_size())
    }

    /// How many blocks are taken.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// How many blocks are free.
    pub fn free(&self) -> u64 {
        self.max_cidrs().saturating_sub(self.used)
    }

    /// How many holders CIDRs have that share an address with this one; none if it is outside of the range.
    pub fn holders(&self, cidr: Cidr) -> Option<usize> {
        let shared = || self.held_from(cidr).take_while(|(held, _)| held.first() <= cidr.last());
        self.cluster_cidr.overlaps(cidr).then(|| shared().map(|(_, holders)| holders).sum())
    }

    /// What is held of this CIDR and of all behind it, with its holders, by the first address.
    fn held_from(&self, cidr: Cidr) -> impl Iterator<Item = (Cidr, usize)> {
        let around = (0..cidr.mask_size()).map(move |size| Cidr::new(cidr.family(), cidr.first(), size));
        let around = around.filter_map(|held| Some((held, *self.holders.get(&held)?)));
        around.chain(self.holders.range(cidr..).map(|(held, holders)| (*held, *holders)))
    }

    /// The next free block after the one that was allocated last, or the first one after that from the beginning.
    ///
    /// Upstream: `AllocateNext`.
    pub fn next_free(&self) -> Option<Cidr> {
        let free = [self.next, 0].into_iter().map(|from| self.first_free(from)).find(|block| *block < self.max_cidrs());
        free.map(|block| self.block(block))
    }

    /// Notes that a search has ended at this block: the next one begins after it. Gives how many blocks the search has
    /// passed over; none if the block is in another range.
    pub fn move_past(&mut self, cidr: Cidr) -> Option<u64> {
        let (begin, max) = (self.next, self.max_cidrs());
        let (_, found) = self.run(cidr)?;
        self.next = if found + 1 < max { found + 1 } else { 0 };
        Some(if found >= begin { found - begin } else { found + max - begin })
    }

    /// Adds a holder to a CIDR. Gives how many blocks were free before.
    ///
    /// Upstream: `Occupy`.
    pub fn occupy(&mut self, cidr: Cidr) -> u64 {
        let Some(run) = self.run(cidr) else { return 0 };
        let taken = self.free_within(run);
        *self.holders.entry(cidr).or_default() += 1;
        self.used += taken;
        taken
    }

    /// Takes a holder from a CIDR. Gives how many blocks are free now.
    ///
    /// Upstream: `Release`.
    pub fn release(&mut self, cidr: Cidr) -> u64 {
        let Some(run) = self.run(cidr) else { return 0 };
        match self.holders.get(&cidr).copied() {
            None => 0,
            Some(holders) if holders > 1 => {
                self.holders.insert(cidr, holders - 1);
                0
            }
            Some(_) => {
                self.holders.remove(&cidr);
                let freed = self.free_within(run);
                self.used -= freed;
                freed
            }
        }
    }

    /// The blocks with which a CIDR has an address in common.
    ///
    /// Upstream: `getBeginningAndEndIndices`.
    pub fn run(&self, cidr: Cidr) -> Option<Run> {
        let (all, shift) = (self.cluster_cidr, self.shift());
        let number = |address: u128| {
            let number = (address - all.first()).checked_shr(shift).unwrap_or(0);
            u64::try_from(number).unwrap_or(u64::MAX)
        };
        let (first, last) = (cidr.first().max(all.first()), cidr.last().min(all.last()));
        all.overlaps(cidr).then(|| (number(first), number(last)))
    }

    /// By how many bits a block's number is shifted in an address.
    fn shift(&self) -> u32 {
        u32::from(self.cluster_cidr.family().bits() - self.mask_size)
    }

    /// Upstream: `indexToCIDRBlock`.
    pub fn block(&self, number: u64) -> Cidr {
        let offset = u128::from(number).checked_shl(self.shift()).unwrap_or(0);
        Cidr::new(self.cluster_cidr.family(), self.cluster_cidr.first() | offset, self.mask_size)
    }

    /// The runs that are taken of this block and of those behind it, by their first block.
    fn runs_from(&self, block: u64) -> impl Iterator<Item = Run> {
        self.held_from(self.block(block)).filter_map(|(cidr, _)| self.run(cidr))
    }

    /// The first free block from here on; past the last one if all are taken.
    fn first_free(&self, from: u64) -> u64 {
        let mut free = from;
        for (first, last) in self.runs_from(from) {
            if first > free {
                break;
            }
            free = free.max(last + 1);
        }
        free
    }

    /// How many of these blocks are free.
    fn free_within(&self, (first, last): Run) -> u64 {
        let (mut free, mut at) = (0, first);
        for (begin, end) in self.runs_from(first).take_while(|(begin, _)| *begin <= last) {
            free += begin.saturating_sub(at);
            at = at.max(end + 1);
        }
        free + (last + 1).saturating_sub(at)
    }
}
