//! Inputs of recomputed layers offloaded to the host by TRL's `activation_offloading`, compared with recorded runs of
//! its manager; and unsupported combinations.

use shardscope::bash::Environment;
use shardscope::estimate::{kept_by_chunk, memory, sent_to_host};
use shardscope::launch::{Request, Resolution, read};
use shardscope::plan::Plan;
use shardscope::source::Source;

const RECORDED: &str = include_str!("../data/activations/trl_streamed_inputs.tsv");

fn trained(more: &str) -> Resolution {
    let text = format!(
        "from trl import SFTTrainer, SFTConfig\nfrom peft import LoraConfig\n\
         model = AutoModelForCausalLM.from_pretrained(\"Qwen/Qwen3-4B\", dtype=torch.bfloat16)\n\
         peft_config = LoraConfig(r=8, lora_alpha=8, target_modules=\"all-linear\")\n\
         args = SFTConfig(per_device_train_batch_size=2, max_length=1024, bf16=True, {more})\n\
         trainer = SFTTrainer(model=model, args=args, train_dataset=d, peft_config=peft_config)\n"
    );
    let set = [("world_size", "1"), ("accelerator", "A100-SXM-80GB")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let source = Source::from_files([("tune.py", text.as_str())]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

#[test]
fn two_inputs_are_on_the_device_at_once() {
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [_, _, _, _, one, most, _] = cells.as_slice() else { panic!("{line}") };
        assert_eq!(most.parse::<u64>().expect("bytes"), 2 * one.parse::<u64>().expect("bytes"), "{line}");
    }
    let kept = |more: &str| {
        let read = trained(&format!("use_liger_kernel=True, {more}"));
        assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
        kept_by_chunk(&plan, &plan.layout().stages.stages[0].chunks[0]).get()
    };
    // 36 layers with two sequences of 1,024 tokens, 2,560 wide, in two bytes.
    let input = 2 * 1024 * 2560 * 2;
    assert_eq!(kept("") - kept("activation_offloading=True"), (36 - 2) * input);
    assert_eq!(kept("activation_offloading=False"), kept(""));
}

/// 36 layers with eight sequences of 1,024 tokens, 2,560 wide, in two bytes, each of which is brought back when its
/// layer is recomputed.
#[test]
fn llama_factorys_checkpoints_leave_no_input_on_the_device() {
    let recorded = include_str!("../data/activations/llamafactory_inputs.tsv");
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [_, _, _, _, begins, most] = cells.as_slice() else { panic!("{line}") };
        assert_eq!([*begins, *most], ["0", "1"], "{line}");
    }
    let trained = |more: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\ndo_train: true\nfinetuning_type: lora\nlora_target: all\n\
             cutoff_len: 1024\nflash_attn: fa2\nenable_liger_kernel: true\nper_device_train_batch_size: 8\n\
             gradient_accumulation_steps: 1\nbf16: true\n{more}"
        );
        let set = [("world_size", "1"), ("accelerator", "A100-SXM-80GB")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let source = Source::from_files([("sft.yaml", text.as_str())]);
        let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &set });
        assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
    };
    let [stays, goes] = ["", "use_unsloth_gc: true\n"].map(trained);
    let input = 8 * 1024 * 2560 * 2;
    let kept = |plan: &Plan| kept_by_chunk(plan, &plan.layout().stages.stages[0].chunks[0]).get();
    assert_eq!(kept(&stays) - kept(&goes), 36 * input);
    assert_eq!([sent_to_host(&stays).get(), sent_to_host(&goes).get()], [0, 36 * input]);
    // The peak is within the last layer's backward if all inputs are there, otherwise within the first one's, with the
    // gradients of all later layers: adapters of rank 8 on 57,344 inputs and outputs, in fp32.
    let gradients = 8 * 57_344 * 4;
    let fullest = |plan: &Plan| {
        let found = memory(plan);
        assert_eq!(found.ranks[0].breakdown.value(), found.ranks[0].totals.peak_reserved);
        (found.ranks[0].totals.peak_allocated.get(), found.ranks[0].at)
    };
    let [before, after] = [&stays, &goes].map(fullest);
    assert_eq!(before.1, after.1);
    assert_eq!(before.0 - after.0, 35 * (input - gradients));
    // Without recomputation there is nothing to offload.
    let whole = "disable_gradient_checkpointing: true\n";
    let [stays, goes] = [whole, &format!("{whole}use_unsloth_gc: true\n")].map(trained);
    assert_eq!(kept(&stays), kept(&goes));
}

#[test]
fn what_else_goes_to_the_host_stops_by_name() {
    let stops = |more: &str| {
        let read = trained(more);
        assert!(read.not_modelled.iter().any(|item| item.name == "activation_offloading"), "{more}");
    };
    // Logits are offloaded too.
    stops("activation_offloading=True");
    // Everything that a layer keeps is offloaded.
    stops("activation_offloading=True, use_liger_kernel=True, gradient_checkpointing=False");
    stops("activation_offloading=True, use_liger_kernel=True, deepspeed=\"ds_z3.json\"");
}
