//! Heads for rewards and classes instead of the output layer: what they keep compared with recorded calls
//! (`tests/record/reward_head.py`), their weights, and which texts are read as such trainings.

use serde_json::Value;
use shardscope::estimate::{flops, memory, parameters};
use shardscope::operators::{MatmulKind, Operator, Symbols, Work};
use shardscope::plan::{Field, Plan};
use shardscope::source::Source;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;
use super::kept_by_llamafactory::plan;

const RECORDED: &str = include_str!("../data/activations/reward_head.jsonl");

#[test]
fn recorded_heads_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes = ["samples", "tokens", "labels", "hidden"].map(|name| int(&case, name).to_string());
        let plan = plan(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("num_labels", &sizes[2]),
            ("hidden_size", &sizes[3]),
            ("num_attention_heads", "2"),
            ("params_dtype", if case["dtype"] == "bfloat16" { "bf16" } else { "fp32" }),
            ("autocast", if case["cast"] == true { "bf16" } else { "none" }),
            ("bf16", if case["cast"] == true || case["dtype"] == "bfloat16" { "true" } else { "false" }),
            ("training_objective", case["objective"].as_str().expect("a word")),
            ("train_type", "full"),
            ("lora_rank", ""),
            ("lora_target_modules", ""),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let transients = Operator::OutputLayer.transients(&x);
        let kept: u64 =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        assert_eq!(saved.iter().map(|saved| saved.bytes.get()).sum::<u64>(), kept, "{line}");
        let held = transients.iter().flat_map(|transient| &transient.tensors);
        for saved in saved.iter().chain(held) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        compared += 1;
    }
    assert_eq!(compared, 16);
}

