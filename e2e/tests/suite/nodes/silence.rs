//! Kubelets that stop one by one, in a zone, and everywhere at once.

use anyhow::{Result, ensure};

use super::{
    EVICTION, FLAGS, LIFECYCLE, UNREACHABLE, all_nodes, describe, ending, evicted, node, nodes, pods_on, set_kubelets,
    wait_evicted, wait_lost,
};
use crate::support::behind::Behind;
use crate::support::{DEADLINE, with_cluster};

/// Four in each zone.
const NODES: u32 = 12;
/// Those of one zone.
const ZONE: [u32; 4] = [0, 3, 6, 9];
/// Those of the two others.
const OTHERS: [u32; 8] = [1, 2, 4, 5, 7, 8, 10, 11];

#[test]
fn pods_leave_nodes_that_are_lost_alone_or_with_their_zone_and_stay_where_all_seem_lost() -> Result<()> {
    with_cluster(nodes(NODES), async |scene| {
        let _lifecycle = Behind::start(scene, LIFECYCLE, LIFECYCLE, &FLAGS).await?;
        let _eviction = Behind::start(scene, EVICTION, EVICTION, &[]).await?;
        // The others tolerate it for so long that what seems lost is all lost by then.
        pods_on(scene, ZONE, 1).await?;
        pods_on(scene, OTHERS, 20).await?;

        set_kubelets(scene, [0], false).await?;
        wait_evicted(scene, NODES, [0]).await?;
        wait_lost(scene, [0]).await?;

        set_kubelets(scene, ZONE, false).await?;
        wait_evicted(scene, NODES, ZONE).await?;
        wait_lost(scene, ZONE).await?;

        set_kubelets(scene, OTHERS, false).await?;
        wait_lost(scene, 0..NODES).await?;
        scene
            .wait_until("no node ends pods while all seem lost", DEADLINE, async || {
                let nodes = all_nodes(scene).await?;
                ensure!(nodes.iter().all(|node| ending(node).is_empty()), "{}", describe(scene).await?);
                Ok(())
            })
            .await?;

        set_kubelets(scene, OTHERS, true).await?;
        wait_lost(scene, ZONE).await?;
        scene
            .wait_until("only the lost zone ends pods", DEADLINE, async || {
                for found in all_nodes(scene).await? {
                    let is_lost = ZONE.iter().any(|lost| found.metadata.name.as_ref() == Some(&node(*lost)));
                    let expected: &[&str] = if is_lost { &[UNREACHABLE] } else { &[] };
                    ensure!(ending(&found) == expected, "{}", describe(scene).await?);
                }
                Ok(())
            })
            .await?;
        set_kubelets(scene, ZONE, true).await?;
        wait_lost(scene, []).await?;
        let lost = evicted(scene, 0..NODES).await?;
        ensure!(lost.iter().eq(&ZONE), "the pods of {lost:?} are gone");
        Ok(())
    })
}
