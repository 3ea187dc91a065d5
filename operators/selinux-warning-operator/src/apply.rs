//! Executes a plan: remembers how the pod uses its volumes, and posts events.

use std::sync::Arc;
use std::time::Duration;

use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::worker::Requeue;

use crate::memory::Volumes;
use crate::plan::Plan;

/// When a pod is warned again that nothing but its deletion ends its state: the longest back-off of upstream, which
/// repeats the warning as a failure.
const REPEAT: Duration = Duration::from_secs(1000);

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) remembered: Arc<Volumes>,
}

impl Writer {
    pub(crate) fn apply(&self, key: &Key, plan: Plan) -> Requeue {
        let Plan::Check { uid, uses, events, warnings, found: _ } = plan else {
            self.remembered.remove(key);
            return Requeue::Done;
        };
        self.remembered.remove_other_than(key, uid);
        for (disk, usage) in uses {
            self.remembered.add(key, uid, &disk, usage);
        }
        let again = !warnings.is_empty();
        for event in events.into_iter().chain(warnings) {
            self.ctx.event(event);
        }
        if again { Requeue::After(REPEAT, "the warning once more") } else { Requeue::Done }
    }
}