/// OpenRLHF gathers rewards from those of all tokens, behind packs from those of padded sequences
/// (`tests/record/openrlhf_rewards.py`).
#[test]
fn recorded_heads_of_openrlhf_are_met_to_the_byte() {
    const OPENRLHF: &str = include_str!("../data/activations/openrlhf_rewards.jsonl");
    let mut compared = 0;
    for line in OPENRLHF.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes = ["samples", "tokens", "hidden"].map(|name| int(&case, name).to_string());
        let half = case["dtype"] == "bfloat16";
        let plan = plan(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("hidden_size", &sizes[2]),
            ("num_attention_heads", "2"),
            ("params_dtype", if half { "bf16" } else { "fp32" }),
            ("bf16", if half { "true" } else { "false" }),
            ("training_objective", if case["packs"] == true { "packed_rewards" } else { "token_rewards" }),
            ("train_type", "full"),
            ("lora_rank", ""),
            ("lora_target_modules", ""),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let kept: u64 =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        assert_eq!(saved.iter().map(|saved| saved.bytes.get()).sum::<u64>(), kept, "{line}");
        for saved in &saved {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        compared += 1;
    }
    assert_eq!(compared, 8);
}

/// LLaMA-Factory's value head keeps its own tensors; the logits beside it are made, cast to fp32 and dropped
/// (`tests/record/llamafactory_rewards.py`).
#[test]
fn recorded_value_heads_are_met_to_the_byte() {
    const VALUED: &str = include_str!("../data/activations/llamafactory_rewards.jsonl");
    let mut compared = 0;
    for line in VALUED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let names = ["samples", "tokens", "hidden", "vocabulary"];
        let [samples, tokens, hidden, vocabulary] = names.map(|name| int(&case, name));
        let cast = case["cast"] == true;
        let plan = plan(&[
            ("micro_batch_size", &samples.to_string()),
            ("seq_length", &tokens.to_string()),
            ("hidden_size", &hidden.to_string()),
            ("vocab_size", &vocabulary.to_string()),
            ("make_vocab_size_divisible_by", "1"),
            ("num_attention_heads", "2"),
            ("params_dtype", "bf16"),
            ("autocast", if cast { "bf16" } else { "none" }),
            ("adapter_dtype", if case["head"] == "float32" { "fp32" } else { "bf16" }),
            ("gradient_checkpointing", "true"),
            ("training_objective", "value_rewards"),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let kept: u64 =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        assert_eq!(saved.iter().map(|saved| saved.bytes.get()).sum::<u64>(), kept, "{line}");
        let transients = Operator::OutputLayer.transients(&x);
        let held = transients.iter().flat_map(|transient| &transient.tensors);
        for saved in saved.iter().chain(held) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        // At most the logits twice, what the head holds by then, the final norm's output, the output layer's weight and,
        // without autocast in fp32, the casts on the way of dropout: less than one more input for every token.
        let sequences = 2 * samples * tokens;
        let forward: u64 = transients[0].tensors.iter().map(|tensor| tensor.bytes.get()).sum();
        assert_eq!(forward, 6 * sequences * vocabulary);
        let beside = 2 * vocabulary * hidden + 2 * sequences * hidden;
        let most = int(&case, "most") - forward - beside;
        let head = saved.iter().filter(|saved| saved.name.starts_with("value head's"));
        let head: u64 = head.map(|saved| saved.bytes.get()).sum();
        assert!(
            most >= head && most <= head + 4 * sequences * hidden + 16 * sequences,
            "{most} of {head}: {line}"
        );
        compared += 1;
    }
    assert_eq!(compared, 6);
}

/// A head with one output for 4,096 inputs replaces a table as large as the embedding, and no logits are computed.
#[test]
fn a_head_has_no_vocabulary() {
    let full = |set: &[(&str, &str)]| {
        let all = [("train_type", "full"), ("lora_rank", ""), ("lora_target_modules", "")];
        plan(&all.iter().chain(set).copied().collect::<Vec<_>>())
    };
    let (model, head) = (full(&[]), full(&[("training_objective", "reward")]));
    let count = |of: &_| parameters(of).total.get();
    assert_eq!(count(&model) - count(&head), (32_000 - 1) * 1024);
    // Tied or not, the embedding stays and the head is separate.
    let tied = [("untie_embeddings_and_output_weights", "false"), ("training_objective", "reward")];
    assert_eq!(count(&full(&tied)), count(&head));
    let labels = full(&[("training_objective", "classify"), ("num_labels", "7")]);
    assert_eq!(count(&labels) - count(&head), 6 * 1024);
    // Except for the loss, the two sequences of a pair keep what two samples keep.
    let layers = |of: &_| memory(of).worst.peak_allocated;
    assert!(layers(&head) < layers(&full(&[("micro_batch_size", "2")])));
    // Under adapters PEFT trains a copy of the head.
    let lora = plan(&[("training_objective", "reward")]);
    let none = plan(&[]);
    assert_eq!(parameters(&lora).trained.get() - parameters(&none).trained.get(), 1024);
    // A value head has a bias, and stands beside the output layer, of which there is a forward product alone: a half of
    // what a frozen one's forward and input gradient are. The logits of 2 x 2,048 tokens are there in 6 bytes.
    let valued = plan(&[("training_objective", "value_rewards"), ("gradient_checkpointing", "true")]);
    assert_eq!(parameters(&valued).trained.get() - parameters(&none).trained.get(), 1025);
    let pair = plan(&[("micro_batch_size", "2"), ("gradient_checkpointing", "true")]);
    let product = |of: &Plan| {
        let work = Operator::OutputLayer.work(&Symbols::new(of));
        let kinds = work.iter().filter_map(|work| match work {
            Work::Matmul(matmul) if matmul.name == "output_layer" => Some((matmul.local, matmul.kind)),
            _ => None,
        });
        kinds.collect::<Vec<_>>()
    };
    let [(sizes, kind)] = product(&valued)[..] else { panic!("one product") };
    assert_eq!((sizes, kind), ([4096, 32_000, 1024], MatmulKind::ForwardLinear));
    assert_eq!(product(&pair), [(sizes, MatmulKind::PlainLinear)]);
    let skipped = 2.0 * 4096.0 * 32_000.0 * 1024.0;
    let spent = |of: &Plan| flops(of).model.get() / 8.0;
    let head = 4.0 * 4096.0 * 1024.0;
    assert!(
        (spent(&pair) - spent(&valued) - skipped + head).abs() < 1e-6 * skipped,
        "{} {}",
        spent(&pair),
        spent(&valued)
    );
}

#[test]
fn trainings_of_rewards_and_classes_are_read() {
    let read = |name: &str, text: &str| {
        resolved(&Source::from_files([(name, text)]), &[("world_size".to_owned(), "8".to_owned())])
    };
    let value = |read: &shardscope::launch::Resolution, field| {
        read.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
    };
    let trl = "torchrun --nproc_per_node 8 examples/scripts/reward_modeling.py --model_name_or_path Qwen/Qwen2-0.5B-Instruct \
        --per_device_train_batch_size 8 --gradient_checkpointing True --max_length 2048 --bf16 True --dataset_name d";
    let axolotl = "base_model: Qwen/Qwen3-8B\nreward_model: true\nmodel_type: AutoModelForSequenceClassification\nnum_labels: 1\n\
        sequence_len: 2048\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nlearning_rate: 1e-5\nbf16: true\n\
        gradient_checkpointing: true\nattn_implementation: flash_attention_2\n";
    let rm = "NPROC_PER_NODE=8 swift rlhf --rlhf_type rm --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --max_length 2048 \
        --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --torch_dtype bfloat16";
    for (name, text) in [("run.sh", trl), ("a.yaml", axolotl), ("run.sh", rm)] {
        let read = read(name, text);
        assert!(read.plan.is_some(), "{text}: {:?}", read.diagnostics);
        assert_eq!(value(&read, Field::TrainingObjective), "reward", "{text}");
    }
    // OpenRLHF's script of its repository (`examples/scripts/train_rm.sh`), with another model.
    let open = "deepspeed --module openrlhf.cli.train_rm --train.batch_size 256 --train.micro_batch_size 1 \
        --model.model_name_or_path Qwen/Qwen2.5-7B --ds.param_dtype bf16 --data.max_len 8192 --ds.zero_stage 3 --adam.lr 9e-6 \
        --data.dataset d --data.chosen_key chosen --data.rejected_key rejected --ds.attn_implementation flash_attention_2 \
        --model.gradient_checkpointing_enable";
    let packs = format!("{open} --ds.packing_samples");
    for (text, word) in [(open, "token_rewards"), (packs.as_str(), "packed_rewards")] {
        let read = read("run.sh", text);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        assert_eq!(value(&read, Field::TrainingObjective), word);
        assert_eq!(value(&read, Field::SeqLength), "8192");
    }
    assert!(read("run.sh", &format!("{open} --ds.lora.rank 8")).plan.is_none());
    // With the default of its beta a run of DPO has the same options.
    let pairs = read("run.sh", &open.replace("train_rm", "train_dpo"));
    assert_eq!(value(&pairs, Field::TrainingObjective), "dpo");
    let classes = rm.replace("rlhf --rlhf_type rm", "sft --task_type seq_cls --num_labels 3");
    let classes = read("run.sh", &classes);
    assert!(classes.plan.is_some(), "{:?}", classes.diagnostics);
    assert_eq!(
        [Field::TrainingObjective, Field::NumLabels].map(|field| value(&classes, field)),
        ["classify", "3"]
    );
    // LLaMA-Factory's example (`examples/train_lora/qwen3_lora_reward.yaml`); what is not known of its head stops.
    let factory = "model_name_or_path: Qwen/Qwen3-4B-Instruct-2507\nstage: rm\ndo_train: true\nfinetuning_type: lora\nlora_rank: 8\n\
        lora_target: all\ncutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n\
        learning_rate: 1.0e-4\nbf16: true\n";
    let valued = read("f.yaml", factory);
    assert!(valued.plan.is_some(), "{:?}", valued.diagnostics);
    assert_eq!(value(&valued, Field::TrainingObjective), "value_rewards");
    // Step rewards are per token.
    let steps = axolotl.replace("reward_model", "process_reward_model");
    let full =
        factory.replace("finetuning_type: lora\nlora_rank: 8\nlora_target: all", "finetuning_type: full");
    let whole = format!("{factory}disable_gradient_checkpointing: true\n");
    for text in [steps, full, whole] {
        assert!(read("f.yaml", &text).plan.is_none(), "{text}");
    }
}

/// A program around transformers' Trainer that gives a decoder a head for classes.
fn classifier(model: &str, loads: &str, beside: &str) -> shardscope::launch::Resolution {
    let text = format!(
        "from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments\n\
         from peft import LoraConfig, get_peft_model, TaskType\n\
         tokenizer = AutoTokenizer.from_pretrained('{model}')\n\
         model = AutoModelForSequenceClassification.from_pretrained('{model}'{loads})\n{beside}\n\
         rows = rows.map(lambda row: tokenizer(row['text'], truncation=True, max_length=512))\n\
         args = TrainingArguments('out', per_device_train_batch_size=8, bf16=True)\n\
         trainer = Trainer(model=model, args=args, train_dataset=rows)\ntrainer.train()\n"
    );
    let set = [("world_size".to_owned(), "1".to_owned())];
    resolved(&Source::from_files([("train.py", text.as_str())]), &set)
}

/// Mistral 7B without its output layer of 32,000 x 4,096.
const WITHOUT_HEAD: u64 = 7_241_732_096 - 32_000 * 4096;
const MISTRAL: &str = "mistralai/Mistral-7B-v0.1";
const ADAPTERS: &str = "peft_config = LoraConfig(task_type=TaskType.SEQ_CLS, r=16, lora_alpha=32, lora_dropout=0.1, \
    target_modules=['q_proj', 'v_proj'])\nmodel = get_peft_model(model, peft_config)";

#[test]
fn a_decoder_that_tells_classes_apart_is_read_from_its_program() {
    let plan = |loads: &str, beside: &str| {
        let read = classifier(MISTRAL, loads, beside);
        read.plan
            .unwrap_or_else(|| panic!("{loads} {beside}: {:?} {:?}", read.diagnostics, read.not_modelled))
    };
    let full = plan(", num_labels=6", "");
    assert_eq!(parameters(&full).total.get(), WITHOUT_HEAD + 6 * 4096);
    assert_eq!(parameters(&full).trained.get(), WITHOUT_HEAD + 6 * 4096);
    assert_eq!((full.model().seq_length, full.recipe().micro_batch_size), (512, 8));
    // transformers' configuration has two classes; a mapping of names to classes beside their number changes nothing.
    assert_eq!(parameters(&plan("", "")).total.get(), WITHOUT_HEAD + 2 * 4096);
    let named = plan(", num_labels=3, id2label=id2label, label2id=label2id", "");
    assert_eq!(parameters(&named).total.get(), WITHOUT_HEAD + 3 * 4096);
    // Adapters on queries and values, of 8 key heads, and PEFT's copy of the head, which it makes by either name.
    let adapters = 32 * 16 * (4096 + 4096 + 4096 + 1024);
    let lora = plan(", num_labels=6", ADAPTERS);
    assert_eq!(parameters(&lora).trained.get(), adapters + 6 * 4096);
    let copied = ADAPTERS.replace("r=16", "r=16, modules_to_save=['score']");
    assert_eq!(memory(&plan(", num_labels=6", &copied)).worst, memory(&lora).worst);
    // A number that the program computes is asked for.
    let computed = classifier(MISTRAL, ", num_labels=len(labels)", "");
    let asked: Vec<&str> = computed.questions.iter().map(|question| question.name()).collect();
    assert!(
        computed.not_modelled.is_empty() && asked == ["num_labels"],
        "{asked:?} {:?}",
        computed.not_modelled
    );
}

/// TRL's reward trainer scores by the same class, with adapters of the same task.
#[test]
fn adapters_of_a_reward_model_are_of_the_task_that_copies_its_head() {
    let text = format!(
        "model = AutoModelForSequenceClassification.from_pretrained('{MISTRAL}', num_labels=1)\n\
         peft_config = LoraConfig(task_type=TaskType.SEQ_CLS, r=16, target_modules=['q_proj', 'v_proj'])\n\
         args = RewardConfig('out', per_device_train_batch_size=8, bf16=True, max_length=512)\n\
         trainer = RewardTrainer(model=model, args=args, train_dataset=rows, peft_config=peft_config)\ntrainer.train()\n"
    );
    let set = [("world_size".to_owned(), "1".to_owned())];
    let read = resolved(&Source::from_files([("train.py", text.as_str())]), &set);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.not_modelled));
    assert_eq!(parameters(&plan).trained.get(), 32 * 16 * (4096 + 4096 + 4096 + 1024) + 4096);
}

#[test]
fn heads_that_are_not_known_stop_by_name() {
    let causal = ADAPTERS.replace("SEQ_CLS", "CAUSAL_LM");
    let none = ADAPTERS.replace("task_type=TaskType.SEQ_CLS, ", "");
    for (model, loads, beside) in [
        (MISTRAL, ", num_labels=6", causal.as_str()),
        (MISTRAL, ", num_labels=6", none.as_str()),
        // A regression, several classes at once, and classes by their names alone.
        (MISTRAL, ", num_labels=1", ""),
        (MISTRAL, ", num_labels=6, problem_type='multi_label_classification'", ""),
        (MISTRAL, ", id2label=id2label", ""),
        // Encoders, a decoder with a head of its own class, and one with a tower.
        ("google-bert/bert-base-uncased", ", num_labels=6", ""),
        ("openai-community/gpt2", ", num_labels=6", ""),
        ("google/gemma-3-4b-it", ", num_labels=6", ""),
    ] {
        let read = classifier(model, loads, beside);
        assert!(read.plan.is_none() && !read.not_modelled.is_empty(), "{model} {loads} {beside}");
    }
}
