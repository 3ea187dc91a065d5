//! Calls for kinds that are known only by discovery: live metadata, subresources, and whole collections; and for paths
//! that are no object's.
//!
//! Left out: deciding what a refusal means. A kind may refuse any of these calls.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::{Control, DeleteOptions, KeyControl, Propagation};
use crate::api::json;
use crate::api::object::{Key, ResourceVersion, Uid};
use crate::api::resource::Resource;
use crate::transport::api_error::ApiError;
use crate::transport::client::Accept;
use crate::transport::discovery::{self, GroupVersion, group_version};
use crate::transport::pages::{Rest, Selection, each_of, latest_version, page_of_long_list};
use crate::working::worker::running::wrote;

impl Control {
    pub async fn get_metadata<T: DeserializeOwned>(&self, resource: &Resource, key: &Key) -> Result<T, ApiError> {
        self.client.get_as(&self.read_path(resource, key, "")?, Accept::Metadata).await
    }

    /// A live read of an object with every field it has.
    pub async fn get_raw(&self, resource: &Resource, key: &Key) -> Result<serde_json::Value, ApiError> {
        self.client.get(&self.read_path(resource, key, "")?).await
    }

    /// A live read of a subresource, such as `scale`.
    pub async fn get_subresource<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        key: &Key,
        subresource: &str,
    ) -> Result<T, ApiError> {
        self.client.get(&self.read_path(resource, key, subresource)?).await
    }

    /// A live read of a path that is no object's and no collection's, such as a metric's.
    pub async fn get_path<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.client.get(path).await
    }

    /// The versions in which the apiserver serves this group at the moment, the preferred one first; none if it does
    /// not.
    pub async fn versions_of(&self, group: &str) -> Result<Vec<String>, ApiError> {
        discovery::versions_of(&self.client, group).await
    }

    /// The resources that the apiserver serves in this group version at the moment.
    pub async fn group_version(&self, api_version: &str) -> Result<GroupVersion, ApiError> {
        GroupVersion::read(&self.client, api_version).await
    }

    /// What `find` gives for the first version of this group in which it finds something, the preferred one first.
    pub async fn find_in_group<T>(
        &self,
        group: &str,
        find: impl Fn(&GroupVersion) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        for version in self.versions_of(group).await? {
            let found = find(&self.group_version(&group_version(group, &version)).await?);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Lists the selected objects of one namespace (`""` for all), and passes each on as it comes: no more than a page is
    /// in memory.
    pub async fn list_each<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        namespace: &str,
        selection: Selection<'_>,
        accept: Accept,
        each: impl FnMut(T),
    ) -> Result<(), ApiError> {
        each_of(&self.client, resource, namespace, selection, accept, each).await
    }

    /// The version of a resource at the moment, by a list in one namespace (`""` for all) of at most one object.
    pub async fn latest_version(&self, resource: &Resource, namespace: &str) -> Result<ResourceVersion, ApiError> {
        latest_version(&self.client, resource, namespace).await
    }

    /// One page of a list of all namespaces that may take hours: the first one for the token `""`; gives the token of the
    /// next one, and how many objects follow. An object that is there all the time is in one of the pages.
    ///
    /// # Errors
    /// When the request fails; [`ApiError::is_gone`] if the list has to begin anew.
    pub async fn list_page<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        accept: Accept,
        token: &str,
        each: impl FnMut(T),
    ) -> Result<Rest, ApiError> {
        page_of_long_list(&self.client, resource, selection, accept, token, each).await
    }
}

impl KeyControl<'_> {
    /// DELETE of all objects of a resource in one namespace. Their versions are not recorded: whether any is left is
    /// read live.
    pub async fn delete_collection(
        &self,
        resource: &Resource,
        namespace: &str,
        propagation: Propagation,
    ) -> Result<(), ApiError> {
        let options = DeleteOptions::<Uid>::any().with_dependents(propagation);
        let path = self.control.client.spoken(resource).collection_path(namespace);
        let IgnoredAny = self.client.delete(&path, Accept::MetadataList, json(&options)).await?;
        wrote();
        Ok(())
    }
}
