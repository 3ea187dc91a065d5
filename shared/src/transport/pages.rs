//! A live list, page by page; that of a whole resource as one answer that is read as it comes. No more than one page is
//! ever held.
//!
//! Left out: lists of what is followed, which are the informer's.

use http::Method;
use serde::de::DeserializeOwned;

use crate::api::object::ResourceVersion;
use crate::api::resource::Resource;
use crate::api::url::with_query;
use crate::transport::api_error::ApiError;
use crate::transport::client::list::Broken;
use crate::transport::client::page::{Item, Page, PageSize};
use crate::transport::client::{Accept, Client};

/// The objects of a collection to list; all in their newest state by default.
#[derive(Clone, Copy, Default)]
pub struct Selection<'a> {
    /// As the API writes it, such as `spec.nodeName=a`.
    pub field_selector: &'a str,
    /// As the API writes it, such as `app=web`.
    pub label_selector: &'a str,
    /// Whether the state in the apiserver's cache will do, as it does for an informer's list: its watches are fed from there.
    /// For the newest one it waits up to a tenth of a second until etcd has said that nothing is missing there. From the
    /// cache all comes in one answer, however much it is.
    pub from_cache: bool,
}

/// What follows a page of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct Rest {
    /// Asks for the next page; `""` after the last one.
    pub token: String,
    /// How many objects follow, where the apiserver says so.
    pub left: Option<u64>,
}

pub(crate) async fn each_of<T: DeserializeOwned>(
    client: &Client,
    resource: &Resource,
    namespace: &str,
    selection: Selection<'_>,
    accept: Accept,
    mut each: impl FnMut(T),
) -> Result<(), ApiError> {
    let Selection { field_selector, label_selector, from_cache: _ } = selection;
    let collection = client.spoken(resource).collection_path(namespace);
    // Of a resource whose watch cache has not started, such as one with a broken conversion, the apiserver lists nothing in
    // one answer. Pages of a namespace, or of some objects, come from etcd then, and are few.
    let is_whole = namespace.is_empty() && field_selector.is_empty() && label_selector.is_empty();
    if is_whole && client.lists_in_one(accept, resource) {
        let mut has_begun = false;
        let give = |item: Item<'_>| {
            has_begun = true;
            item.read().map(&mut each)
        };
        match client.list_in_one(&collection, accept, resource, give).await {
            Ok(_) => return Ok(()),
            Err(Broken::Failed(error)) => return Err(error),
            // No object is given twice: the caller begins anew, and has pages then.
            Err(Broken::NotInOne) if has_begun => return Err(ApiError::cut(&Method::GET, &collection)),
            Err(Broken::NotInOne) => {}
        }
    }
    let size = PageSize::default();
    let (mut pages, mut token) = (Pages { client, resource, namespace, selection, accept, size }, String::new());
    loop {
        token = pages.read(&token, &mut each).await?.token;
        if token.is_empty() {
            return Ok(());
        }
    }
}

/// Calls a function with each object of one page of a list that is read over a long time, of all namespaces; gives what
/// follows it, as [`Pages::read`]. A token that has expired is replaced by the one that the apiserver
/// offers, so that the pages are of different moments. An object that is there all the time is in one of them.
///
/// Upstream: `handleCompactedErrorForPaging`, staging/src/k8s.io/apiserver/pkg/storage/etcd3/errors.go.
pub(crate) async fn page_of_long_list<T: DeserializeOwned>(
    client: &Client,
    resource: &Resource,
    selection: Selection<'_>,
    accept: Accept,
    token: &str,
    mut each: impl FnMut(T),
) -> Result<Rest, ApiError> {
    let mut pages = Pages { client, resource, namespace: "", selection, accept, size: PageSize::default() };
    let listed = pages.read(token, &mut each).await;
    let offered = match &listed {
        Err(error) if error.is_gone() => error.status().map(|status| &*status.metadata.token).unwrap_or_default(),
        Ok(_) | Err(_) => "",
    };
    if offered.is_empty() { listed } else { pages.read(offered, each).await }
}

