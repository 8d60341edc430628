//! Kubernetes training jobs: the number of machines, the variables, and the script or words that start the
//! training. Kinds: PyTorchJob and MPIJob (Kubeflow training operator), TrainJob (Kubeflow trainer), Job and
//! JobSet, Volcano's Job, HyperPodPyTorchJob.

use super::reader::{Claim, Reader, Role};
use super::workload::{Workload, blank};
use crate::{Found, Origin};
use shardscope_config_tree::{Entry, Node, Tree};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Span};

/// A Kubernetes job.
#[derive(Debug)]
pub(super) struct Kubernetes;

impl Reader for Kubernetes {
    fn name(&self) -> &'static str {
        "a Kubernetes job"
    }

    fn about(&self) -> &'static str {
        "the job's pods, GPUs and command, which is then read as a script"
    }

    fn role(&self) -> Role {
        Role::Job
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        let is_job = |node: &Node| node.get("apiVersion").is_some() && node.get("kind").is_some();
        tree.documents.iter().any(is_job).then_some(Claim::Certain)
    }

    fn workload(&self, tree: &Tree, text: &str, base: u32) -> Option<Workload> {
        Some(read(tree, text, base))
    }
}

/// A group of identical pods.
struct Pods<'a> {
    /// Number of pods; `None` if it is left to a variable (`replicas: $NUM_NODES`).
    count: Option<u64>,
    place: Span,
    spec: &'a Node,
}

/// Reads the job among the documents of a text; `base` is the offset of the text in its source.
fn read(tree: &Tree, text: &str, base: u32) -> Workload {
    let mut work = Workload::default();
    let mut most: Option<(&Node, Vec<Pods<'_>>)> = None;
    for node in &tree.documents {
        let pods = groups(node);
        if !pods.is_empty() && most.as_ref().is_none_or(|(_, other)| pods.len() >= other.len()) {
            most = Some((node, pods));
        }
    }
    let Some((job, pods)) = most else {
        let kind = tree.documents.iter().find_map(|node| node.get("kind")?.word()).unwrap_or("document");
        let message = format!("a Kubernetes {kind}, which starts no training");
        work.reading
            .diagnostics
            .push(Diagnostic::error(Code::NoTraining, message).hint("paste the PyTorchJob or the script"));
        work.script = blank(text, &[], base);
        return work;
    };
    let worker = pods.iter().rev().find_map(container);
    let nodes: Option<u64> = pods.iter().map(|pods| pods.count).sum();
    let place = pods.iter().map(|pods| pods.place).next_back();
    match nodes {
        Some(nodes) => work.count(Field::NumNodes, nodes, "replicas", place),
        None => {
            let mut found = Found::new(Field::NumNodes, String::new(), Origin::Script).by("replicas", place);
            found.hole = Some("replicas".to_owned());
            work.reading.take(found);
        }
    }
    let per_node = per_node(job, worker);
    if let Some((count, path, span)) = &per_node {
        work.count(Field::GpusPerNode, *count, path, Some(*span));
    }
    let starts = pods.iter().find_map(container).or(worker);
    if let Some(trainer) = job.at("spec.trainer") {
        work.environment(trainer);
    }
    if let Some(starts) = starts {
        work.environment(starts);
    }
    work.operator(nodes, per_node.map(|(count, ..)| count));
    let trainer =
        job.at("spec.trainer").filter(|node| node.get("command").is_some() || node.get("args").is_some());
    let kept = trainer.or(starts).map(|node| command(node, tree)).unwrap_or_default();
    work.script = blank(text, &kept, base);
    let settings = |entry: &&Entry| entry.node.text().is_some_and(|text| text.trim_start().starts_with('{'));
    work.settings = mounted(tree)
        .filter(settings)
        .take(MOUNTED)
        .filter_map(|entry| Some(entry.node.text()?.to_owned()))
        .collect();
    work
}

/// The container in which the pods train.
fn container<'a>(pods: &Pods<'a>) -> Option<&'a Node> {
    pods.spec.get("containers")?.items().first()
}

/// The pods of a job that train.
fn groups(job: &Node) -> Vec<Pods<'_>> {
    let mut found = Vec::new();
    for path in &["spec.pytorchReplicaSpecs", "spec.mpiReplicaSpecs"] {
        let Some(specs) = job.at(path) else { continue };
        let launcher_only = path.contains("mpi");
        for entry in specs.entries() {
            let group = pods(&entry.node, entry.node.get("replicas"), "template.spec");
            // The launcher of an MPI job does not train, but starts everything.
            found.extend(group.map(|pods| {
                if launcher_only && entry.key == "Launcher" { Pods { count: Some(0), ..pods } } else { pods }
            }));
        }
    }
    // Amazon's HyperPodPyTorchJob.
    for group in job.at("spec.replicaSpecs").map_or(&[][..], Node::items) {
        found.extend(pods(group, group.get("replicas"), "template.spec"));
    }
    for task in job.at("spec.tasks").map_or(&[][..], Node::items) {
        found.extend(pods(task, task.get("replicas"), "template.spec"));
    }
    for replicated in job.at("spec.replicatedJobs").map_or(&[][..], Node::items) {
        let count = replicated.at("template.spec.parallelism").or_else(|| replicated.get("replicas"));
        found.extend(pods(replicated, count, "template.spec.template.spec"));
    }
    if let Some(trainer) = job.at("spec.trainer") {
        let count = trainer.get("numNodes");
        found.push(Pods { count: counted(count), place: count.unwrap_or(trainer).span, spec: trainer });
    }
    if found.is_empty() {
        found.extend(pods(job, job.at("spec.parallelism"), "spec.template.spec"));
    }
    if found.is_empty() && job.get("kind").and_then(Node::word) == Some("Pod") {
        found.extend(pods(job, None, "spec"));
    }
    found
}

