//! The pools of a ConfigMap.

use clap::{Args, Command, FromArgMatches};
use service_lb_operator::flags::{Flags, Source};
use service_lb_operator::objects::address_pool::{AddressPools, POOLS_CLASS};
use shared::api::labels::Labels;

fn pools(data: &[(&str, &str)]) -> AddressPools {
    AddressPools::parse(&data.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect())
}

#[test]
fn a_wrong_pool_is_told_and_left_out_alone() {
    let parsed = pools(&[
        ("a", r#"{"addresses": ["192.0.2.0/24"]}"#),
        ("b", r#"{"addresses": ["192.0.2.0/33"]}"#),
        ("c", r#"{"addresses": []}"#),
        ("d", r#"{"addresses": ["192.0.2.1"], "namespaces": ["x"]}"#),
        (
            "e",
            r#"{"addresses": ["192.0.2.1"], "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}"#,
        ),
        ("f", "192.0.2.0/24"),
    ]);
    let names: Vec<&str> = parsed.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["a"]);
    let faults: Vec<String> = parsed.faults.iter().map(|(name, fault)| format!("{name}: {fault}")).collect();
    assert_eq!(faults.len(), 5, "{faults:?}");
    assert_eq!(faults[0], r#"b: "192.0.2.0/33" is no address, no CIDR and no range of addresses"#);
    assert_eq!(faults[1], "c: it has no addresses");
    assert!(faults[2].starts_with("d: unknown field `namespaces`"), "{}", faults[2]);
    assert!(faults[3].starts_with("e: namespaceSelector: "), "{}", faults[3]);
    assert!(faults[4].starts_with("f: "), "{}", faults[4]);
}

#[test]
fn a_pool_serves_its_class_and_the_namespaces_that_it_selects() {
    let parsed = pools(&[
        ("any", r#"{"addresses": ["192.0.2.0/24"]}"#),
        ("none", r#"{"addresses": ["192.0.2.0/24"], "loadBalancerClass": ""}"#),
        (
            "own",
            r#"{"addresses": ["192.0.2.0/24"], "loadBalancerClass": "example.com/x",
                    "namespaceSelector": {"matchLabels": {"team": "a"}}}"#,
        ),
    ]);
    let serving = |class: Option<&str>, labels: &Labels| -> Vec<&str> {
        parsed.pools.iter().filter(|pool| pool.serves(class, labels)).map(|pool| pool.name.as_str()).collect()
    };
    let (team, other) = (Labels::new([("team", "a")]), Labels::new([("team", "b")]));
    assert_eq!(serving(Some(POOLS_CLASS), &other), ["any"]);
    assert_eq!(serving(None, &other), ["none"]);
    assert_eq!(serving(Some("example.com/x"), &team), ["own"]);
    assert_eq!(serving(Some("example.com/x"), &other), [""; 0]);
    assert!(parsed.serve_class(Some("example.com/x")) && !parsed.serve_class(Some("metallb")));
    assert!(AddressPools::default().serve_class(Some(POOLS_CLASS)));
    assert!(!AddressPools::default().serve_class(None));
}

#[track_caller]
fn check(flags: &[&str], expected: Result<&str, &str>) {
    let program = std::iter::once("operator").chain(flags.iter().copied());
    let matches = Flags::augment_args(Command::new("operator")).try_get_matches_from(program).unwrap();
    let source = Flags::from_arg_matches(&matches).map(|flags| match flags.source {
        Source::Provider(endpoint) => endpoint.to_string(),
        Source::Pools(config_map) => config_map.to_string(),
    });
    match (source, expected) {
        (Ok(source), Ok(expected)) => assert_eq!(source, expected),
        (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
        (source, expected) => {
            assert_eq!(source.map_err(|error| error.to_string()), expected.map(str::to_owned).map_err(str::to_owned));
        }
    }
}

#[test]
fn addresses_come_from_a_provider_or_from_pools() {
    let (endpoint, pools) = ("--cloud-provider-endpoint=unix:///a.sock", "--address-pools=kube-system/address-pools");
    check(&[endpoint], Ok("unix:///a.sock"));
    check(&[pools], Ok("kube-system/address-pools"));
    check(&[endpoint, pools], Err("--cloud-provider-endpoint and --address-pools exclude each other"));
    check(&[], Err("--cloud-provider-endpoint is required, or --address-pools"));
    for wrong in ["address-pools", "/address-pools", "kube-system/", "a/b/c"] {
        check(&[&format!("--address-pools={wrong}")], Err("is not NAMESPACE/NAME"));
    }
}
