//! Rollouts by the model in training: what `generate` holds, compared with recorded runs of transformers and PEFT.

use shardscope::estimate::{PhaseKind, RlMemory, memory};
use shardscope::launch::resolve;
use shardscope::plan::{Plan, Resolution};

/// `tests/record/generation_peak.py`.
const RECORDED: &str = include_str!("../data/activations/generation_peak.tsv");
/// Width and query heads of the recorded model.
const WIDTH: u64 = 64;

fn resolved(set: &[(&str, &str)]) -> Resolution {
    let common = [
        ("software", "hf_transformers"),
        ("accelerator", "A100-SXM-80GB"),
        ("num_nodes", "1"),
        ("gpus_per_node", "1"),
        ("num_layers", "3"),
        ("num_attention_heads", "4"),
        ("group_query_attention", "true"),
        ("num_query_groups", "2"),
        ("hidden_size", "64"),
        ("ffn_hidden_size", "160"),
        ("swiglu", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("micro_batch_size", "1"),
        ("num_micro_batches", "2"),
        ("vocab_size", "97"),
        ("train_type", "full"),
        ("attn_implementation", "sdpa"),
        ("gradient_checkpointing", "true"),
        ("training_objective", "policy"),
        ("rl_framework", "trl"),
        ("rollout_engine", "transformers"),
    ];
    let last = |name: &str| set.iter().all(|(other, _)| *other != name);
    let settings = common.iter().filter(|(name, _)| last(name)).chain(set);
    resolve(&[], &settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>())
}

#[track_caller]
fn plan(set: &[(&str, &str)]) -> Plan {
    let resolution = resolved(set);
    assert!(resolution.not_modelled.is_empty(), "{:?}", resolution.not_modelled);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

fn rl(plan: &Plan) -> RlMemory {
    memory(plan).rl.expect("phases")
}

/// Bytes of the phase in addition to what the trainer leaves, and whether its peak is at a pass over the prompts.
fn generating(rl: &RlMemory) -> (u64, bool) {
    let phase = rl.phases.iter().find(|phase| phase.kind == PhaseKind::Rollout).expect("rollouts");
    let value = |label: &str| phase.breakdown.child(label).map_or(0, |part| part.value().get());
    let left = value("trainer state left on the GPU") + value("trainer's CUDA context and NCCL buffers");
    let prompts = ["prompts in a layer", "prompts in attention"].into_iter().any(|label| value(label) > 0);
    (phase.breakdown.value().get() - left, prompts)
}

/// The computed and the recorded bytes of each round, and what a round of single tokens may omit; none for one whose
/// peak is while prompts run through a layer.
fn rounds() -> Vec<(&'static str, [u64; 2], Option<u64>)> {
    let mut rounds = Vec::new();
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [dtype, autocast, rank, groups, rows, prompt, response, vocabulary, filters, bytes, _] =
            cells.as_slice()
        else {
            panic!("{line}")
        };
        let number = |cell: &str| -> u64 { cell.parse().expect("a number") };
        let length = number(prompt) + number(response);
        let plan = plan(&[
            ("params_dtype", if *dtype == "bfloat16" { "bf16" } else { "fp32" }),
            ("autocast", if *autocast == "True" { "bf16" } else { "none" }),
            ("train_type", if *rank == "0" { "full" } else { "lora" }),
            ("lora_rank", if *rank == "0" { "1" } else { rank }),
            ("lora_target_modules", if *rank == "0" { "" } else { "all-linear" }),
            ("num_query_groups", groups),
            ("rollout_sequences", rows),
            ("seq_length", &length.to_string()),
            ("rollout_response", response),
            ("vocab_size", vocabulary),
            ("rollout_sampling", if *filters == "-" { "" } else { filters }),
        ]);
        let (ours, prompts) = generating(&rl(&plan));
        let most = 64 * number(rows) * (length + WIDTH);
        rounds.push((line, [ours, number(bytes)], (!prompts).then_some(most)));
    }
    rounds
}

/// To the byte if the peak is while prompts run through a layer.
#[test]
fn prompts_hold_what_was_recorded() {
    let exact = rounds().into_iter().filter(|(.., most)| most.is_none());
    let compared = exact.map(|(line, [ours, recorded], _)| assert_eq!(ours, recorded, "{line}")).count();
    assert!(compared >= 20, "{compared}");
}

/// When a single token runs through a layer, token ids and the activations of that token are not counted: fewer than 64
/// bytes per token of a sequence, and per column of the residual stream.
#[test]
fn single_tokens_hold_little_less_than_was_recorded() {
    let mut compared = 0;
    for (line, [ours, recorded], most) in rounds() {
        let Some(most) = most else { continue };
        assert!(ours <= recorded && recorded - ours <= most, "{line}: {ours}, {recorded}");
        compared += 1;
    }
    assert!(compared >= 20, "{compared}");
}

/// The parameters of a random round.
struct Round {
    sequences: u64,
    prompt: u64,
    response: u64,
    groups: u64,
    vocabulary: u64,
    /// Bytes per weight element.
    width: u64,
    autocast: bool,
    /// Adapters on all linear layers, only on attention, or none.
    adapters: &'static str,
    packed: bool,
    masked: bool,
    /// Sampling options, and the bytes that they hold per logit.
    sampled_by: (&'static str, u64),
}

/// Layers, MLP and head width of the recorded model.
const LAYERS: u64 = 3;
const INNER: u64 = 160;
const HEAD: u64 = 16;
const HEADS: u64 = WIDTH / HEAD;

impl Round {
    /// Bytes of `tensors`, each given by its element width and shape.
    fn bytes(tensors: &[(u64, &[u64])]) -> u64 {
        tensors.iter().map(|(width, shape)| width * shape.iter().product::<u64>()).sum()
    }

    /// A cache of this many tokens: keys and values of each layer.
    fn cached(&self, tokens: u64) -> u64 {
        let one = (self.width, &[self.sequences, self.groups, tokens, HEAD][..]);
        (0..LAYERS).map(|_| Self::bytes(&[one, one])).sum()
    }

    /// 16-bit copies of linear weights, layer by layer, up to the last module that has run; none without autocast of
    /// fp32 weights, and none within PEFT's wrapper.
    fn copies(&self, last: &[&str]) -> u64 {
        let keys = self.groups * HEAD;
        let modules = [
            ("q", WIDTH * WIDTH),
            ("k", keys * WIDTH),
            ("v", keys * WIDTH),
            ("o", WIDTH * WIDTH),
            ("gate", INNER * WIDTH),
            ("up", INNER * WIDTH),
            ("down", WIDTH * INNER),
        ];
        let whole = modules.iter().map(|(_, elements)| 2 * elements).sum::<u64>() * (LAYERS - 1);
        let of_last =
            modules.iter().filter(|(name, _)| last.contains(name)).map(|(_, elements)| 2 * elements);
        if self.copied() { whole + of_last.sum::<u64>() } else { 0 }
    }

    fn copied(&self) -> bool {
        self.autocast && self.width == 4 && self.adapters.is_empty()
    }

    /// What exists around a module while prompts run through it: embeddings, the layer's input and `more` residual
    /// streams, cosines and sines, token ids and positions, the mask, which sequences continue, and two numbers.
    fn around(&self, more: u64) -> u64 {
        let (sequences, prompt, width) = (self.sequences, self.prompt, self.width);
        let stream = (width, &[sequences, prompt, WIDTH][..]);
        let turn = (width, &[sequences, prompt, HEAD][..]);
        let numbers = (8, &[sequences, prompt][..]);
        let going_on = (8, &[sequences][..]);
        let mut all = vec![stream, stream, turn, turn, numbers, numbers, going_on, (8, &[2][..])];
        let mask = [sequences, prompt, prompt];
        all.extend(self.masked.then_some((1, &mask[..])));
        Self::bytes(&all) + more * Self::bytes(&[stream])
    }

    /// Every moment that may be the peak, by name.
    fn moments(&self) -> Vec<(&'static str, u64)> {
        let (sequences, prompt, width) = (self.sequences, self.prompt, self.width);
        let narrow = if self.copied() { 2 } else { width };
        let inner = [sequences, prompt, INNER];
        let stream = [sequences, prompt, WIDTH];
        // Gate, up and their product; or one of them with its adapter's product, both also in fp32, from an fp32 copy
        // of their input.
        let mlp = Self::bytes(&[(narrow, &inner), (narrow, &inner), (narrow, &inner)]);
        let copy: &[(u64, &[u64])] = if width < 4 { &[(4, &stream)] } else { &[] };
        let adapted =
            Self::bytes(&[(width, &inner), (width, &inner), (4, &inner), (4, &inner)]) + Self::bytes(copy);
        let mlp = if self.adapters == "all-linear" { mlp.max(adapted) } else { mlp };
        let modules = ["q", "k", "v", "o", "gate", "up"];
        let mut moments = vec![("MLP", self.cached(prompt) + self.around(2) + mlp + self.copies(&modules))];
        let last = prompt + self.response - 1;
        // Logits and probabilities of the previous token.
        let logits = [sequences, self.vocabulary];
        let before = self.cached(last) + Self::bytes(&[(4, &logits), (4, &logits)]);
        let values = Self::bytes(&[(width, &[sequences, last - 1, self.groups, HEAD])]);
        let compute = if self.autocast { 2 } else { width };
        let whole = if self.packed { compute * INNER * WIDTH } else { 0 };
        moments.push(("growing", before + values.max(whole) + self.copies(&["q", "k", "v"])));
        let (_, held) = self.sampled_by;
        moments.push(("logits", before + Self::bytes(&[(width, &logits), (4, &logits), (held, &logits)])));
        if self.copied() {
            let (heads, keys) = ([sequences, prompt, WIDTH], [sequences, prompt, self.groups * HEAD]);
            // Queries and the output of attention, and their 16-bit copies.
            let queries = Self::bytes(&[(4, &heads), (2, &heads), (2, &heads)]);
            let keys_and_values = 2 * Self::bytes(&[(4, &keys)]);
            let repeated = if self.groups < HEADS {
                2 * Self::bytes(&[(4, &heads), (2, &heads)])
            } else {
                2 * Self::bytes(&[(2, &keys)])
            };
            let attention = self.around(1) + queries + keys_and_values + repeated;
            moments.push(("attention", self.cached(prompt) + attention + self.copies(&["q", "k", "v"])));
            let output = 2 * self.vocabulary * WIDTH;
            let all = self.copies(&["q", "k", "v", "o", "gate", "up", "down"]);
            moments.push(("output layer", before + Self::bytes(&[(2, &logits)]) + all + output));
        }
        moments
    }

    fn plan(&self) -> Plan {
        let [sequences, length, response, groups, vocabulary] =
            [self.sequences, self.prompt + self.response, self.response, self.groups, self.vocabulary]
                .map(|number| number.to_string());
        let tuned = !self.adapters.is_empty();
        plan(&[
            ("params_dtype", if self.width == 2 { "bf16" } else { "fp32" }),
            ("autocast", if self.autocast { "bf16" } else { "none" }),
            (
                "train_type",
                if self.packed {
                    "qlora"
                } else if tuned {
                    "lora"
                } else {
                    "full"
                },
            ),
            ("base_quantization", if self.packed { "nf4" } else { "none" }),
            ("lora_rank", if tuned { "4" } else { "1" }),
            ("lora_target_modules", self.adapters),
            ("attn_implementation", if self.masked { "sdpa" } else { "flash_attention_2" }),
            ("num_query_groups", &groups),
            ("rollout_sequences", &sequences),
            ("seq_length", &length),
            ("rollout_response", &response),
            ("vocab_size", &vocabulary),
            ("rollout_sampling", self.sampled_by.0),
        ])
    }
}

/// Tensor by tensor, in a separate enumeration: recorded runs only give a bound, this is exact.
#[test]
fn a_round_holds_its_tensors_at_its_fullest_moment() {
    let mut fullest = std::collections::BTreeMap::new();
    let rounds = [
        (4, 24, 40),
        (3, 16, 8),
        (2, 120, 8),
        (1, 400, 2),
        (64, 2, 3),
        (2, 1, 60),
        (10, 100, 2),
        (20, 2, 60),
    ];
    for (sequences, prompt, response) in rounds {
        for (width, autocast) in [(2, false), (2, true), (4, false), (4, true)] {
            for (adapters, packed) in
                [("", false), ("all-linear", false), ("q_proj", false), ("q_proj", true)]
            {
                for (groups, vocabulary, masked) in [(2, 97, true), (4, 97, true), (4, 6400, false)] {
                    for sampled_by in [("", 0), ("temperature", 4)] {
                        let round = Round {
                            sequences,
                            prompt,
                            response,
                            groups,
                            vocabulary,
                            width,
                            autocast,
                            adapters,
                            packed,
                            masked,
                            sampled_by,
                        };
                        let moments = round.moments();
                        let most = moments.iter().map(|(_, bytes)| *bytes).max().expect("a moment");
                        let rl = rl(&round.plan());
                        // All are sampled at once.
                        assert_eq!(rl.cache_rollouts, sequences);
                        let (ours, _) = generating(&rl);
                        assert_eq!(
                            ours, most,
                            "{moments:?}: {sequences} {prompt} {response}, {width} {autocast} {adapters:?} {packed}, {groups} {vocabulary} {masked} {sampled_by:?}"
                        );
                        for (name, _) in moments.iter().filter(|(_, bytes)| *bytes == most) {
                            *fullest.entry(*name).or_insert(0) += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{fullest:?}");
    assert_eq!(fullest.len(), 5, "{fullest:?}");
}

/// DeepSpeed's ZeRO-3 gathers all weights for generation; with stage 2 they are not sharded.
#[test]
fn weights_that_deepspeed_shards_are_gathered_to_generate() {
    let of_layer = 2 * WIDTH * WIDTH + 2 * 2 * HEAD * WIDTH + 3 * INNER * WIDTH + 2 * WIDTH;
    let whole = 2 * 97 * WIDTH + LAYERS * of_layer + WIDTH;
    for (stage, gathered) in [("3", Some(2 * whole)), ("2", None)] {
        let plan = plan(&[
            ("gpus_per_node", "2"),
            ("params_dtype", "bf16"),
            ("data_parallel_engine", "deepspeed"),
            ("zero_stage", stage),
            ("rollout_sequences", "4"),
            ("seq_length", "64"),
            ("rollout_response", "40"),
            ("lora_target_modules", ""),
        ]);
        let rl = rl(&plan);
        let phase = rl.phases.iter().find(|phase| phase.kind == PhaseKind::Rollout).expect("rollouts");
        let part = phase.breakdown.child("weights gathered to generate").map(|part| part.value().get());
        assert_eq!(part, gathered, "stage {stage}");
    }
}
