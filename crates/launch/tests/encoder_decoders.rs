//! Launch files of encoder-decoders: T5 and its kin, with transformers' own programs and with programs that load one.

use shardscope_bash::Environment;
use shardscope_launch::{Asked, Request, Resolution, read};
use shardscope_plan::{AttentionKernel, BaseTraining, Embeddings, Field, LossKind, NumberFormat, Plan};
use shardscope_source::Source;

fn said(files: &[(&str, &str)], overrides: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

fn planned(files: &[(&str, &str)], overrides: &[(&str, &str)]) -> Plan {
    let mut all = vec![("gpus_per_node", "8"), ("num_nodes", "1"), ("accelerator", "A100-SXM-80GB")];
    all.extend(overrides);
    let found = said(files, &all);
    found.plan.unwrap_or_else(|| {
        panic!("{:#?}\n{:#?}\n{:#?}", found.diagnostics, found.questions, found.not_modelled)
    })
}

const SUMMARIES: &str = "torchrun --nproc_per_node 8 examples/pytorch/summarization/run_summarization.py \
    --model_name_or_path google/flan-t5-xl --do_train --dataset_name cnn_dailymail --dataset_config \"3.0.0\" \
    --source_prefix \"summarize: \" --output_dir /tmp/tst-summarization --per_device_train_batch_size=4 \
    --gradient_accumulation_steps 2 --bf16 --max_source_length 512 --max_target_length 64 --predict_with_generate";

#[test]
fn transformers_program_for_summaries_is_a_plan() {
    let plan = planned(&[("train.sh", SUMMARIES)], &[]);
    let (model, recipe) = (plan.model(), plan.recipe());
    let encoder = model.encoder.expect("an encoder");
    assert_eq!([encoder.layers, encoder.seq_length, encoder.buckets], [24, 512, 32]);
    assert_eq!([model.num_layers, model.seq_length, model.hidden_size], [24, 64, 2048]);
    // T5 1.1 has an output layer of its own.
    assert_eq!(model.embeddings, Embeddings::Untied);
    assert_eq!([recipe.micro_batch_size, recipe.num_micro_batches], [4, 2]);
    assert_eq!(recipe.loss, LossKind::Torch);
    assert_eq!(recipe.attention_kernel, AttentionKernel::Sdpa);
    assert!(model.arrangement.dropout.mlp && recipe.transformers.padding_mask);
}

/// Google's files hold 4 bytes a parameter: t5-base 892 MB for 222.9 million, flan-t5-xl 11.4 GB for 2.85 billion. What
/// `from_pretrained` is not told it takes from there (`modeling_utils.py`).
#[test]
fn weights_are_loaded_in_the_checkpoints_format() {
    let formats = |files: &[(&str, &str)], more: &[(&str, &str)]| {
        let lengths = [("source_length", "512"), ("seq_length", "64")];
        let plan = planned(files, &[&lengths[..], more].concat());
        (plan.recipe().params_dtype, plan.recipe().compute_dtype())
    };
    let asks = |files: &[(&str, &str)]| {
        let found = said(files, &[("gpus_per_node", "8"), ("num_nodes", "1"), ("seq_length", "64")]);
        let asked =
            found.questions.iter().find(|question| question.asks == Asked::Setting(Field::ParamsDtype));
        found.plan.is_none() && asked.is_some_and(|asked| asked.proposal.as_deref() == Some("fp32"))
    };
    use NumberFormat::{Bf16, Fp32};
    let none = PROGRAM.replace(", dtype=torch.bfloat16", "");
    let auto = PROGRAM.replace("dtype=torch.bfloat16", "dtype='auto'");
    for model in ["google/flan-t5-xxl", "google-t5/t5-base", "t5-large", "google/mt5-xl", "google/t5-v1_1-xl"]
    {
        let command = SUMMARIES.replace("google/flan-t5-xl", model);
        assert_eq!(formats(&[("train.sh", &command)], &[]), (Fp32, Bf16), "{model}");
        let plain = none.replace("google/flan-t5-xxl", model);
        assert_eq!(formats(&[("train.py", &plain)], &[]), (Fp32, Fp32), "{model}");
        let auto = auto.replace("google/flan-t5-xxl", model);
        assert_eq!(formats(&[("train.py", &auto)], &[]), (Fp32, Fp32), "{model}");
    }
    assert_eq!(formats(&[("train.py", PROGRAM)], &[]), (Bf16, Bf16), "stated");
    // mT0 shares mT5's configuration, and others only a name.
    for model in ["bigscience/mt0-xl", "someone/flan-t5-xxl"] {
        assert!(asks(&[("train.sh", &SUMMARIES.replace("google/flan-t5-xl", model))]), "{model}");
        for program in [&none, &auto] {
            assert!(asks(&[("train.py", &program.replace("google/flan-t5-xxl", model))]), "{model}");
        }
        let stated = PROGRAM.replace("google/flan-t5-xxl", model);
        assert_eq!(formats(&[("train.py", &stated)], &[]), (Bf16, Bf16), "{model}");
        let command = SUMMARIES.replace("google/flan-t5-xl", model);
        assert_eq!(formats(&[("train.sh", &command)], &[("params_dtype", "fp32")]), (Fp32, Bf16), "{model}");
    }
    // The shape of an unknown name is known once it is answered, but not its checkpoint.
    let tuned = SUMMARIES.replace("google/flan-t5-xl", "someone/my-flan-t5-xl-chat");
    let found = said(
        &[("train.sh", &tuned)],
        &[("model", "google/flan-t5-xl"), ("gpus_per_node", "8"), ("num_nodes", "1")],
    );
    assert!(found.plan.is_none());
    assert!(found.questions.iter().any(|asked| asked.asks == Asked::Setting(Field::ParamsDtype)));
    // google/flan-ul2's configuration, without and with its format.
    let config = |dtype: &str| {
        format!(
            r#"{{"architectures":["T5ForConditionalGeneration"],{dtype}"d_ff":16384,"d_kv":256,"d_model":4096,"dropout_rate":0.0,
            "feed_forward_proj":"gated-silu","is_encoder_decoder":true,"model_type":"t5","num_decoder_layers":32,"num_heads":16,
            "num_layers":32,"relative_attention_num_buckets":32,"tie_word_embeddings":false,"vocab_size":32128}}"#
        )
    };
    let command = SUMMARIES.replace("google/flan-t5-xl", "google/flan-ul2");
    assert!(asks(&[("train.sh", &command), ("config.json", &config(""))]));
    for (dtype, expected) in [("\"torch_dtype\":\"bfloat16\",", Bf16), ("\"dtype\":\"float32\",", Fp32)] {
        let config = config(dtype);
        for files in [
            [("train.sh", command.as_str()), ("config.json", config.as_str())],
            [("config.json", config.as_str()), ("train.sh", command.as_str())],
        ] {
            assert_eq!(formats(&files, &[]), (expected, Bf16), "{dtype}");
        }
    }
}

