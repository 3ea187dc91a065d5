//! CronJobs: what is due is started, by whatever else still runs, and what is over is cleaned up.
//!
//! A schedule here means one minute of a day, some minutes ago: it is due once, at once, and not again for a day. A
//! second run of the same CronJob is that of the minute that begins next.
//! Left out: daylight saving and leap days, which need another clock.

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::{completed, exiting, job, running};
use crate::support::{DEADLINE, Scene, on_shared_cluster, without_kubelets};

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The start of the minute that came so many minutes ago.
#[expect(clippy::disallowed_methods, reason = "the operator reads the clock of the machine")]
pub(crate) fn minute(ago: i64) -> Result<Timestamp> {
    let now = Timestamp::now().as_second();
    Ok(Timestamp::from_second((now.div_euclid(60) - ago) * 60)?)
}

/// The schedule that means this minute of each day.
pub(crate) fn daily(at: Timestamp) -> String {
    at.strftime("%M %H * * *").to_string()
}

/// A CronJob that has nothing to do yet.
pub(crate) fn cron_job(name: &str, concurrency: &str, of: &Value) -> Value {
    let mut template = of["spec"].clone();
    template["template"]["metadata"]["labels"] = json!({"app": name});
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": "59 23 31 12 *",
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": concurrency,
            "jobTemplate": {"metadata": {"labels": {"run": name}}, "spec": template},
        },
    })
}

/// Creates the CronJob with this minute of each day for a schedule, which has not been looked at.
async fn due(scene: &Scene, of: &Value, at: Timestamp) -> Result<()> {
    due_since(scene, of, &daily(at), at.checked_sub(SignedDuration::from_secs(1))?).await
}

/// Creates the CronJob with this schedule, whose times were last looked at at `before`: they count, because the schedule
/// was never another one.
pub(crate) async fn due_since(scene: &Scene, of: &Value, schedule: &str, before: Timestamp) -> Result<()> {
    let suspend = of["spec"]["suspend"].as_bool().unwrap_or_default();
    let mut of = of.clone();
    of["spec"]["schedule"] = json!(schedule);
    of["spec"]["suspend"] = json!(true);
    let name = scene.apply(&of).await?.metadata.name.context("it has no name")?;
    let before = before.to_string();
    scene.patch_status::<CronJob>(&name, &json!({"status": {"lastScheduleTime": before}})).await?;
    scene.patch::<CronJob>(&name, &json!({"spec": {"suspend": suspend}})).await.map(drop)
}

/// Gives these CronJobs a schedule that means the minute that begins next, and waits for it; gives that minute.
///
/// A new schedule is due for no time before it was set, so that none of the past will do.
pub(crate) async fn reschedule(scene: &Scene, names: &[&str]) -> Result<Timestamp> {
    let next = minute(-1)?;
    for name in names {
        scene.patch::<CronJob>(name, &json!({"spec": {"schedule": daily(next)}})).await?;
    }
    let begun = async || {
        ensure!(minute(0)? >= next, "it is not {next} yet");
        Ok(())
    };
    scene.wait_until("the next minute has begun", DEADLINE * 2, begun).await?;
    Ok(next)
}

async fn status(scene: &Scene, name: &str) -> Result<CronJobStatus> {
    Ok(scene.fetch::<CronJob>(name).await?.status.unwrap_or_default())
}

/// The name of the Job of this minute.
fn job_name(name: &str, at: Timestamp) -> String {
    format!("{name}-{}", at.as_second() / 60)
}

/// Waits until exactly these Jobs are said to be active.
async fn active(scene: &Scene, name: &str, expected: &[String]) -> Result<CronJobStatus> {
    scene
        .wait_until(&format!("{expected:?} are active"), DEADLINE, async || {
            let status = status(scene, name).await?;
            let mut active: Vec<String> = status.active.iter().flatten().filter_map(|job| job.name.clone()).collect();
            active.sort();
            ensure!(active == expected, "{active:?}");
            Ok(status)
        })
        .await
}

/// The names of a CronJob's Jobs.
async fn jobs(scene: &Scene, name: &str) -> Result<Vec<String>> {
    let jobs: Vec<Job> = scene.list(&format!("run={name}")).await?;
    Ok(jobs.iter().map(ResourceExt::name_any).collect())
}

