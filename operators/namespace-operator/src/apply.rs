//! Deletes the objects of kinds, and writes the namespace.

use anyhow::Context;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use serde_json::Value;
use shared::api::object::Key;
use shared::api::resource::{NAMESPACES, PODS, Resource};
use shared::api::time::Time;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::transport::client::Accept;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, KeyControl, Preconditions, Propagation, Selection, Written};

use crate::objects::{Emptied, Item, ItemMeta, LiveNamespace, Round};
use crate::observe::{Observed, is_unsupported, live_grace_seconds, live_remaining};
use crate::plan::{Content, KindToEmpty, judge, remaining_grace};

/// How many kinds are emptied at the same time after the pods are gone.
const AT_ONCE: usize = 8;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    /// Empties a namespace: first the pods, and once they are gone everything else.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Content) -> Round {
        let Content { since, pods, others, undiscovered } = plan;
        let Observed { namespace } = observed;
        let (key, now) = (namespace.key(), self.ctx.now());
        let empty = |kind| empty_kind(self.ctx.for_name(&key), namespace.name(), kind, since, now);
        let mut outcome = Round { undiscovered, ..Round::default() };
        if let Some(pods) = pods {
            outcome.pods = Some(empty(pods).await);
        }
        if !outcome.waits_for_pods() {
            outcome.others = stream::iter(others.into_iter().map(empty)).buffered(AT_ONCE).collect().await;
        }
        outcome
    }

    pub(crate) async fn write_status(&self, observed: &mut Observed, body: Value) -> anyhow::Result<bool> {
        let Some(written) = self.replace(observed, "status", &body).await? else { return Ok(false) };
        observed.namespace = LiveNamespace(body);
        observed.namespace.set_version(written.metadata.resource_version);
        Ok(true)
    }

    /// Writes this body to `/finalize`: the apiserver removes the namespace if no finalizer is left.
    pub(crate) async fn finalize(&self, observed: &Observed, body: &Value) -> anyhow::Result<()> {
        self.replace(observed, "finalize", body).await?;
        tracing::info!(key = %observed.namespace.key(), "finalized namespace");
        Ok(())
    }

    async fn replace(&self, observed: &Observed, subresource: &str, body: &Value) -> anyhow::Result<Option<Written>> {
        let key = observed.namespace.key();
        let control = self.ctx.for_name(&key);
        let written = control.replace(&NAMESPACES, &key, subresource, Preconditions::of_read(body), body).await;
        written.unless_gone().with_context(|| format!("cannot write the namespace's {subresource}"))
    }
}

async fn empty_kind(
    control: KeyControl<'_>,
    namespace: &str,
    kind: KindToEmpty,
    since: Time,
    now: Timestamp,
) -> Emptied {
    match try_empty(control, namespace, &kind, since, now).await {
        Ok(emptied) => emptied,
        Err(error) => Emptied { error: Some(error.to_string()), ..Emptied::nothing(kind.resource) },
    }
}

async fn try_empty(
    control: KeyControl<'_>,
    namespace: &str,
    kind: &KindToEmpty,
    since: Time,
    now: Timestamp,
) -> Result<Emptied, ApiError> {
    let resource = &kind.resource;
    let grace = if *resource == PODS { live_grace_seconds(&control, namespace).await? } else { 0 };
    let grace = remaining_grace(grace, since, now);
    if !delete_collection(control, namespace, kind).await? && kind.can_list {
        delete_each(control, resource, namespace).await?;
    }
    let mut left = Emptied::nothing(resource.clone());
    if kind.can_list {
        let remaining = live_remaining(&control, resource, namespace).await?;
        left = judge(kind, namespace, grace, remaining.count, remaining.finalizers);
    }
    Ok(left)
}

async fn delete_collection(control: KeyControl<'_>, namespace: &str, kind: &KindToEmpty) -> Result<bool, ApiError> {
    if !kind.can_delete_collection {
        return Ok(false);
    }
    match control.delete_collection(&kind.resource, namespace, Propagation::Background).await {
        Ok(()) => Ok(true),
        Err(error) if is_unsupported(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// An object without a uid, from an aggregated apiserver, is deleted by its name alone.
fn delete_options(item: &ItemMeta) -> DeleteOptions<&str, &str> {
    let uid = item.uid.as_str();
    let options = if uid.is_empty() { DeleteOptions::any() } else { DeleteOptions::of(uid) };
    options.with_dependents(Propagation::Background)
}

async fn delete_each(control: KeyControl<'_>, resource: &Resource, namespace: &str) -> Result<(), ApiError> {
    let mut items: Vec<Item> = Vec::new();
    match control.list_each(resource, namespace, Selection::default(), Accept::Metadata, |item| items.push(item)).await
    {
        Err(error) if is_unsupported(&error) => return Ok(()),
        listed => listed?,
    }
    for Item { metadata } in items {
        let options = delete_options(&metadata);
        match control.delete(resource, &Key::new(namespace, &metadata.name), &options).await {
            Err(error) if !is_unsupported(&error) => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_deleted_in_the_background_and_by_its_uid_if_it_has_one() {
        let item = |uid: &str| ItemMeta { name: "a".to_owned(), uid: uid.to_owned(), finalizers: None };
        let in_background =
            |options: DeleteOptions<&'static str, &'static str>| options.with_dependents(Propagation::Background);
        assert_eq!(delete_options(&item("u")), in_background(DeleteOptions::of("u")));
        assert_eq!(delete_options(&item("")), in_background(DeleteOptions::any()));
    }
}