#[test]
fn lengths_that_are_not_stated_are_asked_for() {
    let text = SUMMARIES.replace("--max_source_length 512 --max_target_length 64 ", "");
    let found = said(&[("train.sh", &text)], &[]);
    assert!(found.plan.is_none());
    let asked: Vec<_> = found
        .questions
        .iter()
        .filter_map(|question| match question.asks {
            Asked::Setting(field) => Some((field, question.proposal.clone().unwrap_or_default())),
            _ => None,
        })
        .collect();
    assert!(asked.contains(&(Field::SourceLength, "1024".to_owned())), "{asked:?}");
    assert!(asked.contains(&(Field::SeqLength, "128".to_owned())), "{asked:?}");
}

/// As PEFT's example of a conditional generation (`examples/conditional_generation/peft_lora_seq2seq.ipynb`), with the Trainer.
const PROGRAM: &str = "from peft import LoraConfig, TaskType, get_peft_model\n\
    from transformers import AutoModelForSeq2SeqLM, DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments\n\
    model = AutoModelForSeq2SeqLM.from_pretrained('google/flan-t5-xxl', dtype=torch.bfloat16)\n\
    config = LoraConfig(r=16, lora_alpha=32, target_modules=['q', 'v'], lora_dropout=0.05, bias='none', task_type=TaskType.SEQ_2_SEQ_LM)\n\
    model = get_peft_model(model, config)\n\
    args = Seq2SeqTrainingArguments(output_dir='out', per_device_train_batch_size=8, learning_rate=1e-3, num_train_epochs=5)\n\
    trainer = Seq2SeqTrainer(model=model, args=args, data_collator=DataCollatorForSeq2Seq(tokenizer, model=model), train_dataset=data)\n\
    trainer.train()\n";