#[test]
fn what_is_due_is_started_under_a_name_of_its_own() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut of = cron_job("nightly", "Allow", &job("x", 1, 1));
        of["spec"]["timeZone"] = json!("Asia/Kolkata");
        of["spec"]["jobTemplate"]["metadata"]["annotations"] = json!({"kept": "yes"});
        let at = minute(7)?;
        // Half an hour off: only who reads the zone finds this time.
        let local = at.checked_add(SignedDuration::from_mins(5 * 60 + 30))?;
        due_since(scene, &of, &daily(local), at.checked_sub(SignedDuration::from_secs(1))?).await?;

        let name = job_name("nightly", at);
        scene.wait_until("it is started", DEADLINE, async || scene.fetch::<Job>(&name).await.map(drop)).await?;
        completed(scene, &name).await?;
        let started: Job = scene.fetch(&name).await?;
        assert_eq!(started.annotations().get("kept").map(String::as_str), Some("yes"));
        let scheduled = local.strftime("%Y-%m-%dT%H:%M:%S+05:30").to_string();
        assert_eq!(started.annotations().get(SCHEDULED), Some(&scheduled));
        let owner: CronJob = scene.fetch("nightly").await?;
        let expected =
            owner.controller_owner_ref(&()).map(|owner| OwnerReference { block_owner_deletion: Some(true), ..owner });
        assert_eq!(started.owner_references(), expected.as_slice());
        let status = active(scene, "nightly", &[]).await?;
        assert_eq!(status.last_schedule_time.as_ref().map(|time| time.0), Some(at));
        assert!(status.last_successful_time.is_some(), "{status:?}");
        let created = scene.told("SuccessfulCreate").await?;
        let message = format!("Created job {name}");
        assert!(created.iter().any(|event| event.message.as_deref() == Some(&*message)), "{created:?}");
        let message = format!("Saw completed job: {name}, condition: Complete");
        assert_eq!(scene.told("SawCompletedJob").await?[0].message.as_deref(), Some(&*message));
        Ok(())
    })
}

#[test]
fn a_schedule_may_have_names_and_steps_or_be_a_word() -> Result<()> {
    on_shared_cluster(async |scene| {
        let at = minute(7)?;
        // Steps that reach beyond the end leave one value, and names stand for all there are.
        let odd = at.strftime("%-M/60 %-H/24 */1 jan,FEB-Dec Sun-FRI,sat").to_string();
        let hour = Timestamp::from_second(minute(0)?.as_second().div_euclid(3600) * 3600)?;
        for (name, schedule, at) in [("odd", &*odd, at), ("hourly", "@hourly", hour)] {
            let of = cron_job(name, "Allow", &job("x", 1, 1));
            due_since(scene, &of, schedule, at.checked_sub(SignedDuration::from_secs(1))?).await?;
            let started = scene
                .wait_until(&format!("{name} is started"), DEADLINE, async || {
                    let last = status(scene, name).await?.last_schedule_time.context("it never ran")?.0;
                    ensure!(last >= at, "it last ran at {last}");
                    Ok(last)
                })
                .await?;
            // The hour may have struck meanwhile.
            assert!(
                started == at || (name == "hourly" && started == hour + SignedDuration::from_hours(1)),
                "{started}"
            );
            scene.fetch::<Job>(&job_name(name, started)).await?;
        }
        Ok(())
    })
}

#[test]
fn of_many_missed_runs_the_latest_is_made_up_for_and_the_others_are_told() -> Result<()> {
    on_shared_cluster(async |scene| {
        let at = minute(7)?;
        let long_ago = at.checked_sub(SignedDuration::from_hours(150 * 24))?;
        let mut bounded = cron_job("bounded", "Allow", &job("x", 1, 1));
        bounded["spec"]["startingDeadlineSeconds"] = json!(3600);
        for (name, of) in [("bounded", &bounded), ("overdue", &cron_job("overdue", "Allow", &job("x", 1, 1)))] {
            due_since(scene, of, &daily(at), long_ago).await?;
            completed_soon(scene, &job_name(name, at)).await?;
            assert_eq!(jobs(scene, name).await?, [job_name(name, at)], "one for all");
        }
        let told = scene.told("TooManyMissedTimes").await?;
        assert!(told.iter().all(|event| event.involved_object.name.as_deref() == Some("overdue")), "{told:?}");
        let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        assert_eq!(told[0].message.as_deref(), Some(message));
        Ok(())
    })
}

