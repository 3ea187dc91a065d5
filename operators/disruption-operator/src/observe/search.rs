//! A search for pods with the condition DisruptionTarget in namespaces whose pods are not followed, one page at a time. No
//! selector finds the condition, and following every pod would cost more than these lists.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::pod::LIVE;
use shared::api::resource::PODS;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::memory::next_page::NextPage;
use crate::objects::Pod;

#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    pub targets: Vec<Arc<Pod>>,
    pub goes_on: bool,
}

pub(crate) fn all_pods() -> Key {
    Key::new("", "pods")
}

pub(crate) async fn live_page(next: &NextPage, control: &Control) -> anyhow::Result<Search> {
    let selection = Selection { field_selector: LIVE, ..Selection::default() };
    let mut targets = Vec::new();
    let each = |pod: Pod| {
        if pod.target.is_some() {
            targets.push(Arc::new(pod));
        }
    };
    let listed = control.list_page(&PODS, selection, Accept::Object, &next.token(), each).await.map(|rest| rest.token);
    next.note(&listed);
    let goes_on = !listed.context("cannot list pods")?.is_empty();
    Ok(Search { targets, goes_on })
}
