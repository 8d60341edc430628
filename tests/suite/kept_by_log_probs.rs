//! Log-probabilities of given tokens as computed by NeMo-RL and SkyRL, compared with recorded calls of their functions.

use serde_json::Value;
use shardscope::launch::resolve;
use shardscope::operators::{Operator, Saved, Symbols, Transient};
use shardscope::plan::{LogProbs, LossKind, Objective, Plan};

use super::drafts::{draft, int};
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/nemo_rl_log_probs.jsonl");
const AREAL: &str = include_str!("../data/activations/areal_log_probs.jsonl");
const PADDED: &str = include_str!("../data/activations/verl_padded.jsonl");
const ENTROPY: &str = include_str!("../data/activations/verl_entropy.jsonl");

fn plan(set: &[(&str, &str)]) -> Plan {
    let common = [
        ("accelerator", "H100-SXM"),
        ("num_nodes", "1"),
        ("gpus_per_node", "8"),
        ("num_layers", "4"),
        ("hidden_size", "64"),
        ("ffn_hidden_size", "128"),
        ("num_attention_heads", "8"),
        ("swiglu", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("bf16", "true"),
        ("make_vocab_size_divisible_by", "1"),
        ("create_attention_mask_in_dataloader", "false"),
    ];
    let settings: Vec<_> =
        common.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

/// Under Megatron if ranks shard the vocabulary; otherwise modules of transformers under NeMo-RL's DTensor.
fn of(case: &Value) -> Plan {
    let [batch, tokens, vocabulary] = ["batch", "tokens", "vocabulary"].map(|name| int(case, name));
    let (length, batch, vocabulary) =
        ((tokens / batch).to_string(), batch.to_string(), vocabulary.to_string());
    let chunk = case["chunk"].as_u64().unwrap_or(1).to_string();
    let mut set = vec![
        ("seq_length", length.as_str()),
        ("micro_batch_size", &batch),
        ("vocab_size", &vocabulary),
        ("log_prob_chunk", &chunk),
    ];
    let sequences = int(case, "sequences of a pack");
    let (pack, longest) = (length.clone(), (tokens / sequences).to_string());
    match (case["kind"].as_str(), case["software"].as_str()) {
        (Some("plain"), _) => set.extend([
            ("software", "hf_transformers"),
            ("attn_implementation", "flash_attention_2"),
            ("autocast", "none"),
            ("training_objective", "policy"),
            ("rl_framework", "nemo_rl"),
            ("rollout_gpus", "8"),
        ]),
        (Some("distributed"), _) if case["logits cast before"] == false => {
            set.push(("loss_kind", "distributed_copy"));
        }
        (Some("distributed"), _) => set.push(("loss_kind", "distributed")),
        (_, Some("SkyRL")) => set.push(("loss_kind", "distributed_wide_chunks")),
        _ => set.push(("loss_kind", "distributed_chunks")),
    }
    if sequences > 1 {
        set.retain(|(name, _)| !matches!(*name, "seq_length" | "micro_batch_size"));
        set.extend([("max_tokens_per_micro_batch", pack.as_str()), ("rollout_length", &longest)]);
        set.push(("global_batch_size", "1024"));
        set.extend([("training_objective", "policy"), ("rl_framework", "nemo_rl"), ("rollout_gpus", "8")]);
    }
    plan(&set)
}

#[test]
fn recorded_log_probabilities_are_kept_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let plan = of(&case);
        let x = Symbols::new(&plan);
        let of_loss: Vec<_> = Operator::OutputLayer
            .saved(&x)
            .into_iter()
            .filter(|saved| !matches!(saved.name, "output_layer input" | "lm_head input"))
            .collect();
        for saved in &of_loss {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        let kept: u64 = of_loss.iter().map(|saved| saved.bytes.get()).sum();
        // The plain log-softmax reads its tokens from the input's ids, which exist anyway: the recording omits them.
        assert_eq!(kept, int(&case, "kept"), "{line}: {of_loss:?}");
        compared += 1;
    }
    assert_eq!(compared, 11);
}

/// Temporary tensors are compared to within a fiftieth: masks and indices of the tokens are not counted there.
#[test]
fn recorded_log_probabilities_hold_no_more_at_once_than_is_counted() {
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let plan = of(&case);
        let x = Symbols::new(&plan);
        let elements = (int(&case, "tokens") * int(&case, "vocabulary")) as f64;
        let most = |names: &[&str]| {
            let transients = Operator::OutputLayer.transients(&x);
            let named = transients.iter().filter(|one| names.contains(&one.name));
            named.map(|one| one.bytes().get() as f64 / elements).fold(0.0, f64::max)
        };
        let kept = int(&case, "kept") as f64 / elements;
        let forward = most(&["loss", "log-probabilities"]) + kept;
        let backward = most(&["backward of the loss", "sum of a pack's gradients"]);
        let recorded = |name: &str| case[name].as_f64().expect("a number");
        let (told_forward, told_backward) =
            (recorded("most in forward"), recorded("most in backward above kept"));
        // For a pack, the count is the maximum over any number of sequences.
        if int(&case, "sequences of a pack") > 1 {
            assert!(
                forward >= told_forward - 0.04 && backward >= told_backward - 0.13,
                "{line}: {forward} {backward}"
            );
        } else {
            assert!((forward - told_forward).abs() < 0.04, "{line}: {forward}");
            assert!((backward - told_backward).abs() < 0.04, "{line}: {backward}");
        }
    }
}

