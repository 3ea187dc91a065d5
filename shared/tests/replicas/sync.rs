//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use serde_json::json;
use shared::api::explain::{Decision, KeyState, Outcome, Role, Stage, Standing};
use shared::api::object::Kind;
use shared::testing::apiserver::Server;
use shared::testing::replicas::KEY;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{A_STATUS, Running, survives_kills, test};
use shared::testing::{LARGE_BYTES, args_bytes, enlarged};

use crate::{KIND, Operator, Owner, QUEUE, why};

const MINUTE: Duration = Duration::from_secs(60);

/// How many statuses were written.
fn statuses(server: &Server) -> usize {
    server.count(&format!("patch {}/status", KIND.resource))
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| KIND.add(server, 3)),
            Do(Server::run_pods),
            Do(|server| KIND.scale(server, 1)),
            Do(Server::run_pods),
            Do(|server| KIND.scale(server, 2)),
            Do(Server::run_pods),
        ];
        let server = survives_kills::<Operator>(&[], &life).await;
        assert_eq!(server.keys("pods").len(), 2);
        assert_eq!(server.get(KIND.resource, KEY).unwrap()["status"]["readyReplicas"], 2);
    });
}

/// A kill forgets the back-off: then they come sooner.
#[test]
fn rejected_pods_survive_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| KIND.add(server, 3)),
            Do(|server| server.reject_pods("OutOfcpu")),
            Do(|server| server.reject_pods("OutOfcpu")),
            Pass(Duration::from_secs(10)),
            Do(Server::run_pods),
        ];
        let server = survives_kills::<Operator>(&[], &life).await;
        assert_eq!(server.keys("pods").len(), 9);
        assert!((4..=6).contains(&server.count("get pods")), "each round is looked at once");
        assert_eq!(server.get(KIND.resource, KEY).unwrap()["status"]["readyReplicas"], 3);
    });
}

#[test]
fn rejected_pods_are_replaced_with_back_off_unless_a_flag_says_otherwise() {
    test(async {
        let made = KIND.pods_of_rejections::<Operator>(&[], MINUTE).await;
        assert!((12..=40).contains(&made), "{made} pods");
        // Where nothing waits, each pod makes the next one take longer to test.
        let flag = "--rejected-pod-backoff=false";
        let made = KIND.pods_of_rejections::<Operator>(&[flag], MINUTE / 3).await;
        assert!(made > 500, "{made} pods");
    });
}

#[test]
fn a_creation_whose_answer_is_lost_makes_no_second_pod() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<Operator>(&server).await;
        let lists = server.count("list pods");
        server.on("create", "pods").once().lose();
        server.hold_watches("pods");
        KIND.add(&server, 3);
        running.pass(Duration::from_secs(3)).await;
        assert_eq!(server.count("create pods"), 1, "nobody knows yet whether there is a pod");
        assert_eq!(server.count("list pods"), lists + 1, "it is looked for once");
        server.release_watches("pods");
        running.at_rest().await;
        assert_eq!((server.keys("pods").len(), server.count("create pods")), (3, 3));
    });
}

#[test]
fn a_large_template_is_read_when_pods_are_made_of_it_and_only_then() {
    test(async {
        let server = Server::new();
        KIND.add(&server, 0);
        server.change(KIND.resource, KEY, |owner| {
            owner["spec"]["template"] = enlarged(owner["spec"]["template"].take());
        });
        let running = Running::start::<Operator>(&server, &[]);
        running.at_rest().await;
        let reads = || server.count(&format!("get {}", KIND.resource));
        assert_eq!(reads(), 0);
        KIND.scale(&server, 2);
        running.at_rest().await;
        let pods = server.list("pods");
        assert_eq!(pods.iter().map(|pod| args_bytes(&pod["spec"])).collect::<Vec<_>>(), [LARGE_BYTES; 2]);
        assert_eq!(reads(), 1);
        KIND.scale(&server, 1);
        running.pass(A_STATUS).await;
        assert_eq!((server.keys("pods").len(), reads()), (1, 1));
    });
}

/// Each pod that gets ready would be a status.
#[test]
fn while_many_pods_are_to_come_statuses_are_apart_and_that_of_the_last_one_is_not() {
    test(async {
        let server = Server::new();
        KIND.add(&server, 300);
        let running = Running::start::<Operator>(&server, &[]);
        running.at_rest().await;
        let mut pods = server.keys("pods").into_iter();
        let mut written_while = async |number: usize| {
            let before = statuses(&server);
            for key in pods.by_ref().take(number) {
                server.change("pods", &key, |pod| {
                    pod["status"] =
                        json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
                });
                running.pass(Duration::from_millis(4)).await;
            }
            statuses(&server) - before
        };
        // 1196 ms, of which each second brings one.
        let written = written_while(299).await;
        assert!((1..=2).contains(&written), "{written} statuses");
        assert_eq!(written_while(1).await, 1);
        assert_eq!(server.get(KIND.resource, KEY).unwrap()["status"]["availableReplicas"], 300, "the last one is told");
    });
}

