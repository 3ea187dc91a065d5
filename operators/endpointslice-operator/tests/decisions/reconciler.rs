//! Which endpoints go into which slice: upstream's `reconciler_test.go` and what concerns it of
//! `endpointslice_controller_test.go`.

use endpointslice_operator::objects::Endpoint;
use endpointslice_operator::plan::Plan;
use serde_json::{Value, json};
use shared::testing::ObjectBuilder;
use shared::working::decisions::stage;

use crate::world::{World, foreign, ips, new_pod, node, own_labels, pods, service};

/// Checks the plan, and the slices' sizes once it is carried out; then there is nothing more to do.
#[track_caller]
fn check(mut world: World, expected: &str, lengths: &[usize]) -> World {
    assert_eq!(world.sync(), expected);
    assert_eq!(world.lengths(), lengths, "{expected}");
    let Plan::Write(again) = world.plan() else { return world };
    for family in again.families {
        assert_eq!(family.writes.count(), 0, "again: {family}");
    }
    assert_eq!(again.unsupported, []);
    world
}

/// As [`check`], of a Service that selects no pod.
#[track_caller]
fn check_without_pods(world: World, expected: &str, lengths: &[usize]) -> World {
    check(world, &format!("{expected}; it selects no pod that has an IP"), lengths)
}

/// A plan's reason as programs read it.
#[test]
fn a_reason_counts_pods_and_endpoints() {
    let reason = |world: &World| stage(&world.plan()).reason;
    let world = World::new(vec![new_pod(1, true), new_pod(2, true)]).with_slice("foo-1", &[new_pod(1, true)]);
    let families = json!({ "IPv4": { "endpoints": 2, "slices": 1, "added": 1, "removed": 0, "withheld": 0 } });
    let selected = json!({ "pods": 2, "families": families, "missingNodes": 0, "unsupported": 0 });
    assert_eq!(reason(&world), json!({ "selected": selected }));
    let nowhere = World { nodes: Vec::new(), ..World::new(vec![new_pod(1, true)]) };
    assert_eq!(reason(&nowhere)["selected"]["missingNodes"], 1);
    let named = World::new(pods(1)).with_service(service("foo").set(&["spec", "type"], "ExternalName"));
    assert_eq!(reason(&named), json!("externalName"));
}

/// Upstream: `TestReconcileEmpty`, `TestSyncServiceWithSelector`.
#[test]
fn a_service_without_pods_gets_a_placeholder() {
    let world = check_without_pods(World::new(Vec::new()), "IPv4: create 0", &[0]);
    let slice = &world.slices["new-1"];
    assert_eq!(slice["metadata"]["labels"], own_labels());
    assert_eq!((&slice["ports"], &slice["endpoints"]), (&Value::Null, &json!([])));
}

/// Upstream: `TestSyncServiceNoSelector`, `TestServiceExternalNameTypeSync`.
#[test]
fn a_service_without_a_selector_or_without_a_body_is_left_alone() {
    let unselective = service("foo").set(&["spec", "selector"], Value::Null);
    let with_slice = || World::new(pods(2)).with_slice("foo-1", &pods(1));
    check(with_slice().with_service(unselective), "nothing (has no selector)", &[1]);
    // The API drops an empty selector.
    let empty = service("foo").set(&["spec", "selector"], json!({}));
    check(with_slice().with_service(empty), "nothing (has no selector)", &[1]);
    let name = service("foo").set(&["spec", "type"], "ExternalName");
    check(with_slice().with_service(name), "nothing (is an external name)", &[1]);
}

