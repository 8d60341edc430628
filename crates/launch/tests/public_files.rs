//! The outcomes of public launch files, as listed in the guide. The files belong to others and are not stored here: the
//! table names repository, path and commit of each, and `cargo xtask public-files` fetches them and checks every row.

use std::collections::BTreeMap;
use std::path::Path;

mod outcome;

const FILES: &str = include_str!("data/public_files.tsv");
const GUIDE: &str = include_str!("../../../pages/src/guide/outcomes.tsv");
/// Seeded draws without any selection, with the number of the draw in each row: the readers were improved on the files
/// of the first draw; the second was read after that, and only its misread files led to changes. There are two third
/// draws. One is of six files each from 25 repositories for reinforcement learning and pre-training, by Python's
/// `random.seed(20261124)` and `random.sample` over the sorted launch files. The other is of fine-tuning: from ten
/// repositories not read before, the scripts, YAML, JSON and notebooks that contain a sign of a training
/// (`per_device_train_batch_size`, `micro_batch_size`, `gradient_accumulation_steps`, `zero_optimization`,
/// `distributed_type`, `TrainingArguments`, `SFTTrainer`, `--deepspeed`, `accelerate launch`, `torchrun`), the first
/// 100 of 151 by SHA-256 of `fine-tuning-3:` and their address; again only misread files led to changes. The fourth is
/// of fine-tuning: from 51 repositories, 39 of them not read before, the scripts, YAML, JSON, notebooks and Python
/// programs with such a sign, up to nine of each by SHA-256 of `fine-4:` and `fine-5:` (without JSON and without
/// programs that parse their arguments) and their address. The eighth is of fine-tuning as well: from repositories that
/// contain `finetune_lora.py`, `train_dpo.py`, `train_grpo.py`, `run_sft.sh`, `scripts/finetune.sh`,
/// `scripts/train_dpo.sh`, `scripts/train_lora.py`, `sft.ipynb`, `finetune.ipynb`, `train_reward_model.py` or
/// `src/train_sft.py`, the 5th, 17th, 29th and 41st of each list, and all of the short lists of `axolotl.yml`,
/// `axolotl_config.yaml`, `qwen_lora_sft.yaml`, `train_swift.sh` and `finetune_vlm.py`; from each up to six files with
/// such a sign by SHA-256 of `eighth:` and their address.
/// The ninth is of pre-training and reinforcement learning: from 48 repositories not read before, the scripts, YAML and
/// TOML with a sign of a training that no framework's own repository has at the same path, excluding evaluations, data
/// and images, up to five of each by SHA-256 of `ninth:` and their address. The tenth is of both: from 30 repositories
/// that fine-tune (from the lists of `train_sft.sh`, `scripts/sft.sh`, `examples/train_lora/llama3_lora_sft.yaml`,
/// `configs/sft.yaml`, `ds_config_zero3.json`, `finetune.sh`, `src/train_grpo.py`, `train.slurm` and names with qlora,
/// torchtune, axolotl and finetun) and 26 for pre-training or reinforcement learning (from those of `pretrain_gpt.py`,
/// `verl/trainer/main_ppo.py`, `openrlhf/cli/train_ppo_ray.py`, `train_async.py`, `torchtitan/train.py` and names with
/// nanotron), picked by their names, the first three of each by SHA-256 of `tenth:` and their address.
/// The eleventh is of both as well: from 41 repositories that fine-tune (from the lists of `train_sft.py`,
/// `train_lora.sh`, `configs/zero3.yaml`, `examples/train_lora/llama3_lora_dpo.yaml`, `scripts/dpo.sh`,
/// `recipes/accelerate_configs/zero3.yaml`, `qlora.yml`, `ds_config_zero2.json`, `axolotl/config.yml` and names with
/// qlora and ms-swift), 13 for reinforcement learning (from those of `verl/workers/fsdp_workers.py`,
/// `scripts/train_grpo.sh`, `slime/backends/megatron_utils/model.py` and `openrlhf/cli/train_ppo.py`) and 15 for
/// pre-training (from those of `megatron/training/arguments.py`, `megatron/arguments.py` and names with torchtitan,
/// llm-foundry and maxtext), the first three of each by SHA-256 of `eleventh:` and their address.
/// The twelfth has two parts. One is of 35 repositories not read before: from the lists of `scripts/train_sft.sh`,
/// `run_grpo.sh`, `finetune_lora.sh`, `scripts/run_dpo.sh`, `configs/qwen_lora.yaml`, `train_unsloth.py`,
/// `axolotl.yaml`, `swift_sft.sh`, `scripts/run_verl.sh`, `scripts/train_qlora.sh`, `run_openrlhf.sh`,
/// `pretrain_llama.sh` and `scripts/pretrain_llama.sh`, chosen by their position in the list before any was read, that
/// file if it has a sign of a training and at most 5,000 characters; from eight repositories that were available in
/// full, up to eight files with such a sign by SHA-256 of `twelfth:` and their address. The other is of 109
/// repositories of which other files were read before: the first in that order that no framework's own repository has.
/// The thirteenth is of 39 repositories not read before, picked by their names from the lists of
/// `scripts/finetune_lora.sh`, `scripts/run_grpo.sh`, `configs/lora.yaml`, `train_sft.sh`, `scripts/run_sft.sh`,
/// `axolotl_config.yml`, `train_lora.yaml`, `scripts/train_ppo.sh`, `pretrain_qwen.sh`, `notebooks/finetune.ipynb` and
/// `examples/pretrain_gpt_distributed.sh` before any was read: from each up to two files with such a sign that no
/// framework's own repository has, of at most 60,000 bytes, by SHA-256 of `thirteenth:` and their address.
/// The fourteenth is of 44 repositories not read before, out of 58 that were listed as popular and recently active
/// before any was read, about half of which fine-tune: from each up to two files by SHA-256 of `fourteenth:` and their
/// address, chosen like those of the thirteenth, with notebooks up to 400,000 bytes and no Python file that defines a
/// trainer.
/// The fifteenth is of pre-training and reinforcement learning: from 63 repositories not read before, picked by name
/// before any was read, up to two scripts, YAML, TOML and Python configurations each (two of a folder at most), by
/// Python's `random.Random(11).shuffle` over those with a sign of a training that neither a framework's own repository
/// nor another of these has; 15 of them were added by name or by `random.Random(7).choice` where that left a repository
/// with none or one.
/// The sixteenth is of 76 repositories that fine-tune and were not read before, listed by their names or found by a
/// search for command lines of ms-swift, LLaMA-Factory, torchtune, unsloth, TRL, OpenRLHF and verl before any was read:
/// by Python's `random.seed(20261127)` at least one and at most four of each among the scripts, YAML, notebooks and
/// programs with such a sign; what trains nothing (evaluations, data, modules of a library) was replaced by others of
/// the same, by `random.seed(15)`.
/// The seventeenth is of 75 repositories not read before, picked by name before any was read, from the lists of
/// `configs/sft_config.yaml`, `scripts/train_dpo.py`, `configs/deepspeed_zero3.json`, `scripts/finetune_qlora.sh`,
/// `unsloth_finetune.ipynb`, `finetune_llama3.ipynb`, `scripts/train_verl.sh`, `scripts/run_verl_grpo.sh`,
/// `nemo_rl/algorithms/grpo.py`, `slime/ray/rollout.py`, `train_fsdp.py` and names with axolotl, llama-factory, ms-swift,
/// unsloth, megatron, openrlhf, deepspeed, torchtitan and maxtext: by `random.seed(20261128)` at least one and at most three
/// of each among the scripts, YAML, TOML, JSON, notebooks and programs with a sign of a training that no framework's own
/// repository has at the same path, half of them of repositories that fine-tune and a sixth for reinforcement learning; what
/// trains nothing, and files of DeepSpeed but four, were replaced by others of the same mix, by `random.seed(17)`, and seven
/// notebooks and programs under unsloth were added by name.
/// The eighteenth is of 55 repositories not read before, picked by their names before any was read, from the lists of names with
/// finetun, fine-tun, qlora, LLaVA, llama-factory, ms-swift, torchtune, grpo, rlhf, -R1, nemo-rl, prime-rl, megatron,
/// torchtitan, llm-foundry, maxtext, nanotron and pretrain, and from searches for command lines of ms-swift and accelerate:
/// chosen like the seventeenth's by `random.seed(20261218)`, half of repositories that fine-tune, a quarter each for
/// reinforcement learning and pre-training; what trains nothing, and copies of a framework's example in several forks, were
/// replaced by `random.seed(18)`.
/// The nineteenth is of 55 repositories not read before, picked by their names before any was read, from the lists of names with
/// finetun, fine-tun, lora, unsloth, llama-factory, ms-swift, torchtune, llm-sft, llm-train, dpo, grpo, verl, openrlhf, slime,
/// nemo-rl, mindspeed, search-r1, megatron, torchtitan, pretrain, sagemaker, hyperpod, azureml, habana, rocm and primus: by
/// `random.seed(20261128)` at least one and at most three of each, by the sign of the seventeenth's, without paths that name images,
/// encoders, conversion, installation or serving, and without examples of a framework that its forks only touch; half of
/// repositories that fine-tune, a quarter each for reinforcement learning and pre-training.
/// The twentieth is of 74 repositories not read before, picked by their names before any was read, from the lists of names with
/// sft, finetune, fine-tun, peft, open-instruct, alignment-handbook, LLaVA, axolotl, unsloth, llama-factory, ms-swift, torchtune,
/// post-train, rlhf, DeepSpeed, mistral, grpo, verl, openrlhf, areal, slime, nemo-rl, -R1, megatron, nanotron, torchtitan, maxtext,
/// pretrain, FSDP, primus and NeMo: chosen like the nineteenth's by `random.seed(20261130)`, at most four of each, without
/// summaries, benchmarks and defaults of trainers; six of pre-training by `random.seed(20)` over the lists of five that are not
/// available in full. Half of repositories that fine-tune, a quarter each for reinforcement learning and pre-training.
/// The twenty-third is of 60 repositories not read before, from the lists of names with finetun, fine-tun, sft, qwen-lora, qlora,
/// LLaVA-, llama-factory, axolotl, unsloth, ms-swift, post-train, grpo, verl, openrlhf, nemo-rl, slime, -rlvr, megatron, torchtitan,
/// nanotron, litgpt and pretrain: 47 that are available in full, picked by their names or by `random.seed(20261123)` before any was
/// read, at most two files of each (three for pre-training) by `random.seed(20261129)` and `random.sample` over the scripts, YAML,
/// TOML, JSON, notebooks and programs with a sign of a training that no framework's own repository has, at the same path or with
/// the same contents; and one or two short files each of 13 that are not, chosen by their paths. Half of repositories that
/// fine-tune, a quarter each for reinforcement learning and pre-training.
const DRAWN: &str = include_str!("data/drawn_files.tsv");
const DRAWN_GUIDE: &str = include_str!("../../../pages/src/guide/drawn.tsv");
const OUTCOMES: [&str; 5] = ["full", "asked", "stopped", "helped", "no way"];