#[test]
fn that_the_spec_was_seen_is_told_at_once_and_pods_that_come_are_told_within_a_second() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<Operator>(&server).await;
        KIND.add(&server, 2);
        running.pass(A_STATUS).await;
        for (generation, replicas, expected) in [(2, 3, 2), (3, 1, 2), (4, 1, 1)] {
            let before = statuses(&server);
            server.change(KIND.resource, KEY, |set| {
                set["metadata"]["generation"] = json!(generation);
                set["spec"]["replicas"] = json!(replicas);
            });
            running.at_rest().await;
            let status = || server.get(KIND.resource, KEY).unwrap()["status"].clone();
            assert_eq!(status()["observedGeneration"], generation);
            running.pass(A_STATUS).await;
            assert_eq!(status()["replicas"], replicas, "generation {generation}");
            assert_eq!(statuses(&server) - before, expected, "generation {generation}");
        }
    });
}

/// Who goes by them might take more pods away.
#[test]
fn counts_of_a_large_set_that_fall_are_told_at_once() {
    test(async {
        let server = Server::new();
        KIND.add(&server, 200);
        let running = Running::start::<Operator>(&server, &[]);
        running.at_rest().await;
        server.run_pods();
        running.at_rest().await;
        for (ended, key) in server.keys("pods").into_iter().take(5).enumerate() {
            server.change("pods", &key, |pod| pod["status"]["conditions"] = json!([]));
            running.pass(Duration::from_millis(4)).await;
            let status = server.get(KIND.resource, KEY).unwrap()["status"].clone();
            assert_eq!(status["availableReplicas"], 199 - ended, "{status}");
        }
    });
}

/// `create 3 (0 of 3 active) {"replicas":{"active":0,"wanted":3}}`.
fn texts(stages: &[Stage]) -> Vec<String> {
    stages.iter().map(|Stage { text, reason }| format!("{text} {reason}")).collect()
}

#[test]
fn why_says_what_failed_what_would_be_done_now_and_when_it_is_tried_again() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<Operator>(&server).await;
        server.on("create", "pods").answer(403, "Forbidden", "exceeded quota: team");
        KIND.add(&server, 3);
        running.pass(Duration::from_secs(1)).await;
        let asked = server.requests().len();
        let answer = why(&running, "web");
        let [KeyState { queue, key, now, last, standing }] = &answer.keys[..] else { panic!("{answer}") };
        assert_eq!((queue.as_str(), key.as_str(), answer.role), (QUEUE.name, KEY, Role::Leader));
        let decided = [r#"create 3 (0 of 3 active) {"replicas":{"active":0,"wanted":3}}"#];
        assert_eq!(texts(now), decided);
        let [Decision { stages, outcome: Outcome::Failed, error: Some(error), cause: Some(cause), .. }, ..] = &last[..]
        else {
            panic!("{answer}")
        };
        assert_eq!(texts(stages), decided);
        assert!(error.contains("exceeded quota: team"), "{error}");
        assert_eq!((cause.resource.as_str(), cause.object.as_str()), (&*Owner::RESOURCE.to_string(), KEY));
        assert!(standing.failures > 0 && standing.next_try.is_some_and(|at| at > answer.time), "{answer}");
        assert_eq!(why(&running, "web").keys[0].now, *now);
        assert_eq!(server.requests().len(), asked, "an answer costs no request");
    });
}

#[test]
fn pods_that_cannot_be_read_hold_nothing_back() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<Operator>(&server).await;
        server.on("get", "pods").answer(403, "Forbidden", "no");
        KIND.add(&server, 1);
        for made in 1..8 {
            running.at_rest().await;
            assert_eq!(server.count("create pods"), made);
            server.reject_pods("OutOfcpu");
        }
    });
}

#[test]
fn why_says_that_replacements_of_rejected_pods_wait() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<Operator>(&server).await;
        KIND.add(&server, 3);
        for _ in 0..2 {
            running.at_rest().await;
            server.reject_pods("OutOfcpu");
        }
        running.at_rest().await;
        let answer = why(&running, "web");
        let [KeyState { now, last, .. }] = &answer.keys[..] else { panic!("{answer}") };
        assert!(now[0].text.starts_with("nothing (0 of 3 active; 3 held back for 1s until 2026-"), "{answer}");
        let is_read = |decision: &Decision| decision.stages[0].text.starts_with("read pods that have ended (web-");
        assert!(last.iter().any(is_read), "{answer}");
    });
}

#[test]
fn why_says_what_was_written_and_that_nothing_is_left_to_do() {
    test(async {
        let server = Server::new();
        let running = KIND.start_beside_another::<Operator>(&server).await;
        KIND.add(&server, 2);
        running.pass(A_STATUS).await;
        let asked = server.requests().len();
        let answer = why(&running, "web");
        let [KeyState { now, last, standing, .. }] = &answer.keys[..] else { panic!("{answer}") };
        assert_eq!(texts(now), [r#"nothing (2 of 2 active) {"replicas":{"active":2,"wanted":2}}"#]);
        let first = last.iter().find(|decision| decision.stages[0].text.starts_with("create")).unwrap();
        let wrote: Vec<&str> = first.wrote.iter().map(|version| version.resource.as_str()).collect();
        assert_eq!(wrote, ["pods", "pods", &*Owner::RESOURCE.to_string()], "{answer}");
        assert_eq!(*standing, Standing::default(), "{answer}");
        assert_eq!(why(&running, "none").keys[0].now, []);
        assert_eq!(running.why("/api/v1/namespaces/default/pods/web-a").keys, [], "pods are somebody else's keys");
        assert_eq!(server.get(KIND.resource, KEY).unwrap()["status"]["replicas"], 2);
        assert_eq!(server.requests().len(), asked, "an answer costs no request");
    });
}