#[test]
fn a_program_with_adapters_is_a_plan_once_both_lengths_are_known() {
    let lengths = [("source_length", "256"), ("seq_length", "64")];
    let plan = planned(&[("train.py", PROGRAM)], &lengths);
    let lora = plan.recipe().tuning.lora.expect("adapters");
    assert_eq!((lora.rank, lora.dropout, plan.recipe().tuning.base), (16, true, BaseTraining::None));
    assert_eq!(plan.recipe().loss, LossKind::TorchNarrow);
    assert!(!plan.recipe().tuning.reaches_input());
}

#[test]
fn what_was_not_recorded_stops_by_name() {
    let stops = |text: &str, overrides: &[(&str, &str)], what: &str| {
        let mut all = vec![("gpus_per_node", "8"), ("num_nodes", "1"), ("accelerator", "A100-SXM-80GB")];
        all.extend(overrides);
        let found = said(&[("train.sh", text)], &all);
        let why: Vec<String> = found
            .diagnostics
            .iter()
            .map(|said| said.message.clone())
            .chain(found.not_modelled.iter().map(|item| item.message.clone()))
            .collect();
        assert!(found.plan.is_none(), "{what}");
        assert!(why.iter().any(|why| why.contains(what)), "{what}: {why:#?}");
    };
    stops(
        &SUMMARIES.replace("--bf16", "--bf16 --fsdp 'full_shard auto_wrap'"),
        &[],
        "under FSDP or DeepSpeed",
    );
    stops(&SUMMARIES.replace("--bf16", "--bf16 --eval_strategy steps"), &[], "evaluation");
    // Also in batches no larger than training's, and where targets are generated instead.
    stops(
        &SUMMARIES.replace(
            "--bf16",
            "--bf16 --do_eval --eval_strategy epoch --per_device_eval_batch_size 4 --num_beams 4",
        ),
        &[],
        "evaluations of an encoder-decoder",
    );
    stops(
        &SUMMARIES.replace(
            "--bf16 --max_source_length 512 --max_target_length 64 --predict_with_generate",
            "--bf16 --max_source_length 512 --max_target_length 64 --do_eval --eval_strategy epoch --per_device_eval_batch_size 4",
        ),
        &[],
        "evaluations of an encoder-decoder",
    );
    stops(SUMMARIES, &[("software", "megatron_core_te")], "an encoder-decoder");
    for (setting, what) in [
        (("num_experts", "8"), "with experts"),
        (("mtp_num_layers", "1"), "multi-token prediction"),
        (("normalization", "LayerNorm"), "LayerNorm"),
        (("position_embedding_type", "rope"), "table of distances"),
        (("qk_layernorm", "true"), "norms of queries and keys"),
        (("add_bias_linear", "true"), "biases of linear layers"),
        (("add_qkv_bias", "true"), "biases of linear layers"),
        (("parallel_residual", "true"), "arranged otherwise than T5's"),
        (("fused_qkv", "true"), "arranged otherwise than T5's"),
        (("module_variants", "relu"), "arranged otherwise than T5's"),
        (("softmax_type", "learnable"), "arranged otherwise than T5's"),
    ] {
        stops(SUMMARIES, &[setting], what);
    }
    let bart = SUMMARIES.replace("google/flan-t5-xl", "facebook/bart-large-cnn");
    assert!(said(&[("train.sh", &bart)], &[]).plan.is_none());
    // A decoder alone is none, whatever class the program loads it as.
    let llama = PROGRAM.replace("google/flan-t5-xxl", "meta-llama/Llama-3.1-8B");
    let found =
        said(&[("train.py", &llama)], &[("gpus_per_node", "8"), ("num_nodes", "1"), ("seq_length", "64")]);
    assert!(found.not_modelled.iter().any(|item| item.name == "seq2seq"), "{:?}", found.not_modelled);
}

