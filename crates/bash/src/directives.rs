//! Scheduler directives: `#SBATCH`, `#PBS`, `#$` and similar lines.

use super::eval::Evaluator;
use super::script::Directive;
use super::value::{Value, is_blank};

/// Markers after `#`: `$` is Grid Engine's, `PJM` Fujitsu's, `BSUB` LSF's.
const MARKERS: [&str; 7] = ["SBATCH", "PBS", "$", "PJM", "YBATCH", "BSUB", "COBALT"];

/// Most options stored per text.
const MOST: usize = 200;

/// The directives of a text, in order.
pub fn read(text: &Value) -> Vec<Directive> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut commands = false;
    for line in text.text().split_inclusive('\n') {
        let body = line.trim_end();
        // A Markdown code fence is not part of the script.
        commands |= !body.trim_start().is_empty() && !body.trim_start().starts_with(['#', '`']);
        if let Some(rest) = body.strip_prefix('#')
            && let Some(marker) = MARKERS
                .iter()
                .find(|marker| rest.strip_prefix(**marker).is_some_and(|after| after.starts_with(is_blank)))
            && out.len() < MOST
            // sbatch(1) reads no further than the first command.
            && !(commands && *marker == "SBATCH")
        {
            let from = start + 1 + marker.len();
            options(marker, &text.part(from, start + body.len()), &mut out);
        }
        start += line.len();
    }
    out
}

/// The options of one line: `--key=value`, `--key value`, `-N 4`, `-N4`; a `#` starts a comment.
fn options(marker: &str, line: &Value, out: &mut Vec<Directive>) {
    let fields = line.fields();
    let end = fields.iter().position(|word| word.text().starts_with('#')).unwrap_or(fields.len());
    let mut words = fields.get(..end).unwrap_or(&[]);
    while let [word, rest @ ..] = words {
        words = rest;
        let text = word.text();
        if !text.starts_with('-') || out.len() >= MOST {
            continue;
        }
        // `-N4`, but not `-lselect=2`: only digits may directly follow a short option here.
        let digits = text.as_bytes().get(2).is_some_and(u8::is_ascii_digit);
        let (length, skipped) = match text.find('=') {
            Some(at) if text.starts_with("--") => (at, 1),
            _ if !text.starts_with("--") && digits => (2, 0),
            _ => (text.len(), 0),
        };
        let key = text.get(..length).unwrap_or("").to_owned();
        let mut value = word.rest(length + skipped);
        if let [next, rest @ ..] = words
            && value.is_empty()
            // `--exclusive -N 2`: a switch takes no value.
            && !next.text().starts_with('-')
        {
            value = next.clone();
            words = rest;
        }
        let value = unquoted(&value);
        let span = word.origin().unwrap_or_default();
        let span = value.origin().map_or(span, |end| span.to(end));
        out.push(Directive { scheduler: marker.to_owned(), key, value, span });
    }
}

fn unquoted(value: &Value) -> Value {
    let text = value.text();
    let start = text.len() - text.trim_start_matches(['"', '\'']).len();
    value.part(start, text.trim_end_matches(['"', '\'']).len().max(start))
}

/// The last directive that gives Slurm something under one of these keys, since in `sbatch` the last one wins.
pub fn slurms<'d>(directives: &'d [Directive], keys: &[&str]) -> Option<&'d Directive> {
    let asked = |directive: &&Directive| {
        directive.scheduler == "SBATCH"
            && !directive.value.is_empty()
            && keys.contains(&directive.key.as_str())
    };
    directives.iter().rev().find(asked)
}

/// Sets the variables that the scheduler would set from these directives, unless the environment has them.
pub(crate) fn set_variables(shell: &mut Evaluator<'_>, directives: &[Directive]) {
    let value = |keys: &[&str]| slurms(directives, keys).map(|directive| directive.value.clone());
    let nodes = value(&["--nodes", "-N"]).map(|value| least(&value));
    let per_node = value(&["--ntasks-per-node"]);
    let tasks = value(&["--ntasks", "-n"]).or_else(|| {
        let (nodes, per_node) = (number(nodes.as_ref()?)?, number(per_node.as_ref()?)?);
        let span = slurms(directives, &["--ntasks-per-node"])?.span;
        Some(Value::computed(&nodes.checked_mul(per_node)?.to_string(), span))
    });
    let gpus = value(&["--gpus-per-node"]).map(|value| count(&value));
    // `--gres=gpu:8` sets no SLURM_GPUS_PER_NODE, but Slurm still counts its GPUs in SLURM_GPUS_ON_NODE.
    let on_node = gpus.clone().or_else(|| {
        value(&["--gres"]).filter(|value| value.text().contains("gpu")).map(|value| count(&value))
    });
    let (cpus, job) = (value(&["--cpus-per-task", "-c"]), value(&["--job-name", "-J"]));
    for (name, value) in &[
        ("SLURM_NNODES", &nodes),
        ("SLURM_JOB_NUM_NODES", &nodes),
        ("SLURM_NTASKS", &tasks),
        ("SLURM_NPROCS", &tasks),
        ("SLURM_NTASKS_PER_NODE", &per_node),
        ("SLURM_GPUS_PER_NODE", &gpus),
        ("SLURM_GPUS_ON_NODE", &on_node),
        ("SLURM_CPUS_PER_TASK", &cpus),
        ("SLURM_JOB_NAME", &job),
    ] {
        if let Some(value) = value {
            provide(shell, name, value.clone());
        }
    }
    // In Grid Engine nodes are requested by type: `-l rt_F=2`.
    let asked = directives.iter().filter(|line| line.scheduler == "$" && line.key == "-l");
    for line in asked {
        for kind in ["node_f", "rt_F", "rt_AF", "rt_HF"] {
            if let Some(nodes) = resource(&line.value, kind) {
                let span = nodes.origin().unwrap_or_default();
                provide(shell, "NHOSTS", nodes);
                provide(shell, "SGE_RESOURCE_TYPE", Value::computed(kind, span));
                return;
            }
        }
    }
}

