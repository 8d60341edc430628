//! Frozen vision towers: what is counted, held and kept for them, compared with a published log, a recorded run and
//! figures computed by hand; and what stops by name.

use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::estimate::{memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Account, Operator, SectionKind, Symbols};
use shardscope::plan::{Field, Plan};
use shardscope::source::Source;
use shardscope::units::Bytes;

use crate::formats::resolved;

/// What frozen towers keep, and the peak that they hold (`tests/record/vision_towers.py`).
const RECORDED: &str = include_str!("../data/activations/vision_towers.tsv");
/// Parameters of Qwen2.5-VL-7B's tower and projector, and of the entire model (its page: `safetensors.total`).
const TOWER: u64 = 676_550_144;
const WHOLE: u64 = 8_292_166_656;

/// Settings of LLaMA-Factory for Qwen2.5-VL-7B.
const FACTORY: &str = "model_name_or_path: Qwen/Qwen2.5-VL-7B-Instruct\nstage: sft\nlora_target: all\ntemplate: qwen2_vl\n\
    cutoff_len: 4096\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\nbf16: true\n";

fn read(text: &str, set: &[(&str, &str)]) -> Resolution {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolved(&Source::from_files([("train.yaml", text)]), &set)
}

#[track_caller]
fn plan(text: &str, set: &[(&str, &str)]) -> Plan {
    let resolution = read(text, set);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

fn factory(way: &str) -> String {
    format!("{FACTORY}finetuning_type: {way}\n")
}

/// A log of LLaMA-Factory, whose `freeze_vision_tower` and `freeze_multi_modal_projector` are on unless given:
/// "trainable params: 20,185,088 || all params: 8,312,351,744 || trainable%: 0.2428" (rank 8, `lora_target: all`).
#[test]
fn adapters_leave_a_frozen_tower_out_as_the_published_log_says() {
    let unhooked = ("vision_input_grads", "false");
    let plan = plan(&factory("lora"), &[("world_size", "1"), ("lora_rank", "8"), unhooked]);
    let counted = parameters(&plan);
    assert_eq!(counted.trained.get(), 20_185_088);
    assert_eq!(counted.ranks[0].count.get(), 8_312_351_744);
    assert_eq!(counted.total.get(), WHOLE);
    assert_eq!(counted.accounts.get(Account::VisionTower).get(), TOWER);
    assert_eq!(counted.active_per_token.get(), WHOLE - TOWER);
    // Rank 16, of another log: "trainable params: 40,370,176 || all params: 8,332,536,832".
    let set = [("world_size", "1"), ("lora_rank", "16"), unhooked];
    let wider = parameters(&self::plan(&factory("lora"), &set));
    assert_eq!((wider.trained.get(), wider.ranks[0].count.get()), (40_370_176, 8_332_536_832));
}

/// Without a sharding engine LLaMA-Factory holds trained weights in fp32, and the tower as loaded, in bf16; DeepSpeed
/// casts both, and shards both at stage 3.
#[test]
fn a_frozen_tower_has_weights_and_nothing_else() {
    let decoder = WHOLE - TOWER;
    let held = |set: &[(&str, &str)]| {
        let totals = memory(&plan(&factory("full"), set)).ranks[0].totals;
        (totals.parameters, totals.gradients, totals.optimizer)
    };
    let (weights, gradients, states) = held(&[("world_size", "1")]);
    assert_eq!(weights, Bytes::new(4 * decoder + 2 * TOWER));
    assert_eq!((gradients, states), (Bytes::new(4 * decoder), Bytes::new(8 * decoder)));
    let engine = [("world_size", "8"), ("data_parallel_engine", "deepspeed")];
    let (weights, ..) = held(&[&engine[..], &[("zero_stage", "2")]].concat());
    assert_eq!(weights, Bytes::new(2 * WHOLE));
    let (weights, gradients, _) = held(&[&engine[..], &[("zero_stage", "3")]].concat());
    assert_eq!(weights, Bytes::new(2 * decoder / 8 + 2 * TOWER / 8));
    assert_eq!(gradients, Bytes::new(2 * decoder / 8));
}

/// At stage 3 the tower is only gathered for forward, once per micro-batch.
#[test]
fn a_sharded_tower_is_gathered_once() {
    let set = [("world_size", "8"), ("data_parallel_engine", "deepspeed"), ("zero_stage", "3")];
    let plan = plan(&factory("full"), &set);
    let tower = plan.model().vision.expect("a tower");
    assert_eq!(tower.layers * tower.layer_parameters + tower.outside_layers(), TOWER);
    let sent = traffic(&plan);
    let data = sent.dimension(Parallelism::Data).expect("messages of data parallelism");
    let gathers = |elements: u64| -> u64 {
        let of = data.operations.iter().filter(|sent| sent.shape.iter().product::<u64>() == elements);
        of.map(|sent| sent.per_iteration[0]).sum()
    };
    assert_eq!(gathers(tower.layer_parameters), 32 * 2);
    assert_eq!(gathers(tower.outside_layers()), 2);
}

/// Nothing of a frozen tower is kept; the decoder keeps which tokens belong to an image. The forward pass holds no more
/// than what is counted for it.
#[test]
fn nothing_of_a_frozen_tower_is_kept() {
    let plan = plan(&factory("full"), &[("world_size", "1")]);
    let x = Symbols::new(&plan);
    for kind in SectionKind::ALL.into_iter().filter(|kind| kind.has_no_backward(&x)) {
        for operator in kind.operators(&x) {
            assert!(operator.saved(&x).is_empty() && operator.work(&x).is_empty(), "{operator:?}");
        }
    }
    let saved = Operator::Embedding.saved(&x);
    let places: Vec<_> = saved.iter().filter(|saved| saved.name == "image token mask").collect();
    assert_eq!(places.iter().map(|saved| saved.bytes.get()).collect::<Vec<_>>(), [4096]);
    let held = Operator::VisionLayer.transients(&x);
    let taken = held[0].bytes().get() / (x.patches() * x.vision_width());
    assert_eq!(x.patches(), 4 * 4096, "four patches become a token");
    let mut types = 0;
    for line in RECORDED.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, tower, decoder, tokens, hooked, alive] = cells[..] else { panic!("{line}") };
        assert_eq!((tower, decoder), ("0", tokens), "{name}");
        assert_eq!(hooked == "0", ["qwen3_vl", "qwen3_vl_moe", "qwen3_5"].contains(&name), "{name}");
        assert!(alive.parse::<f64>().unwrap() <= taken as f64, "{name}: {alive}");
        types += 1;
    }
    assert_eq!(types, 9);
}

