//! What OLMo-core's own model and loss keep for backward, recorded by `tests/record/olmo_core_layers.py` (versions are
//! in the first line of its output). A saved configuration is taken all the way to the kept bytes.

use serde_json::{Value, json};
use shardscope::estimate::{Verdict, memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Symbols, layer_operators};
use shardscope::plan::{Plan, RecomputeModule};
use shardscope::source::Source;

use super::drafts::{int, kept};
use super::formula::evaluate;
use crate::formats::resolved;

const RECORDED: &str = include_str!("../data/activations/olmo_core.jsonl");
/// Parameters of the package's factories by `num_params`, over 100,352 rows.
const FACTORIES: &str = include_str!("../data/activations/olmo_core_factories.tsv");

/// The saved configuration of a recorded case, on one GPU.
fn read(case: &Value) -> Resolution {
    let config = &case["config"];
    let behind = config["block_name"] == "reordered_norm";
    let each = config["use_head_qk_norm"] == true;
    let mut mixer = json!({
        "n_heads": config["n_heads"], "n_kv_heads": config["n_kv_heads"], "head_dim": config["head_dim"], "bias": false,
        "rope": {"name": "default"}, "backend": config["attn_backend"], "use_head_qk_norm": each,
    });
    let norms = config["layer_norm_name"].as_str().unwrap_or("rms");
    if config["qk_norm"] == true {
        mixer["qk_norm"] = json!({"name": norms});
    }
    if !config["sliding_window"].is_null() {
        mixer["sliding_window"] =
            json!({"pattern": config["sliding_window"], "force_full_attention_on_first_layer": false});
    }
    let tokens = case["b"].as_u64().unwrap() * case["s"].as_u64().unwrap();
    let text = json!({
        "model": {
            "d_model": config["d_model"], "n_layers": config["n_layers"], "vocab_size": config["vocab_size"],
            "block": {
                "name": if behind { "reordered_norm" } else { "default" }, "sequence_mixer": mixer,
                "feed_forward": {"hidden_size": 192, "bias": false}, "layer_norm": {"name": norms, "bias": false},
            },
            "lm_head": {"bias": false},
        },
        "dataset": {"sequence_length": case["s"]},
        "data_loader": {"global_batch_size": tokens},
        "train_module": {
            "rank_microbatch_size": tokens, "max_sequence_length": case["s"], "compile_model": case["compile"],
            "optim": {"_CLASS_": "olmo_core.optim.adamw.SkipStepAdamWConfig"},
            "dp_config": {"name": "fsdp", "param_dtype": "bfloat16", "reduce_dtype": "float32"},
            "ac_config": case["checkpoint"], "z_loss_multiplier": if case["z"] == true { json!(1e-5) } else { Value::Null },
        },
    })
    .to_string();
    let set = [("world_size", "1"), ("accelerator", "H100-SXM-80GB")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    resolved(&Source::from_files([("config.json", text.as_str())]), &set)
}

#[test]
fn recorded_blocks_are_met_to_the_byte() {
    let (mut layers, mut wrong) = (0, Vec::new());
    for line in RECORDED.lines().skip(1) {
        let mut case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap().to_owned();
        // Recorded cases without a formula stop by name.
        let compiled = case["compile"] == true;
        let unknown = id.contains("selected_ops")
            || (!compiled && (id.contains("selected_modules") || id.contains("qwen")));
        // So does an auxiliary loss that is not compiled: without it the layers match.
        let auxiliary = !compiled && case["z"] == true;
        let resolution = read(&case);
        assert_eq!(
            !resolution.not_modelled.is_empty(),
            unknown || auxiliary,
            "{id}: {:?}",
            resolution.not_modelled
        );
        if unknown {
            continue;
        }
        let resolution = if auxiliary {
            case["z"] = json!(false);
            read(&case)
        } else {
            resolution
        };
        let plan = resolution.plan.unwrap_or_else(|| panic!("{id}: {:?}", resolution.diagnostics));
        let x = Symbols::new(&plan);
        let recompute = &plan.recipe().recompute;
        let recorded = |place: &str| case["kept"][place].as_u64().unwrap_or(0);
        let mut check = |place: &str, ours: u64, recorded: u64| {
            if ours != recorded {
                wrong.push(format!("{id}, {place}: {recorded} recorded, {ours} here"));
            }
        };
        let all = 0..plan.model().num_layers;
        for index in all.clone() {
            let operators = layer_operators(&x, plan.model().layer_kind(index));
            let again = recompute.recomputes_layer(index, &all);
            let input = x.n * x.h * x.width;
            check(
                &format!("layer{index}"),
                if again { input } else { kept(&x, &operators) },
                recorded(&format!("layer{index}")),
            );
            layers += 1;
            for saved in operators.iter().chain(&[Operator::OutputLayer]).flat_map(|one| one.saved(&x)) {
                let value = evaluate(saved.formula.expression, &|name| x.value(name));
                assert_eq!(saved.bytes.get() as f64, value, "{id}: {}", saved.name);
            }
        }
        if !auxiliary {
            check(
                "ends",
                kept(&x, &[Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]),
                recorded("ends"),
            );
        }
        // Each layer that is not fully recomputed keeps its own cosines and sines; the engine counts the same.
        let tables = 8 * x.s * x.d * (plan.model().num_layers - recompute.whole_layers(&all));
        check("rotation", tables, recorded("rotation"));
        assert_eq!(parameters(&plan).total.get(), int(&case, "parameters"), "{id}");
        if recompute.recomputes(RecomputeModule::Mlp) {
            assert!(kept(&x, &[Operator::Mlp]) < 8 * x.n * x.f, "{id}");
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(layers, 177);
}

/// A script based on `src/scripts/train/OLMo2/OLMo2-7B.py`, for a model by name.
fn script(model: &str) -> String {
    format!(
        "from olmo_core.nn.transformer import TransformerConfig\n\
         SEQUENCE_LENGTH = 4096\nGLOBAL_BATCH_SIZE = 1024 * SEQUENCE_LENGTH\n\
         def build_model_config(common: CommonComponents) -> TransformerConfig:\n\
         \x20   return TransformerConfig.{model}(vocab_size=common.tokenizer.padded_vocab_size())\n\
         def build_train_module_config(common: CommonComponents) -> TransformerTrainModuleConfig:\n\
         \x20   return TransformerTrainModuleConfig(\n\
         \x20       rank_microbatch_size=2 * common.max_sequence_length,\n\
         \x20       max_sequence_length=common.max_sequence_length,\n\
         \x20       optim=SkipStepAdamWConfig(lr=3e-4, betas=(0.9, 0.95)),\n\
         \x20       compile_model=True,\n\
         \x20       dp_config=TransformerDataParallelConfig(\n\
         \x20           name=DataParallelType.hsdp, param_dtype=DType.bfloat16, reduce_dtype=DType.float32,\n\
         \x20           wrapping_strategy=TransformerDataParallelWrappingStrategy.blocks,\n\
         \x20       ),\n\
         \x20       z_loss_multiplier=1e-5,\n\
         \x20       scheduler=CosWithWarmup(warmup_steps=2000),\n\
         \x20   )\n\
         if __name__ == \"__main__\":\n\
         \x20   config_builder = partial(\n\
         \x20       build_config,\n\
         \x20       global_batch_size=GLOBAL_BATCH_SIZE,\n\
         \x20       max_sequence_length=SEQUENCE_LENGTH,\n\
         \x20   )\n"
    )
}

fn plan_of(text: &str, gpus: &str) -> Plan {
    let set = [("world_size", gpus), ("accelerator", "H100-SXM")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let resolution = resolved(&Source::from_files([("train.py", text)]), &set);
    assert!(resolution.not_modelled.is_empty(), "{:?}", resolution.not_modelled);
    resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
}

#[test]
fn factories_have_as_many_parameters_as_the_package_says() {
    let mut count = 0;
    for line in FACTORIES.lines() {
        let (name, parameters_of) = line.split_once('\t').unwrap();
        let plan = plan_of(&script(name), "8");
        assert_eq!(parameters(&plan).total.get().to_string(), parameters_of, "{name}");
        assert_eq!(plan.model().mixers.window.is_some(), name.starts_with("olmo3"), "{name}");
        count += 1;
    }
    assert_eq!(count, 45);
}

/// OLMo 2 with 7 billion parameters on nodes of eight, as in its script: what a rank holds, computed by hand.
#[test]
fn a_script_gives_what_was_worked_out_by_hand() {
    let plan = plan_of(&script("olmo2_7B"), "64");
    assert_eq!((plan.recipe().micro_batch_size, plan.recipe().num_micro_batches), (2, 8));
    // Copies per node: eight ranks share one.
    assert_eq!(plan.layout().dense_shards(), 8);
    let (n, h, f, heads, v, layers): (u64, u64, u64, u64, u64, u64) =
        (2 * 4096, 4096, 11_008, 32, 100_352, 32);
    // Input, queries and keys before and after their norms, values, output, its sums, the projection's output; the
    // MLP's input, both halves and their product, its output; a deviation for each of four norms, no RNG state.
    let layer = 2 * n * h * 10 + 6 * n * f + 4 * n * heads + 4 * 4 * n;
    let ends = 8 * n + (2 * n * h + 4 * n) + 2 * n * h;
    let tables = 8 * 4096 * 128 * layers;
    let memory = memory(&plan);
    let totals = memory.ranks[0].totals;
    // The loss: logits, maximum and sum per token, labels, their number, sums that z-loss squares with a mask.
    let loss = 2 * n * v + 8 * n + 8 * n + 8 + 5 * n;
    assert_eq!(totals.activations.get(), layers * layer + ends + loss + tables);
    // Backward of the loss: a gradient of all logits in addition to them; the last layer and the unit of norm and
    // output layer are gathered in 16 bits, the embedding is not. cuBLAS has a workspace for each of two threads.
    let weights = 4 * h * h + 3 * h * f + 4 * h;
    let workspaces = 2 * (32 << 20);
    assert_eq!(totals.temporaries.get(), workspaces + 2 * n * v + 2 * weights + 2 * (v * h + h));
    let shard = 7_298_617_344_u64.div_ceil(8);
    assert_eq!([totals.parameters.get(), totals.optimizer.get()], [4 * shard, 8 * shard]);
    assert!(memory.verdict == Verdict::Fits, "{:?}", memory.worst);
}

/// `src/scripts/train/OLMo3/OLMo3-7B.py`: one sequence of 8,192 at a time on H100s, and two if all GPUs are B200s. They
/// ran.
#[test]
fn jobs_that_ran_fit() {
    let job = script("olmo3_7B")
        .replace("SEQUENCE_LENGTH = 4096", "SEQUENCE_LENGTH = 8192")
        .replace("2 * common.max_sequence_length", "common.max_sequence_length");
    let twice = job.replace(
        "=common.max_sequence_length,\n        max",
        "=2 * common.max_sequence_length,\n        max",
    );
    assert_ne!(job, twice);
    let verdict = |text: &str, accelerator: &str| {
        let set = [("world_size", "512"), ("accelerator", accelerator)];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let resolution = resolved(&Source::from_files([("train.py", text)]), &set);
        memory(&resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))).verdict
    };
    assert!(verdict(&job, "H100-SXM") == Verdict::Fits);
    assert!(verdict(&twice, "H100-SXM") == Verdict::OutOfMemory);
    assert!(verdict(&twice, "B200") == Verdict::Fits);
}
