//! Jobs that succeed: how many pods run, which, and when it is enough.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;

use super::{INDEX, completed, condition, edit, end, index, indexed, job, pods, run, running, says, with};
use crate::support::{on_shared_cluster, without_kubelets};

#[test]
fn a_job_runs_until_enough_pods_have_succeeded() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&job("pi", 2, 5)).await?;
        let status = completed(scene, "pi").await?;
        assert_eq!((status.succeeded, status.failed), (Some(5), None));
        assert!(status.start_time.is_some() && status.completion_time.is_some(), "{status:?}");
        let announced = condition(&status, "SuccessCriteriaMet");
        assert_eq!(announced, Some(("CompletionsReached", "Reached expected number of succeeded pods")));
        assert_eq!(condition(&status, "Complete"), announced);
        let shown = scene.kubectl("get job/pi --no-headers").await?;
        assert!(shown.contains("Complete") && shown.contains("5/5"), "{shown}");
        assert_eq!(pods(scene, "pi").await?.len(), 5);
        assert_eq!(scene.told("Completed").await?[0].message.as_deref(), Some("Job completed"));
        let shown = scene.kubectl("describe job/pi").await?;
        assert!(shown.contains("0 Active (0 Ready) / 5 Succeeded / 0 Failed"), "{shown}");
        Ok(())
    })
}

#[test]
fn no_more_pods_run_at_once_than_asked_for_whenever_that_changes() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&running(job("pi", 2, 5))).await?;
        run(scene, "pi", 2).await?;
        says(scene, "pi", "both are ready", |status| status.ready == Some(2)).await?;
        edit(scene, "pi", &json!({"parallelism": 4})).await?;
        run(scene, "pi", 4).await?;
        edit(scene, "pi", &json!({"parallelism": 1})).await?;
        let left = run(scene, "pi", 1).await?;
        let status = says(scene, "pi", "one is active", |status| status.active == Some(1)).await?;
        assert_eq!(status.failed, None, "a pod that was too many has not failed");
        edit(scene, "pi", &json!({"parallelism": 0})).await?;
        run(scene, "pi", 0).await?;
        edit(scene, "pi", &json!({"parallelism": 9})).await?;
        let pods = run(scene, "pi", 5).await?;
        assert!(!pods.iter().any(|pod| pod.name_any() == left[0].name_any()));
        for pod in &pods {
            end(scene, pod, 0).await?;
        }
        let status = completed(scene, "pi").await?;
        assert_eq!((status.succeeded, status.failed), (Some(5), None));
        Ok(())
    })
}

#[test]
fn the_first_success_of_a_work_queue_means_that_there_is_no_more_work() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&running(job("queue", 3, None))).await?;
        let pods = run(scene, "queue", 3).await?;
        end(scene, &pods[0], 0).await?;
        says(scene, "queue", "one has succeeded", |status| status.succeeded == Some(1)).await?;
        end(scene, &pods[1], 1).await?;
        let status = says(scene, "queue", "one has failed", |status| status.failed == Some(1)).await?;
        assert_eq!(status.active, Some(1), "nobody takes up work that is not there");
        assert_eq!(condition(&status, "SuccessCriteriaMet"), None, "one is still at work");
        end(scene, &pods[2], 0).await?;
        let status = completed(scene, "queue").await?;
        assert_eq!((status.succeeded, status.failed), (Some(2), Some(1)));
        assert_eq!(super::pods(scene, "queue").await?.len(), 3);
        Ok(())
    })
}

#[test]
fn each_pod_of_an_indexed_job_is_told_its_index() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&indexed("pi", 2, 4)).await?;
        let status = completed(scene, "pi").await?;
        assert_eq!((status.succeeded, status.completed_indexes.as_deref()), (Some(4), Some("0-3")));
        let mut pods = pods(scene, "pi").await?;
        pods.sort_by_key(index);
        assert_eq!(pods.iter().map(index).collect::<Vec<_>>(), [0, 1, 2, 3]);
        pods.iter().try_for_each(knows_its_index)
    })
}

fn knows_its_index(pod: &Pod) -> Result<()> {
    let (index, name) = (index(pod).to_string(), pod.name_any());
    ensure!(pod.labels().get(INDEX) == Some(&index), "{name} has the labels {:?}", pod.labels());
    ensure!(name.starts_with(&format!("pi-{index}-")), "{name} of index {index}");
    let spec = pod.spec.as_ref();
    let hostname = spec.and_then(|spec| spec.hostname.clone());
    ensure!(hostname == Some(format!("pi-{index}")), "{name} is called {hostname:?}");
    let mut env =
        spec.into_iter().flat_map(|spec| &spec.containers).flat_map(|container| container.env.iter().flatten());
    let source = env.find(|env| env.name == "JOB_COMPLETION_INDEX").and_then(|env| env.value_from.clone());
    let field = source.and_then(|source| source.field_ref).map(|field| field.field_path);
    ensure!(field == Some(format!("metadata.labels['{INDEX}']")), "{name} reads its index from {field:?}");
    Ok(())
}

#[test]
fn an_indexed_job_shrinks_and_grows_while_it_runs() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&running(indexed("elastic", 4, 4))).await?;
        let pods = run(scene, "elastic", 4).await?;
        end(scene, &pods[0], 0).await?;
        end(scene, &pods[3], 0).await?;
        says(scene, "elastic", "two are done", |status| status.completed_indexes.as_deref() == Some("0,3")).await?;
        edit(scene, "elastic", &json!({"parallelism": 2, "completions": 2})).await?;
        let status =
            says(scene, "elastic", "index 3 is none", |status| status.completed_indexes.as_deref() == Some("0"))
                .await?;
        assert_eq!((status.succeeded, status.failed), (Some(1), None));
        let left = run(scene, "elastic", 1).await?;
        assert_eq!(left.iter().map(index).collect::<Vec<_>>(), [1], "an index that is left goes on");
        assert_eq!(left[0].uid(), pods[1].uid());
        edit(scene, "elastic", &json!({"parallelism": 3, "completions": 3})).await?;
        let left = run(scene, "elastic", 2).await?;
        for pod in &left {
            end(scene, pod, 0).await?;
        }
        let status = completed(scene, "elastic").await?;
        assert_eq!((status.succeeded, status.completed_indexes.as_deref()), (Some(3), Some("0-2")));
        Ok(())
    })
}

#[test]
fn a_success_policy_ends_a_job_before_all_indexes_are_done() -> Result<()> {
    without_kubelets(async |scene| {
        let policy = json!({"successPolicy": {"rules": [
            {"succeededIndexes": "1-2", "succeededCount": 2}, {"succeededIndexes": "0"},
        ]}});
        scene.apply(&running(with(indexed("leader", 3, 3), &policy))).await?;
        let pods = run(scene, "leader", 3).await?;
        end(scene, &pods[1], 0).await?;
        says(scene, "leader", "a worker is done", |status| status.succeeded == Some(1)).await?;
        end(scene, &pods[0], 0).await?;
        let status = completed(scene, "leader").await?;
        assert_eq!(status.completed_indexes.as_deref(), Some("0,1"));
        assert_eq!(status.failed, None, "who is not needed any more has not failed");
        let expected = Some(("SuccessPolicy", "Matched rules at index 1"));
        assert_eq!(condition(&status, "SuccessCriteriaMet"), expected);
        assert_eq!(condition(&status, "Complete"), expected);
        Ok(())
    })
}
