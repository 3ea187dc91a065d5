//! The metrics of a process that runs several controllers: which of them work, and how often each was started again.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

pub(crate) struct ControllerState {
    pub(crate) name: &'static str,
    pub(crate) works: bool,
    pub(crate) restarts: u64,
}

type Read = Box<dyn Fn() -> Vec<ControllerState> + Send + Sync>;

pub(super) struct Controllers {
    manager: &'static str,
    read: Read,
}

impl Controllers {
    pub(super) fn new(manager: &'static str, read: impl Fn() -> Vec<ControllerState> + Send + Sync + 'static) -> Self {
        Self { manager, read: Box::new(read) }
    }
}

impl fmt::Debug for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Controllers")
    }
}

/// Upstream: `controllerInstanceCount`,
/// staging/src/k8s.io/component-base/metrics/prometheus/controllers/metrics.go.
impl Collector for Controllers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let states = (self.read)();
        let gauge = |state: &ControllerState| ConstGauge::new(i64::from(state.works));
        let help = "Indicates where instances of a controller are currently running.";
        let kind = ConstGauge::new(0_i64).metric_type();
        let mut family = encoder.encode_descriptor("running_managed_controllers", help, None, kind)?;
        for state in &states {
            let labels = [("name", state.name), ("manager", self.manager)];
            gauge(state).encode(family.encode_family(&labels)?)?;
        }
        let help = "Number of times a controller of this process was started again after it had failed.";
        let kind = ConstCounter::new(0_u64).metric_type();
        let mut family = encoder.encode_descriptor("controller_restarts", help, None, kind)?;
        for state in &states {
            ConstCounter::new(state.restarts).encode(family.encode_family(&[("name", state.name)])?)?;
        }
        Ok(())
    }
}
