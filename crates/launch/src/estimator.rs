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

/// What may train something else, or change what an estimator was given.
const OTHERS: [&str; 7] = [
    "create_training_job(",
    "Estimator(",
    "TensorFlow(",
    "ModelTrainer(",
    "HyperparameterTuner(",
    ".set_hyperparameters(",
    "notebook_launcher(",
];
/// Cells and lines of a notebook that are handed to a shell or run a program, and are not read.
const MAGICS: [&str; 5] = ["%%bash", "%%sh", "%%script", "%%!", "%run"];
/// First words of commands that train nothing.
const HARMLESS: [&str; 34] = [
    "pip",
    "pip3",
    "uv",
    "conda",
    "apt",
    "apt-get",
    "yum",
    "git",
    "aws",
    "docker",
    "ls",
    "cat",
    "head",
    "tail",
    "mkdir",
    "cp",
    "mv",
    "rm",
    "cd",
    "pwd",
    "echo",
    "export",
    "wget",
    "curl",
    "tar",
    "unzip",
    "zip",
    "du",
    "df",
    "nvidia-smi",
    "pygmentize",
    "huggingface-cli",
    "hf",
    "which",
];

/// Words by which those start programs all the same: `uv run`, `docker compose up`, `aws sagemaker create-training-job`.
const STARTS: [&str; 5] = ["run", "exec", "compose", "start", "create-training-job"];

/// The estimators of a program.
pub(super) struct Estimators {
    /// The machines that all of them rent, in a scheduler's words.
    pub(super) machines: String,
    /// The command that each starts, with its position.
    pub(super) commands: Vec<(usize, String)>,
}

/// Whether a shell's lines only install, copy, show and the like.
pub(super) fn harmless(script: &str) -> bool {
    let joined = script.replace("\\\n", " ");
    joined.split(['\n', ';', '&', '|']).all(|command| {
        let mut words = command.split_whitespace().map(|word| word.trim_matches(['\'', '"', '$', '{', '}']));
        match words.next() {
            None => true,
            Some("sudo") => words.next().is_some_and(|first| HARMLESS.contains(&first)),
            Some("python" | "python3" | "sys_executable" | "sys.executable") => {
                words.next() == Some("-m") && words.next() == Some("pip")
            }
            // `pip install "a>1" 2>&1`.
            Some("1") => words.next().is_none(),
            Some(first) => HARMLESS.contains(&first) && !words.any(|word| STARTS.contains(&word)),
        }
    })
}

/// What the estimators of a program start; none if one of them is not fully known, if they rent different machines, or
/// if the program may train something else besides.
pub(super) fn estimators(program: &str) -> Option<Estimators> {
    if !program.contains("entry_point") || !program.contains("sagemaker") {
        return None;
    }
    let active = |at: usize| {
        let before = program.get(..at).unwrap_or("");
        !before.rsplit('\n').next().unwrap_or("").trim_start().starts_with('#')
    };
    let found = |words: &[&str]| {
        let found = words.iter().flat_map(|word| program.match_indices(word)).map(|(at, _)| at);
        found.filter(|at| active(*at)).take(MOST + 1).collect::<Vec<usize>>()
    };
    let magic = |line: &str| MAGICS.iter().any(|magic| line.trim_start().starts_with(magic));
    let mut starts = found(&ESTIMATORS);
    if starts.len() > MOST || !found(&OTHERS).is_empty() || program.lines().any(magic) {
        return None;
    }
    starts.sort_unstable();
    let mut all: Option<Estimators> = None;
    for at in starts {
        let (machines, line) = command(program, at)?;
        let known =
            all.get_or_insert_with(|| Estimators { machines: machines.clone(), commands: Vec::new() });
        if known.machines != machines {
            return None;
        }
        known.commands.push((at, line));
    }
    all
}

