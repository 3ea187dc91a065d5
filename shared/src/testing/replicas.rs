//! The lives that every kind which keeps a number of pods must survive, its operator run as it is.
//!
//! Left out: what only one of the kinds does.

use std::time::Duration;

use serde_json::json;

use super::apiserver::Server;
use super::objects::{ObjectBuilder, pod};
use super::on_demand::{is_followed_only_while_needed, it_goes_and_comes_again, the_first_one_waits};
use super::running::{A_STATUS, Running, start_at_rest};
use crate::process::run::Operator;

/// A kind whose objects keep a number of pods with the label `app=web`. A pod that is nobody's has the name `web-0`: a
/// StatefulSet adopts by the name, too.
pub struct ReplicaKind {
    /// Its resource (`replicasets`).
    pub resource: &'static str,
    /// An object of this name that asks for this many pods.
    pub object: fn(&str, i32) -> ObjectBuilder,
}

/// The object that these lives are about.
const NAME: &str = "web";
const KEY: &str = "default/web";

/// Each panics where the operator does not do what the name says.
#[expect(clippy::missing_panics_doc, clippy::unwrap_used, reason = "an object that is not there is a broken test")]
impl ReplicaKind {
    /// Adds an object `default/web`.
    pub fn add(&self, server: &Server, replicas: i32) {
        server.add(&(self.object)(NAME, replicas));
    }

    /// Changes how many pods it asks for.
    pub fn scale(&self, server: &Server, replicas: i32) {
        server.change(self.resource, KEY, |owner| owner["spec"]["replicas"] = replicas.into());
    }

    /// Another object is why pods are followed already.
    pub async fn start_beside_another<O: Operator>(&self, server: &Server) -> Running {
        server.add(&(self.object)("other", 0));
        start_at_rest::<O>(server, &[]).await
    }

    /// Pods, which may say where (`pods default/`), are followed only while there is an object of this kind.
    pub async fn follows_pods_only_while_needed<O: Operator>(&self, pods: &str) {
        let server = Server::new();
        server.add(&pod("other").namespace("elsewhere"));
        let remove = |server: &Server| server.delete(self.resource, KEY);
        let add = |server: &Server| self.add(server, 2);
        is_followed_only_while_needed::<O>(&server, pods, add, remove).await;
        assert_eq!(server.count("create pods"), 2, "what was orphaned is adopted");
    }

    /// The first object waits until pods are listed, however often that fails.
    pub async fn the_first_one_waits_for_its_pods<O: Operator>(&self) {
        let first = |server: &Server| {
            server.add(&pod("web-0").label("app", "web"));
            self.add(server, 2);
        };
        let then = |server: &Server| assert_eq!((server.keys("pods").len(), server.count("create pods")), (2, 1));
        the_first_one_waits::<O>(&[], "pods", first, then).await;
    }

    /// An object that is deleted and added again finds its pods.
    pub async fn one_that_goes_and_comes_again<O: Operator>(&self) {
        let server = Server::new();
        let running = Running::start::<O>(&server, &[]);
        self.add(&server, 3);
        running.at_rest().await;
        let meanwhile = |server: &Server| {
            server.add(&pod("stray").label("app", "web"));
            server.delete("pods", "default/stray");
        };
        let then = |server: &Server, pause| assert_eq!(server.keys("pods").len(), 3, "{pause:?}");
        let object = (self.resource, KEY);
        it_goes_and_comes_again((&server, &running), object, meanwhile, Duration::from_secs(5), then).await;
        assert_eq!(server.count("create pods"), 3, "no pod was made twice");
    }

    /// The answer to a creation is lost: no second pod is made, and the lost one is looked for once.
    pub async fn a_creation_whose_answer_is_lost<O: Operator>(&self) {
        let server = Server::new();
        let running = self.start_beside_another::<O>(&server).await;
        let lists = server.count("list pods");
        server.on("create", "pods").once().lose();
        server.hold_watches("pods");
        self.add(&server, 3);
        running.pass(Duration::from_secs(3)).await;
        assert_eq!(server.count("create pods"), 1, "nobody knows yet whether there is a pod");
        assert_eq!(server.count("list pods"), lists + 1, "it is looked for once");
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!((server.keys("pods").len(), server.count("create pods")), (3, 3));
    }

    /// A watch stands still: no second pod is made.
    pub async fn a_watch_that_stands_still<O: Operator>(&self) {
        let server = Server::new();
        let running = start_at_rest::<O>(&server, &[]).await;
        server.hold_watches("pods");
        self.add(&server, 3);
        for replicas in [4, 3, 4] {
            running.pass(Duration::from_secs(3)).await;
            self.scale(&server, replicas);
        }
        assert_eq!(server.count("create pods"), 3);
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!(server.count("create pods"), 4);
        running.pass(A_STATUS).await;
        assert_eq!(server.get(self.resource, KEY).unwrap()["status"]["replicas"], 4);
    }

