//! The values of an autoscaler's metrics and the pods behind its target's selector, all read at the same time.
//!
//! All resource metrics share one request for the usage of containers.

use std::sync::Arc;

use futures::future::{join, join_all};
use serde::de::DeserializeOwned;
use shared::api::resource::PODS;
use shared::api::selector::{LabelSelector, Selector};
use shared::api::url::{segment, with_query};
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use super::kinds::CUSTOM_METRICS;
use super::scales::group_of;
use super::words::in_client_words;
use super::{Answer, Caches, Measured, Observed};
use crate::objects::values::{PodUsage, Values};
use crate::objects::{MetricIdentifier, MetricSpec, Pod, Reference};

const RESOURCE_METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
const EXTERNAL_METRICS: &str = "/apis/external.metrics.k8s.io/v1beta1";

/// Adds the pods and the metrics, if the scale has a valid selector.
pub(crate) async fn live_measures(control: &Control, caches: &Caches, observed: Observed) -> Observed {
    let text = observed.scale.as_ref().map(|read| read.scale.status.selector.clone()).unwrap_or_default();
    let selector = Selector::parse_text(&text).ok().filter(|_| !text.is_empty());
    let Some(selector) = selector else { return observed };
    let key = &observed.autoscaler.metadata.key;
    let selectors = caches.memory.note_selector(&observed.autoscaler, selector.clone());
    let reader = Reader { control, caches, namespace: key.namespace(), selector: selector.to_string() };
    let (pods, answers) = join(reader.pods(), reader.answers(&observed.autoscaler.metrics)).await;
    Observed { measured: Measured { pods, selectors, answers }, ..observed }
}

/// Reads in one namespace, by one selector of pods.
struct Reader<'a> {
    control: &'a Control,
    caches: &'a Caches,
    namespace: &'a str,
    selector: String,
}

