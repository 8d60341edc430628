//! Classes of models that recipes of Megatron-Bridge build from sizes, and the model on the Hub with these sizes
//! (`recipes/nemotronh/h100/*.py`, `recipes/olmoe/h100/olmoe_7b.py`, commit 067f987).

use super::super::leaves::{Leaf, Leaves};
use crate::named::take_model;
use shardscope_plan::Field;

/// A class, the prefix of names of recipes that build it, and the model.
const KNOWN: [(&str, &str, &str); 10] = [
    (HYBRID, "nemotron_3_5_lightning_", "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4"),
    // Before the larger one, whose prefix also matches this name.
    (HYBRID, "nemotron_3_nano_4b_", ""),
    (HYBRID, "nemotron_3_nano_", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
    (HYBRID, "nemotron_nano_9b_v2_", "nvidia/NVIDIA-Nemotron-Nano-9B-v2"),
    (HYBRID, "nemotron_nano_12b_v2_", "nvidia/NVIDIA-Nemotron-Nano-12B-v2"),
    (HYBRID, "nemotronh_4b_", "nvidia/Nemotron-H-4B-Base-8K"),
    (HYBRID, "nemotronh_8b_", "nvidia/Nemotron-H-8B-Base-8K"),
    (HYBRID, "nemotronh_47b_", "nvidia/Nemotron-H-47B-Base-8K"),
    (HYBRID, "nemotronh_56b_", "nvidia/Nemotron-H-56B-Base-8K"),
    ("OlMoEModelProvider", "olmoe_7b_", "allenai/OLMoE-1B-7B-0924"),
];
const HYBRID: &str = "HybridModelProvider";

/// Adds what Megatron-Bridge's providers set beside a recipe: experts are not sharded over tensor ranks unless the recipe says so,
/// where Megatron-LM shards them like everything else (`models/transformer_config.py:_set_moe_expert_tensor_parallel_default`).
/// Members of Megatron core's enumerations are the words of its options.
pub(super) fn defaults(leaves: &mut Vec<Leaf>) {
    const EXPERTS: &str = "model.expert_model_parallel_size";
    const TENSOR: &str = "model.expert_tensor_parallel_size";
    let said = |path: &str| leaves.iter().rev().find(|leaf| leaf.path == path && !leaf.value.is_empty());
    let spread = said(EXPERTS).is_some_and(|leaf| leaf.hole.is_some() || leaf.value != "1");
    let own =
        leaves.iter().any(|leaf| leaf.path == TENSOR && (leaf.hole.is_some() || !leaf.value.is_empty()));
    if spread && !own {
        leaves.push(Leaf { path: TENSOR.to_owned(), value: "1".to_owned(), ..Leaf::default() });
    }
    for leaf in leaves.iter_mut().filter(|leaf| leaf.path == "model.attention_backend") {
        if let Some(word) = leaf.value.strip_prefix("AttnBackend.") {
            leaf.value = word.to_owned();
        }
    }
}

/// Takes the model that a class stands for in such a recipe, in addition to the recipe's own
/// settings; returns whether it is known.
pub(super) fn take(leaves: &mut Leaves<'_>, class: &str, recipe: &str) -> bool {
    let known = KNOWN.iter().find(|(known, start, _)| class == *known && recipe.starts_with(start));
    let Some((.., name)) = known.filter(|(.., name)| !name.is_empty()) else { return false };
    // Layers and width would count as a complete shape; the recipe states those of this very
    // model, but not all of its mixers.
    leaves.reading.keep(&|found| found.field != Field::NumLayers);
    take_model(&mut leaves.reading, name, "model", None);
    true
}

#[cfg(test)]
mod tests {
    use super::super::read_words;
    use crate::Argument;
    use shardscope_plan::Field;

    /// Megatron-LM's parser shards experts over as many tensor ranks as everything else, Megatron-Bridge over one.
    #[test]
    fn experts_stay_whole_unless_a_recipe_shards_them() {
        let of = |more: &str| {
            let line = format!("run_recipe.py --recipe gpt_oss_120b_sft_48gpu_h100_bf16_32k_config {more}");
            let read = read_words(&Argument::split(&line), None).expect("a recipe");
            assert_eq!(read.value(Field::TensorModelParallelSize), Some("2"));
            read.value(Field::ExpertTensorParallelSize).map(str::to_owned)
        };
        assert_eq!(of("").as_deref(), Some("1"));
        assert_eq!(of("model.expert_tensor_parallel_size=2").as_deref(), Some("2"));
        // Without expert parallelism Megatron core's own default holds.
        assert_eq!(of("model.expert_model_parallel_size=1"), None);
    }

    /// `hybrid_layer_pattern`, `mamba_num_heads` and `mamba_head_dim` of `recipes/nemotronh/h100/nemotron_3_nano.py`,
    /// and sizes in `recipes/olmoe/h100/olmoe_7b.py`.
    #[test]
    fn a_class_in_a_recipe_is_the_model_whose_sizes_it_has() {
        let read = |recipe: &str| {
            read_words(&Argument::split(&format!("run_recipe.py --recipe {recipe}")), None).expect("a recipe")
        };
        let nano = read("nemotron_3_nano_pretrain_config");
        assert!(nano.not_modelled.is_empty(), "{:?}", nano.not_modelled);
        let shown = [
            Field::HybridOverridePattern,
            Field::NumLayers,
            Field::HiddenSize,
            Field::LinearNumValueHeads,
            Field::LinearValueHeadDim,
            Field::NumExperts,
            Field::VocabSize,
        ]
        .map(|field| nano.value(field).unwrap_or_default());
        let pattern = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME";
        assert_eq!(shown, [pattern, "52", "2688", "64", "64", "128", "131072"]);
        let olmoe = read("olmoe_7b_sft_config");
        let shown = [Field::NumLayers, Field::HiddenSize, Field::NumExperts, Field::MoeFfnHiddenSize]
            .map(|field| olmoe.value(field).unwrap_or_default());
        assert_eq!(shown, ["16", "2048", "64", "1024"]);
        // The sizes of the smaller one are not known here.
        assert!(
            read("nemotron_3_nano_4b_pretrain_config").not_modelled.iter().any(|item| item.name == "model")
        );
    }
}