/// The command of one estimator; none if its options, its machines or how it starts processes are computed elsewhere.
fn command(program: &str, at: usize) -> Option<(String, String)> {
    let Node::Call(_, arguments) = node(statement(program, at)) else { return None };
    // `**more`.
    if arguments.iter().any(|(keyword, _)| keyword.as_deref() == Some("")) {
        return None;
    }
    let written = |name: &str| {
        arguments.iter().find(|(keyword, _)| keyword.as_deref() == Some(name)).map(|(_, value)| value)
    };
    let given = |name: &str| written(name).map(|value| known(value, program, at));
    let Node::Text(script) = given("entry_point")? else { return None };
    // Another file is started by a shell.
    script.ends_with(".py").then_some(())?;
    let Node::Map(options) = given("hyperparameters")? else { return None };
    if let Some(Node::Name(name)) = written("hyperparameters") {
        // The estimator holds the dictionary itself, which may change until it starts.
        assigned(name, program, program.len())?;
    }
    let count = match given("instance_count") {
        Some(Node::Whole(count)) => count,
        None => 1,
        Some(_) => return None,
    };
    let Node::Text(instance) = given("instance_type")? else { return None };
    let instance = instance.strip_prefix("ml.").unwrap_or(&instance);
    let (_, gpus, kind) = INSTANCES.iter().find(|(begins, ..)| instance.starts_with(begins))?;
    let starter = match given("distribution") {
        Some(how) if distributed(&how, program, at)? => {
            format!("torchrun --nnodes {count} --nproc_per_node {gpus}")
        }
        // Each host runs the program by itself, without a rank: several trainings.
        _ if count != 1 => return None,
        _ => "python".to_owned(),
    };
    let machines = format!("#SBATCH --nodes={count}\n#SBATCH --gres=gpu:{kind}:{gpus}\n");
    let mut line = format!("{starter} {script}");
    for (key, value) in &options {
        let Some(Node::Text(name)) = key else { return None };
        let name = match name.len() {
            0 => return None,
            1 => format!("-{name}"),
            _ => format!("--{name}"),
        };
        match known(value, program, at) {
            Node::Text(text) => line += &format!(" {name} {}", quoted(&text)),
            Node::Whole(number) => line += &format!(" {name} {number}"),
            Node::Number(number) => line += &format!(" {name} {number}"),
            Node::Name(word) if matches!(word.as_str(), "True" | "False") => {
                line += &format!(" {name} {word}");
            }
            // Passed as an empty text, which programs take in different ways.
            Node::Name(word) if word == "None" => return None,
            // Only the program knows it.
            other => {
                let of = other.dotted().unwrap_or_else(|| name.trim_start_matches('-').to_owned());
                let plain = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '_' };
                line += &format!(" {name} \"${{{}}}\"", of.chars().map(plain).collect::<String>());
            }
        }
    }
    Some((machines, line + "\n"))
}