/// vLLM shards linear layers of Qwen's towers over its tensor ranks and replicates the others. The decoder is
/// Qwen2.5-7B's.
#[test]
fn an_engine_for_rollouts_holds_the_tower() {
    let weights = |model: &str, ranks: u64| {
        let text = format!(
            "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model {model} --tuner_type lora --torch_dtype bfloat16 \
             --use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.4 --vllm_tensor_parallel_size {ranks} \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --num_generations 16 --max_length 4096 \
             --max_completion_length 1024 --deepspeed zero2 --attn_impl flash_attn --vllm_max_model_len 8192\n"
        );
        let set = [("vision_input_grads".to_owned(), "false".to_owned())];
        let resolution = resolved(&Source::from_files([("run.sh", text.as_str())]), &set);
        let plan = resolution
            .plan
            .unwrap_or_else(|| panic!("{model}: {:?} {:?}", resolution.diagnostics, resolution.not_modelled));
        memory(&plan).rl.expect("rollouts").engine.weights.get()
    };
    let of_tower =
        |ranks| weights("Qwen/Qwen2.5-VL-7B-Instruct", ranks) - weights("Qwen/Qwen2.5-7B-Instruct", ranks);
    assert_eq!(of_tower(1), 2 * TOWER);
    let cut =
        32 * (4 * 1280 * 1280 + 3 * 1280 + 3 * 1280 * 3420 + 2 * 3420) + 5120 * 5120 + 5120 + 5120 * 3584;
    assert_eq!(of_tower(4), 2 * (TOWER - cut + cut / 4));
}

