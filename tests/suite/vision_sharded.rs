//! Vision towers whose layers are FSDP units: what they keep compared with recorded runs, to the byte, and which
//! frameworks have such units.

use serde_json::Value;
use shardscope::estimate::{RankMemory, memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Account, Operator, SectionKind, Symbols};
use shardscope::plan::Plan;
use shardscope::source::Source;
use shardscope::units::Bytes;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;

/// `tests/record/vision_fsdp.py`.
const RECORDED: &str = include_str!("../data/activations/vision_fsdp.jsonl");

/// The plan of a recorded run; none if it stops.
fn plan_of(case: &Value, recomputes: bool) -> Option<Plan> {
    let patches = int(case, "patches").to_string();
    let units = case["units"].as_str().expect("units");
    let hooked = case["way"] == "hooked";
    // In these types the hook finds no patch embedding.
    let hookless = ["qwen3_vl", "qwen3_5"].iter().any(|name| case["type"] == *name);
    let mut set = vec![
        ("software", "hf_transformers"),
        ("world_size", "2"),
        ("seq_length", "512"),
        ("micro_batch_size", "1"),
        // If FSDP gathers in 16 bits without autocast, the weights are held in 16 bits.
        ("params_dtype", if case["autocast"] == true { "fp32" } else { "bf16" }),
        ("bf16", "true"),
        ("data_parallel_engine", "fsdp2"),
        ("zero_stage", "3"),
        ("attn_implementation", "sdpa"),
        ("image_patches", patches.as_str()),
        ("vision_units", units),
        ("autocast", if case["autocast"] == true { "bf16" } else { "none" }),
        ("gradient_checkpointing", if recomputes { "true" } else { "false" }),
    ];
    if hooked {
        set.push(("frozen_modules", "vision_tower multi_modal_projector"));
        set.push(("vision_input_grads", if hookless { "false" } else { "true" }));
    }
    if case["output"] == "fp32" {
        set.push(("output_dtype", "fp32"));
    }
    let set: Vec<_> = set.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    resolved(&Source::from_files([("config.json", case["config"].to_string().as_str())]), &set).plan
}

fn bytes(x: &Symbols<'_>, operator: Operator) -> u64 {
    let saved = operator.saved(x);
    for saved in &saved {
        let value = evaluate(saved.formula.expression, &|name| x.value(name));
        assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
    }
    saved.iter().map(|saved| saved.bytes.get()).sum()
}

/// What the tower's sections keep.
fn tower(plan: &Plan) -> u64 {
    let x = Symbols::new(plan);
    let layers = plan.model().vision.expect("a tower").layers;
    let of = |kind: SectionKind| {
        kind.kept_operators(&x).into_iter().map(|operator| bytes(&x, operator)).sum::<u64>()
    };
    layers * of(SectionKind::VisionLayer) + of(SectionKind::VisionEnds)
}

/// An FSDP unit casts its inputs, so each layer keeps its own rotation tables; norms after layers that pass on fp32
/// keep their normalised input in fp32.
#[test]
fn recorded_towers_under_fsdp_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let name = format!(
            "{} {} {} {} {}",
            case["type"], case["way"], case["units"], case["output"], case["autocast"]
        );
        if let Some(plan) = plan_of(&case, false) {
            assert_eq!(tower(&plan), int(&case, "tower"), "{name}");
            let x = Symbols::new(&plan);
            assert_eq!(bytes(&x, Operator::VisionLayer), int(&case, "layer"), "{name}");
            compared += 1;
        }
        if let Some(plan) = plan_of(&case, true) {
            // Checkpoints hold the rotation tables as arguments, which autograd's count omits.
            let kept = plan.model().vision.and_then(|tower| tower.kept);
            let tables = int(&case, "patches") * kept.map_or(0, |kept| kept.tables);
            assert_eq!(tower(&plan) - tables, int(&case, "recomputed"), "{name}, recomputed");
            compared += 1;
        }
    }
    assert_eq!(compared, 42);
}