/// Whether an estimator starts one process per GPU; none if by other means than PyTorch's own: SageMaker's libraries are
/// not modelled, and MPI is started by options of its own.
fn distributed(how: &Node, program: &str, at: usize) -> Option<bool> {
    let Node::Map(how) = how else { return None };
    let mut enabled = false;
    for (key, value) in how {
        let Some(Node::Text(name)) = key else { return None };
        matches!(name.as_str(), "torch_distributed" | "pytorchddp").then_some(())?;
        let Node::Map(settings) = known(value, program, at) else { return None };
        let is = |key: &Option<Node>| matches!(key, Some(Node::Text(name)) if name == "enabled");
        let (_, value) = settings.iter().rfind(|(key, _)| is(key))?;
        match known(value, program, at) {
            Node::Name(word) if word == "True" => enabled = true,
            Node::Name(word) if word == "False" => {}
            _ => return None,
        }
    }
    Some(enabled)
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
    use super::{Estimators, estimators, harmless};

    const PROGRAM: &str = "import sagemaker\nuse = False\nh = {'a': 1, 'bb': 'x y', 'cc': True, 'dd': use, 'ee': 0.5}\n\
                           e = HuggingFace(entry_point='train.py', instance_type='ml.g5.12xlarge', instance_count=2, hyperparameters=h,\n\
                           distribution={'torch_distributed': {'enabled': True}})\n";

    fn read(program: &str) -> Option<String> {
        estimators(program).map(|Estimators { machines, commands }| {
            machines + &commands.into_iter().map(|(_, line)| line).collect::<String>()
        })
    }

    #[test]
    fn an_estimator_states_its_command() {
        let options = "train.py -a 1 --bb 'x y' --cc True --dd False --ee 0.5\n";
        let machines = "#SBATCH --nodes=2\n#SBATCH --gres=gpu:a10g:4\n";
        let line = format!("torchrun --nnodes 2 --nproc_per_node 4 {options}");
        assert_eq!(read(PROGRAM), Some(format!("{machines}{line}")));
        // Another on the same machines, and one that is not active.
        let second = &PROGRAM[PROGRAM.find("e = ").unwrap_or(0)..];
        assert_eq!(read(&format!("{PROGRAM}{second}")), Some(format!("{machines}{line}{line}")));
        let idle = format!("{PROGRAM}# e = PyTorch(entry_point='other.py')\n");
        assert_eq!(read(&idle), Some(format!("{machines}{line}")));
        let alone = PROGRAM
            .replace("instance_count=2", "instance_count=1")
            .replace("{'enabled': True}", "{'enabled': False}");
        let expected = format!("#SBATCH --nodes=1\n#SBATCH --gres=gpu:a10g:4\npython {options}");
        assert_eq!(read(&alone), Some(expected));
    }

    #[test]
    fn what_an_estimator_leaves_open_is_not_guessed() {
        let second = &PROGRAM[PROGRAM.find("e = ").unwrap_or(0)..];
        for other in [
            PROGRAM.replace("torch_distributed", "smdistributed"),
            PROGRAM.replace("hyperparameters=h", "hyperparameters=made()"),
            PROGRAM.replace("h = {", "h = {**base, "),
            PROGRAM.replace("g5.12xlarge", "trn1.32xlarge"),
            PROGRAM.replace("train.py", "train.sh"),
            PROGRAM.replace("hyperparameters=h", "hyperparameters=h, **more"),
            // Passed as an empty text, or without a name.
            PROGRAM.replace("0.5", "None"),
            PROGRAM.replace("'ee'", "''"),
            // Every host trains by itself.
            PROGRAM.replace(",\ndistribution={'torch_distributed': {'enabled': True}}", ""),
            PROGRAM.replace("{'enabled': True}", "{'enabled': False}"),
            PROGRAM.replace("{'torch_distributed': {'enabled': True}}", "{}"),
            PROGRAM.replace("{'enabled': True}", "{'enabled': on()}"),
            // The dictionary is changed, before or after.
            PROGRAM.replace("e = ", "h['ee']=8\ne = "),
            PROGRAM.replace("e = ", "h|=more\ne = "),
            PROGRAM.replace("e = ", "h.update(more)\ne = "),
            format!("{PROGRAM}h['ee']=8\ne.fit()\n"),
            format!("{PROGRAM}e.set_hyperparameters(ee=8)\n"),
            // Other trainings beside it.
            format!("{PROGRAM}{}", second.replace("g5.12xlarge", "p5.48xlarge")),
            format!("{PROGRAM}{}", second.replace("instance_count=2", "instance_count=4")),
            format!("{PROGRAM}{}", second.replace("'ml.g5.12xlarge'", "chosen()")),
            format!("{PROGRAM}f = Estimator(image_uri=image)\n"),
            format!("{PROGRAM}%%bash\ntorchrun train.py\n"),
        ] {
            assert_eq!(read(&other), None, "{other}");
        }
    }

    #[test]
    fn commands_that_may_train_are_told_from_those_that_do_not() {
        for script in [
            "pip install -q \\\n  torch 2>&1\n",
            "'pip' 'install' 'trl'\n",
            "\"${sys_executable}\" '-m' 'pip' 'install' 'trl'\n",
            "export A='1'\naws s3 cp a b && ls\n",
        ] {
            assert!(harmless(script), "{script}");
        }
        for script in ["torchrun a.py\n", "pip install trl && python a.py\n", "./train.sh\n", "uv run a.py\n"]
        {
            assert!(!harmless(script), "{script}");
        }
    }
}
