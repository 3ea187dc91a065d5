use std::sync::Arc;

use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::apply::{Creation, create, delete, label, renumber};
use super::data::{Data, Fingerprint, Numbers, template_of};
use super::defaults::only_lacks;
use super::history::{Place, beyond_limit, find, next_number, sort, surplus};
use super::*;
use crate::api::object::Key;
use crate::api::owner::{Owner, claim};
use crate::api::resource::Resource;
use crate::api::template::PodTemplate;
use crate::testing::apiserver::{Connection, Server};
use crate::testing::{NOW, ObjectBuilder, ago, object, uid};
use crate::working::consistency::{Consistency, Watched};
use crate::working::control::Control;
use crate::working::decisions::Decisions;

/// The template of upstream's `testdata/compatibility_set_1.34.0.json`, as an apiserver serves it.
const TEMPLATE: &str = r#"{"metadata":{"labels":{"app":"foo"},"annotations":{"test":"value"}},"spec":{"containers":[{"name":"test","image":"test","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"Always"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}}"#;

/// The data of upstream's `testdata/compatibility_revision_1.34.0.json`.
const DATA: &str = r#"{"spec":{"template":{"$patch":"replace","metadata":{"annotations":{"test":"value"},"labels":{"app":"foo"}},"spec":{"containers":[{"image":"test","imagePullPolicy":"Always","name":"test","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}}}"#;

