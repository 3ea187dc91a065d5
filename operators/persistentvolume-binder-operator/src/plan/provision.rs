//! Who provisions a volume for a claim that none fits.
//!
//! Upstream: `provisionClaim`.

use shared::api::csi_translation::InTreePlugin;
use shared::api::object::Kind;
use shared::working::events::PlannedEvent;

use super::edits::{ClaimEdit, Operation, Step};
use super::fit::Misfit;
use super::migration;
use super::{Again, Config, Plan, Reason};
use crate::objects::StorageClass;
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::volume::{HOST_PATH, NFS};

const PROVISIONING_FAILED: &str = "ProvisioningFailed";
const EXTERNAL_PROVISIONING: &str = "ExternalProvisioning";

pub(super) fn plan(
    claim: &PersistentVolumeClaim,
    class: Option<&StorageClass>,
    nearest: Vec<Misfit>,
    config: Config,
) -> Plan {
    let name = claim.class().clone();
    if !config.provisions {
        let reason = Reason::ProvisioningIsOff { class: name, nearest };
        return Plan { again: Again::Later, ..Plan::nothing(reason) };
    }
    let outcome = class.ok_or_else(|| format!("storageclass.storage.k8s.io {:?} not found", name.as_str()));
    let outcome = outcome.and_then(|class| Ok((class, provisioner(class)?)));
    let later = |steps, reason| Plan { again: Again::Later, ..Plan::of_claim(claim, steps, reason) };
    let failed = |mut steps: Vec<Step>, why: String| {
        let event = PlannedEvent::warning(claim.reference(), PROVISIONING_FAILED, why.clone());
        steps.push(Step::Tell(event));
        later(steps, Reason::CannotProvision { class: name.clone(), why, nearest: nearest.clone() })
    };
    let (class, provisioner) = match outcome {
        Ok(outcome) => outcome,
        Err(why) => return failed(Vec::new(), why),
    };
    match provisioner {
        Provisioner::HostPath if claim.has_data_source() => {
            let why = format!(
                "plugin {HOST_PATH:?} is not a CSI plugin. Only CSI plugin can provision a claim with a datasource"
            );
            failed(vec![Step::CountFailure(Operation::Provision)], why)
        }
        Provisioner::HostPath => {
            let mut steps = named(claim, HOST_PATH);
            steps.push(Step::CountFailure(Operation::Provision));
            failed(steps, cannot_provision(class))
        }
        Provisioner::External(provisioner) => {
            let message = format!(
                "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by \
                 the system administrator. If volume creation is delayed, please verify that the provisioner is \
                 running and correctly registered."
            );
            let mut steps = named(claim, provisioner);
            steps.push(Step::Tell(PlannedEvent::normal(claim.reference(), EXTERNAL_PROVISIONING, message)));
            let node = claim.metadata.annotations.selected_node.clone();
            later(steps, Reason::Provisioner { class: name.clone(), provisioner: provisioner.into(), node, nearest })
        }
    }
}

enum Provisioner<'a> {
    External(&'a str),
    HostPath,
}

/// Upstream: `findProvisionablePlugin`.
fn provisioner(class: &StorageClass) -> Result<Provisioner<'_>, String> {
    match (InTreePlugin::named(&class.provisioner), &*class.provisioner) {
        (Some(plugin), _) => Ok(Provisioner::External(plugin.driver)),
        (None, HOST_PATH) => Ok(Provisioner::HostPath),
        (None, NFS) => Err("no provisionable volume plugin matched".to_owned()),
        (None, name) if name.starts_with("kubernetes.io/") => Err(format!("no volume plugin matched name: {name}")),
        (None, name) => Ok(Provisioner::External(name)),
    }
}

/// The provisioning of folders on the controller's host is for tests of upstream, and off there, too.
///
/// Upstream: `provisionClaimOperation`, and `NewProvisioner`, `pkg/volume/hostpath/host_path.go`.
fn cannot_provision(class: &StorageClass) -> String {
    let options = class.mount_options.as_deref().unwrap_or_default();
    if options.is_empty() {
        return format!("Failed to create provisioner: provisioning in volume plugin {HOST_PATH:?} is disabled");
    }
    let name = class.metadata.name();
    format!(
        "Mount options are not supported by the provisioner but StorageClass {name:?} has mount options [{}]",
        options.join(" ")
    )
}

/// Upstream: `setClaimProvisioner`.
fn named(claim: &PersistentVolumeClaim, name: &str) -> Vec<Step> {
    let annotations = &claim.metadata.annotations;
    if annotations.provisioner.as_deref() == Some(name) {
        return Vec::new();
    }
    let migrated_to = migration::driver(name, annotations.migrated_to.as_deref());
    vec![Step::Claim(ClaimEdit::Provisioner { name: name.into(), migrated_to })]
}
