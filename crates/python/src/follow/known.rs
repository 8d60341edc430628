//! Functions that launchers call from other files: Python builtins, and those of `external_utils/command_utils.py` in
//! slime and miles.

use super::value::Value;
use crate::syntax::Node;

/// The class that launchers of miles extend (`miles/utils/external_utils/command_utils.py`), with its fields.
pub(crate) const BASE: &str = "ExecuteTrainConfig";
pub(crate) const HELD: [(&str, &str); 4] = [
    ("cuda_core_dump", "False"),
    // Unless `NODES` is set.
    ("num_nodes", "1"),
    ("extra_env_vars", "''"),
    ("output_dir", "'/root/shared_data'"),
];
/// The variable from which `num_nodes` is taken.
pub const NODES: &str = "SLURM_JOB_NUM_NODES";
/// Constants of the same file.
pub(crate) const CONSTANTS: [(&str, &str); 2] = [
    (
        "NUM_GPUS_OF_HARDWARE",
        "{'H100': 8, 'H200': 8, 'B200': 8, 'B300': 8, 'GB200': 4, 'GB300': 4, 'MI350X': 8, 'MI355X': 8}",
    ),
    ("GENERATION_HARDWARE", "{'H100': 'Hopper', 'GB200': 'Blackwell', 'GB300': 'Blackwell'}"),
];
/// Functions in the same file that only give options for logging and for where rollouts are stored on the host.
pub(crate) const SILENT: [&str; 2] = ["get_default_wandb_args", "get_mooncake_object_store_args"];
/// Functions of `miles/true_on_policy/config.py` that do nothing if `true_on_policy` is off.
pub(crate) const TRUE_ON_POLICY: [&str; 2] =
    ["apply_true_on_policy_script_defaults", "build_true_on_policy_launch_plan"];
/// Functions that do not change their arguments.
pub(crate) const HARMLESS: [&str; 7] = ["print", "str", "repr", "asdict", "isinstance", "getattr", "hasattr"];
/// Variables that only switch on a run's logging.
pub(crate) const LOGGED: [&str; 2] = ["WANDB_API_KEY", "WANDB_KEY"];

/// `get_bool_env_var(name, default="false")`, with the variable unset.
pub(crate) fn switch(given: &[Value]) -> Value {
    match given {
        [_, Value::Text(default), ..] => Value::Flag(matches!(default.to_lowercase().as_str(), "true" | "1")),
        [_] => Value::Flag(false),
        _ => Value::Open("get_bool_env_var()".to_owned()),
    }
}

/// `moe_layer_freq` of miles (`external_utils/model_args_utils.py`): dense layers, then MoE layers.
pub(crate) fn pattern(given: &[(Option<String>, Value)]) -> Value {
    /// Most layers that are listed.
    const MOST: i64 = 1_000;
    let count = |name: &str| match given.iter().find(|(keyword, _)| keyword.as_deref() == Some(name)) {
        Some((_, Value::Whole(count))) => usize::try_from((*count).min(MOST)).ok(),
        _ => None,
    };
    let (Some(layers), Some(dense)) = (count("nlayers"), count("first_k_dense_replace")) else {
        return Value::Open("moe_layer_freq()".to_owned());
    };
    let layers: Vec<&str> = (0..layers).map(|at| if at < dense { "0" } else { "1" }).collect();
    Value::Text(format!("[{}]", layers.join(",")))
}

/// Whether this is `os.environ`.
pub(crate) fn is_environment(read: &Node) -> bool {
    matches!(read, Node::Attribute(_, field) if field == "environ")
        || *read == Node::Name("environ".to_owned())
}

/// Python builtins.
pub(crate) fn builtin(called: &str, given: &[Value]) -> Value {
    let wholes: Option<Vec<i64>> =
        given.iter().map(|one| if let Value::Whole(number) = one { Some(*number) } else { None }).collect();
    let unknown = given.iter().find_map(Value::unknown);
    let found = match (called, given) {
        ("min", _) => wholes.and_then(|all| all.into_iter().min()).map(Value::Whole),
        ("max", _) => wholes.and_then(|all| all.into_iter().max()).map(Value::Whole),
        ("str", [one]) => Some(Value::Text(one.written())),
        ("bool", [one]) => one.holds().ok().map(Value::Flag),
        ("int", [Value::Whole(number)]) => Some(Value::Whole(*number)),
        ("int", [Value::Flag(flag)]) => Some(Value::Whole(i64::from(*flag))),
        ("int", [Value::Text(text)]) => text.parse().ok().map(Value::Whole),
        ("len", [Value::List(items)]) => i64::try_from(items.len()).ok().map(Value::Whole),
        _ => None,
    };
    found.unwrap_or_else(|| match unknown {
        Some(name) if matches!(called, "int" | "str" | "bool") => Value::Open(name.to_owned()),
        _ => Value::Open(format!("{called}()")),
    })
}
