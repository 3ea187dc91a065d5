//! The published CA follows `--root-ca-file`, which changes while the process runs.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn certificate() -> String {
    rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap().cert.pem()
}

/// A mounted ConfigMap: the file is a link into a folder that is itself a link, which a change replaces.
struct Mount {
    folder: tempfile::TempDir,
    root_ca: Arc<RootCa>,
    changes: Arc<AtomicUsize>,
    versions: usize,
}

impl Mount {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ca = Text::new(text);
        let root_ca = Arc::new(RootCa::new(Some(ca.clone())));
        let mut mount = Self { folder, root_ca, changes: Arc::default(), versions: 0 };
        mount.replace(text);
        std::os::unix::fs::symlink("..data/ca.crt", mount.path("ca.crt")).unwrap();
        let (root_ca, changes) = (Arc::clone(&mount.root_ca), Arc::clone(&mount.changes));
        let file = RootCaFile { path: mount.path("ca.crt"), ca };
        let changed = move || {
            changes.fetch_add(1, Ordering::Relaxed);
        };
        tokio::spawn(async move { root_ca.follow(file, changed).await });
        mount
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    fn replace(&mut self, text: &str) {
        self.versions += 1;
        let version = format!("..{}", self.versions);
        std::fs::create_dir(self.path(&version)).unwrap();
        std::fs::write(self.path(&version).join("ca.crt"), text).unwrap();
        std::os::unix::fs::symlink(&version, self.path("..data_tmp")).unwrap();
        std::fs::rename(self.path("..data_tmp"), self.path("..data")).unwrap();
    }

    /// The CA some seconds later, and the number of its changes.
    async fn later(&self) -> (String, usize) {
        // Time is paused: it passes at once.
        tokio::time::sleep(Duration::from_secs(11)).await;
        (self.root_ca.current().unwrap().as_str().to_owned(), self.changes.load(Ordering::Relaxed))
    }
}

#[tokio::test(start_paused = true)]
async fn a_replaced_file_is_handed_out_and_one_that_stays_changes_nothing() {
    let (old, both) = (certificate(), certificate() + &certificate());
    let mut mount = Mount::new(&old);
    assert_eq!(mount.later().await, (old.clone(), 0));
    mount.replace(&both);
    assert_eq!(mount.later().await, (both.clone(), 1));
    mount.replace(&both);
    assert_eq!(mount.later().await, (both, 1));
    mount.replace(&old);
    assert_eq!(mount.later().await, (old, 2));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_no_bundle_leaves_the_last_good_one_in_use() {
    let (old, new) = (certificate(), certificate());
    let mut mount = Mount::new(&old);
    for broken in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        mount.replace(broken);
        assert_eq!(mount.later().await, (old.clone(), 0), "{broken}");
    }
    std::fs::remove_file(mount.path("..data")).unwrap();
    assert_eq!(mount.later().await, (old, 0));
    mount.replace(&new);
    assert_eq!(mount.later().await, (new, 1));
}
