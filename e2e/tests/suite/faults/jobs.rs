//! Jobs while their operator is killed, deaf or blind. The test plays the kubelet and so knows how each pod ended: what is
//! counted is what ended, at no time more, and no pod keeps the finalizer.
//! Left out: which write fails how, one by one, which a simulated world goes through without a cluster.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule};
use http::Method;
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::with_operators;
use crate::batch::{completed, indexed, job, pods, running, status, with};
use crate::support::behind::{Behind, Gate, all_work, each, nth_work};
use crate::support::objects::is_ready;
use crate::support::{Scene, uid};

const OPERATOR: &str = "job-operator";
const PODS: &str = "/api/v1/pods";
const JOBS: &str = "/apis/batch/v1/jobs";
const COMPLETIONS: i32 = 50;
/// How many pods fail before all goes well.
const FAILURES: i32 = 7;
/// A Job with a hundred writes may meet a fault at each.
const DEADLINE: Duration = Duration::from_secs(150);

/// A Job of so many pods that may all run at once, and of which enough may fail.
fn fifty(name: &str, of: fn(&str, i32, i32) -> Value) -> Value {
    with(running(of(name, COMPLETIONS, COMPLETIONS)), &json!({"backoffLimit": 100}))
}

fn plain(name: &str, parallelism: i32, completions: i32) -> Value {
    job(name, parallelism, completions)
}

/// The pods of a Job that the kubelet has ended, and the Job's status as last seen.
struct Watched<'a> {
    scene: &'a Scene,
    job: &'a str,
    /// The exit code of each pod that has ended, by uid.
    ended: RefCell<BTreeMap<String, i32>>,
    said: RefCell<JobStatus>,
}

impl<'a> Watched<'a> {
    fn new(scene: &'a Scene, job: &'a str) -> Self {
        Self { scene, job, ended: RefCell::default(), said: RefCell::default() }
    }

    /// How many pods have ended well, and how many badly.
    fn ended(&self) -> (i32, i32) {
        let ended = self.ended.borrow();
        let good = ended.values().filter(|code| **code == 0).count();
        (count(good), count(ended.len() - good))
    }

    /// Waits until all pods run at once.
    async fn all_run(&self) -> Result<()> {
        self.scene
            .wait_until("all pods run", DEADLINE, async || {
                let ready = self.check().await?.iter().filter(|pod| is_ready(pod)).count();
                ensure!(count(ready) == COMPLETIONS, "{ready} are ready");
                Ok(())
            })
            .await
    }

    /// Ends the pods that run: some badly, then all others well, so that a failure is never the last that happened.
    async fn end_all(&self) -> Result<()> {
        let mut running = self.check().await?;
        running.retain(|pod| is_ready(pod) && !self.ended.borrow().contains_key(&uid(pod)));
        let may_fail = usize::try_from(FAILURES - self.ended().1)?.min(running.len() / usize::try_from(FAILURES)?);
        for (at, pod) in running.iter().enumerate() {
            let code = i32::from(at < may_fail);
            // Before it is done: the operator may be faster than this test.
            self.ended.borrow_mut().insert(uid(pod), code);
            self.scene.end_pod(&pod.name_any(), code).await?;
        }
        Ok(())
    }

    /// Ends pods until the Job is over.
    async fn play(&self) -> Result<()> {
        self.scene
            .wait_until(&format!("{} is over", self.job), DEADLINE, async || {
                self.end_all().await?;
                let conditions = self.said.borrow().conditions.clone().unwrap_or_default();
                ensure!(conditions.iter().any(|condition| condition.type_ == "Complete"), "{:?}", self.said.borrow());
                Ok(())
            })
            .await
    }

