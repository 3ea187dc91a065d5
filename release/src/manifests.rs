//! The manifests, as kustomize renders them: which objects each form has, and what of them each operator and family needs.
//! Left out: any object or list that is not in `manifests/`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tools::Tool;

/// The label with an operator's name, that of a process of several included.
const NAME: &str = "/metadata/labels/app.kubernetes.io~1name";

/// The folder `manifests/`.
#[derive(Clone, Debug)]
pub struct Manifests {
    folder: PathBuf,
}

/// The objects of one operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    pub name: String,
    /// What it acts as: its account and its roles, which it also needs in a process of several.
    pub account: Vec<Value>,
    /// Its pods, and what is about them.
    pub pods: Vec<Value>,
    /// Whether the form with a pod for each operator has it if nobody chooses.
    pub is_default: bool,
    /// The family whose process has its controller.
    pub family: Option<Family>,
    /// Whether the process of all controllers has its controller.
    pub is_in_one_process: bool,
}

/// A family of controllers that share a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// As its folder.
    pub name: String,
    /// Whether the form with a process for each family has it if nobody chooses.
    pub is_default: bool,
}

/// A process of several controllers.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// As it is in the label, such as `batch-group-operator`.
    pub name: String,
    pub objects: Vec<Value>,
}

impl Manifests {
    /// Those of this source tree.
    pub fn here() -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests");
        let folder = folder.canonicalize().with_context(|| format!("cannot find {}", folder.display()))?;
        Ok(Self { folder })
    }

    /// The objects of a folder below.
    pub fn render(&self, of: &str) -> Result<Vec<Value>> {
        kustomize(&self.folder.join(of))
    }

    /// The objects that a component adds.
    pub fn component(&self, name: &str) -> Result<Vec<Value>> {
        let overlay = tempfile::tempdir().context("cannot make a folder for an overlay")?;
        // kustomize takes no absolute paths.
        let up = "../".repeat(overlay.path().components().count());
        let component = format!("{up}{}/components/{name}", self.folder.display());
        let text = json!({"components": [component]}).to_string();
        std::fs::write(overlay.path().join("kustomization.yaml"), text).context("cannot write an overlay")?;
        kustomize(overlay.path())
    }

    /// The object in a file that kustomize does not read.
    pub fn file(&self, name: &str) -> Result<Value> {
        let path = self.folder.join(name);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_yaml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
    }

    /// All operators, by name. `families` are those of [`Self::families`].
    pub fn operators(&self, families: &[Family]) -> Result<Vec<Operator>> {
        let all = self.render(".")?;
        let defaults = names(&all);
        let of_family = |family: Family| {
            let members = names(&self.render(&format!("groups/{}/accounts", family.name))?);
            Ok::<_, anyhow::Error>((family, members))
        };
        let of_families: Vec<(Family, BTreeSet<String>)> =
            families.iter().cloned().map(of_family).collect::<Result<_>>()?;
        let accounts = self.render("one-process/accounts")?;
        let in_one_process = names(&accounts);
        let mut operators = Vec::new();
        for name in self.folders("")?.into_iter().filter(|name| name.ends_with("-operator")) {
            // Rendering each folder would take a quarter of a minute.
            let is_default = defaults.contains(&name);
            let own = |object: &&Value| is_of(object, &name);
            let objects = if is_default { all.iter().filter(own).cloned().collect() } else { self.render(&name)? };
            let is_account = |object: &Value| !is_about_pods(object);
            let (account, pods): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(is_account);
            let is_in_one_process = in_one_process.contains(&name);
            let of_account: Vec<&Value> = accounts.iter().filter(|object| is_of(object, &name)).collect();
            let is_same = !is_in_one_process || account.iter().collect::<Vec<_>>() == of_account;
            ensure!(is_same, "one-process/accounts renders {name} otherwise than its own folder");
            let family = of_families.iter().find(|(_, members)| members.contains(&name));
            let family = family.map(|(family, _)| family.clone());
            operators.push(Operator { name, account, pods, is_default, family, is_in_one_process });
        }
        Ok(operators)
    }

    /// The families, by the names of their folders.
    pub fn families(&self) -> Result<Vec<Family>> {
        let defaults = names(&self.render("groups")?);
        let is_default =
            |name: &str| Ok::<_, anyhow::Error>(defaults.contains(&self.process(&format!("groups/{name}"))?.name));
        self.folders("groups")?.into_iter().map(|name| Ok(Family { is_default: is_default(&name)?, name })).collect()
    }

    /// The process in this folder.
    pub fn process(&self, folder: &str) -> Result<Process> {
        let objects = self.render(&format!("{folder}/process"))?;
        let mut names = names(&objects).into_iter();
        match (names.next(), names.next()) {
            (Some(name), None) => Ok(Process { name, objects }),
            _ => bail!("{folder}/process has not one name"),
        }
    }

    /// The folders in a folder, sorted.
    fn folders(&self, of: &str) -> Result<Vec<String>> {
        let folder = self.folder.join(of);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            if entry.path().is_dir() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }
}

/// What `components/without-pods` leaves out.
fn is_about_pods(object: &Value) -> bool {
    ["Deployment", "PodDisruptionBudget", "Service"].iter().any(|kind| object["kind"] == *kind)
}

fn is_of(object: &Value, operator: &str) -> bool {
    object.pointer(NAME).is_some_and(|name| name == operator)
}

/// The operators to which these objects belong.
fn names(objects: &[Value]) -> BTreeSet<String> {
    objects.iter().filter_map(|object| Some(object.pointer(NAME)?.as_str()?.to_owned())).collect()
}

fn kustomize(folder: &Path) -> Result<Vec<Value>> {
    let kubectl =
        tools::find(Tool::Kubectl).context("kubectl is neither on the PATH nor built: make release builds it")?;
    let output = Command::new(kubectl).arg("kustomize").arg(folder).stdin(Stdio::null()).output();
    let output = output.context("cannot run kubectl")?;
    if !output.status.success() {
        bail!("kubectl kustomize {} failed: {}", folder.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8(output.stdout).context("kubectl prints UTF-8")?;
    let objects: Vec<Value> = serde_yaml::from_multiple(&text).context("cannot read what kustomize renders")?;
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}