fn read(text: &str, set: &[(&str, &str)]) -> Resolution {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolved(&Source::from_files([("run.sh", text)]), &set)
}

#[track_caller]
fn plan(text: &str, set: &[(&str, &str)]) -> Plan {
    let resolution = read(text, set);
    resolution.plan.unwrap_or_else(|| panic!("{:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

#[track_caller]
fn stops(text: &str, set: &[(&str, &str)], words: &str) {
    let resolution = read(text, set);
    let said: Vec<_> = resolution.not_modelled.iter().map(|item| &*item.message).collect();
    assert!(resolution.plan.is_none() && said.iter().any(|said| said.contains(words)), "{words}: {said:?}");
}

/// Parameters of Qwen2.5-VL-7B's tower and projector; its decoder is Qwen2.5-7B's.
const TOWER: u64 = 676_550_144;
const MEGATRON: &str = "NPROC_PER_NODE=4 megatron sft --model Qwen/Qwen2.5-VL-7B-Instruct --tensor_model_parallel_size 2 \
    --pipeline_model_parallel_size 2 --sequence_parallel true --packing true --micro_batch_size 1 --global_batch_size 4 \
    --recompute_granularity full --recompute_method uniform --recompute_num_layers 1 --max_length 2048";

/// ms-swift's Megatron command freezes tower and aligner unless told otherwise; mcore-bridge builds them from
/// transformers' modules, unsharded on each tensor rank of the first stage.
#[test]
fn a_frozen_tower_is_whole_on_the_first_stage_of_megatron() {
    let ranks = |text: &str| {
        let plan = plan(text, &[]);
        let counted = parameters(&plan);
        let of = |memory: &RankMemory| {
            let totals = memory.totals;
            [totals.parameters, totals.gradients, totals.optimizer].map(Bytes::get)
        };
        let memory = memory(&plan);
        let stages: Vec<_> = memory.ranks.iter().map(of).collect();
        (counted.total.get(), counted.trained.get(), stages, memory.ranks[0].totals.peak_allocated.get())
    };
    for more in [
        "",
        " --tuner_type lora --lora_rank 8 --target_modules all-linear",
        " --freeze_llm false --freeze_vit true",
    ] {
        let text = format!("{MEGATRON}{more}\n");
        let alone = text.replace("Qwen2.5-VL-7B", "Qwen2.5-7B");
        let (with, without) = (ranks(&text), ranks(&alone));
        assert_eq!((with.0, with.1), (without.0 + TOWER, without.1), "{more}");
        assert_eq!(with.2.len(), 2);
        let mut expected = without.2.clone();
        expected[0][0] += 2 * TOWER;
        assert_eq!(with.2, expected, "{more}");
        // For images the step keeps at most their positions.
        assert!(with.3 >= without.3 + 2 * TOWER, "{more}");
    }
    let of =
        |model: &str, more: &str| format!("{} {more}\n", MEGATRON.replace("Qwen2.5-VL-7B-Instruct", model));
    stops(&of("Qwen2.5-VL-7B-Instruct", "--freeze_vit false"), &[], "in Megatron");
    stops(&of("Qwen2.5-VL-7B-Instruct", "--vit_gradient_checkpointing true"), &[], "in Megatron");
    stops(&of("Qwen2.5-VL-7B-Instruct", "--optimizer muon"), &[], "an optimizer that treats matrices");
    let whole = "--recompute_granularity selective";
    stops(&of("Qwen3-VL-8B-Instruct", whole), &[], "whose deep layers");
    // Three of its layers receive the features of the tower's deep layers, 4,096 wide, and are recomputed.
    let third = plan(&of("Qwen3-VL-8B-Instruct", ""), &[]);
    let saved = Operator::Embedding.saved(&Symbols::new(&third));
    let deep =
        saved.iter().find(|saved| saved.name == "deep-layer features of the tower").expect("deep layers");
    assert_eq!(deep.bytes.get(), 3 * 2048 * 4096 * 2);
}

/// SGLang holds the same weights of a tower as vLLM; its activations, for 8,192 tokens of four patches each, are held
/// in addition to its configured share, with 100 MiB of embeddings.
#[test]
fn sglang_has_images_beside_its_share() {
    let of = |engine: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=512 \
             data.max_prompt_length=1024 data.max_response_length=2048 actor_rollout_ref.actor.ppo_mini_batch_size=128 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.rollout.n=5 \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-VL-7B-Instruct actor_rollout_ref.rollout.name={engine} \
             actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
             trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
        );
        memory(&plan(&text, &[("image_patches", "4096")])).rl.expect("rollouts")
    };
    let (sglang, vllm) = (of("sglang"), of("vllm"));
    assert_eq!(sglang.engine.weights, vllm.engine.weights);
    let images = 48 * 8192 * 4 * 1280 + 100 * 1024 * 1024;
    assert!(format!("{sglang:?}").contains(&format!("{images}")), "{sglang:?}");
    assert!(!format!("{vllm:?}").contains("engine image tensors"));
}

/// Adapters on everything except the tower leave it frozen (`exclude_modules` of verl).
#[test]
fn excluded_modules_of_a_tower_are_frozen() {
    let of = |pattern: &str| {
        format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=512 \
             data.max_prompt_length=1024 data.max_response_length=2048 actor_rollout_ref.actor.ppo_mini_batch_size=128 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.rollout.n=5 \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-VL-7B-Instruct actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.rollout.layered_summon=True actor_rollout_ref.model.lora_rank=64 actor_rollout_ref.model.lora_alpha=32 \
             actor_rollout_ref.model.target_modules=all-linear actor_rollout_ref.model.exclude_modules='{pattern}' \
             actor_rollout_ref.rollout.gpu_memory_utilization=0.6 trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
        )
    };
    let set = [("vision_input_grads", "false")];
    // 28 layers of Qwen2.5-7B: both matrices for each linear layer, 64 wide.
    let each = 2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18_944);
    assert_eq!(parameters(&plan(&of(".*visual.*"), &set)).trained.get(), 28 * 64 * each);
    stops(&of(".*gate_proj"), &set, "adapters with excluded modules");
}