    /// The Job's pods. No counter has fallen, and none says more than has happened.
    async fn check(&self) -> Result<Vec<Pod>> {
        let now = status(self.scene, self.job).await?;
        let before = self.said.replace(now.clone());
        let (succeeded, failed) = self.ended();
        assert!(now.succeeded >= before.succeeded && now.failed >= before.failed, "{before:?}, and then {now:?}");
        let is_true = now.succeeded.unwrap_or(0) <= succeeded && now.failed.unwrap_or(0) <= failed;
        assert!(is_true, "{now:?}, but {succeeded} succeeded and {failed} failed");
        pods(self.scene, self.job).await
    }

    /// In the end everything that ended is counted once, and nothing was run in vain.
    async fn check_over(&self) -> Result<()> {
        let status = completed(self.scene, self.job).await?;
        assert_eq!((status.succeeded.unwrap_or(0), status.failed.unwrap_or(0)), self.ended());
        assert_eq!(self.ended(), (COMPLETIONS, FAILURES));
        let made: BTreeSet<String> = pods(self.scene, self.job).await?.iter().map(uid).collect();
        let ended: BTreeSet<String> = self.ended.borrow().keys().cloned().collect();
        assert_eq!(made, ended, "a pod was made that nobody needed");
        Ok(())
    }
}

fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// In which moment an operator is killed.
#[derive(Clone, Copy)]
enum Moment {
    /// After the first write, whose answer it never gets: no process lives for more than one.
    FirstWrite,
    /// Somewhere in a batch: at least one of its writes has happened, others never will.
    MidBatch,
}

/// Kills the operator, and each that takes its place.
async fn kill_again_and_again(victim: &mut Behind, moment: Moment, kills: &Cell<u32>) -> Result<Infallible> {
    loop {
        let gate = Gate::new();
        match moment {
            Moment::FirstWrite => {
                victim.proxy.add(nth_work(gate.after(), 1));
                victim.proxy.add(all_work(Gate::new().before()));
            }
            Moment::MidBatch => victim.proxy.add(nth_work(gate.after(), 1 + kills.get() % 7)),
        }
        gate.reached().await;
        victim.kill_and_restart()?;
        kills.set(kills.get() + 1);
    }
}

#[test]
fn a_job_of_fifty_survives_its_operator_killed_at_each_write() -> Result<()> {
    // Its pods, fifty-seven of them, are made and let go one by one.
    survives_kills(plain, Moment::FirstWrite, 2 * 57)
}

#[test]
fn an_indexed_job_of_fifty_survives_its_operator_killed_in_the_middle_of_its_batches() -> Result<()> {
    survives_kills(indexed, Moment::MidBatch, 10)
}

fn survives_kills(of: fn(&str, i32, i32) -> Value, moment: Moment, kills_min: u32) -> Result<()> {
    with_operators([OPERATOR], async |scene, [mut victim]| {
        scene.apply(&fifty("pi", of)).await?;
        let (watched, kills) = (Watched::new(scene, "pi"), Cell::new(0));
        let kubelet = async {
            watched.all_run().await?;
            watched.play().await
        };
        tokio::select! {
            over = kubelet => over?,
            killed = kill_again_and_again(&mut victim, moment, &kills) => match killed? {},
        }
        victim.kill_and_restart()?;
        assert!(kills.get() >= kills_min, "it was killed {} times", kills.get());
        watched.check_over().await
    })
}

#[test]
fn jobs_of_fifty_are_counted_right_when_answers_are_lost() -> Result<()> {
    with_operators([OPERATOR], async |scene, [operator]| {
        let lose = |method: Method, path: &str, nth: usize, times: u32| {
            let rule = Rule::new(Action::LoseResponse).method(method).path(path).when(each(nth)).times(times);
            operator.proxy.add(rule);
        };
        lose(Method::POST, "**/pods", 17, 4);
        lose(Method::PATCH, "**/pods/*", 19, 4);
        lose(Method::PATCH, "**/jobs/*/status", 2, 5);
        scene.apply(&fifty("plain", plain)).await?;
        scene.apply(&fifty("indexed", indexed)).await?;
        for name in ["plain", "indexed"] {
            let watched = Watched::new(scene, name);
            watched.all_run().await?;
            watched.play().await?;
            watched.check_over().await?;
        }
        for path in ["**/pods", "**/pods/*", "**/jobs/*/status"] {
            assert!(operator.lost(path) > 1, "{path}: {} lost", operator.lost(path));
        }
        Ok(())
    })
}

