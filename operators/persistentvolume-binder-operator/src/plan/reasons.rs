//! Why a claim or a volume is as it is.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::working::decisions;

use super::fit::Misfit;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// A CSI driver has replaced the in-tree plugin that it names, or its finalizers do not fit its plugin.
    Migration,

    /// Claim and volume name each other, and the claim's binding is complete.
    Bound {
        volume: Text,
    },
    /// The volume is bound to the claim already.
    BoundToIt {
        volume: Text,
    },
    /// Of the volumes that fit, none is smaller, and none has fewer access modes.
    SmallestThatFits {
        volume: Text,
        requested: String,
        size: String,
    },
    /// The claim names the volume, and it fits.
    Named {
        volume: Text,
    },
    NamesMissingVolume {
        volume: Text,
    },
    NamesMisfit {
        volume: Text,
        why: String,
    },
    NamesVolumeOfAnother {
        volume: Text,
        claim: Box<str>,
    },
    /// The volume says nothing of it, but the binding of another claim to it is complete. Its data may be that claim's.
    HeldByAnother {
        volume: Text,
        claim: Box<str>,
    },
    /// As [`Self::HeldByAnother`], of a claim that had the volume before etcd was restored from a backup.
    HadByAnother {
        volume: Text,
        claim: Box<str>,
    },
    WithoutCapacity {
        volume: Text,
    },

    /// It asks for no class, and there is a default one.
    DefaultClass {
        class: Text,
    },
    NoClass {
        nearest: Vec<Misfit>,
    },
    /// Its class binds once a pod that uses it is on its way to a node.
    WaitsForConsumer {
        class: Text,
        pods: Vec<Text>,
    },
    /// No volume fits, and this provisioner is to make one.
    Provisioner {
        class: Text,
        provisioner: Box<str>,
        node: Option<Text>,
        nearest: Vec<Misfit>,
    },
    CannotProvision {
        class: Text,
        why: String,
        nearest: Vec<Misfit>,
    },
    /// `--enable-dynamic-provisioning=false`.
    ProvisioningIsOff {
        class: Text,
        nearest: Vec<Misfit>,
    },
    InvalidClass {
        class: Text,
    },
    InvalidSelector {
        why: String,
    },

    LostReference,
    /// The cache does not have the volume that it is bound to.
    VolumeNotSeen {
        volume: Text,
    },
    LostVolume {
        volume: Text,
    },
    Misbound {
        volume: Text,
        claim: Box<str>,
    },

    /// The volume is bound to no claim.
    Unused,
    /// The same, but it was bound to this claim before etcd was restored from a backup.
    BeforeRestore {
        claim: Box<str>,
    },
    Reserved {
        claim: Box<str>,
    },
    /// The cache has no claim of this name and uid.
    ClaimNotSeen {
        claim: Box<str>,
    },
    /// The claim that it is bound to does not exist any more.
    ClaimGone {
        claim: Box<str>,
    },
    /// Its claim has another volume.
    ClaimBoundElsewhere {
        claim: Box<str>,
        volume: Text,
    },
    ClaimIsPending {
        claim: Box<str>,
    },
    OtherVolumeMode {
        claim: Box<str>,
    },
    BoundToClaim {
        claim: Box<str>,
    },

    Retained {
        claim: Box<str>,
    },
    DriverReclaims {
        driver: Box<str>,
    },
    UnknownPolicy {
        policy: Text,
    },
    /// To be reclaimed, once the apiserver has confirmed that nothing needs it.
    ToReclaim {
        policy: Text,
    },
    /// By the apiserver's state it is not to be reclaimed.
    NotReleased,
    CannotDelete {
        why: String,
    },
    CannotRecycle {
        why: String,
    },
    /// A pod that empties it.
    Recycler {
        pod: Box<str>,
        state: RecyclerState,
    },
    UsedByPods {
        pods: Vec<String>,
    },
    DeletesFolder {
        path: Box<str>,
    },
}

/// What a pod has to do with the volume that it empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RecyclerState {
    New,
    Running,
    Succeeded,
    /// The volume is gone.
    Orphaned,
}

