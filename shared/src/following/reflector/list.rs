//! Lists that are no part of a watch: as one answer that is read as it comes, or in pages.

use super::{Reflector, Stop, Store};
use crate::api::object::Versioned;
use crate::transport::client::list::Broken;
use crate::transport::client::page::{Item, Page, PageSize};

impl<T: Versioned, S: Store<T>> Reflector<T, S> {
    /// The whole list, in the form that costs the server least.
    pub(super) async fn list(&mut self) -> Result<(), Stop> {
        self.begin_list();
        if self.watches.client.lists_in_one(self.source.accept, &self.source.resource) {
            self.list_in_one().await
        } else {
            self.list_in_pages().await
        }
    }

    async fn list_in_one(&mut self) -> Result<(), Stop> {
        let client = self.watches.client.clone();
        let path = self.source.path(&client.spoken(&self.source.resource), &[]);
        let (accept, resource) = (self.source.accept, self.source.resource.clone());
        let mut live = Vec::new();
        let each = |item: Item<'_>| {
            self.source.health.hears();
            live.extend(self.decode(item).ok());
            Ok(())
        };
        let metadata = client.list_in_one(&path, accept, &resource, each).await.map_err(|broken| match broken {
            Broken::NotInOne => Stop::NoListInOne,
            Broken::Failed(error) => error.into(),
        })?;
        self.reset(live, metadata.resource_version);
        Ok(())
    }

    async fn list_in_pages(&mut self) -> Result<(), Stop> {
        let (mut live, mut token, mut size) = (Vec::new(), String::new(), PageSize::default());
        loop {
            let client = &self.watches.client;
            let spoken = client.spoken(&self.source.resource);
            let path = |limit: &str| self.source.path(&spoken, &[("limit", limit), ("continue", &token)]);
            let body = client.page(path, self.source.accept, &self.source.resource, &mut size).await?;
            self.source.health.hears();
            let page = Page::read(&body).map_err(|error| Stop::Failed(error.to_string()))?;
            live.extend(page.items.into_iter().filter_map(|item| self.decode(item).ok()));
            token = page.metadata.token;
            if token.is_empty() {
                self.reset(live, page.metadata.resource_version);
                return Ok(());
            }
        }
    }
}
