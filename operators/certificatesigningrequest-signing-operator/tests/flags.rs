//! The flags of this operator, those that contradict each other, and the files that they name.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use certificatesigningrequest_signing_operator::flags::Flags;
use certificatesigningrequest_signing_operator::objects::Signer;
use certificatesigningrequest_signing_operator::observe::authority::{Authority, NamedFile};
use shared::process::flags;

const RSA: (&str, &str) = (include_str!("upstream/rsa.crt"), include_str!("upstream/rsa-pkcs1.key"));
const P256: (&str, &str) = (include_str!("upstream/p256.crt"), include_str!("upstream/p256-sec1.key"));

/// A folder with the files `ca.crt` and `ca.key`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    replace(folder.path(), RSA);
    folder
}

fn replace(folder: &Path, (certificate, key): (&str, &str)) {
    fs::write(folder.join("ca.crt"), certificate).unwrap();
    fs::write(folder.join("ca.key"), key).unwrap();
}

/// The signers that sign, and for how long, or the error. `@` in an argument is the folder.
fn read(folder: &Path, args: &[&str]) -> String {
    let args = args.iter().map(|arg| arg.replace('@', &folder.display().to_string()));
    let args = std::iter::once("operator".to_owned()).chain(args).map(Into::into);
    match flags::parse::<Flags>("certificatesigningrequest-signing-operator", args) {
        Ok(flags) => {
            let Flags(signing) = flags.own;
            let signs = |signer: &Signer| signing.authorities.current(*signer).is_some();
            let signers: Vec<&str> = Signer::ALL.into_iter().filter(signs).map(Signer::name).collect();
            format!("{} for {:?}", signers.join(", "), signing.duration)
        }
        Err(exit) => exit.text.replace(&folder.display().to_string(), "@"),
    }
}

#[test]
fn a_pair_of_files_is_for_all_signers_or_for_one() {
    let folder = folder();
    let check = |args: &[&str], expected: &str| assert_eq!(read(folder.path(), args), expected, "{args:?}");
    check(&[], " for 31536000s");
    check(&["--cluster-signing-cert-file=", "--cluster-signing-key-file="], " for 31536000s");
    check(
        &[
            "--cluster-signing-cert-file=@/ca.crt",
            "--cluster-signing-key-file=@/ca.key",
            "--cluster-signing-duration=24h",
        ],
        "kubernetes.io/kubelet-serving, kubernetes.io/kube-apiserver-client-kubelet, \
         kubernetes.io/kube-apiserver-client, kubernetes.io/legacy-unknown for 86400s",
    );
    for (flag, signer) in [
        ("kubelet-serving", "kubernetes.io/kubelet-serving"),
        ("kubelet-client", "kubernetes.io/kube-apiserver-client-kubelet"),
        ("kube-apiserver-client", "kubernetes.io/kube-apiserver-client"),
        ("legacy-unknown", "kubernetes.io/legacy-unknown"),
    ] {
        let certificate = format!("--cluster-signing-{flag}-cert-file=@/ca.crt");
        let key = format!("--cluster-signing-{flag}-key-file=@/ca.key");
        check(&[&certificate, &key], &format!("{signer} for 31536000s"));
        check(
            &[&certificate, &key, "--cluster-signing-cert-file=@/ca.crt"],
            "error: cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the \
             same time (see --help)\n",
        );
        let (certificate_flag, key_flag) =
            (format!("--cluster-signing-{flag}-cert-file"), format!("--cluster-signing-{flag}-key-file"));
        let expected = format!("error: {certificate_flag} cannot be specified without {key_flag} (see --help)\n");
        check(&[&certificate], &expected);
        let expected = format!("error: {key_flag} cannot be specified without {certificate_flag} (see --help)\n");
        check(&[&key], &expected);
    }
}

#[test]
fn a_file_that_cannot_be_used_ends_the_process_at_its_start() {
    let folder = folder();
    fs::write(folder.path().join("other.key"), P256.1).unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    let check = |certificate: &str, key: &str, expected: &str| {
        let (certificate, key) =
            (format!("--cluster-signing-cert-file=@/{certificate}"), format!("--cluster-signing-key-file=@/{key}"));
        let expected = format!("error: cannot use {expected} (see --help)\n");
        assert_eq!(read(folder.path(), &[&certificate, &key]), expected);
    };
    let missing = "No such file or directory (os error 2)";
    check("missing", "ca.key", &format!("--cluster-signing-cert-file @/missing: {missing}"));
    check("ca.crt", "missing", &format!("--cluster-signing-key-file @/missing: {missing}"));
    check("empty", "ca.key", "--cluster-signing-cert-file @/empty: expected 1 certificate, found 0");
    let none = "data does not contain a valid RSA or ECDSA private key";
    check("ca.crt", "empty", &format!("--cluster-signing-key-file @/empty: {none}"));
    let other = "it is not the key of --cluster-signing-cert-file @/ca.crt";
    check("ca.crt", "other.key", &format!("--cluster-signing-key-file @/other.key: {other}"));
}

#[test]
fn replaced_files_are_read_again_and_broken_ones_leave_the_old_pair() {
    let folder = folder();
    let file = |flag: &'static str, name: &str| NamedFile { flag, path: folder.path().join(name) };
    let authority = Authority::open(file("--cert", "ca.crt"), file("--key", "ca.key")).unwrap();
    let first = authority.current();
    fs::write(folder.path().join("ca.crt"), P256.0).unwrap();
    assert_eq!(authority.current(), first, "its key has not come yet");
    fs::write(folder.path().join("ca.key"), P256.1).unwrap();
    let second = authority.current();
    assert_ne!(second, first);
    fs::remove_file(folder.path().join("ca.key")).unwrap();
    assert_eq!(authority.current(), second);
    replace(folder.path(), RSA);
    assert_eq!(authority.current(), first);
}
