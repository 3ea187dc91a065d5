use shared::api::explain::{CacheState, Failure, QueueState};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn held(holder: &str, renewed: i64) -> Lookup<Lease> {
    Lookup::Found(Lease {
        holder: holder.to_owned(),
        renewed: Some(at(renewed)),
        acquired: Some(at(-3600)),
        seconds: 15,
    })
}

fn said() -> OperatorStatus {
    let cache = |resource: &str, synced, failing: Option<&str>| CacheState {
        resource: resource.to_owned(),
        of: String::new(),
        synced,
        version: 7,
        heard: Some(at(0)),
        failing: failing.map(str::to_owned),
        unreadable: BTreeMap::new(),
    };
    let error = Failure { key: "a/web".to_owned(), time: at(-60), error: "no\nsuch thing".to_owned() };
    let queue = QueueState {
        name: "deployment".to_owned(),
        waiting: 2,
        oldest: Some(at(-4)),
        processing: 1,
        failing: 1,
        last_error: Some(error),
    };
    OperatorStatus {
        operator: "deployment-operator".to_owned(),
        controller: "deployment-controller".to_owned(),
        version: "v0.1.0".to_owned(),
        kubernetes: "v1.36.3".to_owned(),
        role: Role::Leader,
        identity: "pod-a_1".to_owned(),
        time: at(0),
        caches: vec![cache("deployments.apps", true, None), cache("pods", false, Some("forbidden"))],
        queues: vec![queue],
    }
}

fn survey(controllers: &str) -> Survey {
    let operator = |name: &str, lease: Lookup<Lease>, said: Option<OperatorStatus>, silence: Option<&str>| Surveyed {
        operator: name.to_owned(),
        leader: lease.known().map(|lease| lease.pod().to_owned()).unwrap_or_default(),
        lease,
        ready: Some(2),
        said,
        silence: silence.map(str::to_owned),
        wrote: None,
        rival: None,
    };
    Survey {
        now: at(0),
        operators: vec![
            operator("deployment-operator", held("pod-a_1", -1), Some(said()), None),
            operator("job-operator", held("", -1), None, Some("nobody holds its Lease")),
        ],
        manager: Manager { lease: held("kcm_2", -1), controllers: Some(controllers.to_owned()), is_replaced: false },
    }
}

#[test]
fn one_row_tells_how_an_operator_is() {
    let status = Status::new(&survey("*,-deployment-controller,-job-controller"));
    let text = status.to_string();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1].join(" "), "deployment-operator v0.1.0 own pod-a 60 min 1 1/2 2 4 s 1 60 s ago: a/web: no");
    assert_eq!(lines[2].join(" "), "job-operator ? - - - 1 ? ? - ? not asked");
    assert!(text.contains("\nnot asked: job-operator: nobody holds its Lease\n"), "{text}");
    assert!(text.contains("run by operators: deployment-controller\n"), "{text}");
    assert_eq!(
        status.alarms,
        ["not running: job-controller", "deployment-operator cannot list or watch pods: forbidden"],
        "{text}"
    );
}

#[test]
fn without_kube_controller_manager_one_short_line_says_what_nobody_runs() {
    let manager = Manager { lease: Lookup::Absent, ..Manager::default() };
    let status = Status::new(&Survey { manager, ..survey("*") });
    let usual = CONTROLLERS.iter().filter(|(_, usual)| *usual).count();
    let start = format!("kube-controller-manager has no Lease, and {} controllers are not running: ", usual - 1);
    let named = "certificatesigningrequest-approving-controller, certificatesigningrequest-cleaner-controller, \
                 certificatesigningrequest-signing-controller";
    assert_eq!(status.alarms[0], format!("{start}{named} and {} more", usual - 4));
}

#[test]
fn what_runs_twice_is_an_alarm() {
    let status = Status::new(&survey("*"));
    assert!(status.alarms[0].starts_with("deployment-controller is run twice"), "{:?}", status.alarms);
    let job = status.controllers.iter().find(|controller| controller.name == "job-controller");
    assert_eq!(job.map(|controller| controller.runner), Some(Runner::Manager));
}

#[test]
fn what_one_process_runs_is_told_and_what_it_leaves_out_nobody_runs() {
    let mut survey = survey("*");
    survey.manager.is_replaced = true;
    survey.operators[0].lease = held("kube-system/kube-controller-manager", -1);
    survey.operators[0].leader = "node-1".to_owned();
    let status = Status::new(&survey);
    let text = status.to_string();
    assert!(text.contains("deployment-operator  v0.1.0   one process  node-1"), "{text}");
    assert!(text.contains("run in a process of several: deployment-controller\n"), "{text}");
    assert!(!text.contains("kube-controller-manager"), "{text}");
    let idle = status.alarms.iter().find_map(|alarm| alarm.strip_prefix("not running: "));
    assert!(idle.is_some_and(|names| names.contains("job-controller")), "{:?}", status.alarms);

    survey.operators[0].lease = held("kube-system/workloads-group-operator", -1);
    let text = Status::new(&survey).to_string();
    assert!(text.contains("deployment-operator  v0.1.0   group "), "{text}");

    survey.operators[0].lease = held("kube-system/kube-controller-manager", -1);
    survey.manager.is_replaced = false;
    let status = Status::new(&survey);
    let twice = "deployment-controller is run twice: by its operator and by kube-controller-manager";
    assert_eq!(status.alarms.first().map(String::as_str), Some(twice));
}

#[test]
fn a_pod_and_one_process_that_both_say_they_work_are_an_alarm() {
    let mut survey = survey("*,-deployment-controller");
    survey.operators[0].rival = Some("node-1".to_owned());
    let first = |survey: &Survey| Status::new(survey).alarms.into_iter().next();
    let twice = "deployment-controller is run twice: by its operator and by the process of several operators on node-1";
    assert_eq!(first(&survey).as_deref(), Some(twice));
    let said = OperatorStatus { role: Role::Standby, ..said() };
    survey.operators[0].said = Some(said);
    let alarm = first(&survey);
    assert!(alarm.as_ref().is_none_or(|alarm| !alarm.contains("twice")), "the Lease has just changed hands: {alarm:?}");
}

#[test]
fn a_write_of_kube_controller_manager_shows_that_it_runs_a_controller_whose_flags_nobody_sees() {
    let row = |wrote: Option<i64>, expected: Runner| {
        let mut survey = survey("*");
        survey.manager.controllers = None;
        survey.operators[0].wrote = wrote.map(at);
        let status = Status::new(&survey);
        let found = status.controllers.iter().find(|controller| controller.name == "deployment-controller");
        assert_eq!(found.map(|controller| controller.runner), Some(expected), "{wrote:?}");
        let is_alarm = status.alarms.iter().any(|alarm| alarm.starts_with("deployment-controller is run twice"));
        assert_eq!(is_alarm, expected == Runner::Both, "{wrote:?}");
    };
    row(None, Runner::Operator);
    row(Some(-3601), Runner::Operator);
    row(Some(-3600), Runner::Operator);
    row(Some(-10), Runner::Both);
}

#[test]
fn without_operators_kube_controller_manager_runs_everything() {
    let survey = Survey { operators: Vec::new(), ..survey("*") };
    let status = Status::new(&survey);
    assert!(!status.is_alarming(), "{:?}", status.alarms);
    assert!(status.to_string().contains("no operators are installed"));
}
