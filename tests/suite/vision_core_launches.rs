//! Launch files of models whose vision tower is of Megatron core's layers: miles, slime, recipes of Megatron-Bridge, verl on mbridge;
//! what a rank holds and sends, and what stops by name.

use shardscope::estimate::parameters;
use shardscope::estimate::traffic::{Parallelism, buffers, traffic};
use shardscope::launch::Resolution;
use shardscope::operators::{Account, SectionKind, Symbols, WeightRole};
use shardscope::plan::*;
use shardscope::source::Source;

use super::formats::resolved;
use super::vision_core::of;

fn read(text: &str, set: &[(&str, &str)]) -> Resolution {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolved(&Source::from_files([("run.sh", text)]), &set)
}

/// The words of `examples/geo3k_vlm/run_geo3k_vlm_sft.sh` of miles.
const MILES: &str = "python3 train_async.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --num-layers 36 --hidden-size 4096 \
    --ffn-hidden-size 12288 --num-attention-heads 32 --num-query-groups 8 --kv-channels 128 --group-query-attention --swiglu \
    --qk-layernorm --disable-bias-linear --normalization RMSNorm --position-embedding-type rope --vocab-size 151936 \
    --untie-embeddings-and-output-weights --hf-checkpoint /root/models/Qwen3-VL-8B-Instruct \
    --rollout-function-path miles.rollout.sft_rollout.generate_rollout --rollout-batch-size 128 --global-batch-size 128 \
    --loss-type sft_loss --debug-train-only --optimizer adam --train-backend megatron --tensor-model-parallel-size 4 \
    --sequence-parallel --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
    --use-dynamic-batch-size --max-tokens-per-gpu 4096 --attention-dropout 0.0 --hidden-dropout 0.0 \
    --accumulate-allreduce-grads-in-fp32 --attention-softmax-in-fp32 --attention-backend flash --megatron-to-hf-mode bridge\n";

const ANSWERS: [(&str, &str); 2] = [("image_patches", "4096"), ("rollout_length", "4096")];

