use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use shared::process::flags::{GoDuration, SharedFlags};

use super::*;
use crate::OPERATORS;

mod manifests;

/// What `kube-controller-manager` v1.36.3 registers: a flag's name, type and default in each line.
const UPSTREAM: &str = include_str!("tests/flags.tsv");

/// Operators whose controllers need a feature gate that is off by default.
const GATED: [&str; 6] = [
    "kube-apiserver-serving-clustertrustbundle-publisher-operator",
    "podcertificaterequest-cleaner-operator",
    "podgroup-protection-operator",
    "resourcepoolstatusrequest-operator",
    "storage-version-migrator-operator",
    "storageversion-garbage-collector-operator",
];
/// Operators whose controllers run only by name.
const BY_NAME: [&str; 3] = ["bootstrap-signer-operator", "selinux-warning-operator", "token-cleaner-operator"];

/// Operators that run only with a cloud provider.
const IN_CLOUD: [&str; 4] =
    ["cloud-node-lifecycle-operator", "cloud-node-operator", "node-route-operator", "service-lb-operator"];

struct Upstream {
    name: &'static str,
    default: String,
    is_duration: bool,
}

fn upstream() -> impl Iterator<Item = Upstream> {
    UPSTREAM.lines().map(|line| {
        let [name, kind, default] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let default = default.trim_matches(['[', ']']).to_owned();
        Upstream { name, default, is_duration: kind == "duration" }
    })
}

fn read(args: &str) -> Result<Several, Exit> {
    parse(std::iter::once("/operators").chain(args.split_whitespace()).map(OsString::from), OPERATORS)
}

fn error(args: &str) -> String {
    let exit = read(args).unwrap_err();
    assert!(!exit.asked_for, "{args}");
    exit.text
}

fn running(args: &str) -> Vec<&'static str> {
    read(args).unwrap().controllers.into_iter().map(|start| start.entry.names.operator).collect()
}

/// Those that run without a cloud provider, in the order of the controllers' names.
fn all_but(left_out: &[&str]) -> Vec<&'static str> {
    let names = OPERATORS.iter().map(|operator| operator.name);
    let mut names: Vec<&str> = names.filter(|name| !left_out.contains(name) && !IN_CLOUD.contains(name)).collect();
    names.sort_by_key(|name| name.replace("-operator", "-controller"));
    names
}

/// The arguments of each operator that has some, in a line.
fn passed(configuration: &Several) -> Vec<String> {
    let with_args = configuration.controllers.iter().filter(|start| !start.args.is_empty());
    let line = |start: &Start| {
        let args: Vec<_> = start.args.iter().map(|arg| arg.to_string_lossy()).collect();
        format!("{} {}", start.entry.names.operator, args.join(" "))
    };
    with_args.map(line).collect()
}

#[test]
fn every_flag_of_kube_controller_manager_is_taken_with_its_default() {
    let mut without_effect = BTreeSet::new();
    for flag in upstream().filter(|flag| !["help", "version"].contains(&flag.name)) {
        let configuration = read(&format!("--{}={}", flag.name, flag.default)).unwrap();
        if configuration.notes.iter().any(|note| note.starts_with(&format!("--{} has no effect: ", flag.name))) {
            without_effect.insert(flag.name.to_owned());
        }
    }
    let expected: BTreeSet<String> = accepted::args().map(|arg| arg.get_id().to_string()).collect();
    assert_eq!(without_effect, expected);
}

#[test]
fn each_flag_is_here_once_and_beyond_upstreams_are_only_these() {
    let mut command = command(OPERATORS);
    command.build();
    command.clone().debug_assert();
    let upstream: BTreeSet<&str> = upstream().map(|flag| flag.name).collect();
    let own = command.get_arguments().filter_map(Arg::get_long).filter(|name| !upstream.contains(name));
    assert_eq!(
        own.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
        [
            "address-pools",
            "cloud-provider-ca-file",
            "cloud-provider-cert-file",
            "cloud-provider-endpoint",
            "cloud-provider-key-file",
            "concurrent-node-status-updates",
            "concurrent-node-syncs",
            "horizontal-pod-autoscaler-ignore-surge",
            "horizontal-pod-autoscaler-metrics-max-age",
            "mass-deletion-share",
            "mode",
            "node-status-update-frequency",
            "otlp-endpoint",
            "rejected-pod-backoff",
        ]
    );
}

