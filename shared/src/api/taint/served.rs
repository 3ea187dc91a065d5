//! The taints of a node as they were served. A write has all of them, and must lose no field of any.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Taint;
use crate::api::raw::{RawObject, raw_of};

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct ServedTaint {
    pub taint: Taint,
    pub whole: Box<RawValue>,
}

impl TryFrom<Box<RawValue>> for ServedTaint {
    type Error = serde_json::Error;

    fn try_from(whole: Box<RawValue>) -> Result<Self, Self::Error> {
        Ok(Self { taint: serde_json::from_str(whole.get())?, whole })
    }
}

impl PartialEq for ServedTaint {
    fn eq(&self, other: &Self) -> bool {
        self.whole.get() == other.whole.get()
    }
}

/// The `spec` of a merge patch of a node's taints: those of these that stay, as they were served, and new ones after them.
///
/// Upstream: `AddOrUpdateTaintOnNode` and `RemoveTaintOffNode`, `pkg/controller/controller_utils.go`, and
/// `staging/src/k8s.io/cloud-provider/node/helpers/taints.go`.
pub fn taints_spec(
    served: &[ServedTaint],
    stays: impl Fn(&Taint) -> bool,
    new: impl IntoIterator<Item = Box<RawValue>>,
) -> RawObject<'static> {
    let kept = served.iter().filter(|served| stays(&served.taint)).map(|served| served.whole.clone());
    let taints: Vec<Box<RawValue>> = kept.chain(new).collect();
    let mut spec = RawObject::default();
    spec.insert("taints", raw_of(&taints));
    spec
}
