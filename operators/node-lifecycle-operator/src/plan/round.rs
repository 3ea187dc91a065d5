//! A look at all nodes: the state of the zones, whose turn it is to be tainted, and which nodes have to be synced.
//!
//! Upstream: `monitorNodeHealth` and `doNoExecuteTaintingPass`,
//! `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::Key;
use shared::working::decisions::{self, Reasoned};

use crate::memory::{Gaps, Known, Look, Turn, Zone, ZoneState, Zones};
use crate::observe::{Observed, ObservedRound};
use crate::plan::disruption::zones;
use crate::plan::gap::{Gap, gap};
use crate::plan::reasons::RoundReason;
use crate::plan::{Config, plan, waits_for_turn};

/// The shortest time between two looks.
///
/// Upstream: `NodeEvictionPeriod`, `pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go`.
const SHORTEST: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq)]
pub struct RoundPlan {
    pub zones: Zones,
    pub turns: Vec<(Key, Turn)>,
    pub start_over: Option<Timestamp>,
    pub sync: Vec<Key>,
    /// How long until the next look.
    pub next: Duration,
    /// The gap that was found, and whether to report that gaps outlast a grace period: no lost node is found meanwhile.
    pub gap: Option<(Gap, bool)>,
    pub reason: RoundReason,
}

pub fn plan_round(observed: &ObservedRound, config: &Config, now: Timestamp) -> RoundPlan {
    let ObservedRound { nodes, zones: before, is_followed } = observed;
    let look = Look { at: now, is_followed: *is_followed };
    let gap = gap(before.looked, look, config);
    let existing = nodes.iter().filter_map(|observed| observed.node.as_deref());
    let (mut zones, is_all_disrupted) = zones(existing, &before.zones, config, now);
    let has_recovered = before.is_all_disrupted && !is_all_disrupted;
    let start_over = (gap.is_some() || has_recovered).then_some(now);
    let mut looked_at: Vec<Observed> = nodes.clone();
    for node in &mut looked_at {
        node.is_all_disrupted = is_all_disrupted;
        if let (Some(known), Some(now)) = (&mut node.known, start_over) {
            known.heard = now;
        }
    }
    let turns = take_turns(&mut looked_at, &mut zones, now);
    let next = next_look(&looked_at, &zones, config, now);
    let sync = looked_at.iter().filter(|node| plan(node, config, now).is_news()).map(|node| node.key.clone()).collect();
    let disrupted = zones.values().filter(|zone| zone.state != ZoneState::Normal).count();
    let nodes = nodes.len();
    let reason = match gap {
        Some(gap) => RoundReason::Gap { gap },
        None if is_all_disrupted => RoundReason::AllDisrupted { nodes },
        None if has_recovered => RoundReason::Recovered { nodes },
        None => RoundReason::Watched { nodes, disrupted },
    };
    let (gaps, report) = gap.map_or((None, false), |_| outlasting(before.gaps, config, now));
    let zones = Zones { zones, is_all_disrupted, looked: Some(look), gaps };
    RoundPlan { zones, turns, start_over, sync, next, gap: gap.map(|gap| (gap, report)), reason }
}

/// The gaps up to now, and whether to report them.
fn outlasting(before: Option<Gaps>, config: &Config, now: Timestamp) -> (Option<Gaps>, bool) {
    let Gaps { since, is_reported } = before.unwrap_or(Gaps { since: now, is_reported: false });
    // If the clock was set back, they count from now on.
    let since = since.min(now);
    let lasted = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    let report = !is_reported && lasted > config.grace;
    (Some(Gaps { since, is_reported: is_reported || report }), report)
}

/// Queues the nodes that have to be tainted, and gives the first of each zone its turn if the zone has a token. Returns
/// the turns that have changed.
fn take_turns(nodes: &mut [Observed], zones: &mut BTreeMap<Text, Zone>, now: Timestamp) -> Vec<(Key, Turn)> {
    let before: Vec<Option<Turn>> = nodes.iter().map(turn).collect();
    for node in &mut *nodes {
        let waits = waits_for_turn(node);
        let Some(known) = &mut node.known else { continue };
        known.turn = match known.turn {
            _ if !waits => Turn::None,
            Turn::None => Turn::Waits { since: now },
            turn @ (Turn::Waits { .. } | Turn::Now) => turn,
        };
    }
    // By name if several wait since the same look.
    let mut waiting: Vec<(Timestamp, usize)> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Some(Turn::Waits { since }) = turn(node) {
            waiting.push((since, at));
        }
    }
    waiting.sort_unstable_by_key(|(since, at)| (*since, nodes[*at].key.clone()));
    for (_, at) in waiting {
        let node = &mut nodes[at];
        let Some(zone) = node.node.as_ref().map(|node| node.zone()) else { continue };
        if let (Some(zone), Some(known)) = (zones.get_mut(&zone), &mut node.known)
            && zone.limiter.try_accept(now)
        {
            known.turn = Turn::Now;
        }
    }
    let changed = nodes.iter().zip(before).filter(|(node, before)| turn(node) != *before);
    changed.filter_map(|(node, _)| Some((node.key.clone(), turn(node)?))).collect()
}

fn turn(node: &Observed) -> Option<Turn> {
    node.known.map(|Known { uid: _, heard: _, is_registered: _, turn }| turn)
}

/// The period, or less if a zone with a waiting node has a token earlier.
fn next_look(nodes: &[Observed], zones: &BTreeMap<Text, Zone>, config: &Config, now: Timestamp) -> Duration {
    let waiting = nodes.iter().filter(|node| matches!(turn(node), Some(Turn::Waits { .. })));
    let zones = waiting.filter_map(|node| zones.get(&node.node.as_ref()?.zone()));
    let token = zones.filter_map(|zone| zone.limiter.wait(now)).min();
    token.map_or(config.period, |token| token.max(SHORTEST).min(config.period))
}

impl Reasoned for RoundPlan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for RoundPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { zones: _, turns: _, start_over, sync, next: _, gap: _, reason } = self;
        if start_over.is_some() {
            f.write_str("restart grace periods, ")?;
        }
        if sync.is_empty() {
            write!(f, "nothing ({reason})")
        } else {
            write!(f, "sync {} ({reason})", list(sync, Key::to_string))
        }
    }
}