#[test]
fn the_defaults_are_upstreams_but_for_the_limit_of_requests() {
    let command = command(OPERATORS);
    let default_of = |arg: &Arg| {
        let values: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        values.join(",")
    };
    let defaults: BTreeMap<&str, String> =
        command.get_arguments().filter_map(|arg| Some((arg.get_long()?, default_of(arg)))).collect();
    let without_effect: Vec<String> = accepted::args().map(|arg| arg.get_id().to_string()).collect();
    let same = |flag: &Upstream, ours: &str| {
        let duration = |text: &str| text.parse::<GoDuration>().unwrap();
        flag.default == ours || flag.is_duration && duration(&flag.default) == duration(ours)
    };
    let compared =
        upstream().filter(|flag| flag.name != "version" && !without_effect.iter().any(|name| name == flag.name));
    let other: Vec<String> = compared
        .filter_map(|flag| {
            let ours = defaults.get(flag.name).filter(|ours| !same(&flag, ours))?;
            Some(format!("{}: {:?}, and not {:?}", flag.name, ours, flag.default))
        })
        .collect();
    assert_eq!(other, ["kube-api-qps: \"0\", and not \"20\""]);
}

#[test]
fn without_flags_it_runs_what_kube_controller_manager_runs() {
    let configuration = read("").unwrap();
    assert_eq!(running(""), all_but(&[&GATED[..], &BY_NAME].concat()));
    assert!(passed(&configuration).is_empty(), "{:?}", passed(&configuration));
    let SharedFlags { leader, serving, .. } = &configuration.shared;
    assert!(leader.leader_elect);
    assert_eq!(leader.leader_elect_resource_name, "kube-controller-manager");
    assert_eq!(leader.leader_elect_resource_namespace, "kube-system");
    assert_eq!((serving.bind_address.to_string(), serving.secure_port), ("0.0.0.0".to_owned(), 10257));
    assert!(!configuration.own_credentials);
    assert!(configuration.notes.is_empty(), "{:?}", configuration.notes);
}

