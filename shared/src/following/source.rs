//! A collection to list and watch, and how far its informer has come.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::watch::Receiver;

use crate::api::intern::Text;
use crate::api::object::{Key, Object, ResourceVersion};
use crate::api::resource::Resource;
use crate::api::url::with_query;
use crate::following::cache::{Cache, Progress};
use crate::following::health::Health;
use crate::transport::client::Accept;

/// The collection that an informer follows, and the form in which it asks for it.
pub(crate) struct Source {
    pub(crate) resource: Resource,
    pub(crate) namespace: Text,
    /// Whether to ask for a streamed list. The apiserver sorts all objects of the resource for one, whatever the selectors.
    pub(crate) streams_list: bool,
    pub(crate) accept: Accept,
    pub(crate) field_selector: Cow<'static, str>,
    pub(crate) label_selector: Cow<'static, str>,
    /// Narrows the watch, and not the list.
    pub(crate) watch_fields: Cow<'static, str>,
    pub(crate) health: Arc<Health>,
}

impl Source {
    /// The path of what is listed, with these parameters and the selectors, where the resource is served as `spoken`.
    pub(crate) fn path(&self, spoken: &Resource, query: &[(&str, &str)]) -> String {
        self.path_of(spoken, &self.field_selector, query)
    }

    /// The path of what is watched after the list.
    pub(crate) fn watch_path(&self, spoken: &Resource, query: &[(&str, &str)]) -> String {
        let fields = if self.watch_fields.is_empty() { &self.field_selector } else { &self.watch_fields };
        self.path_of(spoken, fields, query)
    }

    fn path_of(&self, spoken: &Resource, field_selector: &str, query: &[(&str, &str)]) -> String {
        let selectors = [("fieldSelector", field_selector), ("labelSelector", &*self.label_selector)];
        let pairs: Vec<_> = query.iter().copied().chain(selectors).collect();
        with_query(&spoken.collection_path(&self.namespace), &pairs)
    }

    /// The same of one namespace, of which no list is streamed; the empty one stands for all that this is of.
    pub(crate) fn within(&self, namespace: &Text) -> Self {
        let namespace = if namespace.is_empty() { &self.namespace } else { namespace };
        Self {
            resource: self.resource.clone(),
            namespace: namespace.clone(),
            streams_list: false,
            accept: self.accept,
            field_selector: self.field_selector.clone(),
            label_selector: self.label_selector.clone(),
            watch_fields: self.watch_fields.clone(),
            health: Arc::new(Health::new(self.resource.to_string())),
        }
    }

    /// All objects, where those of the selectors are not enough.
    pub(crate) fn without_selectors(self) -> Self {
        Self { field_selector: Cow::Borrowed(""), label_selector: Cow::Borrowed(""), ..self }
    }

    /// To follow how far a cache has come that this fills.
    pub(crate) fn follow<T: Object>(&self, progress: Receiver<Progress>, cache: &Arc<Cache<T>>) -> Follow {
        let cache = Arc::clone(cache);
        self.follow_as(progress, Arc::new(move |key| cache.get(key).map(|object| object.meta().resource_version)))
    }

    pub(crate) fn follow_as(&self, progress: Receiver<Progress>, version_of: VersionOf) -> Follow {
        Follow {
            resource: self.resource.clone(),
            namespace: self.namespace.clone(),
            field_selector: self.field_selector.clone(),
            label_selector: self.label_selector.clone(),
            progress,
            health: Arc::clone(&self.health),
            version_of,
        }
    }
}

/// How to follow the progress of one informer; [`crate::following::informer::Informer::follow`] gives it.
#[derive(Clone)]
pub struct Follow {
    pub(crate) resource: Resource,
    pub(crate) namespace: Text,
    pub(crate) field_selector: Cow<'static, str>,
    pub(crate) label_selector: Cow<'static, str>,
    pub(crate) progress: Receiver<Progress>,
    pub(crate) health: Arc<Health>,
    /// The version at which the cache has an object.
    pub(crate) version_of: VersionOf,
}

/// Gives the version of an object in a cache; `None` if the cache does not have it.
pub(crate) type VersionOf = Arc<dyn Fn(&Key) -> Option<ResourceVersion> + Send + Sync>;

impl Follow {
    /// Whether the informer still runs. A stopped informer sees no more versions.
    pub(crate) fn is_running(&self) -> bool {
        self.progress.has_changed().is_ok()
    }

    pub(crate) fn is_narrowed(&self) -> bool {
        !self.field_selector.is_empty() || !self.label_selector.is_empty()
    }

    pub(crate) fn is_of_namespace(&self, namespace: &str) -> bool {
        self.namespace.is_empty() || *self.namespace == *namespace
    }
}
