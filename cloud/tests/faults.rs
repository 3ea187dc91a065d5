//! The faults of the cloud in memory, as a controller sees them.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use cloud::testing::{Call, Cloud, Fault, Instance};
use cloud::{Client, CloudError};
use serde_json::value::RawValue;
use tokio::time::Instant;

fn service() -> Box<RawValue> {
    let service = r#"{"metadata":{"namespace":"default","name":"web","uid":"11-22"}}"#;
    RawValue::from_string(service.to_owned()).unwrap()
}

fn node() -> Box<RawValue> {
    RawValue::from_string(r#"{"metadata":{"name":"node-0"}}"#.to_owned()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_is_lost_was_done() {
    let cloud = Cloud::new();
    let client = Client::new(&cloud.endpoint());
    cloud.on_next(Call::EnsureLoadBalancer, Fault::Lose);
    let lost = client.ensure_load_balancer("c", &service(), [&*node()]).await;
    assert!(matches!(lost, Err(CloudError::Failed(_))), "{lost:?}");
    assert_eq!(cloud.world(|world| world.balancers["11-22"].nodes.clone()), ["node-0"]);
    let status = client.ensure_load_balancer("c", &service(), []).await.unwrap();
    assert_eq!(status.get(), r#"{"ingress":[{"ip":"192.0.2.1"}]}"#);
    assert_eq!(cloud.world(|world| world.balancers_created), 1);
    assert_eq!(cloud.calls(), ["EnsureLoadBalancer default/web [node-0]", "EnsureLoadBalancer default/web []"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_was_not_done() {
    let cloud = Cloud::new();
    let client = Client::new(&cloud.endpoint());
    let error = CloudError::Failed("no subnet".to_owned());
    cloud.on_each(Call::EnsureLoadBalancer, Fault::Fail(error.clone()));
    let failed = client.ensure_load_balancer("c", &service(), []).await;
    assert_eq!(failed.unwrap_err(), error);
    assert_eq!(cloud.world(|world| world.balancers_created), 0);
    cloud.heal();
    client.ensure_load_balancer("c", &service(), []).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_deadline() {
    let cloud = Cloud::new();
    cloud.on_next(Call::InstanceExists, Fault::Delay(Duration::from_hours(1)));
    let started = Instant::now();
    let late = Client::new(&cloud.endpoint()).instance_exists(&node()).await;
    let words = "no answer to /cloud.v1.Instances/Exists from the cloud provider in 60s";
    assert_eq!(late, Err(CloudError::Failed(words.to_owned())));
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_late_within_its_deadline_is_answered() {
    let cloud = Cloud::new();
    cloud.on_next(Call::EnsureLoadBalancer, Fault::Delay(Duration::from_mins(4)));
    let started = Instant::now();
    Client::new(&cloud.endpoint()).ensure_load_balancer("c", &service(), []).await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 240);
}

#[tokio::test(start_paused = true)]
async fn a_dead_provider_fails_every_call_until_it_is_back() {
    let cloud = Cloud::new();
    let client = Client::new(&cloud.endpoint());
    assert!(client.info().await.unwrap().load_balancers);
    cloud.die();
    // The first call finds the connection broken, and the next one needs another.
    client.info().await.unwrap_err();
    let CloudError::Failed(words) = client.info().await.unwrap_err() else { panic!("a failure") };
    assert!(words.contains("cannot connect to the cloud provider at memory://"), "{words}");
    cloud.revive();
    client.info().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_sleeps_reads_yesterdays_state_and_writes_todays() {
    let cloud = Cloud::new();
    let client = Client::new(&cloud.endpoint());
    cloud.fall_asleep();
    cloud.world(|world| world.instances.insert("node-0".to_owned(), Instance::default()));
    client.ensure_load_balancer("c", &service(), []).await.unwrap();
    assert_eq!(client.instance_exists(&node()).await, Ok(false));
    assert!(client.get_load_balancer("c", &service()).await.unwrap().status.is_none());
    cloud.wake_up();
    assert_eq!(client.instance_exists(&node()).await, Ok(true));
    assert!(client.get_load_balancer("c", &service()).await.unwrap().status.is_some());
}
