//! A decoder with a head for classes: what the whole model keeps compared with recorded runs (`tests/record/classifier.py`).

use shardscope::estimate::{kept_by_chunk, parameters};
use shardscope::operators::Symbols;
use shardscope::plan::{
    AdapterKernels, AdapterLibrary, AttentionKernel, BaseTraining, DpSharding, Lora, LoraModules,
    NumberFormat, Objective, Plan, Recompute, Software, Transformers, Tuning,
};

use super::drafts::{draft, even_stages};

const RECORDED: &str = include_str!("../data/activations/classifier.tsv");

fn small(way: &str, labels: u64, checkpointed: bool, samples: u64) -> Plan {
    let mut draft = draft();
    let model = &mut draft.model;
    (model.num_layers, model.hidden_size, model.ffn_hidden_size) = (3, 64, 160);
    (model.num_attention_heads, model.num_query_groups, model.kv_channels) = (4, 4, 16);
    (model.seq_length, model.padded_vocab_size) = (40, 320);
    draft.layout.stages = even_stages(3, 1, 0);
    let recipe = &mut draft.recipe;
    recipe.software = Software::HfTransformers;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.micro_batch_size = samples;
    recipe.num_micro_batches = 2;
    recipe.global_batch_size = 2 * samples;
    (recipe.params_dtype, recipe.grads_dtype) = (NumberFormat::Bf16, NumberFormat::Bf16);
    recipe.attention_kernel = AttentionKernel::Sdpa;
    if checkpointed {
        recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
    }
    recipe.transformers = Transformers::default();
    recipe.tuning = Tuning { objective: Objective::Classes { labels }, ..Tuning::default() };
    if way == "lora" {
        let tuning = &mut recipe.tuning;
        (tuning.base, tuning.embedding, tuning.copies) = (BaseTraining::None, false, true);
        tuning.input_gradients = checkpointed;
        tuning.lora = Some(Lora {
            rank: 8,
            dora: false,
            dropout: true,
            dtype: NumberFormat::Bf16,
            modules: LoraModules::ALL,
            drops_result: false,
            library: AdapterLibrary::Peft,
            kernels: AdapterKernels::default(),
        });
    }
    draft.plan()
}

#[test]
fn what_a_small_classifier_keeps_is_met_to_the_byte() {
    let (mut runs, mut wrong) = (0, Vec::new());
    for line in RECORDED.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let numbers: Vec<u64> = cells[1..].iter().map(|cell| cell.parse().unwrap()).collect();
        let [labels, checkpointed, samples, kept, trained] = numbers[..] else { panic!("{line}") };
        let plan = small(cells[0], labels, checkpointed == 1, samples);
        let x = Symbols::new(&plan);
        let all = kept_by_chunk(&plan, &plan.layout().stages.stages[0].chunks[0]).get();
        // The rotary table is alive for the recomputed layers, but not a saved tensor: checkpointing holds it as an
        // argument.
        let table = checkpointed * 2 * x.s * x.rotated * x.width;
        if [all, parameters(&plan).trained.get()] != [kept + table, trained] {
            wrong.push(format!("{line}: {} {}", all - table, parameters(&plan).trained.get()));
        }
        runs += 1;
    }
    assert!(wrong.is_empty() && runs == 16, "of {runs}:\n{}", wrong.join("\n"));
}
