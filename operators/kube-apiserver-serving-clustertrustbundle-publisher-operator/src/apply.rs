//! Executes a plan: at most one creation or update, and then deletions.
//!
//! Left out: events, of which upstream has none.

use anyhow::Context;
use serde_json::Value;
use shared::api::json;
use shared::api::object::Key;
use shared::api::resource::Resource;
use shared::runtime::control::{Control, DeleteOptions, KeyControl, Preconditions, aggregate};

use crate::observe::Observed;
use crate::plan::{Deletion, Plan, Publish};

/// Creates, updates and deletes bundles.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The errors of the writes that failed, as one.
    pub error: Option<anyhow::Error>,
}

/// Whether the CA's bundle is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Published {
    Yes,
    /// Somebody else has made one of its name, with whatever content.
    NotSeen,
}

impl Writer {
    /// Executes the plan, as a sync of this key. As long as the CA's bundle is not as it should be, the others stay.
    pub(crate) async fn apply(&self, key: &Key, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { served, ca: _, bundles: _, live: _ } = observed;
        let Plan { publish, delete, reason: _ } = plan;
        // A plan for bundles that are not served writes nothing.
        let Some(version) = served else { return Outcome { error: None } };
        let (control, resource) = (self.control.for_name(key), version.resource());
        let done = match write(control, &resource, publish).await {
            Ok(Published::Yes) => delete_all(control, &resource, delete).await,
            Ok(Published::NotSeen) => Ok(()),
            Err(error) => Err(error),
        };
        Outcome { error: done.err() }
    }
}

async fn write(control: KeyControl<'_>, resource: &Resource, publish: Publish) -> anyhow::Result<Published> {
    match publish {
        Publish::Nothing => Ok(Published::Yes),
        Publish::Create(body) => create(control, resource, &body).await,
        Publish::Update { key, body } => {
            let read = Preconditions::of_read(&body);
            control.replace(resource, &key, "", read, &body).await.context("update the ClusterTrustBundle")?;
            tracing::info!(bundle = %key, "published the CA in place of what was there");
            Ok(Published::Yes)
        }
    }
}

async fn create(control: KeyControl<'_>, resource: &Resource, body: &Value) -> anyhow::Result<Published> {
    match control.create(resource, "", json(body)).await {
        Ok(created) => {
            tracing::info!(bundle = %created.metadata.key, "published the CA");
            Ok(Published::Yes)
        }
        // A bundle that somebody else has created is looked at once it is seen.
        Err(error) if error.is_already_exists() => Ok(Published::NotSeen),
        Err(error) => Err(error).context("create the ClusterTrustBundle"),
    }
}

/// Each is tried, whatever becomes of the others.
async fn delete_all(control: KeyControl<'_>, resource: &Resource, deletions: Vec<Deletion>) -> anyhow::Result<()> {
    let mut errors = Vec::new();
    for Deletion { key, uid } in deletions {
        match control.delete(resource, &key, &DeleteOptions::of(uid)).await {
            Ok(()) => tracing::info!(bundle = %key, "deleted a bundle that is not the CA's"),
            // Somebody was faster.
            Err(error) if error.is_object_not_found() => {}
            Err(error) => errors.push(anyhow::Error::from(error).context(format!("delete {key}"))),
        }
    }
    aggregate(errors)
}