#[test]
fn a_run_that_somebody_deletes_is_missed_and_not_started_again() -> Result<()> {
    on_shared_cluster(async |scene| {
        let at = minute(7)?;
        due(scene, &cron_job("nightly", "Forbid", &running(job("x", 1, 1))), at).await?;
        let name = job_name("nightly", at);
        active(scene, "nightly", std::slice::from_ref(&name)).await?;
        scene.kubectl(&format!("delete job/{name} --timeout=60s")).await?;
        active(scene, "nightly", &[]).await?;
        let message = format!("Active job went missing: {name}");
        assert_eq!(scene.told("MissingJob").await?[0].message.as_deref(), Some(&*message));
        // The next run takes place nevertheless.
        reschedule(scene, &["nightly"]).await?;
        scene
            .wait_until("the next one runs", DEADLINE, async || {
                let left = jobs(scene, "nightly").await?;
                ensure!(left.len() == 1 && left[0] != name, "{left:?}");
                Ok(())
            })
            .await
    })
}

#[test]
fn a_run_started_by_hand_is_told_and_left_alone() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&cron_job("nightly", "Forbid", &running(job("x", 1, 1)))).await?;
        scene.kubectl("create job by-hand --from=cronjob/nightly").await?;
        let message = "Saw a job that the controller did not create or forgot: by-hand";
        assert_eq!(scene.told("UnexpectedJob").await?[0].message.as_deref(), Some(message));
        // It is none of those that keep the next one waiting.
        let at = reschedule(scene, &["nightly"]).await?;
        active(scene, "nightly", &[job_name("nightly", at)]).await?;
        scene.fetch::<Job>("by-hand").await.map(drop)
    })
}

#[test]
fn a_run_beside_another_waits_for_it_or_takes_its_place_as_the_policy_says() -> Result<()> {
    without_kubelets(async |scene| {
        let first = minute(9)?;
        for (name, policy) in [("allow", "Allow"), ("forbid", "Forbid"), ("replace", "Replace")] {
            due(scene, &cron_job(name, policy, &running(job("x", 1, 1))), first).await?;
            active(scene, name, &[job_name(name, first)]).await?;
        }
        let second = reschedule(scene, &["allow", "forbid", "replace"]).await?;
        let names = |name: &str| [job_name(name, first), job_name(name, second)];
        active(scene, "allow", &names("allow")).await?;
        assert_eq!(jobs(scene, "allow").await?, names("allow"));

        active(scene, "replace", &names("replace")[1..]).await?;
        scene
            .wait_until("the first run is gone", DEADLINE, async || {
                let left = jobs(scene, "replace").await?;
                ensure!(left == names("replace")[1..], "{left:?}");
                Ok(())
            })
            .await?;

        let refused = scene.told("JobAlreadyActive").await?;
        assert_eq!(refused[0].involved_object.name.as_deref(), Some("forbid"));
        assert_eq!(jobs(scene, "forbid").await?, names("forbid")[..1]);
        // The run that had to wait is not lost.
        let pod = super::run(scene, &names("forbid")[0], 1).await?.remove(0);
        super::end(scene, &pod, 0).await?;
        active(scene, "forbid", &names("forbid")[1..]).await.map(drop)
    })
}

#[test]
fn of_what_is_over_only_the_latest_stay() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut good = cron_job("good", "Allow", &job("x", 1, 1));
        good["spec"]["successfulJobsHistoryLimit"] = json!(1);
        let mut bad = cron_job("bad", "Allow", &exiting(job("x", 1, 1), 1));
        bad["spec"]["jobTemplate"]["spec"]["backoffLimit"] = json!(0);
        bad["spec"]["failedJobsHistoryLimit"] = json!(2);
        let mut times = vec![minute(6)?];
        due(scene, &good, times[0]).await?;
        due(scene, &bad, times[0]).await?;
        for round in 0..3 {
            if round > 0 {
                times.push(reschedule(scene, &["good", "bad"]).await?);
            }
            for name in ["good", "bad"] {
                let job = job_name(name, times[round]);
                scene
                    .wait_until(&format!("{job} is over"), DEADLINE, async || {
                        let status = super::status(scene, &job).await?;
                        let over = ["Complete", "Failed"].map(|end| super::condition(&status, end).is_some());
                        ensure!(over.contains(&true), "{status:?}");
                        Ok(())
                    })
                    .await?;
            }
        }
        for (name, kept) in [("good", 2), ("bad", 1)] {
            let expected: Vec<String> = times[kept..].iter().map(|at| job_name(name, *at)).collect();
            scene
                .wait_until(&format!("{expected:?} are left of {name}"), DEADLINE, async || {
                    let left = jobs(scene, name).await?;
                    ensure!(left == expected, "{left:?}");
                    Ok(())
                })
                .await?;
        }
        let deleted = scene.told("SuccessfulDelete").await?;
        let of_cron_jobs = deleted.iter().filter(|event| event.involved_object.kind.as_deref() == Some("CronJob"));
        assert!(of_cron_jobs.count() >= 2, "{deleted:?}");
        Ok(())
    })
}