/// SkyRL computes the entropy of its logits in addition to the loss, 1,024 rows at a time: log-softmax, exponential and
/// product in fp32.
#[test]
fn skyrl_takes_an_entropy_of_a_chunk_beside_logits_that_it_overwrites() {
    let transient = |framework: &str, length: &str| {
        let plan = plan(&[
            ("software", "hf_transformers"),
            ("seq_length", length),
            ("micro_batch_size", "1"),
            ("vocab_size", "4096"),
            ("attn_implementation", "flash_attention_2"),
            ("autocast", "none"),
            ("training_objective", "policy"),
            ("rl_framework", framework),
            ("rollout_gpus", "8"),
        ]);
        let transients = Operator::OutputLayer.transients(&Symbols::new(&plan));
        transients.iter().find(|one| one.name == "loss").expect("one").bytes().get()
    };
    assert_eq!(transient("verl", "4096"), 0);
    assert_eq!(transient("skyrl", "4096"), 12 * 1024 * 4096);
    assert_eq!(transient("skyrl", "512"), 12 * 512 * 4096);
}

/// verl's entropy, compiled: what it keeps in addition to the logits, to the byte, and tensors as large as these.
#[test]
fn verls_entropy_is_held_as_it_was_recorded() {
    let case: Value = serde_json::from_str(ENTROPY.lines().nth(1).expect("a line")).expect("JSON");
    let sizes = ["tokens", "vocabulary"].map(|name| int(&case, name));
    let plan = |entropy: &str| {
        plan(&[
            ("software", "hf_transformers"),
            ("seq_length", &sizes[0].to_string()),
            ("micro_batch_size", "1"),
            ("vocab_size", &sizes[1].to_string()),
            ("attn_implementation", "flash_attention_2"),
            ("autocast", "none"),
            ("training_objective", "policy"),
            ("rl_framework", "verl"),
            ("rollout_gpus", "8"),
            ("policy_entropy", entropy),
        ])
    };
    let (with, without) = (plan("true"), plan("false"));
    let [with, without] = [&with, &without].map(Symbols::new);
    let kept = |x: &Symbols<'_>| -> u64 {
        Operator::OutputLayer.saved(x).iter().map(|saved| saved.bytes.get()).sum()
    };
    assert_eq!(kept(&with) - kept(&without), int(&case, "kept beside the logits"));
    let moment = |x: &Symbols<'_>, name: &str| {
        let transients = Operator::OutputLayer.transients(x);
        transients.iter().find(|one| one.name == name).map_or(0, |one| one.bytes().get())
    };
    // Exponentials are recomputed where they are read: inductor only writes them out on CPUs.
    assert_eq!(case["allocated in forward"], serde_json::json!([]));
    assert_eq!(moment(&with, "loss"), 0);
    // One for the entropy, and one for the log-probabilities, which no longer overwrites the logits.
    assert_eq!(case["allocated in backward"], serde_json::json!(["bfloat16"]));
    assert_eq!(moment(&with, "backward of the loss"), 2 * 2 * sizes[0] * sizes[1]);
    // Without it that gradient overwrites the logits, and is divided by the temperature into another tensor.
    assert_eq!(moment(&without, "backward of the loss"), 2 * sizes[0] * sizes[1]);
}

