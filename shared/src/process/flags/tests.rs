use super::*;

/// Keeps as many pods of each ReplicaSet as it asks for.
#[derive(Debug, clap::Args)]
struct ReplicaSetFlags {
    /// The number of replica sets that are allowed to sync concurrently.
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    concurrent_replicaset_syncs: usize,
}

fn read(args: &str) -> Result<Flags<ReplicaSetFlags>, Exit> {
    let args = std::iter::once("/bin/x").chain(args.split_whitespace()).map(OsString::from);
    parse("replicaset-operator", args)
}

fn error(args: &str) -> String {
    let exit = read(args).unwrap_err();
    assert!(!exit.asked_for, "{args}");
    exit.text
}

#[test]
fn the_defaults_are_upstreams() {
    let flags = read("").unwrap();
    let SharedFlags { leader, serving, logging, .. } = &flags.shared;
    assert_eq!((flags.shared.kubeconfig(), flags.shared.master()), (None, None));
    assert_eq!((flags.shared.kube_api_qps, flags.shared.kube_api_burst), (0.0, 30));
    assert_eq!(flags.shared.mode, Mode::Operate);
    assert!(leader.leader_elect);
    assert_eq!(leader.leader_elect_lease_duration.to_string(), "15s");
    assert_eq!(leader.leader_elect_renew_deadline.to_string(), "10s");
    assert_eq!(leader.leader_elect_retry_period.to_string(), "2s");
    assert_eq!(leader.leader_elect_resource_name, "replicaset-operator");
    assert_eq!(leader.leader_elect_resource_namespace, "kube-system");
    assert_eq!((serving.bind_address.to_string(), serving.secure_port), ("0.0.0.0".to_owned(), 10257));
    assert_eq!(serving.certificate(), None);
    assert_eq!(serving.authorization_always_allow_paths, ["/healthz", "/readyz", "/livez"]);
    assert_eq!((logging.v, logging.logging_format), (0, LogFormat::Text));
    assert_eq!(flags.own.concurrent_replicaset_syncs, 5);
}

#[test]
fn the_operators_name_before_the_flags_is_no_flag() {
    assert_eq!(read("replicaset-operator -v 4").unwrap().shared.logging.v, 4);
    assert!(error("job-operator").contains("job-operator"));
    assert!(error("-v 4 replicaset-operator").contains("replicaset-operator"));
}

#[test]
fn values_come_after_a_blank_or_an_equals_sign_and_the_last_one_counts() {
    let flags = read("--kubeconfig /a --kubeconfig=/b --v=2 --secure-port 0 --concurrent-replicaset-syncs=7").unwrap();
    assert_eq!(flags.shared.kubeconfig(), Some(Path::new("/b")));
    assert_eq!((flags.shared.logging.v, flags.shared.serving.secure_port), (2, 0));
    assert_eq!(flags.own.concurrent_replicaset_syncs, 7);
    assert_eq!(read("-v 4").unwrap().shared.logging.v, 4);
    assert_eq!(read("--kubeconfig= --master=").unwrap().shared.kubeconfig(), None);
    assert!(read("--kube-api-qps -1").unwrap().shared.kube_api_qps < 0.0);
}

#[test]
fn a_list_grows_with_each_time_that_it_is_given() {
    let paths = "--authorization-always-allow-paths=/healthz,/metrics --authorization-always-allow-paths=/livez";
    let read = read(paths).unwrap().shared.serving.authorization_always_allow_paths;
    assert_eq!(read, ["/healthz", "/metrics", "/livez"]);
}

#[test]
fn a_mode_is_one_of_two() {
    assert_eq!(read("--mode=shadow").unwrap().shared.mode, Mode::Shadow);
    assert_eq!(read("--mode shadow --mode operate").unwrap().shared.mode, Mode::Operate);
    assert!(error("--mode=ghost").contains("invalid value 'ghost' for '--mode <MODE>'"));
}

#[test]
fn a_boolean_needs_no_value_and_takes_it_after_an_equals_sign_only() {
    assert!(read("--leader-elect").unwrap().shared.leader.leader_elect);
    assert!(read("--leader-elect=1").unwrap().shared.leader.leader_elect);
    assert!(!read("--leader-elect=false").unwrap().shared.leader.leader_elect);
    assert!(!read("--leader-elect=f").unwrap().shared.leader.leader_elect);
    assert!(error("--leader-elect false").contains("unexpected argument 'false'"));
    assert!(error("--leader-elect=maybe").contains("invalid boolean \"maybe\""));
}

