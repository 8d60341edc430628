//! SageMaker's estimators: a notebook or program that hands a script to rented machines states its options as a
//! dictionary and the machines by name (`sagemaker/estimator.py`, `sagemaker-training-toolkit`: `mapping.to_cmd_args`).

use super::assigned::{assigned, statement};
use shardscope_python::syntax::{Node, node};

/// Estimators for PyTorch programs.
const ESTIMATORS: [&str; 2] = ["HuggingFace(", "PyTorch("];
/// Maximum number of estimators that are examined.
const MOST: usize = 8;
/// Accelerators of an instance, by how its type begins or is called, and what a scheduler calls them (AWS's list of
/// instance types; docs.aws.amazon.com/ec2, accelerated computing).
const INSTANCES: [(&str, u32, &str); 32] = [
    ("p3.2xlarge", 1, "v100"),
    ("p3.8xlarge", 4, "v100"),
    ("p3.16xlarge", 8, "v100"),
    ("p3dn.24xlarge", 8, "v100"),
    ("p4d.24xlarge", 8, "a100-40gb"),
    ("p4de.24xlarge", 8, "a100-80gb"),
    ("p5.4xlarge", 1, "h100"),
    ("p5.48xlarge", 8, "h100"),
    ("p5e.48xlarge", 8, "h200"),
    ("p5en.48xlarge", 8, "h200"),
    ("p6-b200.48xlarge", 8, "b200"),
    ("g4dn.12xlarge", 4, "t4"),
    ("g4dn.metal", 8, "t4"),
    ("g4dn.", 1, "t4"),
    ("g5.12xlarge", 4, "a10g"),
    ("g5.24xlarge", 4, "a10g"),
    ("g5.48xlarge", 8, "a10g"),
    ("g5.xlarge", 1, "a10g"),
    ("g5.2xlarge", 1, "a10g"),
    ("g5.4xlarge", 1, "a10g"),
    ("g5.8xlarge", 1, "a10g"),
    ("g5.16xlarge", 1, "a10g"),
    ("g6.12xlarge", 4, "l4"),
    ("g6.24xlarge", 4, "l4"),
    ("g6.48xlarge", 8, "l4"),
    ("g6.", 1, "l4"),
    ("g6e.12xlarge", 4, "l40s"),
    ("g6e.24xlarge", 4, "l40s"),
    ("g6e.48xlarge", 8, "l40s"),
    ("g6e.", 1, "l40s"),
    ("gr6.", 1, "l4"),
    ("p4d.", 8, "a100-40gb"),
];

/// The commands that estimators of a program start, each with its position and the machines in a scheduler's words.
pub(super) fn commands(program: &str) -> Vec<(usize, String, String)> {
    if !program.contains("entry_point") || !program.contains("sagemaker") {
        return Vec::new();
    }
    let starts = ESTIMATORS.iter().flat_map(|name| program.match_indices(name));
    let mut starts: Vec<usize> = starts.map(|(at, _)| at).take(MOST).collect();
    starts.sort_unstable();
    starts
        .into_iter()
        .filter_map(|at| {
            let (machines, line) = command(program, at)?;
            Some((at, machines, line))
        })
        .collect()
}

/// The command of one estimator; none if its options, its machines or how it starts processes are computed elsewhere.
fn command(program: &str, at: usize) -> Option<(String, String)> {
    let Node::Call(_, arguments) = node(statement(program, at)) else { return None };
    let given = |name: &str| {
        let (_, value) = arguments.iter().find(|(keyword, _)| keyword.as_deref() == Some(name))?;
        Some(known(value, program, at))
    };
    let Node::Text(script) = given("entry_point")? else { return None };
    let Node::Map(options) = given("hyperparameters")? else { return None };
    let count = match given("instance_count") {
        Some(Node::Whole(count)) => count,
        None => 1,
        Some(_) => return None,
    };
    let Node::Text(instance) = given("instance_type")? else { return None };
    let instance = instance.strip_prefix("ml.").unwrap_or(&instance);
    let (_, gpus, kind) = INSTANCES.iter().find(|(begins, ..)| instance.starts_with(begins))?;
    let starter = match given("distribution") {
        None => "python".to_owned(),
        Some(Node::Map(how)) => {
            // SageMaker's own libraries are not modelled, and MPI is started by options of its own.
            let torch = |key: &Option<Node>| matches!(key, Some(Node::Text(name)) if matches!(name.as_str(), "torch_distributed" | "pytorchddp"));
            how.iter().all(|(key, _)| torch(key)).then_some(())?;
            format!("torchrun --nnodes {count} --nproc_per_node {gpus}")
        }
        Some(_) => return None,
    };
    let machines = format!("#SBATCH --nodes={count}\n#SBATCH --gres=gpu:{kind}:{gpus}\n");
    let mut line = format!("{starter} {script}");
    for (key, value) in &options {
        let Some(Node::Text(name)) = key else { return None };
        match known(value, program, at) {
            Node::Text(text) => line += &format!(" --{name} {}", quoted(&text)),
            Node::Whole(number) => line += &format!(" --{name} {number}"),
            Node::Number(number) => line += &format!(" --{name} {number}"),
            Node::Name(word) if matches!(word.as_str(), "True" | "False") => {
                line += &format!(" --{name} {word}")
            }
            Node::Name(word) if word == "None" => {}
            // Only the program knows it.
            other => {
                let of = other.dotted().unwrap_or_else(|| name.clone());
                let plain = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '_' };
                line += &format!(" --{name} \"${{{}}}\"", of.chars().map(plain).collect::<String>());
            }
        }
    }
    Some((machines, line + "\n"))
}

/// A value, or what its name was last set to.
fn known(value: &Node, program: &str, before: usize) -> Node {
    match value {
        Node::Name(name) if !matches!(name.as_str(), "True" | "False" | "None") => {
            assigned(name, program, before).map_or_else(|| value.clone(), |(found, _)| found)
        }
        other => other.clone(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''").replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn an_estimator_states_its_command() {
        let program = "import sagemaker\nuse = False\nh = {'a': 1, 'b': 'x y', 'c': True, 'd': use, 'e': 0.5, 'f': None}\n\
                       e = HuggingFace(entry_point='train.py', instance_type='ml.g5.12xlarge', instance_count=2, hyperparameters=h,\n\
                       distribution={'torch_distributed': {'enabled': True}})\n";
        let found = commands(program);
        assert_eq!(
            found.first().map(|(_, machines, line)| machines.clone() + line).as_deref(),
            Some(
                "#SBATCH --nodes=2\n#SBATCH --gres=gpu:a10g:4\ntorchrun --nnodes 2 --nproc_per_node 4 train.py --a 1 --b 'x y' --c True --d \
                 False --e 0.5\n"
            )
        );
        for other in [
            program.replace("torch_distributed", "smdistributed"),
            program.replace("hyperparameters=h", "hyperparameters=made()"),
            program.replace("h = {", "h = {**base, "),
            program.replace("g5.12xlarge", "trn1.32xlarge"),
        ] {
            assert!(commands(&other).is_empty(), "{other}");
        }
    }
}