/// verl's logits of padded samples, restricted to the responses' positions: tensors as large as these, kept and at the
/// peaks. Packed samples form a single row, without prompts.
#[test]
fn verls_padded_samples_are_held_as_they_were_recorded() {
    let mut compared = 0;
    let head: Value = serde_json::from_str(PADDED.lines().next().expect("a head")).expect("JSON");
    let vocabulary = int(&head, "vocabulary");
    for line in PADDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let [samples, prompt, response] = ["samples", "prompt", "response"].map(|name| int(&case, name));
        let joined = prompt == 0;
        let entropy = case["entropy"].to_string();
        let plan = plan(&[
            ("software", "hf_transformers"),
            ("seq_length", &(prompt + response).to_string()),
            ("micro_batch_size", &samples.to_string()),
            ("vocab_size", &vocabulary.to_string()),
            ("attn_implementation", "flash_attention_2"),
            ("autocast", "none"),
            ("training_objective", "policy"),
            ("rl_framework", "verl"),
            ("rollout_gpus", "8"),
            ("rollout_response", &response.to_string()),
            ("packing", if joined { "true" } else { "false" }),
            ("padding_mask", if joined { "false" } else { "true" }),
            ("policy_entropy", &entropy),
        ]);
        let x = Symbols::new(&plan);
        // Only large tensors: each position has a few additional bytes.
        let least = 2 * samples * response * vocabulary;
        let wide = |tensors: &[Saved]| -> u64 {
            let of_logits = tensors.iter().filter(|saved| saved.name != "output layer's weight gradient");
            of_logits
                .map(|saved| saved.bytes.get())
                .filter(|bytes| *bytes >= least && bytes % (2 * vocabulary) == 0)
                .sum()
        };
        let kept = wide(&Operator::OutputLayer.saved(&x));
        assert_eq!(kept, int(&case, "kept"), "{line}");
        let most = |in_forward: bool| {
            let moments = Operator::OutputLayer.transients(&x).into_iter();
            // The freed bytes include the few bytes of each position.
            let alive =
                |moment: &Transient| kept.saturating_sub(moment.returned.get()) + wide(&moment.tensors);
            let these = moments.filter(|moment| moment.in_forward == in_forward);
            these.map(|moment| alive(&moment)).max().unwrap_or(0)
        };
        assert_eq!([most(true), most(false)], ["forward", "backward"].map(|name| int(&case, name)), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 33);
}

