//! The flags: those every operator has, and upstream's of this controller.

use shared::process::flags::{GoDuration, parse_bool};

use crate::objects::recycler::{Recycler, Recyclers, Template};

/// Binds claims to volumes, and has volumes provisioned and reclaimed.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The period for syncing persistent volumes and persistent volume claims. Only those are synced again that lack
    /// something.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = GoDuration::positive)]
    pub pvclaimbinder_sync_period: GoDuration,
    /// Enable dynamic provisioning for environments that support it.
    #[arg(long, action = clap::ArgAction::Set, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub enable_dynamic_provisioning: bool,
    /// The file path to a pod definition used as a template for NFS persistent volume recycling. Without it: a pod in the
    /// namespace default that deletes all files.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = template)]
    pub pv_recycler_pod_template_filepath_nfs: Template,
    /// The minimum ActiveDeadlineSeconds to use for an NFS Recycler pod.
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_name = "SECONDS")]
    pub pv_recycler_minimum_timeout_nfs: i32,
    /// The increment of time added per Gi to ActiveDeadlineSeconds for an NFS scrubber pod.
    #[arg(long, default_value_t = 30, allow_negative_numbers = true, value_name = "SECONDS")]
    pub pv_recycler_increment_timeout_nfs: i32,
    /// The file path to a pod definition used as a template for HostPath persistent volume recycling. This is for
    /// development and testing only and will not work in a multi-node cluster.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = template)]
    pub pv_recycler_pod_template_filepath_hostpath: Template,
    /// The minimum ActiveDeadlineSeconds to use for a HostPath Recycler pod. This is for development and testing only and
    /// will not work in a multi-node cluster.
    #[arg(long, default_value_t = 60, allow_negative_numbers = true, value_name = "SECONDS")]
    pub pv_recycler_minimum_timeout_hostpath: i32,
    /// The increment of time added per Gi to ActiveDeadlineSeconds for a HostPath scrubber pod. This is for development
    /// and testing only and will not work in a multi-node cluster.
    #[arg(long, default_value_t = 30, allow_negative_numbers = true, value_name = "SECONDS")]
    pub pv_recycler_timeout_increment_hostpath: i32,
}

impl From<&Flags> for Recyclers {
    fn from(flags: &Flags) -> Self {
        Self {
            host_path: Recycler {
                template: flags.pv_recycler_pod_template_filepath_hostpath.clone(),
                minimum_timeout: flags.pv_recycler_minimum_timeout_hostpath,
                increment_timeout: flags.pv_recycler_timeout_increment_hostpath,
            },
            nfs: Recycler {
                template: flags.pv_recycler_pod_template_filepath_nfs.clone(),
                minimum_timeout: flags.pv_recycler_minimum_timeout_nfs,
                increment_timeout: flags.pv_recycler_increment_timeout_nfs,
            },
        }
    }
}

/// Reads the pod in a file; the default one for no file.
///
/// Upstream: `AttemptToLoadRecycler`, `cmd/kube-controller-manager/app/plugins.go`.
fn template(path: &str) -> Result<Template, String> {
    if path.is_empty() {
        return Ok(Template::default());
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("failed to read file path {path}: {error}"))?;
    if text.is_empty() {
        return Err(format!("file was empty: {path}"));
    }
    let pod = serde_yaml::from_str(&text).map_err(|error| format!("failed decoding file: {error}"))?;
    Template::new(pod).map_err(|why| format!("pod specification ({path}): {why}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn read(args: &[&str]) -> Result<Flags, String> {
        const NAME: &str = "persistentvolume-binder-operator";
        let args = std::iter::once(NAME).chain(args.iter().copied()).map(Into::into);
        Ok(shared::process::flags::parse::<Flags>(NAME, args).map_err(|exit| exit.text)?.own)
    }

    #[test]
    fn flags_are_upstreams() {
        let of_binding = |args: &[&str]| {
            let flags = read(args)?;
            Ok((flags.pvclaimbinder_sync_period.0.as_secs(), flags.enable_dynamic_provisioning))
        };
        assert_eq!(of_binding(&[]), Ok((15, true)));
        assert_eq!(
            of_binding(&["--pvclaimbinder-sync-period=1m", "--enable-dynamic-provisioning=false"]),
            Ok((60, false))
        );
        let error: String = of_binding(&["--pvclaimbinder-sync-period=0s"]).unwrap_err();
        assert!(error.contains("must be greater than 0"), "{error}");
    }

    #[test]
    fn recyclers_are_upstreams_unless_a_file_has_another_pod() {
        let flags = read(&[]).unwrap();
        let timeouts = |flags: &Flags| {
            [
                flags.pv_recycler_minimum_timeout_nfs,
                flags.pv_recycler_increment_timeout_nfs,
                flags.pv_recycler_minimum_timeout_hostpath,
                flags.pv_recycler_timeout_increment_hostpath,
            ]
        };
        assert_eq!(timeouts(&flags), [300, 30, 60, 30]);
        assert_eq!(flags.pv_recycler_pod_template_filepath_nfs.namespace(), "default");
        let given = [
            "--pv-recycler-minimum-timeout-nfs=1",
            "--pv-recycler-increment-timeout-nfs=2",
            "--pv-recycler-minimum-timeout-hostpath=-3",
            "--pv-recycler-timeout-increment-hostpath=4",
        ];
        assert_eq!(timeouts(&read(&given).unwrap()), [1, 2, -3, 4]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pod.yaml");
        let flag = format!("--pv-recycler-pod-template-filepath-nfs={}", path.display());
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&[&flag]).map(|flags| flags.pv_recycler_pod_template_filepath_nfs.namespace().to_owned())
        };
        let pod = |rest: &str| format!("apiVersion: v1\nkind: Pod\n{rest}");
        let emptying = pod("metadata: {namespace: scrub}\nspec: {volumes: [{name: a}]}");
        assert_eq!(of(&emptying), Ok("scrub".to_owned()));
        for (text, expected) in [
            (String::new(), "file was empty: "),
            ("a: [".to_owned(), "failed decoding file: "),
            ("kind: Deployment".to_owned(), "it is no v1 Pod"),
            (pod("metadata: {namespace: scrub}\nspec: {volumes: []}"), "does not contain any volume(s)"),
            (pod("spec: {volumes: [{name: a}]}"), "does not name a namespace"),
        ] {
            let error = of(&text).unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        std::fs::remove_file(&path).unwrap();
        let error = read(&[&flag]).unwrap_err();
        assert!(error.contains("failed to read file path "), "{error}");
    }
}
