//! Values that flags of Megatron-LM's forks spell in their own way, and the corresponding setting and value.

use shardscope_plan::Field;

/// The setting and value in Megatron's terms for a value that a fork's flag spells differently.
pub(super) fn respelt(name: &str, value: &str) -> Vec<(Field, String)> {
    let mut states = Vec::new();
    if name == LAYER_LIST
        && let Some(layout) = layer_list(value)
    {
        states.push((Field::PipelineModelParallelLayout, layout));
    }
    for (flag, theirs, field, ours) in &RESPELT {
        // DeepSpeed's partition method may contain more than the one word that matters.
        let same = theirs.eq_ignore_ascii_case(value) || (*flag == PARTITION && value.contains(theirs));
        if *flag == name && same {
            states.push((*field, (*ours).to_owned()));
        }
    }
    states
}

const HEADS: &str = "attention-head-type";
const LAYER_LIST: &str = "num-layer-list";
const PARTITION: &str = "pp-partition-method";
const CONTEXT: &str = "context-parallel-algo";
const MEMORY: &str = "zero-bubble-v-schedule-mem-setup";

/// Flags of forks, their values, and the corresponding setting and value.
const RESPELT: [(&str, &str, Field, &str); 22] = [
    (CONTEXT, "ulysses_cp_algo", Field::CpCommType, "a2a"),
    (CONTEXT, "megatron_cp_algo", Field::CpCommType, "p2p"),
    (CONTEXT, "kvallgather_cp_algo", Field::CpCommType, "all_gather"),
    (CONTEXT, "hybrid_cp_algo", Field::CpCommType, "a2a+p2p"),
    ("glu-activation", "swiglu", Field::Swiglu, "true"),
    ("glu-activation", "geglu", Field::QuickGeglu, "true"),
    ("schedules-method", "dualpipev", Field::PipelineSchedule, "dualpipe-v"),
    (MEMORY, "min", Field::PipelineSchedule, "v-min"),
    (MEMORY, "half", Field::PipelineSchedule, "v-half"),
    (MEMORY, "zb", Field::PipelineSchedule, "zb-v"),
    // Megatron-LM's `--yaml-cfg` (`megatron/training/yaml_arguments.py:core_transformer_config_from_yaml`); any
    // other value stops the verdict.
    ("activation-func", "swiglu", Field::Swiglu, "true"),
    // Primus fuses the router and the permutation (`rocm_arg_validation.py:_get_sync_free_moe_options`); the further
    // effects of later stages stop the verdict (`options.txt`).
    ("turbo-sync-free-moe-stage", "1", Field::MoePermuteFusion, "true"),
    // bigcode's Megatron-LM: all query heads share one key/value head.
    (HEADS, "multiquery", Field::GroupQueryAttention, "true"),
    (HEADS, "multiquery", Field::NumQueryGroups, "1"),
    (HEADS, "multiquery", Field::WholeKeys, "true"),
    (HEADS, "multihead", Field::GroupQueryAttention, "false"),
    ("peft-scheme", "lora", Field::TrainType, "lora"),
    ("peft-scheme", "none", Field::TrainType, "full"),
    ("lora-type", "lora", Field::AdapterLibrary, "megatron-bridge"),
    ("lora-type", "canonical_lora", Field::AdapterLibrary, "megatron-bridge-canonical"),
    // With it DeepSpeed counts both embeddings as layers.
    (PARTITION, "embedding", Field::AccountForEmbeddingInPipelineSplit, "true"),
    (PARTITION, "embedding", Field::AccountForLossInPipelineSplit, "true"),
];

/// Whether a flag's value may be spelled differently.
pub(super) fn spells(name: &str) -> bool {
    name == LAYER_LIST || RESPELT.iter().any(|(flag, ..)| *flag == name)
}

/// Numbers of layers per stage (`7,7,8`) as an explicit layout.
fn layer_list(value: &str) -> Option<String> {
    let mut layout = String::new();
    for count in value.split(',') {
        let count: u64 = count.trim().parse().ok()?;
        layout.push_str(if layout.is_empty() { "Et*" } else { "|t*" });
        layout.push_str(&count.to_string());
    }
    layout.push('L');
    value.contains(',').then_some(layout)
}

/// The boolean that a word means.
pub(super) fn truth(word: &str) -> Option<bool> {
    match () {
        () if word.eq_ignore_ascii_case("true") => Some(true),
        () if word.eq_ignore_ascii_case("false") => Some(false),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::respelt;
    use shardscope_plan::Field;

    #[test]
    fn forks_are_stated_in_megatrons_words() {
        assert_eq!(
            respelt("num-layer-list", "7,8"),
            vec![(Field::PipelineModelParallelLayout, "Et*7|t*8L".to_owned())]
        );
        assert_eq!(
            respelt("context-parallel-algo", "ulysses_cp_algo"),
            vec![(Field::CpCommType, "a2a".to_owned())]
        );
        assert_eq!(respelt("num-layer-list", "x"), []);
        assert_eq!(respelt("activation-func", "swiglu"), vec![(Field::Swiglu, "true".to_owned())]);
        assert_eq!(respelt("activation-func", "relu"), []);
    }
}