    /// A status meets a newer version of its object: it is written all the same, and takes nothing away.
    pub async fn a_status_that_meets_a_newer_version<O: Operator>(&self) {
        let server = Server::new();
        self.add(&server, 1);
        let held = server.on("patch", &format!("{}/status", self.resource)).once().hold();
        let running = Running::start::<O>(&server, &[]);
        held.arrived().await;
        server.change(self.resource, KEY, |owner| owner["metadata"]["labels"]["new"] = "yes".into());
        held.release();
        running.pass(A_STATUS).await;
        let owner = server.get(self.resource, KEY).unwrap();
        assert_eq!((&owner["status"]["replicas"], &owner["metadata"]["labels"]["new"]), (&json!(1), &json!("yes")));
    }

    /// A watch expires: what happened meanwhile is not lost.
    pub async fn a_watch_that_expires<O: Operator>(&self) {
        let server = Server::new();
        self.add(&server, 2);
        let running = start_at_rest::<O>(&server, &[]).await;
        server.hold_watches("pods");
        server.delete("pods", &server.keys("pods")[0]);
        server.expire_watches("pods");
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!((server.keys("pods").len(), server.count("create pods")), (2, 3));
    }

    /// A first list is slow, and then a watch breaks: no pod too many is made, and none is deleted.
    pub async fn a_slow_first_list_and_a_watch_that_breaks<O: Operator>(&self) {
        let server = Server::new();
        let running = start_at_rest::<O>(&server, &[]).await;
        let slow = server.on("list", "pods").hold().once();
        self.add(&server, 2);
        slow.arrived().await;
        server.add(&pod("web-0").label("app", "web"));
        running.pass(Duration::from_secs(30)).await;
        assert_eq!(server.writes(), [""; 0]);
        slow.release();
        running.at_rest().await;
        server.cut_watches("pods");
        self.scale(&server, 3);
        running.at_rest().await;
        server.expire_watches("pods");
        self.scale(&server, 4);
        running.at_rest().await;
        assert_eq!((server.keys("pods").len(), server.count("create pods"), server.count("delete pods")), (4, 3, 0));
    }

    /// How many pods are made in a minute for an object that asks for 3, on a node that rejects each of them at once.
    pub async fn pods_of_a_minute_of_rejections<O: Operator>(&self, flags: &[&str]) -> usize {
        self.pods_of_rejections::<O>(flags, MINUTE).await
    }

    /// The same in a third of a minute: where nothing waits, each pod makes the next one take longer to test.
    pub async fn pods_of_a_third_of_a_minute_of_rejections<O: Operator>(&self, flags: &[&str]) -> usize {
        self.pods_of_rejections::<O>(flags, MINUTE / 3).await
    }

    async fn pods_of_rejections<O: Operator>(&self, flags: &[&str], time: Duration) -> usize {
        let server = Server::new();
        let running = start_at_rest::<O>(&server, flags).await;
        self.add(&server, 3);
        reject_for(&server, &running, time).await;
        server.count("create pods")
    }

    /// While the pods of one object wait, as their node rejects them, nothing else does: pods of another object and of
    /// another template come at once, and so do all that are missing once one of them runs.
    pub async fn only_rejected_pods_wait<O: Operator>(&self) {
        let server = Server::new();
        let running = start_at_rest::<O>(&server, &[]).await;
        self.add(&server, 3);
        reject_for(&server, &running, MINUTE / 3).await;
        let made = server.count("create pods");
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(server.count("create pods"), made, "they wait");
        server.add(&(self.object)("other", 2));
        running.at_rest().await;
        assert_eq!(server.count("create pods"), made + 2, "another object's come at once");
        server.change(self.resource, KEY, |owner| {
            owner["spec"]["template"]["metadata"]["annotations"] = json!({ "edited": "yes" });
        });
        running.at_rest().await;
        assert_eq!(server.count("create pods"), made + 5, "another template's come at once");
        let events = server.events().into_iter().filter(|event| event.contains("RejectedPodBackoff")).count();
        assert_eq!(events, 1, "its beginning is told");

        reject_for(&server, &running, MINUTE / 3).await;
        running.pass(MINUTE / 3).await;
        server.run_pods();
        running.at_rest().await;
        let made = server.count("create pods");
        self.scale(&server, 9);
        running.at_rest().await;
        assert_eq!(server.count("create pods"), made + 6, "once they run none is held back");
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// The node rejects for so long whatever comes.
async fn reject_for(server: &Server, running: &Running, time: Duration) {
    let moment = Duration::from_millis(100);
    for _ in 0..time.as_millis() / moment.as_millis() {
        running.pass(moment).await;
        server.reject_pods("OutOfcpu");
    }
}