/// verl's FSDP uses the layers that transformers does not split as units, including a tower's (`get_fsdp_wrap_policy`):
/// modules outside them are gathered with the embedding and the output layer.
#[test]
fn layers_of_a_tower_are_units_of_verls_fsdp() {
    let verl = |more: &str, set: &[(&str, &str)]| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=512 \
             data.max_prompt_length=1024 data.max_response_length=2048 actor_rollout_ref.actor.ppo_mini_batch_size=128 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.rollout.n=5 \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
             trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        );
        let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        resolved(&Source::from_files([("run.sh", text.as_str())]), &set)
    };
    let outside = |resolution: Resolution| {
        let plan = resolution
            .plan
            .unwrap_or_else(|| panic!("{:?} {:?}", resolution.diagnostics, resolution.not_modelled));
        let memory = memory(&plan);
        let peak = memory.ranks[0].breakdown.child("peak_allocated").expect("the peak").clone();
        fn find(tree: &shardscope::explain::Breakdown<Bytes>, label: &str) -> Option<u64> {
            let own = (tree.label() == label).then(|| tree.value().get());
            own.or_else(|| tree.children().iter().find_map(|child| find(child, label)))
        }
        (find(&peak, "gathered weights outside of layers"), find(&peak, "frozen vision tower"))
    };
    let model = "actor_rollout_ref.model.path=Qwen/Qwen2.5-VL-7B-Instruct";
    let frozen = format!("{model} actor_rollout_ref.actor.freeze_vision_tower=True");
    let layer = 4 * 1280 * 1280 + 4 * 1280 + 3 * 1280 * 3420 + 2 * 3420 + 1280 + 2 * 1280;
    let ends = 2 * 152_064 * 3584 + 3584 + TOWER - 32 * layer;
    // fp32 shards over 8 ranks.
    assert_eq!(outside(verl(&frozen, &[])), (Some(2 * ends), Some(4 * TOWER / 8)));
    let images = [("image_patches", "4096")];
    assert_eq!(outside(verl(model, &images)), (Some(2 * ends), None));
    let stopped = |resolution: Resolution, words: &str| {
        let said: Vec<_> = resolution.not_modelled.iter().map(|item| &*item.message).collect();
        assert!(said.iter().any(|message| message.contains(words)), "{words}: {said:?}");
    };
    // It is not known whether autocast casts LayerNorms of other towers if verl loads weights in bf16.
    let other = model.replace("Qwen2.5-VL-7B-Instruct", "Qwen3-VL-8B-Instruct");
    assert!(verl(&other, &images).plan.is_some());
    let half = format!("{other} actor_rollout_ref.actor.fsdp_config.model_dtype=bfloat16");
    stopped(verl(&half, &images), "with LayerNorms under FSDP");
    let siglip = "actor_rollout_ref.model.path=google/gemma-3-12b-it";
    stopped(verl(siglip, &images), "in the engine that makes rollouts");
}

/// What is left out is reported with the verdict.
#[test]
fn a_verdict_over_images_says_what_it_leaves_out() {
    let plan = plan(&factory("full"), &[("world_size", "1")]);
    let said = plan.recipe().marks.sentences();
    assert!(said.len() == 1 && said[0].contains("passes of the vision tower"), "{said:?}");
    let text = FACTORY.replace("Qwen2.5-VL-7B", "Qwen2.5-7B");
    let without = read(&text, &[("world_size", "1")]);
    let plan = without.plan.as_ref().expect("a plan");
    assert!(plan.recipe().marks.is_empty() && plan.model().vision.is_none());
    assert!(without.setting(Field::FrozenModules).is_none_or(|setting| setting.value.written().is_empty()));
}