#[test]
fn controllers_are_chosen_by_name_or_former_name_and_the_first_mention_decides() {
    let off = [&GATED[..], &BY_NAME].concat();
    let without = |names: &[&'static str]| all_but(&[&off, names].concat());
    for (asked, expected) in [
        ("", vec![]),
        ("*", without(&[])),
        ("job", vec!["job-operator"]),
        ("ttl-controller,cronjob", vec!["cronjob-operator", "ttl-operator"]),
        ("*,bootstrapsigner,selinux-warning-controller,tokencleaner", all_but(&GATED)),
        ("*,-node-ipam-controller", without(&["node-ipam-operator"])),
        ("*,-nodeipam,-service,-route,-cloud-node-lifecycle", without(&["node-ipam-operator"])),
        ("-job,*,job", without(&["job-operator"])),
        ("job,-job", vec!["job-operator"]),
        ("-job", vec![]),
        (
            "*,-persistentvolume-binder-controller,-attachdetach",
            without(&["persistentvolume-attach-detach-operator", "persistentvolume-binder-operator"]),
        ),
    ] {
        assert_eq!(running(&format!("--controllers={asked}")), expected, "{asked}");
    }
    assert_eq!(running("--controllers=* --controllers=-job"), without(&["job-operator"]));
    assert_eq!(running("--controllers -job,*"), without(&["job-operator"]));
}

#[test]
fn the_controllers_of_clouds_run_with_a_provider() {
    let endpoint = "--cloud-provider-endpoint=unix:///run/cloud.sock";
    let all = running(&format!("{endpoint} --cluster-name=a"));
    assert!(IN_CLOUD.iter().all(|name| all.contains(name)), "{all:?}");
    assert_eq!(all.len(), running("").len() + IN_CLOUD.len());
    assert_eq!(running(&format!("{endpoint} --controllers=service")), ["service-lb-operator"]);
    assert_eq!(running(&format!("{endpoint} --controllers=*,-service")).len(), all.len() - 1);
    assert_eq!(running("--cloud-provider-endpoint= --address-pools="), running(""));
    let pools = "--address-pools=kube-system/address-pools";
    assert_eq!(running(pools).len(), running("").len() + 1);
    assert_eq!(running(&format!("{pools} --controllers=service,route")), ["service-lb-operator"]);
    let passed = passed(&read(&format!("{endpoint} --cluster-name=a --controllers=service")).unwrap());
    assert_eq!(passed, [format!("service-lb-operator {endpoint} --cluster-name=a")]);
}

#[test]
fn a_controller_that_is_unknown_is_an_error() {
    for (asked, expected) in [
        ("jobs", "error: --controllers: \"jobs\" is not in the list of known controllers, did you mean job?\n"),
        (
            "-nodelifecycel",
            "error: --controllers: \"nodelifecycel\" is not in the list of known controllers, did you mean nodelifecycle?\n",
        ),
        (
            "deployment-operator",
            "error: --controllers: \"deployment-operator\" is not in the list of known controllers, did you mean deployment?\n",
        ),
        ("**", "error: --controllers: \"**\" is not in the list of known controllers\n"),
        (
            "*,y,x",
            "error: --controllers: \"y\" is not in the list of known controllers\n\
             error: --controllers: \"x\" is not in the list of known controllers\n",
        ),
    ] {
        assert_eq!(error(&format!("--controllers={asked}")), expected, "{asked}");
    }
}

#[test]
fn a_named_controller_that_kube_controller_manager_would_skip_is_skipped_with_a_note() {
    for (args, expected) in [
        (
            "--controllers=service",
            "service-lb-controller does not run: neither --cloud-provider-endpoint nor --address-pools is given",
        ),
        (
            "--controllers=resourcepoolstatusrequest-controller",
            "resourcepoolstatusrequest-controller does not run: feature gate DRAResourcePoolStatus is off",
        ),
        (
            "--controllers=device-taint-eviction-controller --feature-gates=DRADeviceTaints=false",
            "device-taint-eviction-controller does not run: feature gate DRADeviceTaints is off",
        ),
    ] {
        let configuration = read(args).unwrap();
        assert!(configuration.controllers.is_empty(), "{args}");
        assert_eq!(configuration.notes, [expected], "{args}");
    }
}

#[test]
fn feature_gates_start_controllers_and_reach_the_operators_that_know_them() {
    for (gates, expected) in [
        ("ClusterTrustBundle=true", vec![]),
        ("HPAScaleToZero=true", vec!["horizontal-pod-autoscaler-operator --feature-gates=HPAScaleToZero=true"]),
        (
            "kube:MaxUnavailableStatefulSet=1,HPAConfigurableTolerance=f",
            vec![
                "horizontal-pod-autoscaler-operator --feature-gates=HPAConfigurableTolerance=false",
                "statefulset-operator --feature-gates=MaxUnavailableStatefulSet=true",
            ],
        ),
        (
            "HPAScaleToZero=true,HPAScaleToZero=false",
            vec!["horizontal-pod-autoscaler-operator --feature-gates=HPAScaleToZero=false"],
        ),
        (
            "AllAlpha=true",
            vec![
                "device-taint-eviction-operator --feature-gates=DRAWorkloadResourceClaims=true",
                "horizontal-pod-autoscaler-operator --feature-gates=HPAScaleToZero=true",
                "resourceclaim-operator --feature-gates=DRAWorkloadResourceClaims=true",
            ],
        ),
        (
            "MaxUnavailableStatefulSet=false,AllBeta=true",
            vec![
                "device-taint-eviction-operator --feature-gates=DRADeviceTaintRules=true",
                "horizontal-pod-autoscaler-operator --feature-gates=HPAConfigurableTolerance=true",
                "statefulset-operator --feature-gates=MaxUnavailableStatefulSet=false",
            ],
        ),
    ] {
        let configuration = read(&format!("--feature-gates={gates}")).unwrap();
        assert_eq!(passed(&configuration), expected, "{gates}");
        assert!(configuration.notes.is_empty(), "{gates}: {:?}", configuration.notes);
    }
    let publisher = |gates: &str| running(gates).contains(&GATED[0]);
    assert!(publisher("--feature-gates=ClusterTrustBundle=true"));
    assert!(publisher("--feature-gates=AllBeta=true"));
    assert!(publisher("--feature-gates=RotateKubeletServerCertificate=true --feature-gates=ClusterTrustBundle=true"));
    assert!(!publisher("--feature-gates=AllBeta=true,ClusterTrustBundle=false"));
    assert_eq!(
        read("--feature-gates=RotateKubeletServerCertificate=true").unwrap().notes[0],
        "--feature-gates: no effect of RotateKubeletServerCertificate"
    );
}

#[test]
fn a_wrong_feature_gate_is_an_error() {
    for (gates, expected) in [
        (
            "HPAScaleToZer=true",
            "error: --feature-gates: unrecognized feature gate: HPAScaleToZer, did you mean HPAScaleToZero?\n",
        ),
        ("HPAScaleToZero", "error: --feature-gates: missing bool value for HPAScaleToZero\n"),
        ("HPAScaleToZero=yes", "error: --feature-gates: invalid value of HPAScaleToZero=yes\n"),
        ("wardle:A=true", "error: --feature-gates: component not registered: wardle\n"),
        (
            "SeparateTaintEvictionController=false",
            "error: --feature-gates: cannot set feature gate SeparateTaintEvictionController to false, feature is locked to true\n",
        ),
    ] {
        assert_eq!(error(&format!("--feature-gates={gates}")), expected, "{gates}");
    }
    assert!(read("--feature-gates=SeparateTaintEvictionController=true").is_ok());
}

#[test]
fn a_flag_goes_to_every_operator_that_declares_it_and_runs() {
    let shared_by_many = "--mass-deletion-share=0.5 --root-ca-file=/ca.crt --concurrent-job-syncs 7";
    assert_eq!(
        passed(&read(shared_by_many).unwrap()),
        [
            "device-taint-eviction-operator --mass-deletion-share=0.5",
            "garbage-collector-operator --mass-deletion-share=0.5",
            "job-operator --concurrent-job-syncs=7",
            "pod-garbage-collector-operator --mass-deletion-share=0.5",
            "root-ca-certificate-publisher-operator --root-ca-file=/ca.crt",
            "serviceaccount-token-operator --root-ca-file=/ca.crt",
            "taint-eviction-operator --mass-deletion-share=0.5",
        ]
    );
    let configuration = read("--controllers=job --root-ca-file=/ca.crt").unwrap();
    assert!(passed(&configuration).is_empty() && configuration.notes.is_empty(), "{configuration:?}");
}

#[test]
fn flags_are_written_as_go_reads_them() {
    let args_of = |flags: &str| {
        passed(&read(&format!("--controllers=replicationcontroller,node-ipam-controller {flags}")).unwrap())
    };
    for (flags, expected) in [
        ("--concurrent_rc_syncs=3", "replicationcontroller-operator --concurrent-rc-syncs=3"),
        ("--concurrent-rc-syncs 3", "replicationcontroller-operator --concurrent-rc-syncs=3"),
        ("--concurrent-rc-syncs -3", "replicationcontroller-operator --concurrent-rc-syncs=-3"),
        (
            "--concurrent-rc-syncs 3 --concurrent-rc-syncs=4",
            "replicationcontroller-operator --concurrent-rc-syncs=3 --concurrent-rc-syncs=4",
        ),
        (
            "--allocate-node-cidrs --cluster-cidr 10.0.0.0/8",
            "node-ipam-operator --allocate-node-cidrs=true --cluster-cidr=10.0.0.0/8",
        ),
        ("--allocate-node-cidrs=f", "node-ipam-operator --allocate-node-cidrs=f"),
        ("--cluster-cidr=", "node-ipam-operator --cluster-cidr="),
        ("--cluster-cidr=a_b=c", "node-ipam-operator --cluster-cidr=a_b=c"),
    ] {
        assert_eq!(args_of(flags), [expected], "{flags}");
    }
    assert!(read("--use-service-account-credentials").unwrap().own_credentials);
    assert!(read("--use-service-account-credentials=T").unwrap().own_credentials);
    assert!(
        !read("--use_service_account_credentials=true --use-service-account-credentials=0").unwrap().own_credentials
    );
    let shared = read("-v4 --kubeconfig /a --kubeconfig=/b --leader-elect=false --secure-port 0").unwrap().shared;
    assert_eq!((shared.kubeconfig(), shared.logging.v), (Some(Path::new("/b")), 4));
    assert_eq!((shared.leader.leader_elect, shared.serving.secure_port), (false, 0));
}

#[test]
fn what_is_wrong_is_named_with_its_neighbour() {
    for (args, expected) in [
        (
            "--concurrent-deployments-syncs=5",
            "unexpected argument '--concurrent-deployments-syncs' found, did you mean --concurrent-deployment-syncs? (see --help)",
        ),
        ("--cluster-signing-certfile=/a", "did you mean --cluster-signing-cert-file?"),
        ("--authentication-kubecfg=/a", "did you mean --authentication-kubeconfig?"),
        ("-controllers=*", "did you mean --controllers?"),
        ("--leader-elect false", "unexpected argument 'false' found"),
        ("--leader-elect-lease-duration=10s", "must be greater than --leader-elect-renew-deadline"),
        ("--profiling=maybe", "invalid boolean \"maybe\""),
        ("--min-resync-period=12", "missing unit in duration \"12\""),
        ("--http2-max-streams-per-connection=x", "invalid value 'x' for '--http2-max-streams-per-connection <NUMBER>'"),
        ("--cloud-provider=aws", "\"aws\" is not supported here"),
        ("--leader-migration-config=/a", "\"/a\" is not supported here"),
        ("--use-service-account-credentials=x", "invalid boolean \"x\""),
    ] {
        let text = error(args);
        assert!(text.contains(expected), "{args}: {text}");
        assert_eq!(text.lines().count(), 1, "{args}: {text}");
    }
}

#[test]
fn flags_without_an_effect_are_named_with_the_reason() {
    let args = "--controllers=job --profiling=false --contention-profiling --cloud-config=a --vmodule=a=1,b=2 --cloud-provider external";
    assert_eq!(
        read(args).unwrap().notes,
        [
            "--contention-profiling, --profiling have no effect: Go's profiles do not exist here",
            "--vmodule has no effect: logs go to stderr unbuffered, at the level of --v",
            "--cloud-config, --cloud-provider have no effect: a cloud provider is a process of its own, at --cloud-provider-endpoint",
        ]
    );
}

#[test]
fn help_and_version_are_asked_for() {
    let help = read("--help").unwrap_err();
    assert!(help.asked_for);
    let parts = [
        "Runs kube-controller-manager's controllers in one process, with its flags\n",
        "\nUsage: operators [FLAGS]\n       operators OPERATOR [FLAGS]\n",
        "--controllers <NAMES>",
        "All controllers: bootstrap-signer-controller, ",
        "Disabled-by-default controllers: bootstrap-signer-controller, selinux-warning-controller, token-cleaner-controller",
        "\n          kube:HPAScaleToZero=true|false (ALPHA - default=false)\n",
        "[default: kube-controller-manager]",
        "\ncronjob-operator:\n",
        "\nAccepted without effect:\n",
        "--client-ca-file <TEXT>",
    ];
    let places = parts.map(|part| help.text.find(part));
    assert!(places.is_sorted() && places[0] == Some(0), "{places:?} {}", help.text);
    let version = read("--version").unwrap_err();
    assert!(version.asked_for);
    assert_eq!(version.text, format!("operators {}\n", flags::version()));
}