/// Format, repository, path, commit and outcome of each file.
fn rows(list: &'static str) -> impl Iterator<Item = [&'static str; 5]> {
    list.lines().filter_map(|line| line.split('\t').take(5).collect::<Vec<_>>().try_into().ok())
}

#[test]
fn the_guides_table_counts_these_files() {
    assert_eq!(rows(FILES).count(), FILES.lines().count());
    let named = rows(FILES).flat_map(|row| [(row[0], row), ("all", row)]);
    counted(named, GUIDE);
}

#[test]
fn the_guides_table_counts_the_drawn_files() {
    assert_eq!(rows(DRAWN).count(), DRAWN.lines().count());
    let draws = DRAWN.lines().map(|line| line.rsplit('\t').next().expect("a draw"));
    counted(draws.zip(rows(DRAWN)), DRAWN_GUIDE);
}

fn counted(rows: impl Iterator<Item = (&'static str, [&'static str; 5])>, guide: &str) {
    let mut counts: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for (row, [_, _, path, commit, outcome]) in rows {
        let at = OUTCOMES.iter().position(|known| *known == outcome);
        let at = at.unwrap_or_else(|| panic!("{path}: {outcome} is no outcome"));
        assert_eq!(commit.len(), 40, "{path}");
        counts.entry(row).or_default()[at] += 1;
    }
    let mut stated = 0;
    for line in guide.lines() {
        let mut cells = line.split('\t');
        let format = cells.next().unwrap_or_default();
        let numbers: Vec<usize> = cells.filter_map(|cell| cell.parse().ok()).collect();
        let counted = counts.get(format).unwrap_or_else(|| panic!("{format} is not among the files"));
        assert_eq!(numbers[0], counted.iter().sum::<usize>(), "{format}");
        assert_eq!(&numbers[1..], counted, "{format}");
        stated += 1;
    }
    assert_eq!(stated, counts.len());
}

/// With `SHARDSCOPE_PUBLIC_FILES` set to the folder to which `cargo xtask public-files` fetches, every row is read
/// again.
#[test]
fn files_at_hand_come_to_what_the_table_says() {
    let Ok(root) = std::env::var("SHARDSCOPE_PUBLIC_FILES") else { return };
    let (mut read, mut wrong) = (0, Vec::new());
    for [_, repository, path, _, stated] in rows(FILES).chain(rows(DRAWN)) {
        let Some(now) = outcome::of_public(Path::new(&root), repository, path) else { continue };
        read += 1;
        if now != stated {
            wrong.push(format!("{repository}/{path}: {stated} in the table, {now} now"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read > 0, "no file of the table is in {root}");
}
