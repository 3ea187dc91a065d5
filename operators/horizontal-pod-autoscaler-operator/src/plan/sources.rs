//! The proposal of each metric: its number of replicas, its name and its line in the status; or its fault, in
//! upstream's words.
//!
//! Upstream: `computeReplicasForMetric` and the functions that it calls, `pkg/controller/podautoscaler/horizontal.go`.

use std::sync::Arc;
use std::time::Duration;

use shared::api::intern::Text;
use shared::api::quantity::{Format, Quantity};
use shared::api::selector::{LabelSelector, Selector};
use shared::process::flags::GoDuration;

use super::numbers::cap;
use super::replica_calculator::{ReplicaCalculator, Replicas};
use super::samples::{Freshness, Samples, of_pods, of_usage};
use crate::objects::status::{IdentifiedStatus, ObjectMetricStatus, ResourceMetricStatus};
use crate::objects::values::{ExternalValue, ObjectValue, PodUsage};
use crate::objects::{
    MetricIdentifier, MetricSpec, MetricStatus, MetricValueStatus, Reference, Target, TargetType, events,
};
use crate::observe::Answer;

/// The number of replicas that a metric asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub replicas: i32,
    pub name: String,
    pub status: MetricStatus,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason of the event and of the condition.
    pub word: &'static str,
    pub message: String,
    /// The same with the step that failed.
    pub error: String,
    pub is_spec: bool,
}

/// The values of one metric, and the pods and flags to evaluate them with.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub namespace: &'a str,
    pub answer: &'a Answer,
    pub calculator: &'a ReplicaCalculator<'a>,
}

pub fn propose(spec: &MetricSpec, source: Source<'_>) -> Result<Proposal, Fault> {
    match spec {
        MetricSpec::Object { described_object, metric, target } => source.object(described_object, metric, target),
        MetricSpec::Pods { metric, target } => source.pods(metric, target),
        MetricSpec::Resource { name, target } => source.resource(name, target),
        MetricSpec::ContainerResource { name, container, target } => source.container(name, container, target),
        MetricSpec::External { metric, target } => source.external(metric, target),
        MetricSpec::Other(name) => {
            let message = format!("unknown metric source type {:?}", name.as_str());
            Err(Fault { word: events::INVALID_METRIC_SOURCE_TYPE, error: message.clone(), message, is_spec: true })
        }
    }
}

