//! How many addresses each subset keeps.

use endpoints_operator::objects::{Address, Subset};
use endpoints_operator::plan::subsets::truncate;

/// Upstream: `TestTruncateEndpoints`.
#[test]
fn each_subset_keeps_its_share_and_ready_addresses_come_first() {
    let row = |ready: &[usize], not_ready: &[usize], expected: [&[usize]; 2], left_out: usize| {
        let addresses = |count: &usize| vec![Address::default(); *count];
        let subset = |(ready, not_ready)| Subset {
            addresses: addresses(ready),
            not_ready_addresses: addresses(not_ready),
            ports: Vec::new(),
        };
        let mut subsets: Vec<Subset> = ready.iter().zip(not_ready).map(subset).collect();
        assert_eq!(truncate(&mut subsets), left_out);
        let kept: Vec<usize> = subsets.iter().map(|subset| subset.addresses.len()).collect();
        let kept_too: Vec<usize> = subsets.iter().map(|subset| subset.not_ready_addresses.len()).collect();
        assert_eq!([kept.as_slice(), kept_too.as_slice()], expected);
    };
    row(&[], &[], [&[], &[]], 0);
    let few = [50, 100, 100, 100, 100];
    row(&few, &few, [&few, &few], 0);
    row(&[100; 5], &[100; 5], [&[100; 5], &[100; 5]], 0);
    let ready = [90, 110, 50, 10, 20];
    row(&ready, &[101, 200, 200, 201, 298], [&ready, &[73, 144, 144, 145, 214]], 280);
    let kept = [98, 191, 192, 191, 328];
    row(&[205, 400, 402, 400, 693], &[100, 200, 200, 200, 300], [&kept, &[0; 5]], 2100);
    // Floating point makes a little more than 15 of 150 / 290 * 29.
    row(&[971, 0], &[150, 140], [&[971, 0], &[16, 13]], 261);
}