impl fmt::Display for RecyclerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "is to empty it, for its claim is gone and its policy is Recycle",
            Self::Running => "empties it",
            Self::Succeeded => "has emptied it",
            Self::Orphaned => "outlived it",
        })
    }
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Migration => f.write_str("its annotations or finalizers do not say which driver it has"),
            Self::Bound { volume } => write!(f, "bound to volume {volume}"),
            Self::BoundToIt { volume } => write!(f, "volume {volume} is bound to it"),
            Self::SmallestThatFits { volume, requested, size } => {
                write!(f, "volume {volume} of {size} is the smallest that fits a request of {requested}")
            }
            Self::Named { volume } => write!(f, "it names volume {volume}, which fits"),
            Self::NamesMissingVolume { volume } => write!(f, "it names volume {volume}, which does not exist"),
            Self::NamesMisfit { volume, why } => write!(f, "it names volume {volume}: {why}"),
            Self::NamesVolumeOfAnother { volume, claim } => {
                write!(f, "it names volume {volume}, which is bound to claim {claim}")
            }
            Self::HeldByAnother { volume, claim } => {
                write!(f, "it names volume {volume}, to which the binding of claim {claim} is complete")
            }
            Self::HadByAnother { volume, claim } => {
                write!(f, "it names volume {volume}, which claim {claim} had before etcd was restored from a backup")
            }
            Self::WithoutCapacity { volume } => write!(f, "volume {volume} is without a storage capacity"),
            Self::DefaultClass { class } => write!(f, "{class} is the default class"),
            Self::NoClass { nearest } => write!(f, "no volume fits and it has no class{}", Misfits(nearest)),
            Self::WaitsForConsumer { class, pods } if pods.is_empty() => {
                write!(f, "class {class} waits for a pod that uses it")
            }
            Self::WaitsForConsumer { class, pods } => {
                write!(f, "class {class} waits until a pod is scheduled: {}", pods.join(", "))
            }
            Self::Provisioner { class, provisioner, node, nearest } => {
                write!(f, "no volume fits, and {provisioner} provisions those of class {class}")?;
                node.iter().try_for_each(|node| write!(f, " for node {node}"))?;
                Misfits(nearest).fmt(f)
            }
            Self::CannotProvision { class, why, nearest } => {
                let nearest = Misfits(nearest);
                write!(f, "no volume fits, and none of class {class} is provisioned: {why}{nearest}")
            }
            Self::ProvisioningIsOff { class, nearest } => {
                let nearest = Misfits(nearest);
                write!(f, "no volume of class {class} fits, and --enable-dynamic-provisioning is false{nearest}")
            }
            Self::InvalidClass { class } => {
                write!(f, "VolumeBindingMode not set for StorageClass {:?}", class.as_str())
            }
            Self::InvalidSelector { why } => write!(f, "error creating internal label selector for claim: {why}"),
            Self::LostReference => f.write_str("it was bound, and names no volume any more"),
            Self::VolumeNotSeen { volume } => write!(f, "the cache does not have its volume {volume}"),
            Self::LostVolume { volume } => write!(f, "its volume {volume} does not exist any more"),
            Self::Misbound { volume, claim } => write!(f, "its volume {volume} is bound to another claim, {claim}"),
            Self::Unused => f.write_str("bound to no claim"),
            Self::BeforeRestore { claim } => write!(f, "claim {claim} had it before etcd was restored from a backup"),
            Self::Reserved { claim } => write!(f, "reserved for claim {claim}"),
            Self::ClaimNotSeen { claim } => write!(f, "the cache does not have its claim {claim}"),
            Self::ClaimGone { claim } => write!(f, "its claim {claim} does not exist any more"),
            Self::ClaimBoundElsewhere { claim, volume } => write!(f, "its claim {claim} is bound to volume {volume}"),
            Self::ClaimIsPending { claim } => write!(f, "its claim {claim} is not bound to it yet"),
            Self::OtherVolumeMode { claim } => write!(f, "its claim {claim} asks for another volumeMode"),
            Self::BoundToClaim { claim } => write!(f, "bound to claim {claim}"),
            Self::Retained { claim } => write!(f, "its claim {claim} is gone, and its policy is Retain"),
            Self::DriverReclaims { driver } => write!(f, "{driver} reclaims it"),
            Self::UnknownPolicy { policy } => write!(f, "its policy {policy} is unknown"),
            Self::ToReclaim { policy } => write!(f, "its claim is gone, and its policy is {policy}"),
            Self::NotReleased => f.write_str("the apiserver has it in another state"),
            Self::CannotDelete { why } | Self::CannotRecycle { why } => f.write_str(why),
            Self::Recycler { pod, state } => write!(f, "pod {pod} {state}"),
            Self::UsedByPods { pods } => write!(f, "used by pods {}", pods.join(", ")),
            Self::DeletesFolder { path } => {
                write!(f, "its claim is gone, its policy is Delete, and its folder is {path}")
            }
        }
    }
}

struct Misfits<'a>(&'a [Misfit]);

impl fmt::Display for Misfits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Misfit { volume, why }| write!(f, "; volume {volume}: {why}"))
    }
}
