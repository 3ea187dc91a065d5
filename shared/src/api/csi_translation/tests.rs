use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::source::{ebs_volume, storage_account};
use super::*;

fn raw(json: &Value) -> Box<RawValue> {
    RawValue::from_string(json.to_string()).unwrap()
}

/// The translation of a PersistentVolume, or upstream's error.
fn persistent(volume: &Value) -> Result<Value, String> {
    let json = raw(volume);
    let translated = persistent_volume(&json).map_err(|error| error.to_string())?;
    serde_json::from_str(translated.get()).map_err(|error| error.to_string())
}

/// The name and the spec of a pod's volume `name` as a PersistentVolume, or upstream's error.
fn inline(source: &Value, namespace: &str) -> Result<(String, Value), String> {
    let source: InTreeSource = serde_json::from_value(source.clone()).map_err(|error| error.to_string())?;
    let volume = source.inline("name", namespace).map_err(|error| error.to_string())?;
    let spec: Value = serde_json::from_str(volume.spec().get()).map_err(|error| error.to_string())?;
    assert_eq!(spec["csi"]["driver"], volume.driver());
    assert_eq!(spec["csi"]["volumeHandle"], volume.volume_handle());
    Ok((volume.name, spec))
}

#[test]
fn each_source_and_each_name_has_one_plugin_and_one_driver() {
    for plugin in IN_TREE_PLUGINS {
        assert_eq!(InTreePlugin::of_volume(|field| field == plugin.source), Some(plugin));
        assert_eq!(InTreePlugin::named(plugin.name), Some(plugin));
        assert_eq!(InTreePlugin::named(plugin.driver), None);
    }
    assert_eq!(InTreePlugin::of_volume(|field| field == "csi"), None);
    let columns: [fn(InTreePlugin) -> &'static str; 3] =
        [|plugin| plugin.name, |plugin| plugin.driver, |plugin| plugin.source];
    for column in columns {
        assert_eq!(IN_TREE_PLUGINS.map(column).into_iter().collect::<BTreeSet<_>>().len(), IN_TREE_PLUGINS.len());
    }
}

/// Upstream: `TestPluginNameMappings`.
#[test]
fn a_plugin_has_the_driver_that_replaces_it() {
    for (name, driver) in
        [("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"), ("kubernetes.io/aws-ebs", "ebs.csi.aws.com")]
    {
        assert_eq!(InTreePlugin::named(name).map(|plugin| plugin.driver), Some(driver));
    }
}

/// Upstream: `TestTranslationStability`, up to the driver's volume.
#[test]
fn only_the_source_of_a_volume_changes() {
    let gce =
        json!({ "gcePersistentDisk": { "pdName": "test-disk", "fsType": "ext4", "partition": 0, "readOnly": false } });
    let aws =
        json!({ "awsElasticBlockStore": { "volumeID": "vol01", "fsType": "ext3", "partition": 1, "readOnly": true } });
    for (name, spec, csi) in [
        (
            "GCE PD PV Source",
            gce,
            json!({
                "driver": "pd.csi.storage.gke.io", "fsType": "ext4", "volumeAttributes": { "partition": "" },
                "volumeHandle": "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/test-disk",
            }),
        ),
        (
            "AWS EBS PV Source",
            aws,
            json!({
                "driver": "ebs.csi.aws.com", "volumeHandle": "vol01", "readOnly": true, "fsType": "ext3",
                "volumeAttributes": { "partition": "1" },
            }),
        ),
    ] {
        assert_eq!(persistent(&json!({ "spec": spec })), Ok(json!({ "spec": { "csi": csi } })), "{name}");
    }
}

#[test]
fn unknown_fields_stay_in_their_form_and_other_volumes_as_they_are() {
    let requirement = r#"{"key":"a","operator":"Exists","new":true}"#;
    let affinity =
        format!(r#"{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":[{requirement}],"matchFields":[]}}]}}}}"#);
    let source = r#""awsElasticBlockStore":{"volumeID":"vol-1","new":1},"#;
    let spec = format!(r#"{{{source}"capacity":{{"storage":"1Gi"}},"nodeAffinity":{affinity},"new":{{"a":-0.0}}}}"#);
    let text = format!(
        r#"{{"metadata":{{"name":"a","new":[ 1e400 ]}},"spec":{spec},"status":{{"phase":"Bound"}},"new":"\u003c"}}"#
    );
    let json = RawValue::from_string(text.clone()).unwrap();
    let csi = r#""csi":{"driver":"ebs.csi.aws.com","volumeHandle":"vol-1","volumeAttributes":{"partition":"0"}},"#;
    let expected = text.replace(source, "");
    let expected = expected.replace(r#""nodeAffinity""#, &format!(r#"{csi}"nodeAffinity""#));
    assert_eq!(persistent_volume(&json).unwrap().get(), expected);

    for same in [r#"{"spec":{"csi":{"driver":"a"},"awsElasticBlockStore":null}}"#, r#"{"metadata":{}}"#, "null"] {
        let json = RawValue::from_string(same.to_owned()).unwrap();
        assert!(matches!(persistent_volume(&json), Ok(Cow::Borrowed(volume)) if volume.get() == same), "{same}");
    }
}

const VOLUME: &str = "vol-02399794d890f9375";
const AWS_VOLUME: &str = "aws:///vol-02399794d890f9375";
const AWS_ZONE_VOLUME: &str = "aws://us-west-2a/vol-02399794d890f9375";
const INVALID_VOLUME: &str = "aws://us-west-2a/02399794d890f9375";

/// Upstream: `TestKubernetesVolumeIDToEBSVolumeID`, and `TestTranslateInTreeInlineVolumeToCSI` of `aws_ebs_test.go`;
/// the latter's row without a source cannot be written here.
#[test]
fn the_handle_of_an_ebs_volume_is_its_id_without_the_zone() {
    for (name, id, expected) in [
        ("Normal ID format", VOLUME, Some(VOLUME)),
        ("aws:///{volumeId} format", AWS_VOLUME, Some(VOLUME)),
        ("aws://{zone}/{volumeId} format", AWS_ZONE_VOLUME, Some(VOLUME)),
        ("fails on invalid volume ID", INVALID_VOLUME, None),
        ("two segments", "aws://us-west-2a/vol-1/vol-2", None),
        ("no path", "aws://vol-1", None),
        ("a query", "aws:///vol-1?a=/b#c", Some("vol-1")),
    ] {
        assert_eq!(ebs_volume(id).ok(), expected, "{name}");
        let volume = inline(&json!({ "awsElasticBlockStore": { "volumeID": id } }), "");
        let named = expected.map(|volume| (format!("ebs.csi.aws.com-{volume}"), Value::from(volume)));
        assert_eq!(volume.ok().map(|(name, spec)| (name, spec["csi"]["volumeHandle"].clone())), named, "{name}");
    }
    let error = "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume \
                 (aws://us-west-2a/02399794d890f9375)";
    let volume = json!({ "spec": { "awsElasticBlockStore": { "volumeID": INVALID_VOLUME } } });
    assert_eq!(persistent(&volume), Err(error.to_owned()));
}

/// Upstream: `TestTranslateAzureDiskInTreeInlineVolumeToCSI`; its rows without a source cannot be written here.
#[test]
fn an_azure_disk_of_a_pod_is_named_by_its_uri() {
    let spec = json!({
        "csi": {
            "driver": "disk.csi.azure.com", "volumeHandle": "datadiskuri", "volumeAttributes": { "kind": "Managed" },
        },
        "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
    });
    let row = |disk: Value| inline(&json!({ "azureDisk": disk }), "");
    let disk = json!({ "diskName": "diskname", "diskURI": "datadiskuri" });
    assert_eq!(row(disk), Ok(("datadiskuri".to_owned(), spec)), "azure disk volume");
    let not_managed = json!({ "diskName": "diskname", "diskURI": "datadiskuri", "kind": "Dedicated" });
    let error = Err("kind(Dedicated) is not supported in csi migration".to_owned());
    assert_eq!(row(not_managed), error, "azure disk volume with non-managed kind");
}

/// Upstream: `TestTranslateAzureDiskInTreePVToCSI`.
#[test]
fn an_azure_disk_keeps_its_attributes() {
    const URI: &str = "/subscriptions/12/resourceGroups/23/providers/Microsoft.Compute/disks/name";
    let disk = json!({ "cachingMode": "cachingmode", "diskURI": URI, "fsType": "fstype", "readOnly": true });
    let mut not_managed = disk.clone();
    not_managed["kind"] = "Dedicated".into();
    let csi = json!({
        "driver": "disk.csi.azure.com", "fsType": "fstype", "readOnly": true, "volumeHandle": URI,
        "volumeAttributes": { "cachingmode": "cachingmode", "fstype": "fstype", "kind": "Managed" },
    });
    assert_eq!(persistent(&json!({ "spec": {} })), Ok(json!({ "spec": {} })), "no azure disk volume");
    let volume = persistent(&json!({ "spec": { "azureDisk": disk } }));
    assert_eq!(volume, Ok(json!({ "spec": { "csi": csi } })), "azure disk volume");
    let error = Err("kind(Dedicated) is not supported in csi migration".to_owned());
    let volume = persistent(&json!({ "spec": { "azureDisk": not_managed } }));
    assert_eq!(volume, error, "azure disk volume with non-managed kind");
}

/// Upstream: `TestTranslateAzureFileInTreeStorageClassToCSI`, which is about volumes of pods; its rows without a
/// source cannot be written here.
#[test]
fn an_azure_file_of_a_pod_has_its_secret_in_the_pods_namespace() {
    let share = json!({ "azureFile": { "readOnly": true, "secretName": "secretname", "shareName": "sharename" } });
    for (name, namespace, expected) in
        [("azure file volume", "", "default"), ("azure file volume with a pod namespace", "test", "test")]
    {
        let handle = format!("#secretname#sharename#name#{expected}");
        let csi = json!({
            "driver": "file.csi.azure.com", "nodeStageSecretRef": { "name": "secretname", "namespace": expected },
            "readOnly": true, "volumeAttributes": { "sharename": "sharename" }, "volumeHandle": handle,
        });
        let spec = json!({ "csi": csi, "accessModes": ["ReadWriteMany"], "volumeMode": "Filesystem" });
        assert_eq!(inline(&share, namespace), Ok((handle, spec)), "{name}");
    }
}

/// Upstream: `TestTranslateAzureFileInTreePVToCSI`.
#[test]
fn an_azure_file_names_the_namespace_of_its_secret_or_has_its_claims() {
    let share = |namespace: Option<&str>| {
        let mut share = json!({ "shareName": "sharename", "secretName": "secretname", "readOnly": true });
        if let Some(namespace) = namespace {
            share["secretNamespace"] = namespace.into();
        }
        share
    };
    let group = json!({ "name": "uuid", "annotations": { "kubernetes.io/azure-file-resource-group": "rg" } });
    let csi = |group: &str| {
        json!({
            "driver": "file.csi.azure.com", "readOnly": true, "volumeAttributes": { "sharename": "sharename" },
            "nodeStageSecretRef": { "name": "secretname", "namespace": "secretnamespace" },
            "volumeHandle": format!("{group}#secretname#sharename#uuid#secretnamespace"),
        })
    };
    let claim = json!({ "namespace": "secretnamespace" });
    assert_eq!(persistent(&json!({ "spec": {} })), Ok(json!({ "spec": {} })), "no azure file volume");
    let error = Err("could not find a secret namespace in PersistentVolumeSource or ClaimRef".to_owned());
    let volume = persistent(&json!({ "metadata": group, "spec": { "azureFile": share(None) } }));
    assert_eq!(volume, error, "return error if secret namespace could not be found");
    let volume =
        persistent(&json!({ "metadata": { "name": "uuid" }, "spec": { "azureFile": share(Some("secretnamespace")) } }));
    assert_eq!(volume, Ok(json!({ "metadata": { "name": "uuid" }, "spec": { "csi": csi("") } })), "azure file volume");
    let volume = persistent(&json!({ "metadata": group, "spec": { "azureFile": share(Some("secretnamespace")) } }));
    let expected = Ok(json!({ "metadata": group, "spec": { "csi": csi("rg") } }));
    assert_eq!(volume, expected, "azure file volume with rg annotation");
    let volume = persistent(&json!({ "metadata": group, "spec": { "azureFile": share(None), "claimRef": claim } }));
    let expected = Ok(json!({ "metadata": group, "spec": { "csi": csi("rg"), "claimRef": claim } }));
    assert_eq!(volume, expected, "get secret namespace from ClaimRef when it's missing in pv spec source");
}

/// Upstream: `TestGetStorageAccount`.
#[test]
fn the_storage_account_is_in_the_secrets_name() {
    for (secret, expected) in [
        ("azure-storage-account-accountname-secret", Some("accountname")),
        ("azure-storage-account-accountname-dup-secret", Some("accountname-dup")),
        ("invalid", None),
        ("azure-storage-account--secret", None),
    ] {
        assert_eq!(storage_account(secret), expected, "{secret}");
    }
    let share = json!({ "azureFile": { "secretName": "azure-storage-account-a-secret", "shareName": "s" } });
    assert_eq!(inline(&share, "").unwrap().0, "#a#s#name#default");
}

/// Upstream: `TestBackwardCompatibleAccessModes`.
#[test]
fn a_gce_disk_is_attached_as_its_in_tree_plugin_did() {
    const RWO: &str = "ReadWriteOnce";
    const ROX: &str = "ReadOnlyMany";
    const RWX: &str = "ReadWriteMany";
    for (name, modes, expected) in [
        ("ROX", &[ROX][..], ROX),
        ("RWO", &[RWO], RWO),
        ("RWX", &[RWX], RWO),
        ("RWO, ROX", &[ROX, RWO], RWO),
        ("RWO, RWX", &[RWO, RWX], RWO),
        ("RWX, ROX", &[RWX, ROX], RWO),
        ("RWX, ROX, RWO", &[RWX, RWO, ROX], RWO),
    ] {
        let volume = |source: &str| persistent(&json!({ "spec": { source: {}, "accessModes": modes } })).unwrap();
        assert_eq!(volume("gcePersistentDisk")["spec"]["accessModes"], json!([expected]), "{name}");
        assert_eq!(volume("cinder")["spec"]["accessModes"], json!(modes), "{name}");
    }
    assert_eq!(persistent(&json!({ "spec": { "gcePersistentDisk": {} } })).unwrap()["spec"].get("accessModes"), None);
}

/// Upstream: `TestInlineReadOnly`.
#[test]
fn a_gce_disk_that_a_pod_only_reads_is_attached_to_many_nodes() {
    let (name, spec) = inline(&json!({ "gcePersistentDisk": { "pdName": "foo", "readOnly": true } }), "").unwrap();
    assert_eq!((name, &spec["csi"]["readOnly"]), ("pd.csi.storage.gke.io-foo".to_owned(), &json!(true)));
    assert_eq!(spec["accessModes"], json!(["ReadOnlyMany"]));
}

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";

/// Upstream: `TestTranslateInTreePVToCSIVolIDFmt`.
#[test]
fn the_handle_of_a_gce_disk_has_its_zone_or_its_region() {
    let volume = |label: &str, zones: &str| {
        let metadata = json!({ "labels": { label: zones } });
        persistent(&json!({ "metadata": metadata, "spec": { "gcePersistentDisk": { "pdName": "pd-name" } } }))
    };
    for (name, label, zones, place) in [
        ("beta topology key zonal", BETA_ZONE, "us-east1-a", "zones/us-east1-a"),
        ("v1 topology key zonal", ZONE, "us-east1-a", "zones/us-east1-a"),
        ("beta topology key regional", BETA_ZONE, "us-central1-a__us-central1-c", "regions/us-central1"),
        ("v1 topology key regional", ZONE, "us-central1-a__us-central1-c", "regions/us-central1"),
    ] {
        let handle = format!("projects/UNSPECIFIED/{place}/disks/pd-name");
        assert_eq!(volume(label, zones).unwrap()["spec"]["csi"]["volumeHandle"], json!(handle), "{name}");
    }
    for (zones, error) in [
        ("a-b-c__d", "zone in unexpected format, expected: {locale}-{region}-{zone}, got: d"),
        ("a-b-c__a-c-d", "multiple or no regions gotten from zones, got: a-b, a-c"),
    ] {
        assert_eq!(volume(ZONE, zones), Err(format!("failed to get region from zones: {error}")));
    }
}

/// Upstream: `TestTranslatePortworxInTreeInlineVolumeToCSI`; its row without a source cannot be written here.
#[test]
fn a_portworx_volume_of_a_pod_is_named_by_its_id() {
    let row = |read_only: bool| {
        inline(&json!({ "portworxVolume": { "volumeID": "ID", "fsType": "type", "readOnly": read_only } }), "ns")
    };
    let spec = |mode: &str| {
        let csi = json!({ "driver": "pxd.portworx.com", "volumeHandle": "ID", "fsType": "type" });
        json!({ "csi": csi, "accessModes": [mode], "volumeMode": "Filesystem" })
    };
    let name = || "pxd.portworx.com-ID".to_owned();
    assert_eq!(row(false), Ok((name(), spec("ReadWriteOnce"))), "normal");
    assert_eq!(row(true), Ok((name(), spec("ReadOnlyMany"))));
}

/// Upstream: `TestTranslatePortworxInTreePVToCSI`.
#[test]
fn annotations_name_the_secret_of_a_portworx_volume() {
    let volume = |annotations: &Value, source: Value| {
        let mut volume = json!({
            "metadata": { "name": "pxd.portworx.com", "annotations": annotations },
            "spec": { "accessModes": ["ReadWriteOnce"], "claimRef": { "name": "test-pvc", "namespace": "default" } },
        });
        volume["spec"].as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        volume
    };
    let portworx = json!({ "portworxVolume": { "volumeID": "ID1111", "fsType": "type", "readOnly": false } });
    let csi = |secrets: Value| {
        let mut csi = json!({ "driver": "pxd.portworx.com", "volumeHandle": "ID1111", "fsType": "type" });
        csi.as_object_mut().unwrap().extend(secrets.as_object().unwrap().clone());
        json!({ "csi": csi })
    };
    let (none, secret) = (json!({}), json!({ "name": "test-secret", "namespace": "test-namespace" }));
    let half = json!({ "openstorage.io/auth-secret-name": "test-secret" });
    let annotated = json!({
        "openstorage.io/auth-secret-name": "test-secret", "openstorage.io/auth-secret-namespace": "test-namespace",
    });
    let secrets = json!({
        "controllerPublishSecretRef": secret, "nodeStageSecretRef": secret, "nodePublishSecretRef": secret,
        "controllerExpandSecretRef": secret, "nodeExpandSecretRef": secret,
    });
    assert_eq!(persistent(&volume(&none, json!({}))), Ok(volume(&none, json!({}))), "no Portworx volume");
    for (name, annotations, secrets) in [
        ("normal", &none, none.clone()),
        ("with secret annotations", &annotated, secrets),
        ("one", &half, none.clone()),
    ] {
        let translated = persistent(&volume(annotations, portworx.clone()));
        assert_eq!(translated, Ok(volume(annotations, csi(secrets))), "{name}");
    }
}

const PATH: &str = "[vsanDatastore] 6785a85e-268e-6352-a2e8-02008b7afadd/kubernetes-dynamic-pvc-68734c9f.vmdk";

/// Upstream: `TestTranslateVSphereInTreePVToCSI`.
#[test]
fn a_vsphere_volume_gets_its_zone_and_region_by_the_drivers_keys() {
    let source = json!({ "volumePath": PATH, "fsType": "ext4", "storagePolicyName": "vSAN Default Storage Policy" });
    let csi = json!({
        "driver": "csi.vsphere.vmware.com", "volumeHandle": PATH, "fsType": "ext4",
        "volumeAttributes": { "storagepolicyname": "vSAN Default Storage Policy" },
    });
    let affinity =
        affinity(&[&[("topology.csi.vmware.com/zone", &["z1"]), ("topology.csi.vmware.com/region", &["r1"])]]);
    assert_eq!(
        persistent(&json!({ "spec": {} })),
        Ok(json!({ "spec": {} })),
        "expect error when in-tree vsphere PV is nil"
    );
    for (name, labels, affinity) in [
        ("translate valid vSphere in-tree PV to vSphere CSI PV", json!({}), None),
        (
            "translate valid vSphere in-tree PV with beta topology labels to vSphere CSI PV",
            json!({ BETA_ZONE: "z1", BETA_REGION: "r1" }),
            Some(&affinity),
        ),
        (
            "translate valid vSphere in-tree PV with GA topology labels to vSphere CSI PV",
            json!({ ZONE: "z1", REGION: "r1" }),
            Some(&affinity),
        ),
    ] {
        let metadata = json!({ "name": "pvc-d8b4475f-2c47-486e-9b57-43ae006f9b59", "labels": labels });
        let spec = json!({ "vsphereVolume": source, "accessModes": ["ReadWriteOnce"] });
        let mut expected = json!({ "csi": csi, "accessModes": ["ReadWriteOnce"] });
        if let Some(affinity) = affinity {
            expected["nodeAffinity"] = affinity.clone();
        }
        let volume = persistent(&json!({ "metadata": metadata, "spec": spec }));
        assert_eq!(volume, Ok(json!({ "metadata": metadata, "spec": expected })), "{name}");
    }
}

/// Upstream: `TestTranslatevSphereInTreeInlineVolumeToCSI`; its row without a source cannot be written here. Upstream
/// panics at the second row.
#[test]
fn a_vsphere_volume_of_a_pod_is_named_by_its_path() {
    let path = "[vsanDatastore] volume/inlinevolume.vmdk";
    let row = |source: Value| inline(&json!({ "vsphereVolume": source }), "");
    let spec = |csi: Value| json!({ "csi": csi, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem" });
    let name = || format!("csi.vsphere.vmware.com-{path}");
    let csi = json!({ "driver": "csi.vsphere.vmware.com", "volumeHandle": path, "fsType": "ext4" });
    let expected = Ok((name(), spec(csi)));
    let volume = row(json!({ "volumePath": path, "fsType": "ext4" }));
    assert_eq!(volume, expected, "translate valid in-tree vsphere volume to vSphere CSI PV");
    let csi = json!({
        "driver": "csi.vsphere.vmware.com", "volumeHandle": path, "volumeAttributes": { "storagepolicyname": "gold" },
    });
    assert_eq!(row(json!({ "volumePath": path, "storagePolicyName": "gold" })), Ok((name(), spec(csi))));
}

/// Terms of requirements, each a key and its values.
fn affinity(terms: &[&[(&str, &[&str])]]) -> Value {
    let requirement = |(key, values): &(&str, &[&str])| json!({ "key": key, "operator": "In", "values": values });
    let term = |requirements: &&[(&str, &[&str])]| {
        let requirements: Vec<Value> = requirements.iter().map(requirement).collect();
        json!({ "matchExpressions": requirements })
    };
    json!({ "required": { "nodeSelectorTerms": terms.iter().map(term).collect::<Vec<_>>() } })
}

const GCE: &str = "topology.gke.io/zone";
const EBS: &str = "topology.ebs.csi.aws.com/zone";
const CINDER: &str = "topology.cinder.csi.openstack.org/zone";

const GCE_PD: &str = "gcePersistentDisk";
const AWS_EBS: &str = "awsElasticBlockStore";
const BETA: Labels = &[(BETA_ZONE, EAST_1A), (BETA_REGION, "us-east-1")];
const NEWER: Labels = &[(ZONE, EAST_1A), (REGION, "us-east-1")];
const EAST_1A: &str = "us-east-1a";
const EAST_2A: &str = "us-east-2a";
const B: &str = "europe-west1-b";
const C: &str = "europe-west1-c";
const F: &str = "europe-west1-f";
const G: &str = "europe-west1-g";

/// Terms of requirements, each a key and its values.
type Terms = &'static [&'static [(&'static str, &'static [&'static str])]];

type Labels = &'static [(&'static str, &'static str)];

/// A source, labels, and the requirements before and after.
const TOPOLOGIES: &[(&str, &str, Labels, Terms, Terms)] = &[
    ("GCE PD with beta zone labels", GCE_PD, BETA, &[], &[&[(GCE, &[EAST_1A])]]),
    ("GCE PD with GA kubernetes zone labels", GCE_PD, NEWER, &[], &[&[(GCE, &[EAST_1A])]]),
    ("GCE PD with existing topology (beta keys)", GCE_PD, &[], &[&[(BETA_ZONE, &[EAST_2A])]], &[&[(GCE, &[EAST_2A])]]),
    ("GCE PD with existing topology (CSI keys)", GCE_PD, &[], &[&[(GCE, &[EAST_2A])]], &[&[(GCE, &[EAST_2A])]]),
    ("GCE PD with zone labels and topology", GCE_PD, BETA, &[&[(BETA_ZONE, &[EAST_2A])]], &[&[(GCE, &[EAST_2A])]]),
    ("GCE PD with regional zones", GCE_PD, &[(BETA_ZONE, "europe-west1-b__europe-west1-c")], &[], &[&[(GCE, &[B, C])]]),
    ("GCE PD with regional topology", GCE_PD, &[], &[&[(ZONE, &[B, C])]], &[&[(GCE, &[B, C])]]),
    (
        "GCE PD with Beta regional zone and topology",
        GCE_PD,
        &[(BETA_ZONE, "europe-west1-b__europe-west1-c")],
        &[&[(BETA_ZONE, &[F, G])]],
        &[&[(GCE, &[F, G])]],
    ),
    (
        "GCE PD with GA regional zone and topology",
        GCE_PD,
        &[(ZONE, "europe-west1-b__europe-west1-c")],
        &[&[(ZONE, &[F, G])]],
        &[&[(GCE, &[F, G])]],
    ),
    (
        "GCE PD with multiple node selector terms",
        GCE_PD,
        &[],
        &[&[(ZONE, &[F])], &[(ZONE, &[G])]],
        &[&[(GCE, &[F])], &[(GCE, &[G])]],
    ),
    ("AWS EBS with beta zone labels", AWS_EBS, BETA, &[], &[&[(EBS, &[EAST_1A])]]),
    (
        "AWS EBS with beta zone labels and topology",
        AWS_EBS,
        BETA,
        &[&[(BETA_ZONE, &[EAST_2A])]],
        &[&[(EBS, &[EAST_2A])]],
    ),
    ("AWS EBS with GA zone labels", AWS_EBS, NEWER, &[], &[&[(EBS, &[EAST_1A])]]),
    ("AWS EBS with GA zone labels and topology", AWS_EBS, NEWER, &[&[(ZONE, &[EAST_2A])]], &[&[(EBS, &[EAST_2A])]]),
    ("OpenStack Cinder with zone labels", "cinder", BETA, &[], &[&[(CINDER, &[EAST_1A])]]),
    (
        "OpenStack Cinder with zone labels and topology",
        "cinder",
        BETA,
        &[&[(BETA_ZONE, &[EAST_2A])]],
        &[&[(CINDER, &[EAST_2A])]],
    ),
    (
        "Replace GA Kubernetes Zone Topology to GCE CSI Topology",
        GCE_PD,
        NEWER,
        &[&[(ZONE, &["us-east1-a"]), (REGION, &["us-east1"])]],
        &[&[(GCE, &["us-east1-a"]), (REGION, &["us-east1"])]],
    ),
    (
        "Replace Beta Kubernetes Topology to GCE CSI Topology and upgrade region label",
        GCE_PD,
        NEWER,
        &[&[(BETA_ZONE, &["us-west2-b"]), (BETA_REGION, &["us-west2"])]],
        &[&[(GCE, &["us-west2-b"]), (REGION, &["us-west2"])]],
    ),
];

/// Upstream: `TestTopologyTranslation` up to the driver's volume, and `TestTranslateTopologyFromInTreeToCSI`.
#[test]
fn the_zones_of_a_volume_get_the_drivers_key() {
    for (name, source, labels, before, after) in TOPOLOGIES {
        let topology = if before.is_empty() { Value::Null } else { affinity(before) };
        let spec = json!({ (*source): { "volumeID": "vol01", "pdName": "test-disk" }, "nodeAffinity": topology });
        let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
        let volume = persistent(&json!({ "metadata": { "labels": labels }, "spec": spec })).unwrap();
        assert_eq!(volume["spec"]["nodeAffinity"], affinity(after), "{name}");
    }
}

/// Upstream: `TestAddTopology`.
#[test]
fn zones_are_required_sorted_and_without_blanks() {
    for (name, zones, expected) in [
        ("empty zones", "", None),
        ("only whitespace-named zones", " __\n__\t__  ", None),
        ("including whitespace-named zones", " __us-central1-a", Some(&["us-central1-a"][..])),
        (
            "unsorted zones",
            "us-central1-f__us-central1-a__us-central1-c__us-central1-b",
            Some(&["us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f"]),
        ),
    ] {
        let volume = json!({ "metadata": { "labels": { ZONE: zones } }, "spec": { "cinder": {} } });
        let expected = expected.map(|zones| affinity(&[&[(CINDER, zones)]]));
        assert_eq!(persistent(&volume).unwrap()["spec"].get("nodeAffinity"), expected.as_ref(), "{name}");
    }
    let terms = affinity(&[&[("a", &["1"])], &[("b", &["2"])]]);
    let volume = json!({ "metadata": { "labels": { ZONE: "z" } }, "spec": { "cinder": {}, "nodeAffinity": terms } });
    let expected = affinity(&[&[("a", &["1"]), (CINDER, &["z"])], &[("b", &["2"]), (CINDER, &["z"])]]);
    assert_eq!(persistent(&volume).unwrap()["spec"]["nodeAffinity"], expected);
}

/// Upstream: `TestReplaceTopology`, towards the driver.
#[test]
fn a_key_is_replaced_in_each_term_and_never_merged() {
    for (name, topology, expected) in [
        ("Replace single csi topology from PV", affinity(&[&[(ZONE, &["a"])]]), affinity(&[&[(CINDER, &["a"])]])),
        (
            "Not found the topology key so do nothing",
            affinity(&[&[(CINDER, &["a"])]]),
            affinity(&[&[(CINDER, &["a"])]]),
        ),
        (
            "Replace the topology key from multiple terms",
            affinity(&[&[(ZONE, &["a"])], &[(ZONE, &["c"])]]),
            affinity(&[&[(CINDER, &["a"])], &[(CINDER, &["c"])]]),
        ),
        (
            "Replace the topology key from single term and not combine topology key",
            affinity(&[&[(ZONE, &["a"]), (CINDER, &["c"])]]),
            affinity(&[&[(CINDER, &["a"]), (CINDER, &["c"])]]),
        ),
    ] {
        let volume = persistent(&json!({ "spec": { "cinder": {}, "nodeAffinity": topology } })).unwrap();
        assert_eq!(volume["spec"]["nodeAffinity"], expected, "{name}");
    }
}

/// Upstream: `TestTranslateInTreeInlineVolumeToCSINameUniqueness`.
#[test]
fn different_volumes_of_pods_have_different_names() {
    for plugin in IN_TREE_PLUGINS {
        let name = |id: &str| {
            let ids = json!({ "volumeID": id, "diskURI": id, "shareName": id, "pdName": id, "volumePath": id });
            inline(&json!({ plugin.source: ids }), "").unwrap().0
        };
        assert_ne!(name("a"), name("b"), "{}", plugin.driver);
    }
}

proptest! {
    /// Any field of a translated volume may have any type.
    #[test]
    fn no_volume_is_translated_twice_and_none_panics(
        source in prop::sample::select(&IN_TREE_PLUGINS[..]),
        field in prop::sample::select(&["", "labels", "nodeAffinity", "accessModes", "claimRef", "required"][..]),
        value in prop::sample::select(&["null", "1", "[]", "{}", "\"a\"", "[1]", "{\"a\":1}"][..]),
    ) {
        let part = |name: &str, other: &str| if field == name { value.to_owned() } else { other.to_owned() };
        let text = format!(
            r#"{{"metadata":{{"labels":{}}},"spec":{{"{}":{},"nodeAffinity":{},"accessModes":{},"claimRef":{}}}}}"#,
            part("labels", r#"{"topology.kubernetes.io/zone":"z"}"#),
            source.source,
            part("", "{}"),
            part("nodeAffinity", &format!(r#"{{"required":{}}}"#, part("required", "null"))),
            part("accessModes", "null"),
            part("claimRef", r#"{"namespace":"a"}"#),
        );
        let json = RawValue::from_string(text).unwrap();
        if let Ok(translated) = persistent_volume(&json)
            && value != "null"
        {
            let again = persistent_volume(&translated).unwrap();
            prop_assert!(matches!(&again, Cow::Borrowed(same) if same.get() == translated.get()));
            prop_assert!(translated.get().contains(source.driver));
        }
    }
}