/// Upstream: `TestReconcile1Pod`.
#[test]
fn one_pod_is_one_endpoint_of_each_family() {
    let dual_stack = ips(new_pod(1, true), &["1.2.3.4", "1234::5678:0000:0000:9abc:def0"]);
    let row = |service: ObjectBuilder, expected: &str, addresses: &[&str], labels: Value| {
        let mut world = World::new(vec![dual_stack.clone()]).with_service(service);
        world.nodes = vec![node("node-1", "us-central1-a", "1")];
        let world = check(world, expected, &vec![1; addresses.len()]);
        for (slice, address) in world.slices.values().zip(addresses) {
            let endpoint = json!({
                "addresses": [address],
                "conditions": { "ready": true, "serving": true, "terminating": false },
                "targetRef": {
                    "kind": "Pod", "namespace": "default", "name": "pod0001",
                    "uid": shared::testing::uid("pod0001").to_string(),
                },
                "nodeName": "node-1",
                "zone": "us-central1-a",
            });
            assert_eq!(slice["endpoints"], json!([endpoint]));
            assert_eq!(slice["metadata"]["labels"], labels);
        }
    };
    let set = |path: &[&str], value: Value| service("foo").set(path, value);
    let with_ip = |service: ObjectBuilder, ip: &str| service.set(&["spec", "clusterIP"], ip);
    let families = |families: Value| set(&["spec", "ipFamilies"], families);
    let (v4, v6) = ("1.2.3.4", "1234::5678:0:0:9abc:def0");
    let mut unheaded = own_labels();
    unheaded.as_object_mut().unwrap().remove("service.kubernetes.io/headless");
    row(with_ip(families(Value::Null), "10.0.0.10"), "IPv4: create 1", &[v4], unheaded.clone());
    row(service("foo"), "IPv4: create 1", &[v4], own_labels());
    row(with_ip(service("foo"), "1.1.1.1"), "IPv4: create 1", &[v4], unheaded.clone());
    let mut labelled = own_labels();
    labelled["foo"] = "bar".into();
    row(service("foo").label("foo", "bar"), "IPv4: create 1", &[v4], labelled);
    let evil = service("foo")
        .label("kubernetes.io/service-name", "bad")
        .label("endpointslice.kubernetes.io/managed-by", "actor")
        .label("service.kubernetes.io/headless", "invalid");
    row(evil, "IPv4: create 1", &[v4], own_labels());
    row(families(json!(["IPv6"])), "IPv6: create 1", &[v6], own_labels());
    let v6_ip = with_ip(families(json!(["IPv6"])), "1234::5678:0000:0000:9abc:def1");
    row(v6_ip, "IPv6: create 1", &[v6], unheaded.clone());
    let dual = with_ip(families(json!(["IPv4", "IPv6"])), "10.0.0.10");
    row(dual, "IPv4: create 1; IPv6: create 1", &[v4, v6], unheaded);
}