impl Source<'_> {
    fn fresh(&self) -> Freshness {
        Freshness { max_age: self.calculator.config.metrics_max_age, now: self.calculator.now }
    }

    /// Upstream: `computeStatusForObjectMetric`.
    fn object(&self, object: &Reference, metric: &MetricIdentifier, target: &Target) -> Result<Proposal, Fault> {
        let fault = |message: String, step: &str| {
            let error = format!("failed to get object metric value: {step}{message}");
            Fault { word: events::FAILED_GET_OBJECT_METRIC, message, error, is_spec: false }
        };
        check_selector(metric).map_err(|message| fault(message, ""))?;
        let name = &metric.name;
        let usage = || {
            self.one_value().map_err(|error| {
                let (kind, namespace, object) = (&object.kind, self.namespace, &object.name);
                // The order of these words is upstream's mistake.
                format!("unable to get metric {name}: {kind} on {namespace} {object}/{error}")
            })
        };
        let status = |current| MetricStatus {
            type_: Text::new("Object"),
            object: Some(ObjectMetricStatus { metric: metric.clone(), current, described_object: object.clone() }),
            ..MetricStatus::default()
        };
        match (target.type_, &target.value, &target.average_value) {
            (TargetType::Value, Some(value), _) => {
                let found = usage().and_then(|usage| self.calculator.value_replicas(value.milli_value(), usage));
                let found = found.map_err(|error| fault(error, ""))?;
                let (current, name) = (value_status(found.usage), format!("{} metric {name}", object.kind));
                Ok(Proposal { replicas: found.replicas, name, status: status(current) })
            }
            (TargetType::AverageValue, _, Some(average)) => {
                let step = format!("failed to get {name} object metric: ");
                let usage = usage().map_err(|error| fault(error, &step))?;
                let found = self.calculator.per_pod_replicas(average.milli_value(), usage);
                let (current, name) = (average_status(found.usage), external_name(metric));
                Ok(Proposal { replicas: found.replicas, name, status: status(current) })
            }
            _ => Err(fault(
                "invalid object metric source: neither a value target nor an average value target was set".to_owned(),
                "",
            )),
        }
    }

    fn one_value(&self) -> Result<i64, String> {
        const API: &str = "unable to fetch metrics from custom metrics API";
        let values = self.objects().map_err(|error| format!("{API}: {error}"))?;
        let [ObjectValue { timestamp, window_seconds, value, .. }] = values else {
            let count = values.len();
            return Err(format!(
                "{API}: the custom metrics API server returned {count} results when we asked for exactly one"
            ));
        };
        let window = Duration::from_secs(window_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or_default());
        match self.fresh().overdue(*timestamp, window) {
            None => Ok(value.milli_value()),
            Some(age) => Err(format!("{API}: {}", too_old(age))),
        }
    }

    fn objects(&self) -> Result<&[ObjectValue], &str> {
        match self.answer {
            Answer::Objects(values) => values.as_deref().map_err(String::as_str),
            Answer::None | Answer::Usage(_) | Answer::External(_) => Err("the metric was not read"),
        }
    }

    /// Upstream: `computeStatusForPodsMetric`.
    fn pods(&self, metric: &MetricIdentifier, target: &Target) -> Result<Proposal, Fault> {
        let fault = |message: String| {
            let error = format!("failed to get pods metric value: {message}");
            Fault { word: events::FAILED_GET_PODS_METRIC, message, error, is_spec: false }
        };
        check_selector(metric).map_err(fault)?;
        let name = &metric.name;
        let samples = self.pod_samples().map_err(|error| fault(format!("unable to get metric {name}: {error}")))?;
        let target = target.average_value.as_ref().map(Quantity::milli_value).unwrap_or_default();
        let found = self.calculator.plain_metric_replicas(target, "", samples).map_err(fault)?;
        let current = average_status(found.usage);
        let status = MetricStatus {
            type_: Text::new("Pods"),
            pods: Some(IdentifiedStatus { metric: metric.clone(), current }),
            ..MetricStatus::default()
        };
        Ok(Proposal { replicas: found.replicas, name: format!("pods metric {name}"), status })
    }

    fn pod_samples(&self) -> Result<Samples, String> {
        let values =
            self.objects().map_err(|error| format!("unable to fetch metrics from custom metrics API: {error}"))?;
        if values.is_empty() {
            return Err("no metrics returned from custom metrics API".to_owned());
        }
        of_pods(values, self.fresh()).map_err(too_old)
    }

    /// Upstream: `computeStatusForResourceMetric`.
    fn resource(&self, name: &Text, target: &Target) -> Result<Proposal, Fault> {
        let found = self.of_resource(name, "", target).map_err(|message| {
            let error = format!("failed to get {name} resource metric value: {message}");
            Fault { word: events::FAILED_GET_RESOURCE_METRIC, message, error, is_spec: false }
        })?;
        let current = resource_status(name, &found);
        let status = MetricStatus {
            type_: Text::new("Resource"),
            resource: Some(ResourceMetricStatus { name: name.clone(), current, container: Text::default() }),
            ..MetricStatus::default()
        };
        Ok(Proposal { replicas: found.replicas, name: resource_name(name, "resource", &found), status })
    }

    /// Upstream: `computeStatusForContainerResourceMetric`.
    fn container(&self, name: &Text, container: &Text, target: &Target) -> Result<Proposal, Fault> {
        let found = self.of_resource(name, container, target).map_err(|message| {
            let error = format!("failed to get {container} container metric value: {message}");
            Fault { word: events::FAILED_GET_CONTAINER_RESOURCE_METRIC, message, error, is_spec: false }
        })?;
        let current = resource_status(name, &found);
        let status = MetricStatus {
            type_: Text::new("ContainerResource"),
            container_resource: Some(ResourceMetricStatus {
                name: name.clone(),
                current,
                container: container.clone(),
            }),
            ..MetricStatus::default()
        };
        Ok(Proposal { replicas: found.replicas, name: resource_name(name, "container resource", &found), status })
    }

    /// Upstream: `computeStatusForResourceMetricGeneric`.
    fn of_resource(&self, resource: &str, container: &str, target: &Target) -> Result<Replicas, String> {
        if let Some(average) = &target.average_value {
            let found = self
                .usage_samples(resource, container)
                .and_then(|samples| self.calculator.plain_metric_replicas(average.milli_value(), resource, samples));
            return found.map_err(|error| format!("failed to get {resource} usage: {error}"));
        }
        let Some(utilization) = target.average_utilization else {
            return Err("invalid resource metric source: neither an average utilization target nor an average value \
                        (usage) target was set"
                .to_owned());
        };
        let found = self
            .usage_samples(resource, container)
            .and_then(|samples| self.calculator.resource_replicas(utilization, (resource, container), samples));
        found.map_err(|error| format!("failed to get {resource} utilization: {error}"))
    }

    fn usage_samples(&self, resource: &str, container: &str) -> Result<Samples, String> {
        let usage: Result<&Arc<Vec<PodUsage>>, String> = match self.answer {
            Answer::Usage(usage) => {
                usage.as_ref().map_err(|error| format!("unable to fetch metrics from resource metrics API: {error}"))
            }
            Answer::None | Answer::Objects(_) | Answer::External(_) => Err("the metric was not read".to_owned()),
        };
        let some = usage.and_then(|usage| {
            let is_empty = usage.is_empty();
            if is_empty { Err("no metrics returned from resource metrics API".to_owned()) } else { Ok(usage) }
        });
        let usage = some.map_err(|error| format!("unable to get metrics for resource {resource}: {error}"))?;
        of_usage(usage, resource, container, self.fresh())
            .map_err(|age| format!("unable to get metrics for resource {resource}: {}", too_old(age)))
    }

    /// Upstream: `computeStatusForExternalMetric`.
    fn external(&self, metric: &MetricIdentifier, target: &Target) -> Result<Proposal, Fault> {
        let name = &metric.name;
        let fault = |message: String, step: &str| {
            let error = format!("failed to get {name} external metric value: {step}{message}");
            Fault { word: events::FAILED_GET_EXTERNAL_METRIC, message, error, is_spec: false }
        };
        let status = |current| MetricStatus {
            type_: Text::new("External"),
            external: Some(IdentifiedStatus { metric: metric.clone(), current }),
            ..MetricStatus::default()
        };
        let long_name = external_name(metric);
        if let Some(average) = &target.average_value {
            let step = format!("failed to get {name} external metric: ");
            let usage = self.external_usage(metric).map_err(|error| fault(error, &step))?;
            let found = self.calculator.per_pod_replicas(average.milli_value(), usage);
            return Ok(Proposal {
                replicas: found.replicas,
                name: long_name,
                status: status(average_status(found.usage)),
            });
        }
        if let Some(value) = &target.value {
            let step = format!("failed to get external metric {name}: ");
            let usage = self.external_usage(metric);
            let found = usage.and_then(|usage| self.calculator.value_replicas(value.milli_value(), usage));
            let found = found.map_err(|error| fault(error, &step))?;
            return Ok(Proposal {
                replicas: found.replicas,
                name: long_name,
                status: status(value_status(found.usage)),
            });
        }
        let message = "invalid external metric source: neither a value target nor an average value target was set";
        Err(fault(message.to_owned(), ""))
    }

    fn external_usage(&self, metric: &MetricIdentifier) -> Result<i64, String> {
        check_selector(metric)?;
        let values = self.external_values().map_err(|error| {
            let selector = LabelSelector::as_go_prints_it(metric.selector.as_ref());
            format!("unable to get external metric {}/{}/{selector}: {error}", self.namespace, metric.name)
        })?;
        let overdue = values.iter().find_map(|found| self.fresh().overdue(found.timestamp, Duration::ZERO));
        if let Some(age) = overdue {
            return Err(too_old(age));
        }
        Ok(cap(values.iter().map(|found| i128::from(found.value.milli_value())).sum()))
    }

    fn external_values(&self) -> Result<&[ExternalValue], String> {
        let values = match self.answer {
            Answer::External(values) => {
                values.as_deref().map_err(|error| format!("unable to fetch metrics from external metrics API: {error}"))
            }
            Answer::None | Answer::Usage(_) | Answer::Objects(_) => Err("the metric was not read".to_owned()),
        }?;
        if values.is_empty() {
            return Err("no metrics returned from external metrics API".to_owned());
        }
        Ok(values)
    }
}

