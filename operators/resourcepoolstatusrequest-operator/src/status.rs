//! The answer to a request.
//!
//! Left out: the condition Failed, which upstream sets if it cannot read its cache. Here a list that fails is retried.
//!
//! Upstream: `calculatePoolStatus`, `pkg/controller/resourcepoolstatusrequest/controller.go`.

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::condition::TRUE;
use shared::api::time::Time;

use crate::apply::{Answer, Outcome};
use crate::objects::COMPLETE;
use crate::observe::Pool;
use crate::plan::PoolAnswer;

/// The status to write; none if the request is not answered.
pub fn next_status(outcome: &Outcome, now: Timestamp) -> Option<Value> {
    let Answer { pools, total } = outcome.answer.as_ref()?;
    let condition = json!({
        "type": COMPLETE, "status": TRUE, "reason": "CalculationComplete",
        "message": format!("Calculated status for {} pools", pools.len()),
        "lastTransitionTime": Time::of(now),
    });
    let pools: Vec<Value> = pools.iter().map(pool_status).collect();
    Some(json!({ "poolCount": total, "pools": pools, "conditions": [condition] }))
}

/// Unavailable devices are never counted, as upstream.
fn pool_status(PoolAnswer { driver, name, pool }: &PoolAnswer) -> Value {
    let Pool { generation, slices, expected: _, node, has_one_node, devices, allocated } = pool;
    let mut status = json!({
        "driver": driver, "poolName": name, "generation": generation, "resourceSliceCount": slices,
        "totalDevices": devices, "allocatedDevices": allocated, "unavailableDevices": 0,
        "availableDevices": devices.saturating_sub(*allocated).max(0),
    });
    if *has_one_node && !node.is_empty() {
        status["nodeName"] = json!(node);
    }
    status
}