impl Reader<'_> {
    async fn pods(&self) -> Result<Vec<Arc<Pod>>, String> {
        let (mut pods, mut answer) = (Vec::new(), Ok(()));
        // As new as upstream's cache. An apiserver that has lost etcd has already failed to serve the scale.
        let selection = Selection { label_selector: &self.selector, from_cache: true, ..Selection::default() };
        // The protobuf decoder of pods skips the resources of containers.
        let each = |pod: Pod| pods.push(Arc::new(pod));
        if let Err(error) = self.control.list_each(&PODS, self.namespace, selection, Accept::Json, each).await {
            answer = Err(error.to_string());
        }
        answer.map(|()| pods)
    }

    async fn answers(&self, metrics: &[MetricSpec]) -> Vec<Answer> {
        let is_usage =
            |metric: &MetricSpec| matches!(metric, MetricSpec::Resource { .. } | MetricSpec::ContainerResource { .. });
        let is_asked = metrics.iter().any(is_usage);
        let usage = async { if is_asked { Some(self.usage().await.map(Arc::new)) } else { None } };
        let others = join_all(metrics.iter().map(|metric| self.answer(metric)));
        let (usage, mut answers) = join(usage, others).await;
        for (answer, _) in answers.iter_mut().zip(metrics).filter(|(_, metric)| is_usage(metric)) {
            *answer = usage.clone().map_or(Answer::None, Answer::Usage);
        }
        answers
    }

    /// The answer for a metric that is not one of resources.
    async fn answer(&self, metric: &MetricSpec) -> Answer {
        match metric {
            MetricSpec::Resource { .. } | MetricSpec::ContainerResource { .. } | MetricSpec::Other(_) => Answer::None,
            MetricSpec::Pods { metric, .. } => match selector_text(metric) {
                Some(series) => Answer::Objects(self.of_pods(metric, &series).await),
                None => Answer::None,
            },
            MetricSpec::Object { described_object, metric, .. } => match selector_text(metric) {
                Some(series) => Answer::Objects(self.of_object(described_object, metric, &series).await),
                None => Answer::None,
            },
            MetricSpec::External { metric, .. } => match selector_text(metric) {
                Some(series) => {
                    let path =
                        format!("{EXTERNAL_METRICS}/namespaces/{}/{}", segment(self.namespace), segment(&metric.name));
                    let about = format!("{}.external.metrics.k8s.io", metric.name);
                    Answer::External(self.get(&path, &[("labelSelector", &series)], &about).await)
                }
                None => Answer::None,
            },
        }
    }

    /// Upstream: `GetResourceMetric`, `pkg/controller/podautoscaler/metrics/client.go`.
    async fn usage(&self) -> Result<Vec<PodUsage>, String> {
        let path = format!("{RESOURCE_METRICS}/namespaces/{}/pods", segment(self.namespace));
        self.get(&path, &[("labelSelector", &self.selector)], "pods.metrics.k8s.io").await
    }

    /// Upstream: `GetForObjects`, `staging/src/k8s.io/metrics/pkg/client/custom_metrics/versioned_client.go`.
    async fn of_pods<T: DeserializeOwned>(&self, metric: &MetricIdentifier, series: &str) -> Result<Vec<T>, String> {
        let selectors = [("labelSelector", self.selector.as_str()), ("metricLabelSelector", series)];
        self.custom(&format!("pods/*/{}", segment(&metric.name)), &selectors, "pods", "*").await
    }

    /// A described namespace always means the autoscaler's own.
    ///
    /// Upstream: `GetForObject`, of the same file, and `GetObjectMetric`,
    /// `pkg/controller/podautoscaler/metrics/client.go`.
    async fn of_object<T: DeserializeOwned>(
        &self,
        object: &Reference,
        metric: &MetricIdentifier,
        series: &str,
    ) -> Result<Vec<T>, String> {
        let selectors = [("metricLabelSelector", series)];
        let group = group_of(&object.api_version).unwrap_or_default();
        if group.is_empty() && object.kind == *"Namespace" {
            let rest = format!("metrics/{}", segment(&metric.name));
            return self.custom(&rest, &selectors, "metrics", &metric.name).await;
        }
        let resource = self.caches.kinds.resource_of(self.control, group, &object.kind).await.map_err(|unknown| {
            let dot = if group.is_empty() { "" } else { "." };
            let kind = format!("{}{dot}{group}", object.kind);
            format!("unable to map kind {kind} to resource: {unknown}")
        })?;
        let resource = resource.to_string();
        let rest = format!("{resource}/{}/{}", segment(&object.name), segment(&metric.name));
        self.custom(&rest, &selectors, &resource, &object.name).await
    }

    async fn custom<T: DeserializeOwned>(
        &self,
        rest: &str,
        selectors: &[(&str, &str)],
        resource: &str,
        name: &str,
    ) -> Result<Vec<T>, String> {
        let version = self.caches.kinds.custom_metrics_version(self.control).await;
        let version = version.map_err(|unknown| unknown.to_string())?;
        let path = format!("/apis/{CUSTOM_METRICS}/{version}/namespaces/{}/{rest}", segment(self.namespace));
        let read = self.get(&path, selectors, &format!("{resource}.{CUSTOM_METRICS} {name}")).await;
        if read.is_err() {
            self.caches.kinds.forget_custom_metrics();
        }
        read
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        selectors: &[(&str, &str)],
        about: &str,
    ) -> Result<Vec<T>, String> {
        let read = self.control.get_path::<Values<T>>(&with_query(path, selectors)).await;
        read.map(|values| values.items).map_err(|error| in_client_words(&error, about))
    }
}

/// The selector of a metric's series as a text; none if it is invalid.
fn selector_text(metric: &MetricIdentifier) -> Option<String> {
    let read = |selector: &LabelSelector| Selector::parse(selector).map(|selector| selector.to_string());
    metric.selector.as_ref().map_or_else(|| Some(String::new()), |selector| read(selector).ok())
}