fn provide(shell: &mut Evaluator<'_>, name: &str, value: Value) {
    // The user's answer for a variable outranks the directive. A value that is not a number (a template placeholder)
    // is better left as an unknown under its own name.
    if shell.variables.has(name)
        || !(number(&value).is_some() || matches!(name, "SLURM_JOB_NAME" | "SGE_RESOURCE_TYPE"))
    {
        return;
    }
    let span = value.origin();
    shell.set(name, value, span);
    shell.export(name);
}

fn number(value: &Value) -> Option<u64> {
    value.known()?.trim().parse().ok()
}

/// The number of a resource: 2 of `rt_F` in `h_rt=1:00:00,rt_F=2`.
pub fn resource(value: &Value, name: &str) -> Option<Value> {
    let text = value.text();
    for (at, _) in text.match_indices(name) {
        let start = at + name.len() + 1;
        if text.get(at + name.len()..start) == Some("=")
            // Only where a name begins: `rt_F` must not match the end of `my_rt_F`.
            && (at == 0 || text.get(at - 1..at)?.contains([':', ',']))
        {
            let digits = digits(text.get(start..)?);
            return (digits > 0).then(|| value.part(start, start + digits));
        }
    }
    None
}

/// How many digits a text starts with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The lower end of `2-4`.
pub fn least(value: &Value) -> Value {
    match digits(value.text()) {
        0 => value.clone(),
        digits => value.part(0, digits),
    }
}

/// The count in `8`, `gpu:8`, `gpu:a100:8(S:0-1)`.
pub fn count(value: &Value) -> Value {
    let text = value.text();
    let end = text.find([',', '(']).unwrap_or(text.len());
    let start = text.get(..end).and_then(|kinds| kinds.rfind(':')).map_or(0, |at| at + 1);
    value.part(start, end)
}

#[cfg(test)]
mod tests {
    use super::{count, read};
    use crate::value::Value;
    use shardscope_source::Span;

    #[test]
    fn lines_behind_the_first_command_are_none_of_slurms() {
        let text = "#!/bin/bash\n\n# a job\n#SBATCH --nodes=2\nset -e\n#SBATCH --nodes=4\n#PBS -l select=3\n";
        let value = Value::written(text, Span::from_bytes(0, text.len()));
        let found: Vec<_> = read(&value).iter().map(|d| format!("{} {}", d.key, d.value.text())).collect();
        assert_eq!(found, ["--nodes 2", "-l select=3"]);
    }

    #[test]
    fn lines_of_all_spellings_are_read() {
        let text = "#!/bin/bash\n#SBATCH --nodes=4 -n 32 # note -x 1\n#SBATCH -N2\n##SBATCH --nodes=9\n#SBATCH --exclusive\n#$ -l rt_F=2\n#PBS -l select=3:ngpus=4\n#SBATCH --gres=gpu:a100:8\n# SBATCH --x\n";
        let value = Value::written(text, Span::from_bytes(0, text.len()));
        let found: Vec<_> =
            read(&value).iter().map(|d| format!("{} {} {}", d.scheduler, d.key, d.value.text())).collect();
        assert_eq!(
            found,
            [
                "SBATCH --nodes 4",
                "SBATCH -n 32",
                "SBATCH -N 2",
                "SBATCH --exclusive ",
                "$ -l rt_F=2",
                "PBS -l select=3:ngpus=4",
                "SBATCH --gres gpu:a100:8"
            ]
        );
        let last = read(&value).pop().map(|d| count(&d.value)).unwrap_or_default();
        assert_eq!(last.text(), "8");
        assert_eq!(last.origin().map(|span| &text[span.start as usize..span.end as usize]), Some("8"));
    }
}
