//! Requests that are refused or lost, for a reason that passes.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule, Verdict};
use http::{Method, StatusCode};

use super::{DEPLOYMENT, REPLICA_SET, deploy, roll_out, stays, with_operators};
use crate::support::DEADLINE;
use crate::support::behind::each;

#[test]
fn a_rollout_keeps_its_bounds_when_every_other_write_is_refused_or_lost() -> Result<()> {
    with_operators([REPLICA_SET, DEPLOYMENT], async |scene, operators| {
        deploy(scene).await?;
        let later = Action::Reply { status: StatusCode::TOO_MANY_REQUESTS, retry_after: Some(Duration::from_secs(1)) };
        let actions = [
            Action::reply(StatusCode::CONFLICT),
            Action::reply(StatusCode::GONE),
            later,
            Action::reply(StatusCode::INTERNAL_SERVER_ERROR),
            Action::reply(StatusCode::GATEWAY_TIMEOUT),
            Action::before(async |_| Verdict::Drop),
        ];
        for (step, action) in (1..).zip(actions) {
            for behind in &operators {
                behind.proxy.forget_requests();
                behind.strike_work(&action);
            }
            roll_out(scene, step, async || Ok(())).await?;
            let [replica_set, deployment] = &operators;
            for (behind, methods) in [
                (replica_set, &[Method::POST, Method::PATCH, Method::DELETE][..]),
                (deployment, &[Method::POST, Method::PATCH]),
            ] {
                behind.proxy.clear();
                for method in methods {
                    ensure!(behind.struck(method) > 0, "{action:?} struck no {method} of {}", behind.operator.name());
                }
            }
        }
        stays(scene).await
    })
}

#[test]
fn a_rollout_goes_on_when_watches_break_and_are_refused() -> Result<()> {
    with_operators([REPLICA_SET, DEPLOYMENT], async |scene, operators| {
        deploy(scene).await?;
        let statuses = [StatusCode::GONE, StatusCode::TOO_MANY_REQUESTS, StatusCode::INTERNAL_SERVER_ERROR];
        for (step, status) in (1..).zip(statuses) {
            for behind in &operators {
                behind.proxy.forget_requests();
                let refused = each(2);
                let rule = Rule::new(Action::reply(status)).method(Method::GET);
                behind.proxy.add(rule.when(move |seen| seen.query.contains("watch=1") && refused(seen)).always());
            }
            roll_out(scene, step, async || {
                let mut cuts = 0;
                scene
                    .wait_until("every watch broke, and one again", DEADLINE, async || {
                        cuts += operators.iter().map(|behind| behind.proxy.cut_watches("**")).sum::<usize>();
                        ensure!(cuts > 5, "{cuts} did");
                        Ok(())
                    })
                    .await
            })
            .await?;
            for behind in &operators {
                behind.proxy.clear();
                let refused = behind.proxy.requests().iter().filter(|it| it.status == Some(status)).count();
                ensure!(refused > 0, "{} was refused no watch with {status}", behind.operator.name());
            }
        }
        stays(scene).await
    })
}
