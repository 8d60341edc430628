//! Losses over pairs of samples without a reference model.

use super::{said, stopped, value};
use shardscope_plan::Field;

/// huggingface/alignment-handbook `recipes/zephyr-141b-A35b/orpo/config_full.yaml`, axolotl
/// `examples/mistral/orpo/mistral-qlora-orpo.yml` and TRL's `examples/scripts/cpo.py`, shortened: no reference, and the
/// cross entropy of chosen samples.
#[test]
fn odds_and_contrasts_of_pairs_are_read() {
    let handbook = "model_name_or_path: mistralai/Mistral-7B-v0.1\ntorch_dtype: bfloat16\nbf16: true\nbeta: 0.05\nmax_length: 2048\n\
                    max_prompt_length: 1792\nper_device_train_batch_size: 2\ngradient_checkpointing: true\noutput_dir: data/zephyr-orpo\n";
    let axolotl = "base_model: mistralai/Mistral-7B-v0.1\nrl: orpo\norpo_alpha: 0.1\nsequence_len: 2048\nmicro_batch_size: 2\n\
                   adapter: lora\nlora_r: 8\nlora_dropout: 0.05\nlora_target_linear: true\nbf16: true\noptimizer: adamw_torch\n";
    let cpo = "from trl import CPOConfig, CPOTrainer\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\n\
               args = CPOConfig(max_length=1024, per_device_train_batch_size=2)\ntrainer = CPOTrainer(model=model, args=args)\n";
    for (name, text, word) in
        [("a.yaml", handbook, "orpo"), ("b.yaml", axolotl, "orpo"), ("c.py", cpo, "cpo")]
    {
        let read = said(name, text, &[("zero_stage", "0"), ("world_size", "8")]);
        assert!(read.not_modelled.is_empty(), "{name}: {:?}", read.not_modelled);
        assert!(read.plan.is_some(), "{name}: {:?}", read.diagnostics);
        let shown = [Field::TrainingObjective, Field::PreferenceLogits, Field::ReferenceModel];
        assert_eq!(shown.map(|field| value(&read, field)), ["dpo", word, "none"], "{name}");
    }
    // axolotl's SimPO is that of CPO's trainer, whose cross-entropy weight is 1 unless stated; it was formerly read as
    // 0.
    for (more, word) in [("", "cpo_simpo"), ("cpo_alpha: 0.0\n", "simpo")] {
        let text =
            axolotl.replace("rl: orpo\norpo_alpha: 0.1\n", &format!("rl: simpo\nsimpo_gamma: 0.5\n{more}"));
        let read = said("b.yaml", &text, &[("zero_stage", "0"), ("world_size", "8")]);
        assert!(read.plan.is_some() && read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        let shown = [Field::PreferenceLogits, Field::ReferenceModel];
        assert_eq!(shown.map(|field| value(&read, field)), [word, "none"]);
    }
    // Log-probabilities are computed by a kernel if the text does not indicate an older release: the trainers were
    // previously in TRL's own module, axolotl pins a release, and the newest one rejects the handbook's
    // `max_prompt_length`.
    let loss = |name: &str, text: &str| value(&said(name, text, &[]), Field::LossKind);
    let moved = cpo.replace("from trl import", "from trl.experimental.cpo import");
    assert_eq!(loss("c.py", &moved), "token_kernel");
    assert_eq!(loss("a.yaml", &handbook.replace("max_prompt_length: 1792\n", "")), "token_kernel");
    assert_eq!(loss("c.py", &format!("# pip install trl==1.13.0\n{moved}")), "");
    assert_eq!([loss("a.yaml", handbook), loss("b.yaml", axolotl), loss("c.py", cpo)], ["", "", ""]);
    // Adapters' dropout is off, as in every preference trainer.
    assert_eq!(value(&said("b.yaml", axolotl, &[]), Field::LoraDropout), "0");
    let with = |more: &str| {
        let text =
            cpo.replace("per_device_train_batch_size=2", &format!("per_device_train_batch_size=2{more}"));
        said("c.py", &text, &[("zero_stage", "0"), ("world_size", "8")])
    };
    for (more, name) in [(", loss_type='hinge'", "loss_type"), (", cpo_alpha=0.0", "cpo_alpha")] {
        stopped(&with(more), &[name]);
    }
    // SimPO of CPO's trainer: means of log-probabilities, mostly without the cross entropy.
    for (more, word) in [
        (", loss_type='simpo'", "cpo_simpo"),
        (", loss_type='simpo', cpo_alpha=0.0, simpo_gamma=0.5", "simpo"),
    ] {
        let read = with(more);
        assert!(read.plan.is_some() && read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        assert_eq!(value(&read, Field::PreferenceLogits), word);
        assert_ne!(value(&read, Field::LossKind), "fused_tiles", "its trainer has no fused output layer");
    }
    // ms-swift's trainers run the model first and pass its output to TRL's functions; its SimPO is a CPO.
    let swift = |kind: &str, more: &str| {
        let text = format!(
            "swift rlhf --rlhf_type {kind} --model Qwen/Qwen3-0.6B --max_length 1024 --tuner_type lora --target_modules all-linear{more}\n"
        );
        said("", &text, &[("zero_stage", "0"), ("world_size", "1")])
    };
    for (kind, word) in [("orpo", "orpo"), ("cpo", "cpo"), ("simpo", "cpo_simpo")] {
        let read = swift(kind, "");
        assert!(read.plan.is_some() && read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        let shown = [Field::TrainingObjective, Field::PreferenceLogits, Field::ReferenceModel];
        assert_eq!(shown.map(|field| value(&read, field)), ["dpo", word, "none"], "{kind}");
    }
    assert_eq!(value(&swift("simpo", " --cpo_alpha 0"), Field::PreferenceLogits), "");
    stopped(&swift("cpo", " --loss_type hinge"), &["loss_type"]);
    stopped(&swift("orpo", " --padding_free true"), &["padding_free"]);
}