fn too_old(age: Duration) -> String {
    format!("the metrics are too old: {}", GoDuration(Duration::from_secs(age.as_secs())))
}

/// Upstream: `LabelSelectorAsSelector`.
fn check_selector(metric: &MetricIdentifier) -> Result<(), String> {
    match metric.selector.as_ref().map(Selector::parse) {
        None | Some(Ok(_)) => Ok(()),
        Some(Err(invalid)) => Err(invalid.to_string()),
    }
}

fn external_name(metric: &MetricIdentifier) -> String {
    let MetricIdentifier { name, selector } = metric;
    format!("external metric {name}({})", LabelSelector::as_go_prints_it(selector.as_ref()))
}

fn resource_name(name: &str, what: &str, found: &Replicas) -> String {
    // As upstream, the name of an average value does not tell whether a container is named.
    if found.utilization.is_none() {
        return format!("{name} resource");
    }
    format!("{name} {what} utilization (percentage of request)")
}

fn milli(value: i64, format: Format) -> Quantity {
    Quantity::new(value.into(), -3, format)
}

fn value_status(usage: i64) -> MetricValueStatus {
    MetricValueStatus { value: Some(milli(usage, Format::DecimalSi)), ..MetricValueStatus::default() }
}

fn average_status(usage: i64) -> MetricValueStatus {
    MetricValueStatus { average_value: Some(milli(usage, Format::DecimalSi)), ..MetricValueStatus::default() }
}

/// Upstream: `buildQuantity`.
fn resource_status(resource: &str, found: &Replicas) -> MetricValueStatus {
    let format = if resource == "memory" { Format::BinarySi } else { Format::DecimalSi };
    MetricValueStatus {
        value: None,
        average_value: Some(milli(found.usage, format)),
        average_utilization: found.utilization,
    }
}
