//! The addresses in the status of a Service.

pub mod pools;

use serde_json::value::RawValue;
use shared::api::raw::raw_of;

use crate::objects::Ingress;

/// The status to write; none if the Service has these addresses already.
///
/// Upstream: `patchStatus`.
pub fn next_status(old: &Ingress, new: &Ingress) -> Option<Box<RawValue>> {
    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Status<'a> {
        load_balancer: LoadBalancer<'a>,
    }
    #[derive(serde::Serialize)]
    struct LoadBalancer<'a> {
        /// `null` removes all.
        ingress: Option<&'a Ingress>,
    }
    (old != new).then(|| {
        let ingress = Some(new).filter(|ingress| !ingress.is_empty());
        raw_of(&Status { load_balancer: LoadBalancer { ingress } })
    })
}
