//! Operators when something goes wrong between them and the apiserver: answers are lost, writes refused, caches stale;
//! processes are killed between any two writes, and the leader dies or sleeps in the middle of a rollout.
//!
//! Each test has a cluster of its own. In reading order: [`timeline`] (what was true at each revision), [`scene`] (a
//! cluster, operators behind proxies), then the tests. Left out: faults of the cluster itself, such as dying nodes.

mod failover;
mod kills;
mod lost_answers;
mod refusals;
mod scene;
mod stale_caches;
mod timeline;
mod undecodable;
