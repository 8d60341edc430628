//! Models that `from_pretrained` puts on several GPUs of one process.

use super::{said, stopped};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

const PROGRAM: &str = "import os, torch\nfrom peft import LoraConfig\nfrom transformers import AutoModelForCausalLM, BitsAndBytesConfig\n\
    from trl import SFTConfig, SFTTrainer\n@BEFORE\n\
    model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B', dtype=torch.bfloat16@LOADS)\n\
    args = SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=4, max_length=1024, bf16=True)\n\
    trainer = SFTTrainer(model=model, args=args, peft_config=LoraConfig(r=16, target_modules='all-linear'))\ntrainer.train()\n";

fn program(before: &str, loads: &str) -> String {
    PROGRAM.replace("@BEFORE", before).replace("@LOADS", loads)
}

fn on(text: &str, gpus: &str) -> Resolution {
    said("train.py", text, &[("world_size", gpus)])
}

/// Layers over the GPUs of one process were answered as so many data-parallel ranks, once their number was given.
#[test]
fn layers_over_the_gpus_of_one_process_are_no_ranks() {
    for map in ["'auto'", "'balanced'", "'sequential'", "{'model.embed_tokens': 0, 'model.layers': 1}"] {
        let text = program("", &format!(", device_map={map}"));
        let one = on(&text, "1");
        assert!(one.plan.is_some(), "{map}: {:?} {:?}", one.not_modelled, one.diagnostics);
        stopped(&on(&text, "4"), &["device_map"]);
        let asked = said("train.py", &text, &[]);
        let gpus = asked.questions.iter().find(|asked| asked.name() == Field::WorldSize.name());
        assert_eq!(gpus.and_then(|asked| asked.proposal.as_deref()), Some("1"), "{map}");
    }
    let several = on(&program("", ""), "4");
    assert!(several.plan.is_some(), "{:?}", several.not_modelled);
}

/// accelerate refuses such a model in several processes.
#[test]
fn several_processes_do_not_start_with_layers_over_gpus() {
    let launched = |map: &str, line: &str| {
        let text = program("", map);
        let source = Source::from_files([("run.sh", line), ("train.py", text.as_str())]);
        read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
    };
    for line in [
        "torchrun --nproc_per_node 4 train.py",
        "accelerate launch --num_processes 4 --mixed_precision bf16 train.py",
    ] {
        stopped(&launched(", device_map='auto'", line), &["device_map"]);
        let own = launched(", device_map={'': PartialState().process_index}", line);
        assert!(!own.not_modelled.iter().any(|item| item.is_called("device_map")), "{line}");
    }
}

/// A map of a process's own GPU, by a variable or a condition on the launch, is that of ranks.
#[test]
fn maps_of_a_process_own_gpu_are_those_of_ranks() {
    let idiom = "device_map = 'auto'\nworld_size = int(os.environ.get('WORLD_SIZE', 1))\nddp = world_size != 1\nif ddp:\n    \
        device_map = {'': int(os.environ.get('LOCAL_RANK') or 0)}\n";
    for (before, loads) in [
        (idiom, ", device_map=device_map"),
        ("local_rank = int(os.environ['LOCAL_RANK'])", ", device_map={'': local_rank}"),
        ("", ", device_map={'': torch.cuda.current_device()}"),
        ("", ", device_map='cuda'"),
        ("", ", device_map=None"),
    ] {
        let read = on(&program(before, loads), "4");
        assert!(read.plan.is_some(), "{loads}: {:?} {:?}", read.not_modelled, read.diagnostics);
    }
}

/// One GPU by its number: transformers' Trainer moves weights of 16 bits to each rank's own; accelerate refuses quantized ones there.
#[test]
fn quantized_weights_on_one_numbered_gpu_are_those_of_one_process() {
    let bits = "bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type='nf4')";
    for map in ["{'': 0}", "0", "'cuda:0'"] {
        let quantized = program(bits, &format!(", quantization_config=bnb, device_map={map}"));
        stopped(&on(&quantized, "2"), &["device_map"]);
        let asked = said("train.py", &quantized, &[]);
        let gpus = asked.questions.iter().find(|asked| asked.name() == Field::WorldSize.name());
        assert_eq!(gpus.and_then(|asked| asked.proposal.as_deref()), Some("1"), "{map}");
        let one = on(&quantized, "1");
        assert!(one.plan.is_some(), "{map}: {:?}", one.not_modelled);
        let whole = on(&program("", &format!(", device_map={map}")), "2");
        assert!(whole.plan.is_some(), "{map}: {:?}", whole.not_modelled);
    }
}