struct Pages<'a> {
    client: &'a Client,
    resource: &'a Resource,
    namespace: &'a str,
    selection: Selection<'a>,
    accept: Accept,
    size: PageSize,
}

impl Pages<'_> {
    /// Calls a function with each object of one page, that of a token, `""` for the first one; gives what follows it.
    async fn read<T: DeserializeOwned>(&mut self, token: &str, mut each: impl FnMut(T)) -> Result<Rest, ApiError> {
        let Selection { field_selector, label_selector, from_cache } = self.selection;
        // A token has a version of its own.
        let version = if from_cache && token.is_empty() { "0" } else { "" };
        let collection = self.client.spoken(self.resource).collection_path(self.namespace);
        let path = |limit: &str| {
            let queried = [
                ("limit", limit),
                ("fieldSelector", field_selector),
                ("labelSelector", label_selector),
                ("resourceVersion", version),
                ("continue", token),
            ];
            with_query(&collection, &queried)
        };
        let body = self.client.page(path, self.accept, self.resource, &mut self.size).await?;
        let unread = ApiError::unread(&Method::GET, &collection);
        let page = Page::read(&body).map_err(&unread)?;
        for item in page.items {
            each(item.read().map_err(&unread)?);
        }
        Ok(Rest { token: page.metadata.token, left: page.metadata.remaining_item_count })
    }
}

/// The version of a resource at the moment: that of a list in one namespace (`""` for all) of at most one object.
pub(crate) async fn latest_version(
    client: &Client,
    resource: &Resource,
    namespace: &str,
) -> Result<ResourceVersion, ApiError> {
    let collection = client.spoken(resource).collection_path(namespace);
    let (path, mut size) = (|limit: &str| with_query(&collection, &[("limit", limit)]), PageSize::ONE);
    let body = client.page(path, Accept::Metadata, resource, &mut size).await?;
    let page = Page::read(&body).map_err(ApiError::unread(&Method::GET, &collection))?;
    Ok(page.metadata.resource_version)
}

#[cfg(test)]
mod tests {
    use http::Response;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::resource::PODS;
    use crate::process::serving::loopback;
    use crate::testing::protobuf;
    use crate::transport::client::ClientOptions;

    type Answer = Response<loopback::Body>;

