use serde_json::json;

use super::*;
use crate::api::resource::REPLICA_SETS;
use crate::testing::apiserver::{Connection, Server};
use crate::testing::{enlarged, object, uid};
use crate::working::consistency::{Consistency, Watched};
use crate::working::decisions::Decisions;

#[derive(Clone, Debug, Deserialize)]
struct Set {
    metadata: Meta,
    spec: Spec,
}

#[derive(Clone, Debug, Deserialize)]
struct Spec {
    template: PodTemplate,
}

crate::view!(Set, REPLICA_SETS);

impl Abridged for Set {
    fn left_out(&self) -> usize {
        self.spec.template.left_out()
    }

    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self> {
        Ok(Self { spec: Spec { template: template_of(spec)? }, ..self.clone() })
    }
}

#[tokio::test]
async fn a_template_is_read_of_the_cached_spec_and_of_no_other() {
    let server = Server::new();
    let client = server.client(&Connection::default());
    let consistency = Arc::new(Consistency::new(client.clone(), Watched::default()));
    let control = Control::new(client, consistency, Decisions::default());
    let set = object("apps/v1", "ReplicaSet", "web").set(&["spec", "template"], enlarged(json!({})));
    server.add(&set);
    let cached: Arc<Set> = set.build();
    let whole = complete(&control, &cached).await.unwrap();
    assert_eq!((cached.left_out() > 0, whole.left_out()), (true, 0));
    assert_eq!(whole.spec.template, cached.spec.template);
    assert_eq!(whole.metadata.uid, uid("web"));

    let error = async || complete(&control, &cached).await.unwrap_err().to_string();
    server.change("replicasets", "default/web", |set| set["spec"]["replicas"] = 5.into());
    assert_eq!(error().await, "the ReplicaSet was edited after the cached state");
    server.delete("replicasets", "default/web");
    assert_eq!(error().await, "cannot read the template of the ReplicaSet");
    server.add(&set.uid_of("another"));
    assert_eq!(error().await, "the ReplicaSet was deleted and created again");
}