/// google/flan-t5-small's `config.json`.
#[test]
fn a_configuration_has_its_sizes() {
    let config = r#"{"architectures":["T5ForConditionalGeneration"],"d_ff":1024,"d_kv":64,"d_model":512,"decoder_start_token_id":0,
        "dropout_rate":0.1,"eos_token_id":1,"feed_forward_proj":"gated-gelu","initializer_factor":1.0,"is_encoder_decoder":true,
        "layer_norm_epsilon":1e-06,"model_type":"t5","n_positions":512,"num_decoder_layers":8,"num_heads":6,"num_layers":8,
        "output_past":true,"pad_token_id":0,"relative_attention_max_distance":128,"relative_attention_num_buckets":32,
        "tie_word_embeddings":false,"transformers_version":"4.23.1","use_cache":true,"vocab_size":32128}"#;
    let more = [
        ("software", "hf_transformers"),
        ("source_length", "512"),
        ("seq_length", "128"),
        ("micro_batch_size", "8"),
        // The file says nothing of it.
        ("params_dtype", "fp32"),
    ];
    let plan = planned(&[("config.json", config)], &more);
    let model = plan.model();
    assert_eq!(
        [model.hidden_size, model.num_attention_heads, model.kv_channels, model.ffn_hidden_size],
        [512, 6, 64, 1024]
    );
    assert_eq!(model.encoder.map(|encoder| encoder.layers), Some(8));
}

fn lacks(found: &Resolution) -> Vec<(String, String)> {
    found.not_modelled.iter().map(|item| (item.name.clone(), item.message.clone())).collect()
}

const LENGTHS: [(&str, &str); 5] = [
    ("gpus_per_node", "8"),
    ("num_nodes", "1"),
    ("accelerator", "A100-SXM-80GB"),
    ("source_length", "256"),
    ("seq_length", "64"),
];

#[test]
fn a_program_that_evaluates_by_generating_stops() {
    let generates = PROGRAM.replace("num_train_epochs=5", "num_train_epochs=5, predict_with_generate=True");
    assert!(said(&[("train.py", &generates)], &LENGTHS).plan.is_some());
    for strategy in ["epoch", "steps"] {
        let more = format!("predict_with_generate=True, eval_strategy='{strategy}'");
        let text = generates.replace("predict_with_generate=True", &more);
        let found = said(&[("train.py", &text)], &LENGTHS);
        assert!(found.plan.is_none());
        let named = lacks(&found);
        let stop = named.iter().find(|(name, _)| name == "predict_with_generate");
        assert!(stop.is_some_and(|(_, why)| why.contains("an encoder-decoder")), "{named:?}");
        // A decoder's does not hold more than its training.
        let decoder = text
            .replace("google/flan-t5-xxl", "meta-llama/Llama-3.1-8B")
            .replace("Seq2SeqLM.from", "CausalLM.from")
            .replace("['q', 'v']", "['q_proj', 'v_proj']")
            .replace("SEQ_2_SEQ_LM", "CAUSAL_LM");
        let found = said(&[("train.py", &decoder)], &LENGTHS[..3]);
        assert!(
            !lacks(&found).iter().any(|(name, _)| name == "predict_with_generate"),
            "{:?}",
            lacks(&found)
        );
    }
}

#[test]
fn a_class_that_loads_something_else_stops_by_name() {
    let program = |class: &str| PROGRAM.replace("AutoModelForSeq2SeqLM.from", &format!("{class}.from"));
    for whole in ["AutoModelForSeq2SeqLM", "T5ForConditionalGeneration"] {
        assert!(said(&[("train.py", &program(whole))], &LENGTHS).plan.is_some(), "{whole}");
    }
    for other in
        ["T5EncoderModel", "T5Model", "T5ForTokenClassification", "AutoModelForSequenceClassification"]
    {
        let found = said(&[("train.py", &program(other))], &LENGTHS);
        assert!(found.plan.is_none(), "{other}");
        assert!(lacks(&found).iter().any(|(name, _)| name == other), "{other}: {:?}", lacks(&found));
    }
    for decoder in ["AutoModel", "AutoModelForCausalLM"] {
        let found = said(&[("train.py", &program(decoder))], &LENGTHS);
        assert!(found.plan.is_none(), "{decoder}");
        let named = lacks(&found);
        let stop = named.iter().find(|(name, _)| name == "seq2seq");
        assert!(stop.is_some_and(|(_, why)| why.contains(decoder)), "{decoder}: {named:?}");
    }
    // Nothing is said of a decoder.
    let decoder = program("AutoModelForCausalLM").replace("google/flan-t5-xxl", "meta-llama/Llama-3.1-8B");
    let found = said(&[("train.py", &decoder)], &LENGTHS[..3]);
    assert!(!lacks(&found).iter().any(|(name, _)| name == "seq2seq"));
    assert!(found.setting(Field::Seq2seq).is_some_and(|setting| setting.value.written().is_empty()));
}