/// Towers that train or keep tensors stop by name, with their number of parameters.
#[test]
fn what_is_not_known_of_a_tower_stops_the_verdict() {
    let one = ("world_size", "1");
    let stopped = |text: &str, set: &[(&str, &str)], words: &str| {
        let resolution = read(text, set);
        assert!(resolution.plan.is_none(), "{words}");
        let said: Vec<_> = resolution.not_modelled.iter().map(|item| (&*item.name, &*item.message)).collect();
        assert!(said.iter().any(|(_, message)| message.contains(words)), "{words}: {said:?}");
    };
    let tower = "676,550,144 parameters in 32 layers and a projector";
    for key in ["freeze_vision_tower", "freeze_multi_modal_projector"] {
        let text = format!("{}{key}: false\n", factory("lora"));
        stopped(&text, &[one], tower);
        stopped(&text, &[one], "where part of it trains");
    }
    let language = format!("{}freeze_language_model: true\n", factory("full"));
    stopped(&language, &[one], "frozen parts");
    stopped(&format!("{}train_mm_proj_only: true\n", factory("full")), &[one], "frozen parts");
    stopped(&format!("{}quantization_bit: 4\n", factory("lora")), &[one], "with quantized layers");
    stopped(&format!("{}flash_attn: disabled\n", factory("lora")), &[one], "with eager attention");
    stopped(&factory("full"), &[("world_size", "8"), ("data_parallel_engine", "fsdp2")], "under FSDP");
    // ms-swift freezes both unless told otherwise, and checkpoints like transformers.
    let swift = "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type lora --torch_dtype bfloat16 --max_length 4096 \
        --gradient_accumulation_steps 2 --freeze_vit true";
    let script = |more: &str| {
        let text = format!("{swift} {more}\n");
        let set = [one].map(|(name, value)| (name.to_owned(), value.to_owned()));
        resolved(&Source::from_files([("run.sh", text.as_str())]), &set)
    };
    let asks = |resolution: &Resolution| {
        resolution.questions.iter().any(|asked| asked.name() == "vision_input_grads")
    };
    let checkpointed = script("");
    assert!(checkpointed.plan.is_none() && asks(&checkpointed));
    assert!(script("--gradient_checkpointing false").plan.is_some());
    assert!(script("--gradient_checkpointing false --freeze_vit false").plan.is_none());
    // These names only occur in the decoder; three others also occur in the tower's layers, as for `all-linear`
    // elsewhere.
    assert!(script("--gradient_checkpointing false --target_modules q_proj v_proj").plan.is_some());
    assert!(script("--gradient_checkpointing false --target_modules q_proj up_proj").plan.is_none());
    let asked = script("--target_modules q_proj v_proj");
    assert!(asked.plan.is_none() && asks(&asked));
    let trl = |targets: &str| {
        let text = format!(
            "trl sft --model_name_or_path Qwen/Qwen3-VL-8B-Instruct --use_peft --lora_target_modules {targets} \
             --lora_r 16 --per_device_train_batch_size 1 --max_length 4096 --dtype bfloat16 --bf16\n"
        );
        let set = [one].map(|(name, value)| (name.to_owned(), value.to_owned()));
        resolved(&Source::from_files([("run.sh", text.as_str())]), &set).plan.is_some()
    };
    assert!(trl("q_proj v_proj") && trl("q_proj k_proj v_proj o_proj gate_proj up_proj down_proj"));
    assert!(!trl("all-linear") && !trl("qkv"));
    // axolotl's pattern for the decoder, written out as PEFT matches it.
    let axolotl = |model: &str, pattern: &str| {
        let text = format!(
            "base_model: {model}\nprocessor_type: AutoProcessor\nadapter: lora\nlora_r: 32\nsequence_len: 4096\n\
             lora_target_modules: '{pattern}'\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: true\n\
             gradient_checkpointing: true\nflash_attention: true\noptimizer: adamw_torch\nchat_template: qwen2_vl\n"
        );
        let resolution = read(&text, &[one]);
        (resolution.plan.is_some(), asks(&resolution))
    };
    let decoder = r"model.language_model.layers.[\d]+.(mlp|self_attn).(up|down|gate|q|k|v|o)_proj";
    assert_eq!(axolotl("Qwen/Qwen3-VL-8B-Instruct", decoder), (true, false));
    assert_eq!(axolotl("Qwen/Qwen2.5-VL-7B-Instruct", decoder), (false, true));
    // PEFT adds hooks to what it adapts: Qwen2.5-VL's tower is reached from transformers 5 on, Qwen3-VL's is not.
    let lora = read(&factory("lora"), &[one]);
    assert!(lora.plan.is_none() && asks(&lora), "{:?}", lora.diagnostics);
    let hooked = read(&factory("lora"), &[one, ("vision_input_grads", "true")]);
    assert!(hooked.plan.is_none() && hooked.not_modelled.is_empty(), "{:?}", hooked.not_modelled);
    let images = hooked.questions.iter().find(|asked| asked.name() == "image_patches").expect("a question");
    // 768 x 768 pixels at most (`image_max_pixels`) in patches of 14 x 14, four of which become one token.
    assert_eq!(images.proposal.as_deref(), Some("3008"));
    assert!(read(&factory("lora"), &[one, ("vision_input_grads", "false")]).plan.is_some());
    let third = factory("lora").replace("Qwen2.5-VL-7B", "Qwen3-VL-8B");
    assert!(plan(&third, &[one]).model().vision.is_some());
    assert!(
        plan(&format!("{}disable_gradient_checkpointing: true\n", factory("lora")), &[one])
            .model()
            .vision
            .is_some()
    );
    // If the user continues without it, only the decoder is planned, and the verdict says so.
    let gone = plan(
        &format!("{}freeze_vision_tower: false\n", factory("lora")),
        &[one, ("without", "vision_tower")],
    );
    assert!(gone.model().vision.is_none() && !gone.recipe().marks.is_empty());
    assert_eq!(parameters(&gone).total.get(), WHOLE - TOWER);
}