/// AReaL's log-probabilities, 1,024 rows at a time: kept tensors to the byte; the gradients at the peak except for what
/// the last call's rows have freed, and the loss itself (`tests/record/areal_log_probs.py`).
#[test]
fn areals_log_probabilities_are_held_as_they_were_recorded() {
    let mut compared = 0;
    for line in AREAL.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let [tokens, vocabulary, chunk] = ["tokens", "vocabulary", "chunk"].map(|name| int(&case, name));
        let plan = plan(&[
            ("software", "hf_transformers"),
            ("seq_length", &tokens.to_string()),
            ("micro_batch_size", "1"),
            ("vocab_size", &vocabulary.to_string()),
            ("attn_implementation", "flash_attention_2"),
            ("autocast", "none"),
            ("training_objective", "policy"),
            ("rl_framework", "areal"),
            ("rollout_gpus", "8"),
        ]);
        let x = Symbols::new(&plan);
        let beside: u64 = Operator::OutputLayer
            .saved(&x)
            .iter()
            .filter(|saved| !matches!(saved.name, "lm_head input" | "logits"))
            .map(|saved| saved.bytes.get())
            .sum();
        assert_eq!(beside, int(&case, "kept beside the logits"), "{line}");
        let transients = Operator::OutputLayer.transients(&x);
        let moment =
            |name: &str| transients.iter().find(|one| one.name == name).map_or(0, |one| one.bytes().get());
        assert_eq!(moment("loss"), 0);
        let recorded = int(&case, "most in backward");
        let gone = moment("backward of the loss").abs_diff(recorded);
        assert!(gone <= 16 * chunk + 4, "{line}: {gone}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}

/// prime-rl's output layer with its log-probabilities, one tile of the logits at a time: kept tensors to the byte. In
/// addition to what is counted, backward had nine bytes per row plus four, and forward had two results per token in
/// addition to the kept sum, and 57 bytes per row, or 53 if there is only one chunk of rows.
#[test]
fn prime_rls_tiles_are_held_as_they_were_recorded() {
    const RECORDED: &str = include_str!("../data/activations/prime_rl_loss.jsonl");
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let [tokens, width, vocabulary, chunk] =
            ["tokens", "width", "vocabulary", "chunk"].map(|name| int(&case, name));
        let frozen = if case["trains"] == true { "" } else { "lora" };
        let sizes = [tokens, width, vocabulary, chunk].map(|size| size.to_string());
        let mut set = vec![
            ("software", "hf_transformers"),
            ("seq_length", sizes[0].as_str()),
            ("micro_batch_size", "1"),
            ("hidden_size", &sizes[1]),
            ("vocab_size", &sizes[2]),
            ("log_prob_chunk", &sizes[3]),
            ("loss_kind", "tiled"),
            ("attn_implementation", "flash_attention_2"),
            ("autocast", "none"),
        ];
        if !frozen.is_empty() {
            set.extend([("train_type", "lora"), ("lora_rank", "8"), ("lora_target_modules", "q_proj")]);
        }
        let plan = plan(&set);
        let x = Symbols::new(&plan);
        let kept: u64 = Operator::OutputLayer.saved(&x).iter().map(|saved| saved.bytes.get()).sum();
        assert_eq!(kept, int(&case, "kept"), "{line}");
        let transients = Operator::OutputLayer.transients(&x);
        let most = |name: &str| {
            let one = transients.iter().find(|one| one.name == name).expect("a moment");
            for saved in &one.tensors {
                let value = evaluate(saved.formula.expression, &|name| x.value(name));
                assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
            }
            one.bytes().get()
        };
        let rows = chunk.min(tokens);
        let more = if rows < tokens { 57 } else { 53 };
        assert_eq!(most("loss") + 12 * tokens + more * rows, int(&case, "most in forward"), "{line}");
        assert_eq!(
            most("backward of the output layer") + 9 * rows + 4,
            int(&case, "most in backward"),
            "{line}"
        );
        compared += 1;
    }
    assert_eq!(compared, 5);
}

/// prime-rl's layers compiled together with their checkpoint: everything that backward held at once in addition to the
/// layer's input and its output's gradient, which existed before.
#[test]
fn prime_rls_compiled_layers_hold_what_was_recorded() {
    const RECORDED: &str = include_str!("../data/activations/prime_rl_layers.jsonl");
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let size = |name: &str| int(&case, name).to_string();
        let (tokens, width, inner) = (size("n"), size("h"), size("f"));
        let (heads, groups, channels) = (size("a"), size("k"), size("d"));
        let plan = plan(&[
            ("software", "hf_transformers"),
            ("seq_length", &tokens),
            ("micro_batch_size", "1"),
            ("hidden_size", &width),
            ("ffn_hidden_size", &inner),
            ("num_attention_heads", &heads),
            ("group_query_attention", "true"),
            ("num_query_groups", &groups),
            ("kv_channels", &channels),
            ("qk_layernorm", if case["family"] == "qwen3" { "true" } else { "false" }),
            ("normalization", "RMSNorm"),
            ("position_embedding_type", "rope"),
            ("add_bias_linear", "false"),
            ("vocab_size", "512"),
            ("loss_kind", "tiled"),
            ("gradient_checkpointing", "true"),
            ("compiled_checkpoints", "true"),
            ("attn_implementation", "flash_attention_2"),
            ("params_dtype", "fp32"),
            ("autocast", "bf16"),
            ("data_parallel_engine", "fsdp2"),
            ("zero_stage", "3"),
        ]);
        let x = Symbols::new(&plan);
        let again = shardscope::operators::worked_out_again(&x).expect("a layer");
        for saved in &again.tensors {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        let gradient = int(&case, "n") * int(&case, "h") * 2;
        assert_eq!(again.bytes().get() - gradient, int(&case, "most in backward"), "{line}");
        // Nothing else is held in addition to the layer's input while its backward runs.
        let memory = shardscope::estimate::memory(&plan);
        assert!(memory.ranks[0].at.contains("a recomputed layer"), "{}", memory.ranks[0].at);
        compared += 1;
    }
    assert_eq!(compared, 8);
}

/// Log-probabilities in place are a supervised loss's; a policy has those of its framework.
#[test]
fn log_probabilities_in_place_are_of_the_next_token() {
    let mut draft = draft();
    draft.recipe.loss = LossKind::InPlaceLogits;
    draft.recipe.tuning.objective = Objective::NextToken;
    assert_eq!(Symbols::new(&draft.plan()).log_probs(), LogProbs::InPlace);
    draft.recipe.tuning.objective = Objective::Policy;
    assert_eq!(Symbols::new(&draft.plan()).log_probs(), LogProbs::ByRow);
}
