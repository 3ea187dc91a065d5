//! Jobs that are suspended: no pods, no clock, and another template when they go on.

use anyhow::Result;
use k8s_openapi::api::batch::v1::JobStatus;
use serde_json::json;

use super::{condition, edit, end, job, pods, run, running, says, with};
use crate::support::{on_shared_cluster, without_kubelets};

fn is_suspended(status: &JobStatus) -> bool {
    condition(status, "Suspended") == Some(("JobSuspended", "Job suspended"))
}

#[test]
fn a_suspended_job_has_no_pods_and_no_start() -> Result<()> {
    on_shared_cluster(async |scene| {
        // Were its clock running, it would be over at once.
        let suspended = json!({"suspend": true, "activeDeadlineSeconds": 1});
        scene.apply(&with(job("pi", 2, 2), &suspended)).await?;
        let status = says(scene, "pi", "it is suspended", is_suspended).await?;
        assert_eq!((&status.start_time, status.active), (&None, None));
        assert!(pods(scene, "pi").await?.is_empty());
        let shown = scene.kubectl("get job/pi --no-headers").await?;
        assert!(shown.contains("Suspended") && shown.contains("0/2"), "{shown}");
        scene.told("Suspended").await?;
        edit(scene, "pi", &json!({"suspend": false, "activeDeadlineSeconds": 60})).await?;
        let status = super::completed(scene, "pi").await?;
        let resumed = status.conditions.iter().flatten().find(|condition| condition.type_ == "Suspended");
        let resumed = resumed.map(|condition| (condition.status.as_str(), condition.reason.as_deref()));
        assert_eq!(resumed, Some(("False", Some("JobResumed"))));
        assert!(status.start_time.is_some());
        scene.told("Resumed").await.map(drop)
    })
}

#[test]
fn a_job_is_suspended_and_resumed_with_another_template() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&running(job("pi", 2, 3))).await?;
        let first = run(scene, "pi", 2).await?;
        end(scene, &first[0], 0).await?;
        let started = says(scene, "pi", "one is done", |status| status.succeeded == Some(1)).await?;
        assert!(started.start_time.is_some());
        run(scene, "pi", 2).await?;
        edit(scene, "pi", &json!({"suspend": true})).await?;
        let status = says(scene, "pi", "it is suspended", is_suspended).await?;
        assert_eq!(status.start_time, None, "its time stands still");
        run(scene, "pi", 0).await?;
        let status = says(scene, "pi", "nothing is active", |status| status.active.unwrap_or(0) == 0).await?;
        assert_eq!((status.succeeded, status.failed), (Some(1), None), "a suspended pod has not failed");

        edit(scene, "pi", &json!({"template": {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}}})).await?;
        edit(scene, "pi", &json!({"suspend": false})).await?;
        let second = run(scene, "pi", 2).await?;
        let selector = second[0].spec.clone().and_then(|spec| spec.node_selector).unwrap_or_default();
        assert_eq!(selector.get("kubernetes.io/os").map(String::as_str), Some("linux"));
        let resumed = says(scene, "pi", "two are active", |status| status.active == Some(2)).await?;
        let [started, resumed] = [started, resumed].map(|status| status.start_time.map(|time| time.0));
        assert!(resumed > started, "its time begins anew: {started:?}, then {resumed:?}");
        for pod in &second {
            end(scene, pod, 0).await?;
        }
        let status = super::completed(scene, "pi").await?;
        assert_eq!((status.succeeded, status.failed), (Some(3), None));
        Ok(())
    })
}
