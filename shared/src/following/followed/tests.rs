//! A cache that lags, or does not, when this process begins to lead.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::{Request, Response};

use super::*;
use crate::api::resource::NODES;
use crate::following::health::Health;
use crate::following::informer::{Informer, InformerBuilder};
use crate::process::serving::loopback::{self, Body};
use crate::transport::client::ClientOptions;
use crate::working::consistency::Written;

const LIMIT: Duration = Duration::from_secs(20);

/// An apiserver at a version, with a watch that never tells any news.
#[derive(Default)]
struct Server {
    version: u64,
    lists: usize,
    reads: usize,
    /// How many reads are answered by an error first.
    failures: usize,
}

impl Server {
    fn answer(&mut self, request: &Request<Bytes>) -> Response<Body> {
        let query = request.uri().query().unwrap_or_default();
        let version = self.version;
        if query.contains("limit=1") {
            self.reads += 1;
            if self.reads <= self.failures {
                return loopback::answer(500, "sick");
            }
            return loopback::answer(200, format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[]}}"#));
        }
        if !query.contains("sendInitialEvents") {
            return loopback::stream(stream::pending());
        }
        self.lists += 1;
        let end = format!(
            r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#
        );
        loopback::stream(stream::iter([Bytes::from(end + "\n")]).chain(stream::pending()))
    }
}

struct Scene {
    server: Arc<Mutex<Server>>,
    client: Client,
    cache: Collection,
    health: Arc<Health>,
}

impl Scene {
    /// An informer that has listed at this version.
    async fn at(version: u64) -> Self {
        let server = Arc::new(Mutex::new(Server { version, ..Server::default() }));
        let served = Arc::clone(&server);
        let address = loopback::serve(move |request| served.lock().unwrap().answer(&request)).await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let informer: Informer<Written> = InformerBuilder::of(NODES).build();
        let (cache, health) = (informer.collection(), informer.health());
        tokio::spawn(informer.run(client.clone()).0);
        let mut progress = cache.follow.progress.clone();
        let listed = progress.wait_for(|progress| progress.synced);
        timeout(LIMIT, listed).await.expect("it is listed in time").unwrap();
        Self { server, client, cache, health }
    }

    /// The lists and the reads that it takes to catch up with the server at `version`.
    async fn catch_up(&self, version: u64, moment: Instant) -> (usize, usize) {
        let (lists, reads) = {
            let mut server = self.server.lock().unwrap();
            server.version = version;
            (server.lists, server.reads)
        };
        timeout(LIMIT, self.cache.catch_up(&self.client, moment)).await.expect("it catches up in time");
        let server = self.server.lock().unwrap();
        (server.lists - lists, server.reads - reads)
    }

    fn version(&self) -> u64 {
        self.cache.follow.progress.borrow().resource_version.0
    }
}

#[tokio::test]
async fn a_cache_whose_watch_is_up_to_date_is_not_listed_again() {
    let scene = Scene::at(5).await;
    assert_eq!(scene.catch_up(5, Instant::now()).await, (0, 1));
}

#[tokio::test]
async fn a_cache_that_lags_is_listed_anew() {
    let scene = Scene::at(5).await;
    assert_eq!(scene.catch_up(9, Instant::now()).await, (1, 1));
    assert_eq!(scene.version(), 9);
}

#[tokio::test]
async fn a_list_that_was_asked_for_later_suffices() {
    let moment = Instant::now();
    let scene = Scene::at(5).await;
    assert_eq!(scene.catch_up(9, moment).await, (0, 0));
}

#[tokio::test]
async fn a_version_below_what_was_seen_is_of_a_restored_etcd() {
    let scene = Scene::at(5).await;
    assert_eq!(scene.catch_up(3, Instant::now()).await, (1, 1));
    assert_eq!(scene.version(), 3);
}

#[tokio::test]
async fn a_read_that_fails_is_tried_again() {
    let scene = Scene::at(5).await;
    scene.server.lock().unwrap().failures = 1;
    assert_eq!(scene.catch_up(5, Instant::now()).await, (0, 2));
}

#[tokio::test]
async fn after_a_restore_everything_is_listed_anew() {
    let scene = Scene::at(5).await;
    let mut followed = Followed::default();
    followed.add(scene.cache.clone());
    for (version, is_restored) in [(5, false), (6, false), (4, true)] {
        scene.server.lock().unwrap().version = version;
        assert_eq!(followed.is_ahead_of(&scene.client).await, is_restored, "{version}");
    }
    timeout(LIMIT, followed.relist()).await.expect("it is listed in time");
    assert_eq!((scene.server.lock().unwrap().lists, scene.health.lists()), (2, 2));
}

#[tokio::test]
async fn a_restore_is_noticed_although_the_cache_is_listed_again_before_the_server_answers() {
    let scene = Scene::at(5).await;
    let mut followed = Followed::default();
    followed.add(scene.cache.clone());
    {
        let mut server = scene.server.lock().unwrap();
        (server.version, server.failures) = (4, usize::MAX);
    }
    let relist = async {
        scene.cache.relist().await;
        scene.server.lock().unwrap().failures = 0;
    };
    let noticed = async { tokio::join!(followed.is_ahead_of(&scene.client), relist).0 };
    assert!(timeout(LIMIT, noticed).await.expect("it is answered in time"));
    assert_eq!(scene.version(), 4);
}

#[tokio::test]
async fn a_restore_is_noticed_although_the_server_refuses_at_first() {
    let scene = Scene::at(5).await;
    let mut followed = Followed::default();
    followed.add(scene.cache.clone());
    {
        let mut server = scene.server.lock().unwrap();
        (server.version, server.failures) = (4, 1);
    }
    assert!(timeout(LIMIT, followed.is_ahead_of(&scene.client)).await.expect("it is answered in time"));
}
