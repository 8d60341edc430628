//! Launch files of encoder-decoders: T5 and its kin, with transformers' own programs and with programs that load one.

use shardscope_bash::Environment;
use shardscope_launch::{Asked, Request, Resolution, read};
use shardscope_plan::{AttentionKernel, BaseTraining, Embeddings, Field, LossKind, Plan};
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
    stops(SUMMARIES, &[("software", "megatron_core_te")], "an encoder-decoder");
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
    ];
    let plan = planned(&[("config.json", config)], &more);
    let model = plan.model();
    assert_eq!(
        [model.hidden_size, model.num_attention_heads, model.kv_channels, model.ffn_hidden_size],
        [512, 6, 64, 1024]
    );
    assert_eq!(model.encoder.map(|encoder| encoder.layers), Some(8));
}