#[test]
fn a_job_of_fifty_is_counted_right_while_pods_and_then_jobs_are_not_seen() -> Result<()> {
    with_operators([OPERATOR], async |scene, [operator]| {
        let watched = Watched::new(scene, "pi");
        operator.proxy.freeze_watches(PODS);
        let lists = operator.lists(PODS);
        scene.apply(&fifty("pi", plain)).await?;
        watched.all_run().await?;
        // Each of these asks for a sync, which would see no pod.
        for seconds in [1000, 2000] {
            let deadline = json!({"spec": {"activeDeadlineSeconds": seconds}});
            scene.patch::<Job>("pi", &deadline).await?;
        }
        until(scene, "pods are listed anew", || operator.lists(PODS) > lists).await?;
        operator.proxy.thaw_watches();
        watched
            .scene
            .wait_until("all are seen", DEADLINE, async || {
                watched.check().await?;
                let said = watched.said.borrow();
                ensure!(said.ready == Some(COMPLETIONS), "{said:?}");
                Ok(())
            })
            .await?;

        operator.proxy.freeze_watches(JOBS);
        let lists = operator.lists(JOBS);
        watched.end_all().await?;
        until(scene, "Jobs are listed anew", || operator.lists(JOBS) > lists).await?;
        operator.proxy.thaw_watches();
        watched.play().await?;
        watched.check_over().await
    })
}

async fn until(scene: &Scene, what: &str, is: impl Fn() -> bool) -> Result<()> {
    scene
        .wait_until(what, DEADLINE, async || {
            ensure!(is(), "not yet");
            Ok(())
        })
        .await
}

#[test]
fn a_job_of_fifty_is_counted_right_when_events_come_late_twice_and_in_disorder() -> Result<()> {
    with_operators([OPERATOR], async |scene, [operator]| {
        let watched = Watched::new(scene, "pi");
        operator.proxy.delay_watches(PODS, Duration::from_millis(1500));
        operator.proxy.delay_watches(JOBS, Duration::from_millis(2500));
        scene.apply(&fifty("pi", plain)).await?;
        watched.all_run().await?;
        let (pods, job) = (pods(scene, "pi").await?, scene.fetch::<Job>("pi").await?);
        watched.end_all().await?;
        watched
            .scene
            .wait_until("all are counted", DEADLINE, async || {
                watched.check().await?;
                let said = watched.said.borrow();
                let counted = said.succeeded.unwrap_or(0) + said.failed.unwrap_or(0);
                ensure!(counted == COMPLETIONS && said.active == Some(FAILURES), "{said:?}");
                Ok(())
            })
            .await?;
        // As if all of them still ran, and nothing had been counted.
        for pod in &pods {
            let event = json!({"type": "MODIFIED", "object": pod});
            assert_eq!(operator.proxy.inject_event(PODS, event.to_string()), 1);
        }
        operator.proxy.inject_event(JOBS, json!({"type": "MODIFIED", "object": job}).to_string());
        for pod in crate::batch::pods(scene, "pi").await? {
            let event = json!({"type": "MODIFIED", "object": pod}).to_string();
            operator.proxy.inject_event(PODS, event.clone());
            operator.proxy.inject_event(PODS, event);
        }
        // Something to be said, whether or not it believes all that.
        scene.patch::<Job>("pi", &json!({"spec": {"activeDeadlineSeconds": 1000}})).await?;
        operator.proxy.cut_watches(JOBS);
        watched.play().await?;
        watched.check_over().await
    })
}