    async fn client(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Client {
        let address = loopback::serve(move |request| answer(request.uri().query().unwrap_or_default())).await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        Client::new(&config, ClientOptions::default()).unwrap()
    }

    async fn listed(
        selection: Selection<'_>,
        accept: Accept,
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> [(Vec<String>, bool); 2] {
        let client = client(answer).await;
        let once = async || {
            let mut names = Vec::new();
            let each = |item: Value| names.push(item["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            let listed = each_of(&client, &PODS, "", selection, accept, each).await;
            (names, listed.is_ok())
        };
        [once().await, once().await]
    }

    fn page(token: &str, names: &[&str]) -> Value {
        let items: Vec<Value> = names.iter().map(|name| json!({ "metadata": { "name": name } })).collect();
        json!({ "kind": "PodList", "metadata": { "continue": token }, "items": items })
    }

    #[tokio::test]
    async fn a_list_goes_on_where_the_token_says_whatever_it_is_made_of() {
        for (from_cache, begin) in
            [(false, "limit=500&labelSelector=a%3Db"), (true, "limit=500&labelSelector=a%3Db&resourceVersion=0")]
        {
            let selection = Selection { label_selector: "a=b", from_cache, ..Selection::default() };
            let [first, again] = listed(selection, Accept::MetadataList, move |query| match query {
                "limit=500&labelSelector=a%3Db&continue=a%2Bb%2Fc%3D%26x" => {
                    loopback::answer(200, page("", &["c"]).to_string())
                }
                query if query == begin => loopback::answer(200, page("a+b/c=&x", &["a", "b"]).to_string()),
                _ => loopback::answer(400, "the token is not valid"),
            })
            .await;
            assert_eq!(first, (["a", "b", "c"].map(str::to_owned).to_vec(), true));
            assert_eq!(again, first);
        }
    }

    #[tokio::test]
    async fn pages_of_objects_that_are_too_large_together_become_smaller() {
        let large = "x".repeat(2 * 1024 * 1024);
        let [first, again] = listed(Selection::default(), Accept::MetadataList, move |query| {
            let limit = query.trim_start_matches("limit=").split('&').next().and_then(|limit| limit.parse().ok());
            let begin = query.split_once("continue=").map_or(0, |(_, token)| token.parse().unwrap());
            let end = 20.min(begin + limit.unwrap_or(usize::MAX));
            let names: Vec<String> = (begin..end).map(|number| format!("{number} {large}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let token = if end < 20 { end.to_string() } else { String::new() };
            loopback::answer(200, page(&token, &names).to_string())
        })
        .await;
        let numbers = |names: &[String]| names.iter().filter_map(|name| name.split(' ').next()?.parse().ok()).collect();
        assert_eq!((numbers(&first.0), first.1), ((0..20).collect::<Vec<usize>>(), true));
        assert_eq!(again, first);
    }

    #[tokio::test]
    async fn a_long_list_goes_on_with_the_token_that_is_offered_for_an_expired_one() {
        for (offered, expected) in [("new", Some("cnext")), ("", None), ("old", None)] {
            let metadata = json!({ "continue": offered });
            let expired = json!({ "kind": "Status", "metadata": metadata, "code": 410, "reason": "Expired" });
            let client = client(move |query| match query {
                "limit=500&continue=new" => loopback::answer(200, page("next", &["c"]).to_string()),
                _ => loopback::answer(410, expired.to_string()),
            })
            .await;
            let mut names = String::new();
            let each = |item: Value| names.push_str(item["metadata"]["name"].as_str().unwrap_or_default());
            let listed =
                page_of_long_list(&client, &PODS, Selection::default(), Accept::MetadataList, "old", each).await;
            assert_eq!(listed.as_ref().ok().map(|rest| names + &rest.token).as_deref(), expected, "{offered}");
            assert!(listed.is_ok() || listed.is_err_and(|error| error.is_gone()), "{offered}");
        }
    }

    #[tokio::test]
    async fn a_page_says_what_follows_it_and_the_version_of_the_list() {
        let metadata = json!({ "continue": "next", "remainingItemCount": 7, "resourceVersion": "12" });
        let page = json!({ "kind": "PartialObjectMetadataList", "metadata": metadata, "items": [] });
        for body in [bytes::Bytes::from(page.to_string()), protobuf::list(&page).unwrap()] {
            let client = client(move |_| loopback::answer(200, body.clone())).await;
            let (selection, accept) = (Selection::default(), Accept::Metadata);
            let rest = page_of_long_list(&client, &PODS, selection, accept, "", |_: Value| {}).await.unwrap();
            assert_eq!(rest, Rest { token: "next".to_owned(), left: Some(7) });
            assert_eq!(latest_version(&client, &PODS, "a").await.unwrap(), ResourceVersion(12));
        }
    }

    #[tokio::test]
    async fn a_whole_list_comes_as_one_answer_and_in_pages_once_one_was_cut() {
        let whole = protobuf::list(&page("", &["a", "b", "c"])).unwrap();
        for (cut, expected) in [(0, [("abc", true), ("abc", true)]), (3, [("ab", false), ("abc", true)])] {
            let (first, rest) = (whole.slice(..whole.len() - cut), whole.clone());
            let found = listed(Selection::default(), Accept::Object, move |query| match query {
                "" => loopback::answer(200, first.clone()),
                "limit=500" if cut > 0 => loopback::answer(200, rest.clone()),
                _ => loopback::answer(400, "no such list"),
            })
            .await;
            assert_eq!(
                found.map(|(names, is_whole)| (names.concat(), is_whole)),
                expected.map(|(a, b)| (a.to_owned(), b))
            );
        }
    }

    #[tokio::test]
    async fn a_server_that_has_no_such_list_is_asked_for_pages_at_once() {
        let [first, _] = listed(Selection::default(), Accept::Object, |query| match query {
            "limit=500" => loopback::answer(200, page("", &["a"]).to_string()),
            _ => loopback::answer(406, "only JSON"),
        })
        .await;
        assert_eq!(first, (vec!["a".to_owned()], true));
    }
}
