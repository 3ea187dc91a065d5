//! Everything there is: all operators, of which most have nothing to do, beside a kube-controller-manager that runs the same
//! controllers and no others. Deployments come and go, then there are many pods: at rest, while pods that are nobody's come
//! and go, when everything starts again, and while they roll.
//! Left out: Jobs, Services and garbage, which are other sets'.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::operator;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use tokio::time::{Instant, interval};

use super::workloads::{deployment, run_lives, template_patch};

use crate::about::{About, OfAll, Target, Targets, nodes_for};
use crate::contestant::Contestant;
use crate::figures::whole;
use crate::measure::{Bench, NAMESPACE, PROBE, create, in_parallel, small};
use crate::options::BenchOptions;
use crate::sizes::AllSizes;

/// How often a pod that is nobody's comes, and how many of them there are before the first goes.
const CHURN_EVERY: Duration = Duration::from_millis(100);
const CHURN_ALIVE: u32 = 20;
const CHURN: &str = "churn";

const TARGETS: Targets = Targets {
    ratios: &[
        Target::TIME,
        Target::CPU,
        Target::apiserver_cpu("at most 1.0"),
        Target {
            what: "resident",
            wanted: "below 1.0",
            figure: |figures| whole(figures.resident_bytes),
            of_all: OfAll::Most,
        },
        Target::anonymous("at most 0.33"),
    ],
    each: Some("at most 20 ms of CPU a minute beside its Lease, where it has nothing to do"),
};

pub(crate) fn about(options: &BenchOptions) -> Result<About> {
    let BenchOptions { pods, programs, one_program, one_process, all, .. } = options;
    let AllSizes { all_deployments, rolling, rolling_pods, rolling_at_once, rest } = all;
    let is_built = |name: &String| *one_program || *one_process || programs.bin.join(name).is_file();
    let operators: Vec<String> = operator::all()?.into_iter().filter(is_built).collect();
    ensure!(!operators.is_empty(), "no operator is in {}", programs.bin.display());
    let present = rolling.saturating_mul(rolling_pods.unsigned_abs());
    Ok(About {
        operators,
        helpers: &[],
        upstream: "kube-controller-manager",
        controllers: "the controllers that these replace",
        reaction: None,
        steps: format!(
            "{rest} s of rest without pods; one Deployment of {pods} pods; its roll at 25 %/25 %; its scaling to 0; \
             {all_deployments} Deployments\nof 2 pods; with {present} pods in {rolling} Deployments {rest} s of rest, \
             and {rest} s in which ten pods a second that are\nnobody's come and go; a restart of everything among \
             these pods until all are ready and lead, and a Deployment\nchanged meanwhile has its new pod; the roll of \
             all these Deployments, {rolling_at_once} at once, each contestant in turn,\nbut not at its default, where \
             that takes half an hour"
        ),
        nodes: nodes_for(present.max(pods.unsigned_abs())),
        zones: 3,
        gated: false,
        flags: &[],
        page: if *one_process { "docs/benchmarks/one.md" } else { "docs/benchmarks/all.md" },
        targets: Some(TARGETS),
    })
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let AllSizes { all_deployments, rolling, rolling_pods, rolling_at_once, rest } = bench.options.all;
    let rest = Duration::from_secs(rest);
    bench.create_namespace(NAMESPACE).await?;
    bench.wait_ready().await?;
    bench.measure_rest("rest without pods", rest).await?;
    run_lives(bench, all_deployments).await?;

    // Many pods, at rest but for pods that no operator is there for.
    let all: Vec<(String, i32)> = (0..rolling).map(|at| (small(at), rolling_pods)).collect();
    bench.unthrottle().await?;
    bench.create_deployment(PROBE, 1).await?;
    in_parallel(rolling, async |at| bench.create_deployment(&small(at), rolling_pods).await).await?;
    bench.wait_available(&all).await?;
    bench.measure_rest("rest among many pods", rest).await?;
    bench.measure("rest while others' pods come and go", async |bench| bench.churn(rest).await).await?;
    bench.delete_churned().await?;

    // One Deployment asks for something new, and nobody sees to it.
    bench.stop().await?;
    bench.patch::<Deployment>(PROBE, &json!({"spec": {"replicas": 2}})).await?;
    let restart = async |bench: &mut Bench<'_>| {
        bench.begin().await?;
        bench.wait_pod_count(PROBE, 2).await?;
        bench.wait_ready().await
    };
    bench.measure("restart everything among many pods", restart).await?;

    if bench.contestant() == Contestant::Throttled {
        return Ok(());
    }
    let parts = (0..rolling).step_by(rolling_at_once.try_into()?);
    let roll = async |bench: &mut Bench<'_>, first: u32| {
        let count = rolling_at_once.min(rolling - first);
        let patch = template_patch("2");
        in_parallel(count, async |at| bench.patch::<Deployment>(&small(first + at), &patch).await).await?;
        bench.wait_available(&all).await?;
        let pods = i64::from(rolling) * i64::from(rolling_pods) + 2;
        bench.wait_until("pods", async || Ok(bench.count::<Pod>().await? == pods)).await?;
        bench.wait_settled().await
    };
    bench.measure_parts("roll many Deployments", parts, roll).await
}

impl Bench<'_> {
    /// Makes pods that nobody owns, and deletes each a little later.
    async fn churn(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        let mut next = interval(CHURN_EVERY);
        for at in 0.. {
            next.tick().await;
            if Instant::now() >= end {
                break;
            }
            create::<Pod>(&self.api(), churned(at)).await?;
            if let Some(old) = at.checked_sub(CHURN_ALIVE) {
                self.api::<Pod>().delete(&churned_name(old), &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }

    async fn delete_churned(&self) -> Result<()> {
        let selector = ListParams::default().labels(&format!("app={CHURN}"));
        self.api::<Pod>().delete_collection(&DeleteParams::default(), &selector).await?;
        self.wait_pod_count(CHURN, 0).await
    }
}

fn churned_name(at: u32) -> String {
    format!("{CHURN}-{at}")
}

/// A pod like those of Deployments, with a name and without an owner.
fn churned(at: u32) -> Value {
    let mut pod = deployment(CHURN, 1)["spec"]["template"].clone();
    pod["metadata"]["name"] = json!(churned_name(at));
    pod
}
