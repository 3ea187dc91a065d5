//! How many claims there are, as a scrape shows it.

use resourceclaim_operator::metrics::ClaimCounts;
use resourceclaim_operator::objects::claim::ResourceClaim;
use shared::process::metrics::Metrics;
use shared::testing::forget;

use crate::fixtures::*;

/// Upstream: `TestResourceClaimEventHandler`, the numbers after each of its steps.
#[test]
fn claims_are_counted_by_allocation_admin_access_and_source() {
    let caches = cluster(gates_off(), &[]);
    let metrics = Metrics::new("resourceclaim-operator");
    metrics.register_collector(ClaimCounts { resource_claims: Arc::clone(&caches.resource_claims) });
    // Each line as `allocated admin_access source number`.
    let check = |step: &str, expected: &[&str]| {
        let text = metrics.to_text();
        let lines = text.lines().filter_map(|line| line.strip_prefix("resourceclaim_controller_resource_claims{"));
        let shown: Vec<String> = lines
            .map(|line| {
                let (labels, number) = line.split_once("} ").unwrap();
                let values = labels.split(',').map(|label| label.split('"').nth(1).unwrap());
                format!("{} {number}", values.collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(shown, expected, "{step}");
    };
    let set = |claim: &ObjectBuilder| store(&caches.resource_claims, &claim.build());
    let remove = |claim: &ObjectBuilder| forget(&caches.resource_claims, &claim.build::<ResourceClaim>());
    let exactly = json!([{ "name": "req-0", "exactly": { "deviceClassName": "class", "adminAccess": true } }]);
    let admin = made(claim("admin")).set(&["spec", "devices", "requests"], exactly);
    let extended = claim("extended").annotation("resource.kubernetes.io/extended-resource-claim", "true");
    for (plain, source, access) in [
        (claim(CLAIM), "", "false"),
        (admin, "resource_claim_template", "true"),
        (extended, "extended_resource", "false"),
    ] {
        let [free, taken, both] = ["false 1", "true 1", "true 2"].map(|line| {
            let (allocated, number) = line.split_once(' ').unwrap();
            format!("{allocated} {access} {source} {number}")
        });
        let version = |claim: ObjectBuilder, version: &str| claim.set(&["metadata", "resourceVersion"], version);
        let second = allocated(plain.clone()).set(&["metadata", "name"], "second").uid_of("second");
        set(&plain);
        check("create", &[&free]);
        set(&version(plain.clone().label("foo", "bar"), "2"));
        check("modify", &[&free]);
        set(&version(allocated(plain.clone()), "3"));
        check("allocate", &[&taken]);
        set(&second);
        check("create allocated", &[&both]);
        set(&version(plain.clone(), "4"));
        check("deallocate", &[&free, &taken]);
        remove(&version(plain, "4"));
        check("delete deallocated", &[&taken]);
        remove(&second);
        check("delete allocated", &[]);
    }
}
