//! Empties kinds and writes the namespace.
//!
//! Left out: deciding which kinds, in which order, and what follows.

use anyhow::Context;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use serde_json::Value;
use shared::api::object::{Key, ResourceVersion};
use shared::api::resource::{NAMESPACES, PODS, Resource};
use shared::api::time::Time;
use shared::runtime::api_error::ApiError;
use shared::runtime::client::Accept;
use shared::runtime::control::{DeleteOptions, KeyControl, Preconditions, Propagation};

use crate::objects::{Item, ItemMeta};
use crate::observe::{is_unsupported, pods_grace_seconds, remaining};
use crate::plan::{Content, Emptied, KindToEmpty, Round, judge, remaining_grace};

/// So many kinds at once, once the pods are gone.
const AT_ONCE: usize = 8;

/// Empties a namespace: the pods, and once there are none, everything else.
pub async fn empty(
    control: KeyControl<'_>,
    namespace: &str,
    content: Content,
    discovery: Option<String>,
    (since, now): (Time, Timestamp),
) -> Round {
    let Content { pods, others } = content;
    let mut round = Round { discovery, ..Round::default() };
    if let Some(pods) = pods {
        round.pods = Some(empty_kind(control, namespace, pods, since, now).await);
    }
    if !round.waits_for_pods() {
        let emptying = others.into_iter().map(|kind| empty_kind(control, namespace, kind, since, now));
        round.others = stream::iter(emptying).buffered(AT_ONCE).collect().await;
    }
    round
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
    let grace = if *resource == PODS { pods_grace_seconds(&control, namespace).await? } else { 0 };
    let grace = remaining_grace(grace, since, now);
    if !delete_collection(control, namespace, kind).await? && kind.can_list {
        delete_each(control, resource, namespace).await?;
    }
    let mut left = Emptied::nothing(resource.clone());
    if kind.can_list {
        let remaining = remaining(&control, resource, namespace).await?;
        left = judge(kind, namespace, grace, remaining.count, remaining.finalizers);
    }
    Ok(left)
}

/// Gives whether the kind has this call.
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

/// What an aggregated apiserver gives no uid to is deleted by its name alone.
fn delete_options(item: &ItemMeta) -> DeleteOptions<&str, &str> {
    let uid = item.uid.as_str();
    let options = if uid.is_empty() { DeleteOptions::any() } else { DeleteOptions::of(uid) };
    options.with_dependents(Propagation::Background)
}

async fn delete_each(control: KeyControl<'_>, resource: &Resource, namespace: &str) -> Result<(), ApiError> {
    let mut items: Vec<Item> = Vec::new();
    match control.list_each(resource, namespace, Accept::Metadata, |item| items.push(item)).await {
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

/// PUT of a namespace's subresource; gives the version it made, none if the namespace is gone.
pub async fn write(
    control: KeyControl<'_>,
    key: &Key,
    subresource: &str,
    body: &Value,
) -> anyhow::Result<Option<ResourceVersion>> {
    match control.replace(&NAMESPACES, key, subresource, Preconditions::of_read(body), body).await {
        Ok(written) => Ok(Some(written.metadata.resource_version)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).with_context(|| format!("write the namespace's {subresource}")),
    }
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
