//! A kind whose objects keep a number of pods, for the suite of all such operators in `shared/tests/replicas`.

use std::time::Duration;

use super::apiserver::Server;
use super::objects::ObjectBuilder;
use super::running::{Running, start_at_rest};
use crate::process::run::Operator;

/// A kind whose objects keep a number of pods with the label `app=web`. A pod that is nobody's has the name `web-0`: a
/// StatefulSet adopts by the name, too.
pub struct ReplicaKind {
    /// Its resource (`replicasets`).
    pub resource: &'static str,
    /// The pods that its operator follows, which may say where (`pods default/`).
    pub pods: &'static str,
    /// An object of this name that asks for this many pods.
    pub object: fn(&str, i32) -> ObjectBuilder,
}

/// The object that the suite is about.
const NAME: &str = "web";
/// Its key.
pub const KEY: &str = "default/web";

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

    /// How many pods are made in this time for an object that asks for 3, on a node that rejects each of them at once.
    pub async fn pods_of_rejections<O: Operator>(&self, flags: &[&str], time: Duration) -> usize {
        let server = Server::new();
        let running = start_at_rest::<O>(&server, flags).await;
        self.add(&server, 3);
        reject_for(&server, &running, time).await;
        server.count("create pods")
    }
}

/// Rejects every pod for this time.
pub async fn reject_for(server: &Server, running: &Running, time: Duration) {
    let moment = Duration::from_millis(100);
    for _ in 0..time.as_millis() / moment.as_millis() {
        running.pass(moment).await;
        server.reject_pods("OutOfcpu");
    }
}