const SLIME: &str = "source scripts/models/qwen3.5-9B.sh\npython3 train_async.py --actor-num-nodes 1 --actor-num-gpus-per-node 4 \
    --rollout-num-gpus 4 ${MODEL_ARGS[@]} --hf-checkpoint /root/models/Qwen3.5-9B --rollout-batch-size 8 --n-samples-per-prompt 4 \
    --rollout-max-response-len 2048 --global-batch-size 32 --advantage-estimator grpo --tensor-model-parallel-size 2 \
    --sequence-parallel --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
    --use-dynamic-batch-size --max-tokens-per-gpu 4096 --optimizer adam --rollout-num-gpus-per-engine 2 \
    --sglang-mem-fraction-static 0.7 --bf16 --rollout-max-context-len 4096";

/// slime only trains Qwen3.5's decoder, while SGLang is started from the checkpoint, including the tower.
#[test]
fn slime_has_the_tower_in_its_engine_alone() {
    let of = |set: &[(&str, &str)]| {
        // Linear attention over tensor ranks stops.
        let text = SLIME.replace("--tensor-model-parallel-size 2", "--tensor-model-parallel-size 1");
        let plan = plan(&text, set);
        let memory = memory(&plan);
        let engine = memory.rl.expect("rollouts").engine.weights.get();
        let counted = parameters(&plan);
        (counted.total, counted.accounts.get(Account::VisionTower).get(), memory.ranks[0].totals, engine)
    };
    let with = of(&[]);
    let without = of(&[("vision_tower", "false")]);
    assert_eq!((with.0, with.1, with.2), (without.0, 0, without.2));
    let layer = 4 * 1152 * 1152 + 3 * 1152 + 2 * 1152 * 4304 + 4304;
    let cut = 27 * layer + 4608 * 4608 + 4608 + 4608 * 4096;
    assert_eq!(with.3 - without.3, 2 * (456_010_480 - cut + cut / 2));
    stops(SLIME, &[], "slime leaves whole");
    // slime's vision provider builds it, and so does Megatron-Bridge, from Megatron core's layers.
    let bridged = read(&format!("{SLIME} --megatron-to-hf-mode bridge --save /root/Qwen3.5-9B_slime"), &[]);
    assert!(
        bridged.not_modelled.is_empty()
            && bridged.questions.iter().any(|asked| asked.name() == "image_patches")
    );
    for text in [
        SLIME.replace("qwen3.5-9B.sh", "qwen3.5-9B-vl.sh"),
        format!("{SLIME} --spec slime_plugins.models.qwen3_5_vl get_qwen3_5_vl_model_provider"),
    ] {
        stops(&text, &[], "in this software");
    }
}