#[test]
fn a_length_given_by_hand_is_the_targets() {
    let one = |more: &[(&str, &str)]| {
        let all: Vec<_> = LENGTHS[..3].iter().chain(more).copied().collect();
        said(&[("train.sh", SUMMARIES)], &all)
    };
    let of = |found: &Resolution| {
        let model = found.plan.as_ref().expect("a plan").model();
        (model.encoder.map(|encoder| encoder.seq_length), model.seq_length)
    };
    let written = |found: &Resolution, field| found.setting(field).map(|setting| setting.value.written());
    assert_eq!(of(&one(&[])), (Some(512), 64));
    let longer = one(&[("seq_length", "512")]);
    assert_eq!(of(&longer), (Some(512), 512));
    assert_eq!(written(&longer, Field::TargetLength).as_deref(), Some("512"));
    assert_eq!(of(&one(&[("target_length", "128")])), (Some(512), 128));
    assert!(!longer.diagnostics.iter().any(|said| said.message.contains("set aside")));
    // Both by hand: the narrower name decides, and the other is not dropped without a word.
    let both = one(&[("target_length", "128"), ("seq_length", "512")]);
    assert_eq!(of(&both), (Some(512), 128));
    assert!(both.diagnostics.iter().any(|said| said.message.contains("seq_length 512 is set aside")));
}

#[test]
fn stated_lengths_are_not_asked_for_where_something_else_stops() {
    for (old, new) in [
        ("--bf16", "--bf16 --fsdp 'full_shard auto_wrap'"),
        ("--bf16", "--bf16 --eval_strategy steps"),
        ("google/flan-t5-xl", "facebook/bart-large-cnn"),
        ("google/flan-t5-xl", "acme/t5-of-our-own"),
    ] {
        let found = said(&[("train.sh", &SUMMARIES.replace(old, new))], &[]);
        assert!(found.plan.is_none(), "{new}");
        let asks = |field| found.questions.iter().any(|asked| asked.asks == Asked::Setting(field));
        assert!(!asks(Field::SeqLength) && !asks(Field::SourceLength), "{new}: {:?}", found.questions);
        assert!(!found.diagnostics.iter().any(|said| said.message.contains("(seq_length)")), "{new}");
    }
}

#[test]
fn a_configuration_of_an_encoder_alone_stops() {
    let config = |class: &str| {
        format!(
            r#"{{"architectures":["{class}"],"d_ff":1024,"d_kv":64,"d_model":512,"dropout_rate":0.1,"feed_forward_proj":"gated-gelu",
            "is_encoder_decoder":true,"model_type":"t5","num_decoder_layers":8,"num_heads":6,"num_layers":8,
            "relative_attention_num_buckets":32,"tie_word_embeddings":false,"torch_dtype":"float32","vocab_size":32128}}"#
        )
    };
    let more = [("software", "hf_transformers"), ("micro_batch_size", "8")];
    let all: Vec<_> = LENGTHS.iter().chain(&more).copied().collect();
    for class in ["T5ForConditionalGeneration", "T5WithLMHeadModel", "MT5ForConditionalGeneration"] {
        assert!(said(&[("config.json", &config(class))], &all).plan.is_some(), "{class}");
    }
    for class in ["T5EncoderModel", "T5ForSequenceClassification", "T5Model"] {
        let found = said(&[("config.json", &config(class))], &all);
        assert!(found.plan.is_none(), "{class}");
        assert!(found.not_modelled.iter().any(|item| item.name == "architectures" && item.value == class));
    }
}

/// `examples/pytorch/translation/run_translation.py` requires both languages, which choose columns of the data.
#[test]
fn languages_of_a_translation_change_no_figure() {
    let command = "accelerate launch --num_processes 8 --multi_gpu run_translation.py --model_name_or_path google-t5/t5-large --do_train \
        --source_lang en --target_lang ro --max_source_length 256 --max_target_length 256 --bf16 --per_device_train_batch_size 8 \
        --gradient_accumulation_steps 2 --output_dir out\n";
    let found = said(&[("train.sh", command)], &[("num_nodes", "1"), ("accelerator", "H100-SXM")]);
    assert!(found.not_modelled.is_empty(), "{:?}", found.not_modelled);
    let plan = found.plan.expect("a plan");
    assert_eq!([plan.model().seq_length, plan.model().encoder.expect("an encoder").seq_length], [256, 256]);
}
