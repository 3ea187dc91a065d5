//! The scale of an autoscaler's target, read live: one request, and at first two more for the kind.

use serde::Deserialize;
use serde_json::Value;
use shared::api::object::Key;
use shared::api::resource::Resource;
use shared::transport::api_error::ApiError;
use shared::working::control::Control;

use super::words::in_client_words;
use super::{Caches, Known, Measured, Observed, ReadScale, ScaleFailure};
use crate::objects::Reference;
use crate::objects::Scale;
use crate::objects::scale::SCALE;

pub(crate) async fn live_scale(control: &Control, caches: &Caches, known: Known) -> Observed {
    let Known { autoscaler, history } = known;
    let scale = read_scale(control, caches, autoscaler.metadata.namespace(), &autoscaler.target).await;
    Observed { autoscaler, history, scale, measured: Measured::default() }
}

/// Upstream: `reconcileAutoscaler` and `scaleForResourceMappings`, `pkg/controller/podautoscaler/horizontal.go`.
async fn read_scale(
    control: &Control,
    caches: &Caches,
    namespace: &str,
    target: &Reference,
) -> Result<ReadScale, ScaleFailure> {
    let Reference { kind, name, api_version } = target;
    let group = group_of(api_version).map_err(|message| ScaleFailure {
        step: format!("invalid API version in scale target reference: {message}"),
        message,
        is_spec: true,
    })?;
    let resource = caches.kinds.resource_of(control, group, kind).await.map_err(|unknown| {
        let message = unknown.to_string();
        let step = format!("unable to determine resource for scale target reference: {message}");
        ScaleFailure { message, step, is_spec: false }
    })?;
    let failure = |message: String| {
        let step = format!("failed to query scale subresource for {kind}/{namespace}/{name}: {message}");
        ScaleFailure { message, step, is_spec: false }
    };
    // As upstream, a cluster-scoped target is read in the autoscaler's namespace, and fails.
    let resource = Resource { namespaced: true, ..resource };
    let read = get_scale(control, &resource, &Key::new(namespace, name)).await;
    if read.as_ref().is_err_and(|error| !error.is_object_not_found()) {
        caches.kinds.forget_resource(group, kind);
    }
    let served = read.map_err(|error| failure(in_client_words(&error, &format!("{} {name}", resource.plural))))?;
    let scale = Scale::deserialize(&served).map_err(|error| failure(error.to_string()))?;
    Ok(ReadScale { resource, scale, served })
}

pub(crate) async fn get_scale(control: &Control, resource: &Resource, object: &Key) -> Result<Value, ApiError> {
    control.get_subresource(resource, object, SCALE).await
}

/// Upstream: `ParseGroupVersion`, `staging/src/k8s.io/apimachinery/pkg/runtime/schema/group_version.go`.
pub(super) fn group_of(api_version: &str) -> Result<&str, String> {
    match api_version.split('/').collect::<Vec<_>>()[..] {
        [_] => Ok(""),
        [group, _] => Ok(group),
        _ => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}