/// If the model itself is asked for, its config.json answers for decoder and tower together: the tower is not a
/// separate stop, and no answer gives a plan that silently omits it.
#[test]
fn a_tower_of_an_unknown_model_is_asked_for_with_it() {
    /// What the config.json of Qwen2.5-VL-7B states.
    const CONFIG: &str = r#"{"model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
        "num_key_value_heads": 4, "num_hidden_layers": 28, "vocab_size": 152064, "max_position_embeddings": 128000,
        "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 3584,
        "patch_size": 14, "spatial_merge_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]}}"#;
    /// Only a decoder, with the same sizes.
    const DECODER: &str = r#"{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
        "num_key_value_heads": 4, "num_hidden_layers": 28, "vocab_size": 152064, "max_position_embeddings": 32768}"#;
    let text =
        format!("{}finetuning_type: full\n", FACTORY.replace("Qwen/Qwen2.5-VL-7B-Instruct", "us/ours-VL-7B"));
    let set = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let beside = |config: Option<&str>, pairs: &[(&str, &str)]| {
        let mut files = vec![("train.yaml", text.as_str())];
        files.extend(config.map(|config| ("config.json", config)));
        resolved(&Source::from_files(files), &set(pairs))
    };
    let open = beside(None, &[("world_size", "1")]);
    assert!(open.plan.is_none() && open.not_modelled.is_empty(), "{:?}", open.not_modelled);
    let asked: Vec<_> = open.questions.iter().map(|asked| (asked.name(), &*asked.prompt)).collect();
    assert!(matches!(asked[..], [("model", prompt)] if prompt.contains("vision tower")), "{asked:?}");
    let known = beside(Some(CONFIG), &[("world_size", "1")]).plan.expect("a plan");
    let counted = parameters(&known);
    assert_eq!((counted.total.get(), counted.accounts.get(Account::VisionTower).get()), (WHOLE, TOWER));
    for stopped in [
        beside(Some(DECODER), &[("world_size", "1")]),
        beside(None, &[("world_size", "1"), ("model", "Qwen/Qwen2.5-7B")]),
    ] {
        let items: Vec<_> = stopped.not_modelled.iter().map(|item| item.name.as_str()).collect();
        assert!(stopped.plan.is_none() && items == ["vision_tower"], "{items:?}");
    }
}