#[test]
fn what_is_wrong_is_named_and_exits_with_1() {
    for (args, expected) in [
        ("--no-such-flag", "unexpected argument '--no-such-flag'"),
        ("-leader-elect=false", "unexpected argument '-l'"),
        ("surplus", "unexpected argument 'surplus'"),
        ("--leader-elect-lease-duration=15", "missing unit in duration \"15\""),
        ("--logging-format=xml", "invalid value 'xml' for '--logging-format <FORMAT>'"),
        ("--secure-port=70000", "70000 is not in 0..=65535"),
        ("--bind-address=localhost", "invalid IP address"),
        ("--kubeconfig", "a value is required for '--kubeconfig <PATH>'"),
        ("--concurrent-replicaset-syncs=0", "must be greater than 0, but got 0"),
        ("--concurrent-replicaset-syncs=-1", "must be greater than 0, but got -1"),
        ("--concurrent-replicaset-syncs -1", "must be greater than 0, but got -1"),
        ("--concurrent-replicaset-syncs=some", "invalid value 'some' for '--concurrent-replicaset-syncs"),
    ] {
        let text = error(args);
        assert!(text.contains(expected), "{args}: {text}");
        assert!(text.starts_with("error: ") && text.ends_with(" (see --help)\n"), "{args}: {text}");
        assert_eq!(text.lines().count(), 1, "{args}: {text}");
    }
    assert_eq!(read("--no-such-flag").unwrap_err().code(), 1);
}

#[test]
fn a_misspelt_flag_names_its_neighbour() {
    for (args, expected) in [
        ("--leader-elec=false", Some("leader-elect")),
        ("--laeder-elect", Some("leader-elect")),
        ("--leader_elect_lease_duration=15s", Some("leader-elect-lease-duration")),
        ("--Kubeconfig /a", Some("kubeconfig")),
        ("--concurrent-replicasets-syncs 5", Some("concurrent-replicaset-syncs")),
        ("--v=2 -leader-elect=false", Some("leader-elect")),
        ("-kubeconfg /a", Some("kubeconfig")),
        ("--no-such-flag", None),
        ("--x", None),
        ("surplus", None),
    ] {
        let text = error(args);
        match expected {
            Some(flag) => {
                assert!(text.ends_with(&format!(", did you mean --{flag}? (see --help)\n")), "{args}: {text}");
            }
            None => assert!(!text.contains("did you mean"), "{args}: {text}"),
        }
    }
}

#[test]
fn flags_that_contradict_each_other_are_refused_together() {
    for (args, expected) in [
        (
            "--leader-elect-lease-duration=10s",
            "error: --leader-elect-lease-duration 10s must be greater than --leader-elect-renew-deadline 10s\n",
        ),
        (
            "--leader-elect-renew-deadline=2.4s",
            "error: --leader-elect-renew-deadline 2.4s must be greater than 1.2 times --leader-elect-retry-period 2s\n",
        ),
        ("--leader-elect-retry-period=0", "error: --leader-elect-retry-period must be greater than zero\n"),
        (
            "--leader-elect-lease-duration=900ms --leader-elect-renew-deadline=500ms --leader-elect-retry-period=100ms",
            "error: --leader-elect-lease-duration 900ms must be at least 1s\n",
        ),
        (
            "--leader-elect-resource-lock=endpoints",
            "error: --leader-elect-resource-lock \"endpoints\" is not supported: it must be leases\n",
        ),
        (
            "--leader-elect-resource-name= --leader-elect-resource-namespace= --tls-cert-file=/a",
            "error: --leader-elect-resource-name must not be empty\n\
             error: --leader-elect-resource-namespace must not be empty\n\
             error: --tls-cert-file and --tls-private-key-file must be given together\n",
        ),
    ] {
        assert_eq!(error(args), expected, "{args}");
    }
    assert!(read("--leader-elect=false --leader-elect-lease-duration=1s").is_ok());
    assert!(read("--tls-cert-file=/a --tls-private-key-file=/b").unwrap().shared.serving.certificate().is_some());
}

#[test]
fn help_and_version_are_asked_for() {
    let help = read("--help").unwrap_err();
    assert!(help.asked_for && help.text.contains("--leader-elect-resource-name <NAME>"), "{}", help.text);
    assert!(help.text.contains("[default: replicaset-operator]"), "{}", help.text);
    let parts = [
        "Keeps as many pods of each ReplicaSet as it asks for\n",
        "\nOptions:\n",
        "--concurrent-replicaset-syncs",
        "--kubeconfig",
        "--version",
        "\nLeader election:\n",
        "\nSecure serving:\n",
        "\nLogs and traces:\n",
    ];
    let places = parts.map(|part| help.text.find(part));
    assert!(places.is_sorted() && places[0] == Some(0), "{places:?} {}", help.text);
    let version = read("--version").unwrap_err();
    assert!(version.asked_for);
    assert_eq!(version.text, format!("replicaset-operator {}\n", crate::transport::identity::version()));
    assert_eq!(version.code(), 0);
}