/// The same of a release up to 1.33.
fn of_1_33(text: &str) -> String {
    text.replace(r#","labels":{"app":"foo"}"#, r#","creationTimestamp":null,"labels":{"app":"foo"}"#)
        .replace(r#"{"labels":{"app":"foo"},"#, r#"{"creationTimestamp":null,"labels":{"app":"foo"},"#)
}

fn template(json: &str) -> PodTemplate {
    serde_json::from_str(json).unwrap()
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn floats(template: &PodTemplate) -> Data {
    Data::of(template, Numbers::Floats).unwrap()
}

/// The data of a template that has this spec.
fn text_of(spec: &str, numbers: Numbers) -> String {
    let data = Data::of(&template(&format!(r#"{{"spec":{spec}}}"#)), numbers).unwrap();
    let whole = data.text();
    let start = r#"{"spec":{"template":{"$patch":"replace","spec":"#;
    whole.strip_prefix(start).and_then(|rest| rest.strip_suffix("}}}")).unwrap().to_owned()
}

#[test]
fn data_are_upstreams_bytes() {
    assert_eq!(floats(&template(TEMPLATE)).text(), DATA);
    assert_eq!(Data::of(&template(TEMPLATE), Numbers::Integers).unwrap().text(), DATA);
    assert_eq!(floats(&template(&of_1_33(TEMPLATE))).text(), of_1_33(DATA));
    for nothing in ["{}", "null"] {
        assert_eq!(floats(&template(nothing)).text(), r#"{"spec":{"template":{"$patch":"replace"}}}"#);
    }
    let hashed = r#"{"metadata":{"labels":{"app":"a","pod-template-hash":"5d4f"}}}"#;
    let expected = format!(r#"{{"spec":{{"template":{{"$patch":"replace",{}}}}}"#, &hashed[1..]);
    assert_eq!(floats(&template(hashed)).text(), expected);
}

/// Upstream: `TestStatefulSetCompatibility`, whose revisions have these names.
#[test]
fn names_are_upstreams() {
    let labels = Labels::new([("app", "foo")]);
    for (template_text, hash) in [(TEMPLATE.to_owned(), "776999688b"), (of_1_33(TEMPLATE), "c77f6d978")] {
        let new = NewRevision::new("test", &labels, floats(&template(&template_text)), 2, 0);
        assert_eq!(new.name, format!("test-{hash}"));
        assert_eq!(new.labels, labels.with(HASH_LABEL, hash));
    }
    let long = NewRevision::new(&"a".repeat(250), &labels, floats(&template(TEMPLATE)), 1, 0);
    assert_eq!(long.name, format!("{}-776999688b", "a".repeat(223)));
}

#[test]
fn a_collision_gives_another_name_and_leaves_the_label() {
    let labels = Labels::default();
    let new = NewRevision::new("web", &labels, floats(&template(TEMPLATE)), 1, 0);
    let renamed = new.clone().renamed("web", 1);
    assert_ne!(renamed.name, new.name);
    assert_eq!(renamed.name, NewRevision::new("web", &labels, new.data.clone(), 1, 1).name);
    assert_eq!(renamed.labels, new.labels);
}

#[test]
fn texts_are_escaped_as_go_escapes_them() {
    for (served, written) in [
        (r#""<a href='x'>&</a>""#, r#""\u003ca href='x'\u003e\u0026\u003c/a\u003e""#),
        (r#""\u003c\u003C\u0026""#, r#""\u003c\u003c\u0026""#),
        ("\"\u{2028}\u{2029}\u{2027}\"", "\"\\u2028\\u2029\u{2027}\""),
        (r#""\u2028""#, r#""\u2028""#),
        (r#""\"\\\/\b\f\n\r\t""#, r#""\"\\/\b\f\n\r\t""#),
        (r#""\u0000\u0001\u001f\u007f""#, "\"\\u0000\\u0001\\u001f\u{7f}\""),
        (r#""\u00e9 é 🦀 \ud83e\udd80""#, r#""é é 🦀 🦀""#),
        (r#"{"z<":1,"a&":2,"é":3,"A":4}"#, r#"{"A":4,"a\u0026":2,"z\u003c":1,"é":3}"#),
    ] {
        assert_eq!(text_of(served, Numbers::Floats), written, "{served}");
    }
}

#[test]
fn numbers_are_gos() {
    for (served, floats, integers) in [
        ("9007199254740993", "9007199254740992", "9007199254740993"),
        ("-9007199254740993", "-9007199254740992", "-9007199254740993"),
        ("9223372036854775807", "9223372036854776000", "9223372036854775807"),
        ("9223372036854775808", "9223372036854776000", "9223372036854776000"),
        ("30", "30", "30"),
        ("0", "0", "0"),
        ("1.0", "1", "1"),
        ("1.50", "1.5", "1.5"),
        ("1e3", "1000", "1000"),
        ("0.1", "0.1", "0.1"),
        ("0.000001", "0.000001", "0.000001"),
        ("0.0000001", "1e-7", "1e-7"),
        ("1.5E-9", "1.5e-9", "1.5e-9"),
        ("1e20", "100000000000000000000", "100000000000000000000"),
        ("1e21", "1e+21", "1e+21"),
        ("12345678901234567890123", "1.2345678901234568e+22", "1.2345678901234568e+22"),
        ("1e400", "1e400", "1e400"),
    ] {
        assert_eq!(text_of(served, Numbers::Floats), floats, "{served}");
        assert_eq!(text_of(served, Numbers::Integers), integers, "{served}");
    }
}

#[test]
fn a_fingerprint_is_made_once_and_is_that_of_the_data() {
    let template = template(r#"{"spec":{"fingerprint":9007199254740993}}"#);
    for numbers in [Numbers::Floats, Numbers::Integers] {
        let of_data = Data::of(&template, numbers).unwrap().fingerprint();
        for _ in 0..2 {
            assert_eq!(Fingerprint::of_template(&template, numbers).unwrap(), of_data);
        }
    }
}

#[test]
fn a_field_this_build_does_not_know_is_kept() {
    let served = r#"{"notKnownYet":{"b":[{"y":null,"x":true}],"a":"<"},"containers":[]}"#;
    let written = r#"{"containers":[],"notKnownYet":{"a":"\u003c","b":[{"x":true,"y":null}]}}"#;
    assert_eq!(text_of(served, Numbers::Floats), written);
}

/// Stored data as an apiserver serves them: no white space, and the characters of HTML escaped.
#[test]
fn stored_data_are_known_again_in_whatever_form_they_come() {
    let ours = floats(&template(r#"{"spec":{"a":"<x>\u2028","b":9007199254740993,"c":1.0}}"#));
    let spec = r#"{"a":"\u003cx\u003e\u2028","b":9007199254740992,"c":1}"#;
    let served = format!(r#"{{"spec":{{"template":{{"$patch":"replace","spec":{spec}}}}}}}"#);
    assert_eq!(ours.text(), served);
    let other_spec = r#"{"c":1,"b":9007199254740992,"a":"\u003Cx>\u2028"}"#;
    for stored in [
        served.clone(),
        served.replace(r"\u003cx\u003e", "<x>"),
        served.replace(r"\u2028", "\u{2028}"),
        served.replace(r#""c":1"#, r#""c": 1.0 "#),
        format!(r#"{{"spec":{{"template":{{"spec":{other_spec},"$patch":"replace"}}}}}}"#),
    ] {
        assert_eq!(Fingerprint::of(&raw(&stored)), ours.fingerprint(), "{stored}");
    }
    for other in [served.replace("992", "993"), served.replace(r#","c":1"#, ""), served.replace('x', "y")] {
        assert_ne!(Fingerprint::of(&raw(&other)).exact, ours.fingerprint().exact, "{other}");
    }
}

#[test]
fn data_in_other_bytes_may_describe_the_same_pods() {
    let (now, earlier) = (floats(&template(TEMPLATE)).fingerprint(), Fingerprint::of(&raw(&of_1_33(DATA))));
    assert_ne!(now.exact, earlier.exact);
    assert_eq!(now.meaning, earlier.meaning);
    let hashed = DATA.replace(r#"{"app":"foo"}"#, r#"{"app":"foo","pod-template-hash":"1"}"#);
    assert_ne!(Fingerprint::of(&raw(&hashed)).meaning, now.meaning, "here it is a label as any other");
    let other = DATA.replace(r#""image":"test""#, r#""image":"other""#);
    assert_ne!(Fingerprint::of(&raw(&other)).meaning, now.meaning);
}

#[test]
fn data_that_are_no_template_do_no_harm() {
    let deep = format!(r#"{{"spec":{{"template":{{"a":{}{}}}}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    for odd in ["{}", "null", "[]", "1", r#""\ud800""#, r#"{"spec":{"template":{"metadata":1}}}"#, deep.as_str()] {
        let revision = json!({ "metadata": { "name": "odd" }, "revision": 1 }).to_string();
        let text = revision.replace(r#""revision""#, &format!(r#""data":{odd},"revision""#));
        let read: ControllerRevision = serde_json::from_str(&text).unwrap();
        assert_eq!(read.revision, 1, "{}", &odd[..odd.len().min(50)]);
        assert_ne!(read.data.exact, floats(&template(TEMPLATE)).fingerprint().exact);
    }
    let deep = template(&format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200)));
    assert!(Data::of(&deep, Numbers::Floats).is_err());
    let bare: ControllerRevision = serde_json::from_str(r#"{"metadata":{"name":"bare"}}"#).unwrap();
    assert_eq!((bare.revision, bare.data), (0, Fingerprint::default()));
}

/// Upstream: `TestCreateApplyRevision`.
#[test]
fn the_template_comes_back_from_the_data() {
    let data = floats(&template(TEMPLATE));
    let restored = template_of(data.json()).unwrap();
    assert!(restored.equals_ignoring_hash(&template(TEMPLATE)));
    assert_eq!(floats(&restored), data);
    for odd in ["{}", r#"{"spec":{}}"#, r#"{"spec":{"template":[]}}"#] {
        assert!(template_of(&raw(odd)).is_err(), "{odd}");
    }
}

/// A revision `<name>` of a template that has this image.
fn stored(name: &str, image: &str, number: i64) -> ObjectBuilder {
    let template = json!({ "$patch": "replace", "spec": { "containers": [{ "image": image }] } });
    object("apps/v1", "ControllerRevision", name)
        .set(&["data"], json!({ "spec": { "template": template } }))
        .set(&["revision"], number)
}

fn of_image(image: &str) -> PodTemplate {
    template(&json!({ "spec": { "containers": [{ "image": image }] } }).to_string())
}

fn names(revisions: &[Arc<ControllerRevision>]) -> Vec<&str> {
    revisions.iter().map(|revision| revision.metadata.name()).collect()
}

/// Rows of upstream's `TestSortControllerRevisions`.
#[test]
fn a_history_is_in_the_order_of_numbers_ages_and_names() {
    #[track_caller]
    fn check(revisions: &[(&str, i64, Timestamp)], expected: &[&str]) {
        let build =
            |(name, number, created): &(&str, i64, Timestamp)| stored(name, "a", *number).created(*created).build();
        let mut revisions: Vec<Arc<ControllerRevision>> = revisions.iter().map(build).collect();
        sort(&mut revisions);
        assert_eq!(names(&revisions), expected);
    }
    check(&[("b", 2, NOW), ("c", 1, NOW), ("a", 3, NOW)], &["c", "b", "a"]);
    check(&[("c", 1, NOW), ("b", 2, NOW), ("a", 3, NOW)], &["c", "b", "a"]);
    check(&[("a", 3, NOW), ("b", 2, NOW), ("c", 1, NOW)], &["c", "b", "a"]);
    let ties = [("d", 3, NOW), ("c", 3, NOW), ("e", 3, ago(1)), ("b", 2, NOW), ("a", 10, ago(9))];
    check(&ties, &["b", "e", "c", "d", "a"]);
    check(&[], &[]);
}

/// Rows of upstream's `TestFindEqualRevisions` and `TestStatefulSetControl_getSetRevisions`.
#[test]
fn the_template_of_now_is_looked_for_in_the_history() {
    #[track_caller]
    fn check(history: &[ObjectBuilder], image: &str, expected: &str) {
        let history: Vec<Arc<ControllerRevision>> = history.iter().map(ObjectBuilder::build).collect();
        let found = match find(&history, floats(&of_image(image)).fingerprint()) {
            Place::Last(revision) => format!("last {}", revision.metadata.name()),
            Place::Earlier(revision) => format!("earlier {}", revision.metadata.name()),
            Place::LastInOtherBytes(revision) => format!("last in other bytes {}", revision.metadata.name()),
            Place::None => "none".to_owned(),
        };
        assert_eq!(found, expected);
    }
    let (a, b, c) = (stored("a", "1", 1), stored("b", "2", 2), stored("c", "3", 3));
    check(&[], "1", "none");
    check(&[a.clone(), b.clone()], "3", "none");
    check(&[a.clone(), b.clone()], "2", "last b");
    check(&[a.clone(), b.clone(), c.clone()], "2", "earlier b");
    check(&[a.clone(), b.clone(), stored("again", "1", 4)], "1", "last again");
    check(&[a.clone(), stored("again", "1", 2), c.clone()], "1", "earlier again");
    let null = json!(null);
    let in_other_bytes = |at: &ObjectBuilder| at.clone().set(&["data", "spec", "template", "metadata"], null.clone());
    check(&[a.clone(), in_other_bytes(&b)], "2", "last in other bytes b");
    check(&[in_other_bytes(&b), c], "2", "none");
}

#[test]
fn a_revision_that_lacks_later_defaults_is_found_by_its_label() {
    let wanted = floats(&of_image("now")).fingerprint();
    let (other, labelled) = (stored("a", "1", 1), stored("b", "2", 2).label(DEFAULTED_LABEL, &wanted.label()));
    let find =
        |history: &[&ObjectBuilder]| find(&history.iter().map(|revision| revision.build()).collect::<Vec<_>>(), wanted);
    assert_eq!(find(&[&other, &labelled]), Place::Last(labelled.build()));
    let later = stored("c", "3", 3).label(DEFAULTED_LABEL, "odd");
    assert_eq!(find(&[&labelled, &later]), Place::Earlier(labelled.build()));
    assert_eq!(find(&[&other, &later]), Place::None);
}

#[test]
fn data_that_lack_fields_and_differ_by_nothing_else_are_known() {
    let now = r#"{"containers":[{"name":"c","image":"1","pull":"Always"}],"grace":30,"context":{}}"#;
    let template = floats(&template(&format!(r#"{{"spec":{now}}}"#)));
    let lacks = |spec: &str| {
        only_lacks(&raw(&format!(r#"{{"spec":{{"template":{{"$patch":"replace","spec":{spec}}}}}}}"#)), &template)
    };
    for same in [now, r#"{"containers":[{"image":"1","name":"c"}]}"#, r#"{"context":null,"created":null}"#, "{}"] {
        assert!(lacks(same), "{same}");
    }
    for other in [
        r#"{"containers":[{"name":"c","image":"2"}]}"#,
        r#"{"containers":[]}"#,
        r#"{"grace":31}"#,
        r#"{"host":true}"#,
        r#"{"context":{"user":1}}"#,
        "[]",
    ] {
        assert!(!lacks(other), "{other}");
    }
    for odd in ["null", "1", r#"{"spec":1}"#] {
        assert!(!only_lacks(&raw(odd), &template), "{odd}");
    }
}

#[test]
fn numbers_go_on_after_the_last_one() {
    let history = |numbers: &[i64]| numbers.iter().map(|number| stored("a", "1", *number).build()).collect::<Vec<_>>();
    assert_eq!(next_number(&history(&[])), 1);
    assert_eq!(next_number(&history(&[1, 7])), 8);
    assert_eq!(next_number(&history(&[i64::MAX])), i64::MAX);
}

/// Rows of upstream's `TestStatefulSetControlLimitsHistory` and `TestStatefulSetHonorRevisionHistoryLimit`.
#[test]
fn the_oldest_revisions_that_are_in_no_use_go_first() {
    let history: Vec<Arc<ControllerRevision>> =
        ["a", "b", "c", "d", "e"].iter().zip(1..).map(|(name, number)| stored(name, name, number).build()).collect();
    for (limit, in_use, gone) in [
        (10, "", ""),
        (5, "", ""),
        (2, "", "abc"),
        (2, "e", "ab"),
        (2, "ae", "b"),
        (0, "ce", "abd"),
        (0, "abcde", ""),
        (-1, "", ""),
        (i32::MIN, "", ""),
    ] {
        let is_in_use = |revision: &ControllerRevision| in_use.contains(revision.metadata.name());
        assert_eq!(names(&beyond_limit(&history, limit, is_in_use)).concat(), gone, "{limit} {in_use}");
    }
}

/// Upstream: `cleanupHistory` of DaemonSets, where those in use count, too.
#[test]
fn of_a_daemon_set_no_more_than_the_limit_stay_but_for_those_in_use() {
    let history: Vec<Arc<ControllerRevision>> =
        ["a", "b", "c", "d", "e"].iter().zip(1..).map(|(name, number)| stored(name, name, number).build()).collect();
    for (limit, in_use, gone) in
        [(10, "", ""), (5, "", ""), (2, "", "abc"), (2, "e", "abc"), (2, "ae", "bcd"), (0, "ce", "abd"), (-1, "", "")]
    {
        let is_in_use = |revision: &ControllerRevision| in_use.contains(revision.metadata.name());
        assert_eq!(names(&surplus(&history, limit, is_in_use)).concat(), gone, "{limit} {in_use}");
    }
}

#[test]
fn a_revision_of_a_daemon_set_has_the_hash_of_its_pods() {
    let labels = Labels::new([("app", "web")]);
    let data = Data::of(&template(TEMPLATE), Numbers::Integers).unwrap();
    let new = NewRevision::of_daemon_set("web", &labels, data, 3, "5d4f");
    assert_eq!((new.name.as_str(), new.revision), ("web-5d4f", 3));
    assert_eq!(new.labels, labels.with(REVISION_LABEL, "5d4f"));
    let read = |revision: ObjectBuilder| revision.build::<ControllerRevision>().pod_hash().to_owned();
    assert_eq!(read(stored("web-5d4f", "1", 1).label(REVISION_LABEL, "5d4f")), "5d4f");
    assert_eq!(read(stored("web-5d4f", "1", 1)), "web-5d4f");
}

const STATEFUL_SETS: Resource = Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets");

fn owner(name: &str) -> Owner {
    Owner { resource: STATEFUL_SETS, key: Key::new("default", name), uid: uid(name), being_deleted: false }
}

/// Rows of upstream's `TestRealHistory_ListControllerRevisions`.
#[test]
fn own_revisions_and_orphans_are_claimed_and_those_of_others_are_not() {
    let of = |name: &str, owner: Option<&str>| {
        let references = owner.map(|name| {
            let (api_version, kind, uid) = ("apps/v1", "StatefulSet", uid(name));
            json!([{ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true }])
        });
        stored(name, "1", 1).set(&["metadata", "ownerReferences"], references.unwrap_or_default()).build()
    };
    let all: Vec<Arc<ControllerRevision>> = vec![of("own", Some("ss1")), of("other", Some("ss2")), of("orphan", None)];
    let claim = claim(&owner("ss1"), all, |_| true);
    let claimed = [names(&claim.owned), names(&claim.adopt), names(&claim.release)];
    assert_eq!(claimed, [vec!["own"], vec!["orphan"], vec![]]);
}

fn control(server: &Server) -> Control {
    let client = server.client(&Connection::default());
    Control::new(client.clone(), Arc::new(Consistency::new(client, Watched::default())), Decisions::default())
}

fn new_revision(image: &str) -> NewRevision {
    NewRevision::new("web", &Labels::new([("app", "web")]), floats(&of_image(image)), 3, 0)
}

fn get(server: &Server, name: &str) -> Value {
    server.get("controllerrevisions", &format!("default/{name}")).unwrap()
}

/// Rows of upstream's `TestRealHistory_CreateControllerRevision`.
#[tokio::test]
async fn a_name_that_is_taken_is_a_collision_unless_the_data_are_the_same() {
    let server = Server::new();
    let (control, owner, new) = (control(&server), owner("web"), new_revision("1"));
    let control = control.for_key(&owner.key, owner.uid);
    let annotations = raw(r#"{"note":"<"}"#);
    let Creation::Made(made) = create(control, &owner, Some(&annotations), &new).await.unwrap() else {
        panic!("the name is free")
    };
    assert_eq!((made.metadata.name(), made.revision, made.data), (new.name.as_str(), 3, new.data.fingerprint()));
    let written = get(&server, &new.name);
    assert_eq!(written["metadata"]["ownerReferences"][0]["uid"], json!(owner.uid));
    assert_eq!(written["metadata"]["annotations"], json!({ "note": "<" }));
    assert_eq!(written["data"]["spec"]["template"]["$patch"], "replace");

    let again = create(control, &owner, None, &new).await.unwrap();
    assert!(matches!(&again, Creation::Made(found) if found.metadata.uid == made.metadata.uid), "{again:?}");
    let other = NewRevision { name: new.name.clone(), ..new_revision("2") };
    assert_eq!(create(control, &owner, None, &other).await.unwrap(), Creation::Taken);
    let renamed = other.renamed("web", 1);
    assert!(matches!(create(control, &owner, None, &renamed).await.unwrap(), Creation::Made(_)));
    server.on("create", "controllerrevisions").once().answer(403, "Forbidden", "exceeded quota");
    assert!(create(control, &owner, None, &new_revision("3")).await.unwrap_err().is_forbidden());
}

/// Rows of upstream's `TestRealHistory_UpdateControllerRevision` and `TestRealHistory_DeleteControllerRevision`. There
/// the write is tried again at once after a conflict; here the key is.
#[tokio::test]
async fn a_revision_is_numbered_anew_and_deleted_as_it_was_seen() {
    let server = Server::new();
    server.add(&stored("a", "1", 1));
    let (control, owner) = (control(&server), owner("web"));
    let for_key = control.for_key(&owner.key, owner.uid);
    let key = Key::new("default", "a");
    let read = async || control.get::<ControllerRevision>(&CONTROLLER_REVISIONS, &key).await.unwrap();
    let seen = read().await;
    renumber(for_key, &seen, 7).await.unwrap();
    assert_eq!(get(&server, "a")["revision"], 7);
    assert_eq!(read().await.data, seen.data);
    assert!(renumber(for_key, &seen, 8).await.unwrap_err().is_conflict());
    let seen = read().await;
    label(for_key, &seen, REVISION_LABEL, "5d4f").await.unwrap();
    assert_eq!(get(&server, "a")["metadata"]["labels"], json!({ REVISION_LABEL: "5d4f" }));
    assert!(label(for_key, &seen, REVISION_LABEL, "other").await.unwrap_err().is_conflict());
    delete(for_key, &seen).await.unwrap();
    assert!(server.keys("controllerrevisions").is_empty());
    delete(for_key, &seen).await.unwrap();
    server.add(&stored("a", "1", 1).uid_of("another"));
    assert!(delete(for_key, &seen).await.unwrap_err().is_conflict());
}