#[test]
fn a_suspended_or_late_time_starts_nothing() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut suspended = cron_job("suspended", "Allow", &job("x", 1, 1));
        suspended["spec"]["suspend"] = json!(true);
        let mut late = cron_job("late", "Allow", &job("x", 1, 1));
        late["spec"]["startingDeadlineSeconds"] = json!(60);
        let at = minute(8)?;
        for of in [&suspended, &late, &cron_job("plain", "Allow", &job("x", 1, 1))] {
            due(scene, of, at).await?;
        }
        // The Job that was due last is done with, so the others were seen.
        scene
            .wait_until("the plain one is started", DEADLINE, async || {
                scene.fetch::<Job>(&job_name("plain", at)).await.map(drop)
            })
            .await?;
        assert!(jobs(scene, "suspended").await?.is_empty() && jobs(scene, "late").await?.is_empty());
        scene.patch::<CronJob>("suspended", &json!({"spec": {"suspend": false}})).await?;
        scene
            .wait_until("what was missed meanwhile is made up for", DEADLINE, async || {
                scene.fetch::<Job>(&job_name("suspended", at)).await.map(drop)
            })
            .await
    })
}

#[test]
fn a_schedule_that_is_never_due_is_told_once() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut never = cron_job("never", "Allow", &job("x", 1, 1));
        never["spec"]["schedule"] = json!("59 23 31 2 *");
        scene.apply(&never).await?;
        let told = scene.told("InvalidSchedule").await?;
        let message = "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second";
        assert_eq!(told[0].message.as_deref(), Some(message));
        scene.kubectl("annotate cronjob/never touched=yes").await?;
        scene
            .wait_until("a change is looked at", DEADLINE, async || {
                let told = scene.events("InvalidSchedule").await?;
                let count: i32 = told.iter().filter_map(|event| event.count).sum();
                ensure!(count == 2, "told {count} times");
                Ok(())
            })
            .await?;
        // Nobody has looked at it a third time: that would have been told within the same moment.
        let at = minute(5)?;
        due(scene, &cron_job("plain", "Allow", &job("x", 1, 1)), at).await?;
        completed_soon(scene, &job_name("plain", at)).await?;
        let told = scene.events("InvalidSchedule").await?;
        assert_eq!(told.iter().filter_map(|event| event.count).sum::<i32>(), 2);
        let refused = scene.kubectl("create cronjob bad --image=busybox:1.37 --schedule=@never").await.unwrap_err();
        assert!(format!("{refused:#}").contains("unrecognized descriptor: @never"), "{refused:#}");
        Ok(())
    })
}

async fn completed_soon(scene: &Scene, job: &str) -> Result<()> {
    scene.wait_until(&format!("{job} is there"), DEADLINE, async || scene.fetch::<Job>(job).await.map(drop)).await?;
    completed(scene, job).await.map(drop)
}

#[test]
fn a_short_interval_is_kept_without_being_woken() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut often = cron_job("often", "Allow", &job("x", 1, 1));
        often["spec"]["schedule"] = json!("@every 2s");
        // Two runs within one minute share a name, so the first must be gone.
        often["spec"]["successfulJobsHistoryLimit"] = json!(0);
        scene.apply(&often).await?;
        let created: CronJob = scene.fetch("often").await?;
        let created = created.metadata.creation_timestamp.context("no creationTimestamp")?.0;
        let mut times = std::collections::BTreeSet::new();
        scene
            .wait_until("it has run three times", DEADLINE, async || {
                let status = status(scene, "often").await?;
                times.extend(status.last_schedule_time.map(|time| time.0));
                ensure!(times.len() >= 3, "{times:?}");
                Ok(())
            })
            .await?;
        for time in times {
            let since = created.duration_until(time).as_secs();
            assert!(since > 0 && since % 2 == 0, "{time} is {since} s after {created}");
        }
        Ok(())
    })
}
