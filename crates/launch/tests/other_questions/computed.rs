//! Keywords that a program computes: asked for where each of their values is a training that is known.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::{Field, Quantization, Residence};

fn asks(resolution: &Resolution, name: &str) -> bool {
    resolution.questions.iter().any(|question| question.name() == name)
}

/// Abridged from Hydaspex/qwen3-financial-sft-unsloth-dpo `scripts/train_sft.py`.
fn under_unsloth(model: &str) -> String {
    format!(
        "from unsloth import FastLanguageModel\nfrom trl import SFTConfig, SFTTrainer\nconfig = load_config('a.yaml')\n\
         model, tokenizer = FastLanguageModel.from_pretrained(model_name='{model}', max_seq_length=1024, load_in_4bit=config.four)\n\
         model = FastLanguageModel.get_peft_model(model, r=8, lora_alpha=8)\n\
         args = SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=4)\n\
         trainer = SFTTrainer(model=model, args=args)\ntrainer.train()\n"
    )
}

#[test]
fn whether_unsloth_loads_four_bits_is_asked() {
    let text = under_unsloth("NousResearch/Meta-Llama-3-8B");
    let first = said("a.py", &text, &[]);
    assert!(first.not_modelled.is_empty() && first.plan.is_none() && asks(&first, "base_quantization"));
    let of = |answer| said("a.py", &text, &[("base_quantization", answer)]);
    let quantization = |resolution: Resolution| {
        let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
        (plan.recipe().tuning.quantization, plan.recipe().tuning.lora.is_some())
    };
    // As if it stood there.
    let stated = |word: &str| said("a.py", &text.replace("config.four", word), &[]).plan;
    assert_eq!(of("nf4").plan, stated("True"));
    assert_eq!(of("none").plan, stated("False"));
    assert_eq!(quantization(of("none")), (Quantization::None, true));
    // In 4 bits unsloth would load another checkpoint of this model.
    stopped(&said("a.py", &under_unsloth("unsloth/Llama-3.2-3B-Instruct"), &[]), &["load_in_4bit"]);
}

const GRPO: &str = "from trl import GRPOConfig, GRPOTrainer\ncfg = load('a.yaml')\n\
    args = GRPOConfig(per_device_train_batch_size=8, gradient_accumulation_steps=2, num_generations=cfg.n, bf16=True,\n\
    max_completion_length=int(cfg['longest']), loss_type=cfg.loss, gradient_checkpointing=True)\n\
    trainer = GRPOTrainer(model='Qwen/Qwen3-8B', reward_funcs=rewards, args=args)\ntrainer.train()\n";

#[test]
fn the_sizes_of_trls_rollouts_are_asked() {
    let first = said("a.py", GRPO, &[]);
    assert!(first.not_modelled.is_empty(), "{:?}", first.not_modelled);
    for name in ["rollout_response", "rollouts_per_prompt", "seq_length"] {
        assert!(asks(&first, name), "{name}: {:?}", first.questions);
    }
    let text =
        GRPO.replace("int(cfg['longest'])", "1024").replace("cfg.n", "4").replace("cfg.loss", "'dapo'");
    let given = [("rollout_response", "1024"), ("rollouts_per_prompt", "4"), ("seq_length", "2048")];
    let world = [("num_nodes", "1"), ("gpus_per_node", "8")];
    let all: Vec<_> = given.iter().chain(&world).copied().collect();
    let some: Vec<_> = given[2..].iter().chain(&world).copied().collect();
    let [answered, stated] = [said("a.py", GRPO, &all), said("a.py", &text, &some)];
    assert!(answered.plan.is_some(), "{:?}", answered.diagnostics);
    assert_eq!(answered.plan, stated.plan);
    // Whether there is a reference beside the policy.
    let compared = GRPO.replace("bf16=True", "bf16=True, beta=cfg.beta");
    assert!(asks(&said("a.py", &compared, &[]), "rl_reference"));
    let of =
        |held| said("a.py", &compared, &[&all[..], &[("rl_reference", held)]].concat()).plan.expect("a plan");
    let rollout = |held| of(held).recipe().rollout.expect("rollouts").reference;
    assert_eq!(rollout("device"), Residence::Device);
    assert_eq!(Some(of("none")), answered.plan);
}

/// JackyJerkyYt/Small-Project-1 `src/train_sft.py`, abridged.
#[test]
fn a_dictionary_with_a_key_under_a_condition_is_known_but_for_that() {
    let text = "from trl import SFTConfig, SFTTrainer\nattn = choose()\nkwargs = {'torch_dtype': torch.bfloat16, 'device_map': 'auto'}\n\
        if attn:\n    kwargs['attn_implementation'] = attn\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B', **kwargs)\n\
        args = SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=4, max_length=1024)\n\
        trainer = SFTTrainer(model=model, args=args)\ntrainer.train()\n";
    let read = said("a.py", text, &[]);
    assert!(read.not_modelled.is_empty() && asks(&read, "attn_implementation"), "{:?}", read.not_modelled);
    assert_eq!(value(&read, Field::ParamsDtype), "bf16");
    // One that nothing is known of may hold anything.
    let open = text.replace("{'torch_dtype': torch.bfloat16, 'device_map': 'auto'}", "build()");
    stopped(&said("a.py", &open, &[]), &["from_pretrained"]);
}