/// A pair has its images twice, as it has two sequences: the tower keeps the same as for twice the samples.
#[test]
fn pairs_have_their_images_twice() {
    let of = |way: &str, samples: u64| {
        let text = format!(
            "NPROC_PER_NODE=8 swift {way} --model Qwen/Qwen2.5-VL-7B-Instruct --tuner_type full --freeze_vit false \
             --freeze_aligner false --torch_dtype bfloat16 --max_length 4096 --per_device_train_batch_size {samples} \
             --gradient_accumulation_steps 2 --deepspeed zero3\n"
        );
        tower(&plan(&text, &[("image_patches", "3008")]))
    };
    assert_eq!(of("rlhf --rlhf_type dpo", 1), of("sft", 2));
    let other = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --tuner_type full --freeze_vit false \
        --torch_dtype bfloat16 --max_length 4096 --deepspeed zero3\n";
    stops(other, &[("image_patches", "3008"), ("training_objective", "kto")], "with a loss other");
}

const BRIDGE: &str = "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe ministral3_3b_peft_config \
    --step_func vlm_step --mode lora model.tensor_model_parallel_size=2";

/// Megatron-Bridge's adapters leave the tower frozen, which consists of transformers' own modules, unsharded on each
/// tensor rank.
#[test]
fn adapters_of_megatron_bridge_leave_the_tower_frozen() {
    let plan = plan(BRIDGE, &[]);
    let tower = plan.model().vision.expect("a tower");
    assert!(tower.modules == shardscope::plan::TowerModules::Whole && tower.parameters == 420_083_712);
    let counted = parameters(&plan);
    assert_eq!(counted.accounts.get(Account::VisionTower).get(), 420_083_712);
    assert!(counted.ranks[0].count.get() > 420_083_712 + (counted.total.get() - 420_083_712) / 2);
    stops(&BRIDGE.replace("peft", "sft").replace("--mode lora", "--mode sft"), &[], "in Megatron");
}

/// Micro-batches counted in tokens are packs, not four samples, and the images are those of a pack.
#[test]
fn dynamic_batches_of_verls_supervised_trainer_are_packs() {
    let text = "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.sft_trainer data.max_length=2048 data.train_batch_size=96 \
        model.path=Qwen/Qwen3-VL-2B-Instruct engine=fsdp engine.strategy=fsdp2 data.micro_batch_size_per_gpu=4";
    let of = |more: &str| {
        let plan = plan(&format!("{text} {more}"), &[("image_patches", "4096")]);
        assert!(plan.model().vision.is_some());
        let recipe = plan.recipe();
        (plan.model().seq_length, recipe.micro_batch_size, recipe.num_micro_batches)
    };
    assert_eq!(of("data.use_dynamic_bsz=False"), (2048, 4, 3));
    // On unless the text says otherwise: twelve samples of a rank in packs of 8,192 tokens.
    assert_eq!(of(""), (8192, 1, 3));
    // All samples of a rank are fewer than such a pack holds.
    assert_eq!(of("data.use_dynamic_bsz=True data.max_token_len_per_gpu=65536"), (24_576, 1, 1));
    // How many patches a pack has is asked.
    let open = read(text, &[]);
    assert!(open.questions.iter().any(|question| question.name() == "image_patches"), "{:?}", open.questions);
}