/// Upstream: `TestReconcile1EndpointSlice`, `TestPlaceHolderSliceCompare`.
#[test]
fn a_placeholder_that_is_right_stays() {
    let with = |change: fn(&mut Value)| {
        let mut world = World::new(Vec::new());
        world.sync();
        change(world.slices.get_mut("new-1").unwrap());
        world
    };
    check_without_pods(with(|_| {}), "IPv4: nothing (0 in 1)", &[0]);
    check_without_pods(
        with(|slice| slice["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into()),
        "IPv4: nothing (0 in 1)",
        &[0],
    );
    check_without_pods(
        with(|slice| slice["metadata"]["labels"]["bar"] = "baz".into()),
        "IPv4: update new-1 (labels)",
        &[0],
    );
    // Upstream takes a missing label for an empty one.
    check_without_pods(with(|slice| slice["metadata"]["labels"]["bar"] = "".into()), "IPv4: nothing (0 in 1)", &[0]);
    let other_ports = with(|slice| slice["ports"] = json!([{ "port": 80 }]));
    check_without_pods(other_ports, "IPv4: update new-1 (ports)", &[0]);
}

/// Upstream: `TestReconcile1EndpointSlicePublishNotReadyAddresses`.
#[test]
fn where_not_ready_addresses_are_published_all_are_ready() {
    let service = service("foo").set(&["spec", "publishNotReadyAddresses"], true);
    let world = check(World::new(pods(50)).with_service(service), "IPv4: create 50", &[50]);
    assert!(world.read()[0].endpoints.iter().all(Endpoint::is_ready));
}

/// Upstream: `TestReconcileManyPods`, `TestReconcileMaxEndpointsPerSlice`.
#[test]
fn new_slices_are_filled() {
    let row = |max, expected: &str, lengths: &[usize]| {
        let mut world = World::new(pods(250));
        world.max = max;
        check(world, expected, lengths);
    };
    row(100, "IPv4: create 100, create 100, create 50", &[100, 100, 50]);
    row(50, "IPv4: create 50, create 50, create 50, create 50, create 50", &[50; 5]);
    row(80, "IPv4: create 80, create 80, create 80, create 10", &[80, 80, 80, 10]);
    row(150, "IPv4: create 150, create 100", &[150, 100]);
    row(250, "IPv4: create 250", &[250]);
    row(500, "IPv4: create 250", &[250]);
}

/// Every fourth pod, from `first` on.
fn quarter(pods: &[ObjectBuilder], first: usize) -> Vec<ObjectBuilder> {
    let end = pods.len() - 4;
    pods[..end].iter().skip(first).step_by(4).cloned().collect()
}

/// Upstream: `TestReconcileEndpointSlicesSomePreexisting`, `TestReconcileEndpointSlicesSomePreexistingWorseAllocation`.
#[test]
fn at_most_one_settled_slice_is_touched() {
    let with_two = |count: usize| {
        let all = pods(count);
        let (first, second) = (quarter(&all, 1), quarter(&all, 3));
        World::new(all).with_slice("foo-1", &first).with_slice("foo-2", &second)
    };
    check(with_two(250), "IPv4: create 100, update foo-1 to 89 (27 new)", &[100, 89, 61]);
    check(with_two(300), "IPv4: create 100, create 52", &[100, 74, 74, 52]);
}

/// Upstream: `TestReconcileEndpointSlicesUpdating`, `TestReconcileEndpointSlicesServicesLabelsUpdating`,
/// `TestReconcileEndpointSlicesServicesReservedLabels`.
#[test]
fn slices_follow_their_service() {
    let settled = || {
        let mut world = World::new(pods(250));
        world.sync();
        world
    };
    let port = service("foo").set(&["spec", "ports"], json!([{ "name": "foo", "protocol": "TCP", "targetPort": 81 }]));
    let expected = "IPv4: update new-1 (ports), update new-2 (ports), update new-3 (ports)";
    let world = check(settled().with_service(port), expected, &[100, 100, 50]);
    assert!(world.slices.values().all(|slice| slice["ports"][0]["port"] == 81));

    let labelled = service("foo").label("foo", "bar");
    let expected = "IPv4: update new-1 (labels), update new-2 (labels), update new-3 (labels)";
    let world = check(settled().with_service(labelled), expected, &[100, 100, 50]);
    assert!(world.slices.values().all(|slice| slice["metadata"]["labels"]["foo"] == "bar"));
    let expected = expected.to_owned();
    check(world.with_service(service("foo")), &expected, &[100, 100, 50]);

    let reserved =
        service("foo").label("kubernetes.io/service-name", "bad").label("service.kubernetes.io/headless", "invalid");
    check(settled().with_service(reserved), "IPv4: nothing (250 in 3)", &[100, 100, 50]);
}

/// Upstream: `TestReconcileEndpointSlicesRecycling`.
#[test]
fn slices_are_packed_anew_only_when_all_of_them_change() {
    let all = pods(300);
    let world = all
        .chunks(30)
        .enumerate()
        .fold(World::new(all.clone()), |world, (n, chunk)| world.with_slice(&format!("foo-{n}"), chunk));
    let world = check(world, "IPv4: nothing (300 in 10)", &[30; 10]);
    let port = service("foo").set(&["spec", "ports"], json!([{ "name": "foo", "protocol": "TCP", "targetPort": 81 }]));
    let mut world = world.with_service(port);
    let Plan::Write(slices) = world.plan() else { panic!("no slices") };
    let family = &slices.families[0];
    assert_eq!(
        (family.writes.create.len(), family.writes.update.len(), family.writes.delete.len()),
        (0, 3, 7),
        "{family}"
    );
    world.sync();
    check(world, "IPv4: nothing (300 in 3)", &[100; 3]);
}

/// Upstream: `TestReconcileEndpointSlicesUpdatePacking`.
#[test]
fn what_is_new_goes_into_the_fullest_slice_that_is_written_anyway() {
    let numbers: Vec<usize> = (0..80).chain(100..120).collect();
    let before: Vec<ObjectBuilder> = numbers.iter().map(|n| new_pod(*n, true)).collect();
    let mut after: Vec<ObjectBuilder> = numbers.iter().enumerate().map(|(at, n)| new_pod(*n, at % 10 != 0)).collect();
    after.extend((200..215).map(|n| new_pod(n, true)));
    let world = World::new(after).with_slice("foo-1", &before[..80]).with_slice("foo-2", &before[80..]);
    let expected = "IPv4: update foo-1 to 95 (15 new, 8 changed), update foo-2 to 20 (2 changed)";
    check(world, expected, &[95, 20]);
}

/// Upstream: `TestReconcileEndpointSlicesReplaceDeprecated`.
#[test]
fn slices_of_another_address_type_are_replaced() {
    let all = pods(130);
    let mut world = World::new(all.clone()).with_slice("foo-1", &all[..80]).with_slice("foo-2", &all[80..]);
    for slice in world.slices.values_mut() {
        slice["addressType"] = "IP".into();
    }
    let expected = "IPv4: create 100, create 30; delete foo-1 (address type unwanted); \
                    delete foo-2 (address type unwanted)";
    check(world, expected, &[100, 30]);
}

/// Upstream: `TestReconcileEndpointSlicesRecreation`.
#[test]
fn a_slice_of_a_service_that_was_recreated_is_replaced() {
    let world = || World::new(vec![new_pod(1, true)]).with_slice("foo-1", &[new_pod(1, true)]);
    check(world(), "IPv4: nothing (1 in 1)", &[1]);
    let mut recreated = world();
    recreated.slices.values_mut().for_each(|slice| *slice = foreign(slice.clone()));
    check(recreated, "IPv4: create 1, delete foo-1 (another service's)", &[1]);
    // Its placeholder as well: it goes with the Service that owned it.
    let mut recreated = World::new(Vec::new());
    recreated.sync();
    recreated.slices.values_mut().for_each(|slice| *slice = foreign(slice.clone()));
    check_without_pods(recreated, "IPv4: create 0, delete new-1 (another service's)", &[0]);
}

/// Upstream: `TestReconcileEndpointSlicesNamedPorts`.
#[test]
fn pods_that_call_different_ports_by_one_name_are_in_different_slices() {
    let service = service("foo").set(&["spec", "ports"], json!([{ "protocol": "TCP", "targetPort": "http" }]));
    let pods = pods(300).into_iter().enumerate().map(|(n, pod)| {
        let port = json!({ "name": "http", "containerPort": 8080 + n % 5, "protocol": "TCP" });
        pod.set(&["spec", "containers"], json!([{ "ports": [port] }]))
    });
    let world = World::new(pods.collect()).with_service(service);
    let world = check(world, "IPv4: create 60, create 60, create 60, create 60, create 60", &[60; 5]);
    let mut ports: Vec<&Value> = world.slices.values().map(|slice| &slice["ports"]).collect();
    ports.sort_by_key(|ports| ports[0]["port"].as_i64());
    let expected: Vec<Value> =
        (8080..8085).map(|port| json!([{ "name": "", "protocol": "TCP", "port": port }])).collect();
    assert_eq!(ports, expected.iter().collect::<Vec<_>>());
}

/// Upstream: `TestReconcileEndpointSlicesMetrics`, and its relatives that collect and compare.
#[test]
fn what_comes_and_goes_is_counted() {
    let mut world = World::new((0..20).map(|n| new_pod(n, true)).collect());
    let Plan::Write(slices) = world.plan() else { panic!("no slices") };
    assert_eq!((slices.families[0].added, slices.families[0].removed), (20, 0));
    world.sync();
    world.pods.truncate(10);
    let Plan::Write(slices) = world.plan() else { panic!("no slices") };
    assert_eq!((slices.families[0].added, slices.families[0].removed), (0, 10));
    check(world, "IPv4: update new-1 to 10 (10 gone)", &[10]);
}

/// Upstream: `TestReconcilerFinalizeSvcDeletionTimestamp`, `TestSyncServicePendingDeletion`.
#[test]
fn a_service_that_is_being_deleted_gets_no_new_slices() {
    let deleted = service("foo").terminating();
    let world = World::new(pods(2)).with_service(deleted.clone());
    assert_eq!(world.plan().to_string(), "IPv4: do not create 1 (the service is being deleted)");
    let world = World::new(pods(2)).with_service(deleted.clone()).with_slice("foo-1", &pods(1));
    check(world, "IPv4: update foo-1 to 2 (1 new)", &[2]);
    let emptied = World::new(pods(1)).with_slice("foo-1", &pods(1)).with_slice("foo-2", &[new_pod(7, true)]);
    check(emptied.with_service(deleted.clone()), "IPv4: delete foo-2 (emptied)", &[1]);
    // The endpoints for a new slice go into one that would be deleted.
    let port = deleted.set(&["spec", "ports"], json!([{ "name": "foo", "protocol": "TCP", "targetPort": 81 }]));
    let world = World::new(pods(1)).with_slice("foo-1", &pods(1)).with_service(port);
    check(world, "IPv4: update foo-1 (ports)", &[1]);
}

/// Upstream: `TestReconcilerPodMissingNode`.
#[test]
fn a_pod_on_an_unknown_node_is_left_out_unless_not_ready_ones_are_published() {
    let both = || vec![new_pod(0, true).node("node-0"), new_pod(1, true).node("node-1")];
    let row = |nodes: &[&str], publishes: bool, exists: bool, expected: &str, lengths: &[usize]| {
        let all = || ["node-0", "node-1"].map(|name| node(name, "", "1")).to_vec();
        let mut world = World { nodes: all(), ..World::new(both()) };
        if exists {
            world = world.with_slice("foo-1", &both());
        }
        world.nodes = nodes.iter().map(|name| node(name, "", "1")).collect();
        let service = service("foo").set(&["spec", "publishNotReadyAddresses"], publishes);
        check(world.with_service(service), expected, lengths);
    };
    let skip = "skip pod0001 (no node \"node-1\")";
    row(&["node-0"], false, false, &format!("IPv4: create 1, {skip}"), &[1]);
    row(&["node-0"], true, false, "IPv4: create 2", &[2]);
    row(&["node-0"], false, true, &format!("IPv4: update foo-1 to 1 (1 gone), {skip}"), &[1]);
    row(&[], true, true, "IPv4: nothing (2 in 1)", &[2]);
    row(&["node-0"], true, true, "IPv4: nothing (2 in 1)", &[2]);
    // The only slice becomes the placeholder.
    let skip = format!("skip pod0000 (no node \"node-0\"), {skip}");
    row(&[], false, true, &format!("IPv4: update foo-1 to 0 (2 gone, ports), {skip}"), &[0]);
}

/// Upstream: `TestReconcileHeadlessServiceNoPorts`.
#[test]
fn a_headless_service_without_ports_has_endpoints_without_ports() {
    let service = service("foo").set(&["spec", "ports"], Value::Null).set(&["spec", "clusterIP"], "None");
    let world = check_without_pods(World::new(Vec::new()).with_service(service), "IPv4: create 0", &[0]);
    let world = check(World { pods: pods(2), ..world }, "IPv4: update new-1 to 2 (2 new)", &[2]);
    let expected = "IPv4: update new-1 to 0 (2 gone)";
    check_without_pods(World { pods: Vec::new(), ..world }, expected, &[0]);
}

/// Upstream: `TestSyncService`, `TestShouldPodBeInEndpoints`.
#[test]
fn a_pod_counts_until_it_ends_and_two_may_share_an_address() {
    let row = |pods: Vec<ObjectBuilder>, expected: &[(&str, bool, bool, bool)]| {
        let mut world = World::new(pods);
        world.sync();
        let slices = world.read();
        let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
        let found: Vec<_> = endpoints
            .map(|endpoint| {
                let target = endpoint.target.as_ref().unwrap();
                let conditions = endpoint.conditions;
                let [ready, serving, terminating] =
                    [conditions.ready, conditions.serving, conditions.terminating].map(Option::unwrap);
                (target.key.name().to_owned(), ready, serving, terminating)
            })
            .collect();
        let expected: Vec<_> = expected.iter().map(|(name, r, s, t)| ((*name).to_owned(), *r, *s, *t)).collect();
        assert_eq!(found, expected);
    };
    let (a, b) = (|| new_pod(0, true), || new_pod(1, true));
    row(vec![a(), b().terminating()], &[("pod0000", true, true, false), ("pod0001", false, true, true)]);
    row(vec![a(), new_pod(1, false).terminating()], &[("pod0000", true, true, false), ("pod0001", false, false, true)]);
    let same = ips(b(), &["10.2.0.1"]);
    row(vec![a(), same.clone()], &[("pod0000", true, true, false), ("pod0001", true, true, false)]);
    for phase in ["Succeeded", "Failed"] {
        row(vec![a(), same.clone().phase(phase)], &[("pod0000", true, true, false)]);
    }
    row(vec![ips(a(), &[]), b()], &[("pod0001", true, true, false)]);
    row(
        vec![a().phase("Pending"), b().phase("Unknown")],
        &[("pod0000", true, true, false), ("pod0001", true, true, false)],
    );
}

/// Upstream: `TestSyncServicePodSelection`, `TestSyncServiceEndpointSliceLabelSelection`.
#[test]
fn only_selected_pods_count_and_one_of_several_placeholders_stays() {
    let world = World::new(vec![new_pod(1, true), new_pod(2, true).label("foo", "boo")]);
    check(world, "IPv4: create 1", &[1]);

    let mut world = World::new(Vec::new());
    world.sync();
    let mut second = world.slices["new-1"].clone();
    second["metadata"]["name"] = "new-2".into();
    world.slices.insert("new-2".to_owned(), second);
    check_without_pods(world, "IPv4: delete new-2 (ports unwanted)", &[0]);
}

#[test]
fn pods_of_one_family_leave_the_other_with_a_placeholder() {
    let dual = service("foo").set(&["spec", "ipFamilies"], json!(["IPv6", "IPv4"]));
    let world = World::new(pods(2)).with_service(dual);
    let world = check(world, "IPv4: create 2; IPv6: create 0", &[2, 0]);
    let single = service("foo").set(&["spec", "ipFamilies"], json!(["IPv4"]));
    let expected = "IPv4: nothing (2 in 1); delete new-2 (address type unwanted)";
    check(world.with_service(single), expected, &[2]);
}

#[test]
fn an_endpoint_that_is_listed_twice_stays_once() {
    let world = World::new(pods(2)).with_slice("foo-1", &pods(2)).with_slice("foo-2", &pods(2));
    check(world, "IPv4: delete foo-2 (emptied)", &[2]);
    let mut edited = World::new(pods(2)).with_slice("foo-1", &pods(2));
    let endpoints = &mut edited.slices.get_mut("foo-1").unwrap()["endpoints"];
    endpoints[0]["addresses"][0] = "10.9.9.9".into();
    endpoints[1].as_object_mut().unwrap().remove("targetRef");
    check(edited, "IPv4: update foo-1 to 2 (1 gone, 1 new, 1 changed)", &[2]);
}