#[track_caller]
fn plan(text: &str, set: &[(&str, &str)]) -> Plan {
    let resolution = read(text, set);
    resolution.plan.unwrap_or_else(|| panic!("{:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

/// Qwen3-VL-8B has 8,767,123,696 parameters (its page: `safetensors.total`), of which 576,388,336 are the tower's. Megatron-Bridge does
/// not pad its vocabulary, and rotates without a kernel.
#[test]
fn a_run_of_miles_holds_and_sends_the_tower_in_parts() {
    let plan = plan(MILES, &ANSWERS);
    let counted = parameters(&plan);
    assert_eq!(counted.total.get(), 8_767_123_696);
    assert_eq!(counted.accounts.get(Account::VisionTower).get(), 576_388_336);
    assert!(!plan.recipe().fusions.rope);
    let x = Symbols::new(&plan);
    for kind in [SectionKind::VisionLayer, SectionKind::VisionEnds] {
        assert!(kind.weights(&x).all(|weight| weight.role == WeightRole::Trained));
    }
    // Two sums of a layer forward, once more where it is recomputed, and two backward; no sum of gradients, as no rank sees a part
    // of the patches alone. Of four mergers three are in checkpoints.
    let sent = traffic(&plan);
    let tensor = sent.dimension(Parallelism::Tensor).expect("messages of tensor parallelism");
    let sums = |shape: [u64; 2]| -> u64 {
        let of = tensor.operations.iter().filter(|sent| sent.shape.iter().eq(&shape));
        of.map(|sent| sent.per_iteration[0]).sum()
    };
    let steps = plan.recipe().num_micro_batches;
    assert_eq!(sums([4096, 1152]), steps * (27 * 6 + 4));
    assert_eq!(sums([1024, 4096]), steps * (1 + 3 * 2));
    let whole: u64 = tensor
        .operations
        .iter()
        .filter(|sent| sent.name == "weights not cut")
        .map(|sent| sent.shape.iter().product::<u64>())
        .sum();
    let norms = 36 * (2 * 4096 + 2 * 128) + 4096;
    assert_eq!(whole, norms);
}

/// slime hands no option of recomputation on to Megatron-Bridge's provider (`slime/backends/megatron_utils/model_provider.py`).
#[test]
fn slime_recomputes_nothing_of_a_model_of_megatron_bridge() {
    assert!(plan(MILES, &ANSWERS).recipe().recompute.is_whole());
    let slime = MILES.replace("miles.rollout", "slime.rollout");
    let resolution = read(&slime, &ANSWERS);
    assert!(resolution.diagnostics.iter().any(|said| said.message.contains("nothing is recomputed")));
    assert_eq!(resolution.plan.expect("a plan").recipe().recompute, Recompute::None);
    // The path of the program tells the two apart too, and the name of a run on a dashboard does not.
    let neither = MILES.replace("miles.rollout.sft_rollout.generate_rollout", "fully_async_rollout.generate");
    let of = |program: &str| read(&neither.replace("train_async.py", program), &ANSWERS);
    assert!(of("/root/miles/train_async.py").plan.expect("a plan").recipe().recompute.is_whole());
    assert_eq!(of("/root/slime/train_async.py").plan.expect("a plan").recipe().recompute, Recompute::None);
    for text in [&neither, &format!("{} --wandb-project slime", neither.trim_end())] {
        let stopped = read(text, &ANSWERS);
        assert!(stopped.plan.is_none());
        let items: Vec<&str> = stopped.not_modelled.iter().map(|item| item.message.as_str()).collect();
        let expected = "recomputation of a model that Megatron-Bridge builds, which miles hands on and slime does not, and nothing here \
                        says which of them runs";
        assert_eq!(items, [expected]);
    }
}

#[test]
fn what_is_not_known_of_such_a_tower_stops_by_name() {
    let stops = |text: &str, more: &[(&str, &str)]| {
        let resolution = read(text, &[&ANSWERS[..], more].concat());
        let of = resolution.not_modelled.iter().filter(|item| item.name == "vision_tower");
        of.map(|item| item.message.clone()).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(stops(MILES, &[]), "");
    for (more, words) in [
        (&[("recompute_granularity", "selective")][..], "selective recomputation"),
        (&[("recompute_num_layers", "2")], "recomputed in groups"),
        (&[("recompute_method", "block")], "recomputed in groups"),
        (&[("context_parallel_size", "2")], "context parallelism"),
        (&[("frozen_modules", "multi_modal_projector")], "part of it trains"),
        (&[("fp8", "hybrid"), ("vision_modules", "core")], "in the decoder's 8 or 4 bits"),
        (&[("fp4", "e2m1"), ("vision_modules", "core")], "in the decoder's 8 or 4 bits"),
        (&[("attention_backend", "unfused")], "attention whose scores"),
        (&[("optimizer", "muon")], "treats matrices differently"),
        (&[("cpu_offloading_num_layers", "2")], "activations offloaded to the host"),
    ] {
        assert!(stops(MILES, more).contains(words), "{more:?}: {}", stops(MILES, more));
    }
    // Megatron-Bridge's stays in 16 bits beside such a decoder.
    assert_eq!(stops(MILES, &[("fp8", "hybrid")]), "");
    // Heads and the MLP's width are cut, and three layers of the decoder stand beside the tower.
    let refused = |more: &[(&str, &str)]| {
        let resolution = read(MILES, &[&ANSWERS[..], more].concat());
        resolution.diagnostics.iter().map(|said| said.message.clone()).collect::<Vec<_>>().join("; ")
    };
    let wide = [("tensor_model_parallel_size", "32"), ("world_size", "32"), ("num_query_groups", "32")];
    assert!(
        refused(&wide).contains("16 heads of the vision tower cannot be split over TP 32"),
        "{}",
        refused(&wide)
    );
    let deep = [("pipeline_model_parallel_size", "18"), ("world_size", "72"), ("gpus_per_node", "8")];
    assert!(refused(&deep).contains("whose 3 deep layers reach one each"), "{}", refused(&deep));
    // A frozen tower keeps nothing, whatever is recomputed.
    let frozen = ("frozen_modules", "vision_tower multi_modal_projector");
    assert_eq!(stops(MILES, &[frozen, ("recompute_granularity", "selective")]), "");
    // A provider of experts freezes parts by itself, mbridge freezes none.
    let experts = MILES.replace("Qwen3-VL-8B-Instruct", "Qwen3-VL-30B-A3B-Instruct");
    let more = [("num_experts", "128"), ("moe_router_topk", "8"), ("moe_ffn_hidden_size", "768")];
    assert!(stops(&experts, &more).contains("provider decides"), "{}", stops(&experts, &more));
    assert_eq!(stops(&experts, &[&more[..], &[("vision_modules", "core")]].concat()), "");
    // Qwen2.5-VL's tower there is transformers'.
    let other = MILES.replace("Qwen3-VL-8B-Instruct", "Qwen2.5-VL-7B-Instruct");
    assert!(stops(&other, &[]).contains("gradients pass through it"), "{}", stops(&other, &[]));
}

/// Recipes of Megatron-Bridge say which parts are frozen; supervised ones of Qwen3-VL train all of them
/// (`recipes/qwen_vl/h100/qwen3_vl.py`, commit 067f987).
#[test]
fn recipes_of_megatron_bridge_train_the_tower_unless_they_freeze_it() {
    let text = "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe qwen3_vl_8b_sft_config --step_func qwen3_vl_step";
    let set = [("image_patches", "4096")];
    let plan = self::plan(text, &set);
    let tower = plan.model().vision.expect("a tower");
    assert_eq!((tower.modules, tower.gradients), (TowerModules::Core, TowerGradients::Trained));
    assert!(tower.projector_trains && tower.deep_trains && !plan.recipe().fusions.rope);
    let (layout, recipe) = (plan.layout(), plan.recipe());
    assert_eq!((layout.tensor, layout.data, layout.sequence_parallel), (2, 4, false));
    assert_eq!((recipe.micro_batch_size, recipe.global_batch_size), (2, 32));
    assert_eq!((recipe.recompute.clone(), plan.model().seq_length), (Recompute::None, 4096));
    let counted = parameters(&plan);
    assert_eq!(counted.total.get(), 8_767_123_696);
    assert_eq!(counted.trained.get(), 8_767_123_696);
    // Two samples go through the tower together.
    let x = Symbols::new(&plan);
    assert_eq!(of(&x, SectionKind::VisionLayer), layer(2 * 4096, 2));
    let stopped = |more: &str| {
        let resolution = read(&format!("{text} {more}"), &set);
        resolution.not_modelled.iter().map(|item| item.message.clone()).collect::<Vec<_>>().join("; ")
    };
    assert!(stopped("model.freeze_vision_projection=True").contains("part of it trains"));
    let offloaded = stopped("model.cpu_offloading=True model.cpu_offloading_num_layers=2");
    assert!(offloaded.contains("activations offloaded to the host"), "{offloaded}");
    // Adapters on the tower's layers, and on gated delta nets of Qwen3.5's decoder.
    for (recipe, parts) in [
        ("qwen3_vl_8b_peft_config", &["in Megatron, with adapters"][..]),
        ("qwen35_vl_4b_peft_config", &["in Megatron, with adapters", "adapters on a linear mixer"]),
    ] {
        let adapted = read(&text.replace("qwen3_vl_8b_sft_config", recipe), &set);
        let items: Vec<&str> = adapted.not_modelled.iter().map(|item| item.message.as_str()).collect();
        assert!(parts.iter().all(|part| items.iter().any(|item| item.contains(part))), "{recipe}: {items:?}");
    }
    assert_eq!(stopped("model.freeze_vision_model=True"), "");
    assert_eq!(stopped("model.freeze_language_model=True"), "");
    assert!(stopped("model.context_parallel_size=2").contains("context parallelism"));
    let frozen = format!("{text} model.freeze_vision_model=True model.freeze_vision_projection=True");
    let frozen = parameters(&self::plan(&frozen, &[]));
    assert_eq!((frozen.total.get(), frozen.trained.get()), (8_767_123_696, 8_190_735_360));
}

/// A tower whose configuration Megatron-Bridge makes anew is in 16 bits beside a decoder in fp8 (`vision_core.jsonl`: `fp8`): what it
/// keeps and where its weights lie are those of the same recipe in bf16.
#[test]
fn a_tower_beside_a_decoder_in_fp8_stays_in_16_bits() {
    let of_recipe = |format: &str| {
        let text = format!(
            "torchrun --nnodes=1 --nproc_per_node=8 scripts/training/run_recipe.py --recipe qwen3_vl_8b_sft_config \
             mixed_precision={format} model.tensor_model_parallel_size=2"
        );
        self::plan(&text, &[("image_patches", "4096")])
    };
    let whole = of_recipe("bf16_mixed");
    for format in ["bf16_with_fp8_current_scaling_mixed", "bf16_with_mxfp8_mixed", "bf16_with_nvfp4_mixed"] {
        let low = of_recipe(format);
        assert!(low.recipe().fp8.is_some());
        let [x, y] = [&whole, &low].map(Symbols::new);
        for kind in [SectionKind::VisionLayer, SectionKind::VisionEnds] {
            assert_eq!(of(&y, kind), of(&x, kind), "{format}");
            assert!(kind.weights(&y).all(|weight| !weight.linear), "{format}");
        }
        // Bytes of weights: the tower's at 2 each, and nothing of it among those in fp8.
        let tower = |plan: &Plan| {
            let found = parameters(plan);
            found.accounts.get(Account::VisionTower).get()
        };
        assert_eq!(tower(&low), tower(&whole));
        if low.recipe().fp8.as_ref().is_some_and(|fp8| fp8.param_gather) {
            let x = Symbols::new(&low);
            let local = |kind: SectionKind, linear: bool| -> u64 {
                let weights = kind.weights(&x).filter(|weight| weight.linear == linear);
                weights.map(|weight| weight.local.iter().product::<u64>()).sum()
            };
            let cut = 27 * local(SectionKind::VisionLayer, false) + local(SectionKind::VisionEnds, false);
            let words = 151_936 / 2 * 4096;
            let norms = 36 * (2 * 4096 + 2 * 128) + 4096;
            let sixteen: u64 = buffers(&low, 0, 0)
                .iter()
                .filter(|buffer| buffer.format == NumberFormat::Bf16)
                .map(|buffer| buffer.parameters)
                .sum();
            assert_eq!(sixteen, cut + 2 * words + norms, "{format}");
        }
    }
}

/// Recipes that train mergers alone freeze decoder and tower (`recipes/qwen_vl/h100/qwen3_vl.py`): of Qwen3-VL-8B's 8,767,123,696
/// parameters four mergers of 2·(1152 or 4608) + 4608·4608 + 4608 + 4608·4096 + 4096 each train.
#[test]
fn recipes_that_freeze_the_decoder_train_the_mergers_alone() {
    let text = "torchrun --nproc_per_node=4 scripts/training/run_recipe.py --recipe qwen3_vl_8b_pretrain_mock_config";
    let plan = self::plan(text, &[("image_patches", "4096")]);
    let tower = plan.model().vision.expect("a tower");
    assert_eq!((tower.modules, tower.gradients), (TowerModules::Core, TowerGradients::None));
    assert!(tower.projector_trains && tower.deep_trains);
    let tuning = &plan.recipe().tuning;
    assert_eq!((tuning.base, tuning.embedding, tuning.head), (BaseTraining::None, false, false));
    let linear = 4608 * 4608 + 4608 + 4608 * 4096 + 4096;
    let counted = parameters(&plan);
    // Its tokenizer's vocabulary is padded to a multiple of 128 on each of four tensor ranks.
    assert_eq!(counted.total.get(), 8_767_123_696 + 2 * 128 * 4096);
    assert_eq!(counted.trained.get(), 4 * linear + 2 * 1152 + 3 * 2 * 4608);
}

/// Bytes that a layer of Qwen3-VL's tower keeps of so many patches on one of so many tensor ranks, by hand: norms' inputs, their
/// statistics and outputs, queries, keys, values and the output of 16 heads with the sum of each row, four fp32 tables of rotations of
/// 72 columns, and the activation's input and output.
fn layer(patches: u64, ranks: u64) -> u64 {
    let whole = 2 * 1152 * 2 + 4 * 4 + 2 * 1152 * 2 + 4 * 72 * 4;
    let cut = 4 * 1152 * 2 + 16 * 4 + 2 * 4304 * 2;
    patches * whole + patches * cut / ranks
}

/// mbridge freezes nothing of a model, experts or not (`mbridge/models/qwen3_vl/base_bridge.py`).
#[test]
fn a_policy_of_verl_on_mbridge_trains_the_tower() {
    let text = "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer.yaml algorithm.adv_estimator=grpo \
        data.train_batch_size=512 data.max_prompt_length=1024 data.max_response_length=2048 \
        actor_rollout_ref.model.path=Qwen/Qwen3-VL-30B-A3B-Instruct actor_rollout_ref.actor.ppo_mini_batch_size=128 \
        actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 \
        actor_rollout_ref.actor.megatron.expert_model_parallel_size=8 actor_rollout_ref.actor.megatron.expert_tensor_parallel_size=1 \
        actor_rollout_ref.actor.megatron.use_mbridge=True actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=5 \
        actor_rollout_ref.rollout.tensor_model_parallel_size=4 actor_rollout_ref.rollout.gpu_memory_utilization=0.7 \
        +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_method=uniform \
        +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full \
        +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_num_layers=1 \
        trainer.n_gpus_per_node=8 trainer.nnodes=1\n";
    let set = [("image_patches", "4096")];
    let plan = self::plan(text, &set);
    let tower = plan.model().vision.expect("a tower");
    assert_eq!((tower.modules, tower.gradients), (TowerModules::Core, TowerGradients::Trained));
    let counted = parameters(&plan);
    assert_eq!(counted.accounts.get(Account::VisionTower).get(), 538_631_408);
    assert_eq!(counted.trained, counted.total);
    let other = text.replace(
        "use_mbridge=True",
        "use_mbridge=True actor_rollout_ref.actor.megatron.vanilla_mbridge=False",
    );
    let resolution = read(&other, &set);
    assert!(resolution.not_modelled.iter().any(|item| item.message.contains("provider decides")));
}