fn pods<'a>(group: &'a Node, count: Option<&Node>, spec: &str) -> Option<Pods<'a>> {
    let spec = group.at(spec)?;
    let place = count.map_or(group.span, |node| node.span);
    Some(Pods { count: counted(count), place, spec })
}

/// One pod by default; `None` if the count is left to a variable.
fn counted(count: Option<&Node>) -> Option<u64> {
    count.filter(|node| !node.is_null()).map_or(Some(1), Node::whole)
}

/// Accelerators per pod: as the job states, or as its container requests.
fn per_node(job: &Node, container: Option<&Node>) -> Option<(u64, String, Span)> {
    let said = &["spec.nprocPerNode", "spec.slotsPerWorker", "spec.trainer.numProcPerNode"];
    for path in said {
        if let Some(node) = job.at(path).filter(|node| node.whole().is_some_and(|count| count > 0)) {
            return Some((node.whole()?, (*path).to_owned(), node.span));
        }
    }
    let resources = job.at("spec.trainer.resourcesPerNode").or_else(|| container?.get("resources"))?;
    ["limits", "requests"].iter().find_map(|kind| {
        let gpu = |key: &str| {
            key.ends_with("/gpu") || key.contains("gpu.") || key.ends_with("/npu") || key.contains("Ascend")
        };
        let entry = resources.get(kind)?.entries().iter().find(|entry| gpu(&entry.key))?;
        Some((entry.node.whole().filter(|count| *count > 0)?, entry.key.clone(), entry.node.span))
    })
}

/// The positions of a container's command: the script after `-c`, or all its words.
fn command(container: &Node, tree: &Tree) -> Vec<Span> {
    let words = ["command", "args"]
        .iter()
        .filter_map(|key| container.get(key))
        .flat_map(|node| if node.items().is_empty() { std::slice::from_ref(node) } else { node.items() });
    let (mut all, mut script, mut file): (Vec<Span>, Option<Span>, Option<&str>) = (Vec::new(), None, None);
    for word in words {
        let Some(text) = word.text() else { continue };
        let longer = script.is_none_or(|other| word.span.len() >= other.len());
        if longer && text.trim().contains(char::is_whitespace) {
            script = Some(word.span);
        }
        let name = text.rsplit('/').next().filter(|name| name.ends_with(".sh"));
        file = file.or(name);
        all.push(word.span);
    }
    if let Some(script) = script {
        return vec![script];
    }
    match mounted(tree).find(|entry| Some(entry.key.as_str()) == file) {
        Some(entry) => vec![entry.node.span],
        None => all,
    }
}

/// Most settings files that are examined in a job's ConfigMaps.
const MOUNTED: usize = 4;

/// The files of a job's ConfigMaps.
fn mounted(tree: &Tree) -> impl Iterator<Item = &Entry> {
    let maps =
        tree.documents.iter().filter(|node| node.get("kind").and_then(Node::word) == Some("ConfigMap"));
    maps.filter_map(|node| node.get("data")).flat_map(Node::entries)
}

impl Workload {
    fn environment(&mut self, container: &Node) {
        for variable in container.get("env").map_or(&[][..], Node::items) {
            let name = variable.get("name").and_then(Node::word);
            let value = variable.get("value").and_then(Node::text);
            if let (Some(name), Some(value)) = (name, value) {
                self.variables.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    /// Variables that the training operator sets in every pod; the container's own take precedence.
    fn operator(&mut self, nodes: Option<u64>, per_node: Option<u64>) {
        let mut set = Vec::new();
        if let Some(nodes) = nodes {
            set.extend([("PET_NNODES", nodes), ("NNODES", nodes), ("WORLD_SIZE", nodes)]);
        }
        if let Some(per_node) = per_node {
            set.extend([("PET_NPROC_PER_NODE", per_node), ("NPROC_PER_NODE", per_node)]);
        }
        for (name, value) in set {
            if !self.variables.iter().any(|(known, _)| known == name) {
                self.variables.push((name.to_owned(), value.to_string()));
            }
        }
    }
}
