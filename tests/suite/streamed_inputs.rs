//! Inputs of recomputed layers on the host under TRL's `activation_offloading`, against recorded runs of its manager; what it is not
//! known with.

use shardscope::bash::Environment;
use shardscope::estimate::kept_by_chunk;
use shardscope::launch::{Request, Resolution, read};
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
    // 36 layers of two sequences of 1,024 tokens, 2,560 wide, in two bytes.
    let input = 2 * 1024 * 2560 * 2;
    assert_eq!(kept("") - kept("activation_offloading=True"), (36 - 2) * input);
    assert_eq!(kept("activation_offloading=False"), kept(""));
}

#[test]
fn what_else_goes_to_the_host_stops_by_name() {
    let stops = |more: &str| {
        let read = trained(more);
        assert!(read.not_modelled.iter().any(|item| item.name == "activation_offloading"), "{more}");
    };
    // Logits go too.
    stops("activation_offloading=True");
    // Everything that a layer keeps does.
    stops("activation_offloading=True, use_liger_kernel=True, gradient_checkpointing=False");
    stops("activation_offloading=True, use_liger_kernel=True, deepspeed=\"ds_z3.json\"");
}
