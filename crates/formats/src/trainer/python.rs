//! Recognized calls of a Python program or notebook: `from_pretrained`, `TrainingArguments`, `LoraConfig` etc., with
//! their keywords' values. Nothing is executed; a value that cannot be computed is asked for or stops the verdict.

use super::super::scalars::{Leaf, Scalars};
use super::dialect::Dialect;
use super::read::{changes, read_scalars};
use super::vocabulary::{self, Meaning};
use crate::releases::Installed;
use crate::{Argument, Effect, NotModelled, Reading};
use calls::{ARGUMENTS, CONFIGS, DPO, GRPO, OBJECTIVES, ORPO, PARSERS, PREFERENCE_TRAINERS, PREFERENCES};
use known::Known;
use literal::call_end;
use names::Names;
use options::{Options, parsed};
use owned::{Owned, is_used};
use prepared::Preparation;
use program::{MOST, Program};
use shardscope_plan::Field;
use stages::Stages;
use std::collections::HashMap;
use versions::Releases;

mod argparse;
mod beside;
mod built;
mod called;
mod calls;
mod cut;
mod flow;
mod hands;
mod known;
mod left;
mod line;
mod literal;
mod names;
mod options;
mod owned;
mod prepared;
mod program;
mod stages;
mod versions;

/// Reads the calls of a program called `file` together with the words of the line that starts it, if there is one; `installed` is
/// what the texts beside it install. `None` if it has no such calls.
pub fn read_started(
    text: &str,
    base: u32,
    file: &str,
    words: &[Argument],
    installed: Installed,
) -> Option<Reading> {
    // OLMo-core has classes with the same names.
    if text.contains("olmo_core") {
        return None;
    }
    let parsed = parsed(text);
    let names = Names::new(text);
    let options = Options::new(text, base, &parsed, &names, words);
    let mut program = Program {
        text,
        base,
        literals: HashMap::new(),
        names,
        leaves: Vec::new(),
        open: Vec::new(),
        computed: None,
        taken: Vec::new(),
        known: Known::new(text, options),
    };
    // Undecided calls are open with a parser of classes or a known line; otherwise they run.
    let decides = !parsed.is_empty() || !words.is_empty();
    let mut seen: Vec<&str> = Vec::new();
    let mut at = 0;
    // A model loaded again after the training, or after unsloth's own call, is for inference.
    let (mut loaded, mut reloaded) = (false, false);
    let mut stages = Stages::default();
    let mut adapters = false;
    // The position at which a checkpoint's adapters are loaded.
    let mut of_checkpoint = None;
    // Adapters under an undecided condition, and the place of a call that checkpoints layers under one.
    let (mut unsure, mut switched) = (false, None);
    let (mut trainers, mut other, mut seq2seq): (Vec<&str>, Option<&str>, Option<bool>) =
        (Vec::new(), None, None);
    let (mut parses, mut has_trainer) = (false, false);
    let mut replaced = None;
    let (mut kept_logits, mut trainers_built): (bool, Vec<(&str, usize)>) = (false, Vec::new());
    let mut preparation = Preparation::default();
    // Number of calls whose conditions were examined; each is a pass over the text.
    let mut looked = 0;
    let owned = Owned::new(text, &|name| {
        CONFIGS.contains(&name)
            || PREFERENCES.contains(&name)
            || name == "Trainer"
            || PREFERENCE_TRAINERS.contains(&name)
    });
    let others = owned::other_adapters(text);
    let mut other_adapter = None;
    let (mut own_trainer, mut own_model) = (None, owned::registers(text));
    let mut releases = Releases::installed(text, installed);
    while let Some((name, open)) = program.next_call(at) {
        at = open + 1;
        let mut last = name.rsplit('.').next().unwrap_or(name);
        if program.is_class(name, open) {
            continue;
        }
        match built::by_variable(text, name, open, &program.known).as_slice() {
            [(only, _)] => last = *only,
            several => trainers_built.extend(several),
        }
        parses |= PARSERS.contains(&last);
        has_trainer |= built::is_trainer(last);
        let mut known = CONFIGS.contains(&last) || PREFERENCES.contains(&last);
        if owned.has(last) && !name.contains('.') {
            own_trainer = own_trainer.or_else(|| built::is_trainer(last).then_some(last));
            continue;
        }
        if matches!(last, "LoraConfig" | "BitsAndBytesConfig") && looked < MOST {
            looked += 1;
            known &= is_used(&program.names, text, open - name.len());
        }
        releases.add(last, || text.get(open..call_end(text, open)).unwrap_or_default());
        let checkpoints = last == "gradient_checkpointing_enable";
        let replaces = last.contains("monkey_patch") || last.starts_with("replace_") && last.contains("attn");
        let mut runs = Some(true);
        let prepares = prepared::is_call(last);
        let adapts = others.contains(&last);
        let builds = built::is_trainer(last);
        if looked < MOST
            && (known || builds || checkpoints || replaces || prepares || adapts || last == "from_pretrained")
        {
            looked += 1;
            runs = program.known.runs(text, open - name.len(), call_end(text, open));
            if runs == Some(false) {
                continue;
            }
        }
        if adapts {
            other_adapter = other_adapter.or(Some(last));
        }
        if checkpoints && runs == Some(true) {
            program.state("gradient_checkpointing", "true");
        } else if checkpoints {
            switched = switched.or(Some(open));
        }
        if prepares {
            let arguments = text.get(open..call_end(text, open)).unwrap_or_default();
            preparation.add(runs, arguments, open, &program.known);
        }
        if replaces {
            replaced = replaced.or(Some(last));
        }
        // Adapters of a checkpoint, or new ones.
        if let Some(other) = of_checkpoint.filter(|_| runs.is_none()) {
            runs = program.known.one_runs(other, open).or(runs);
        }
        let by_file = runs.is_none() && last == "BitsAndBytesConfig" && beside::decides(text, open);
        if runs.is_none() && (decides || by_file) {
            unsure |= matches!(last, "LoraConfig" | "get_peft_model");
            if last == "BitsAndBytesConfig" {
                program.computed.get_or_insert_with(|| last.to_owned());
            }
        }
        let loads = last == "from_pretrained" && !name.contains("okenizer") && !name.contains("rocessor");
        if loads {
            let class = name.rsplit('.').nth(1).unwrap_or_default();
            own_model = own_model.or_else(|| owned.has_model(class).then_some(class));
        }
        // A folder of adapters does not name a model.
        let of_adapters = loads && name.contains("Peft");
        if of_adapters && !stages.has_trained() {
            of_checkpoint = Some(open);
        }
        adapters |= of_adapters && !stages.has_trained();
        let loads = loads && !of_adapters;
        if loads {
            stages.load();
        }
        let again =
            loads && (stages.has_trained() || loaded && seen.iter().any(|seen| seen.starts_with("Fast")));
        loaded |= loads && !stages.has_trained();
        reloaded |= loads;
        if loads && !again {
            other = other.or(calls::loaded(name, &mut seq2seq));
        }
        if builds {
            trainers_built.push((last, open));
            kept_logits |= built::keeps_logits(text.get(open..call_end(text, open)).unwrap_or_default());
        }
        if last == "DPOTrainer" || PREFERENCE_TRAINERS.contains(&last) {
            trainers.push(last);
        }
        if last == "train" && name.contains("rainer") {
            stages.train(trainers.len());
        }
        if (known || loads && !again) && seen.len() < MOST {
            seen.push(name);
            let from = program.leaves.len();
            program.arguments(last, open, loads);
            stages.call(name, from..program.leaves.len());
        }
    }
    let several = stages.last(&mut seen, &mut trainers, &mut program.leaves);
    // A trainer that is given a name loads the model itself; otherwise what is loaded further down the text may come first.
    loaded |= reloaded && !program.leaves.iter().any(|leaf| leaf.path == "model");
    let has = |part: &str| seen.iter().any(|name| name.contains(part));
    let is_called =
        |names: &[&str]| seen.iter().any(|name| names.contains(&name.rsplit('.').next().unwrap_or(name)));
    let configured = is_called(&ARGUMENTS) || is_called(&PREFERENCES);
    // All values of its argument classes are on a line that is not known.
    let by_line = parses && has_trainer && !configured;
    let by_trainer = configured || is_called(&["SFTTrainer"]) || by_line;
    let with_adapters = has("LoraConfig") || has("get_peft_model");
    // A custom loop over a model that is loaded by name: the model is read, the rest asked for.
    let by_hand = loaded && text.contains(".backward(") && (has("CausalLM") || has("ConditionalGeneration"));
    if !(by_trainer || with_adapters || by_hand) {
        return None;
    }
    if with_adapters {
        program.state("use_peft", "true");
    }
    if has("AutoModelForCausalLM") && !has("ImageTextToText") && !has("Vision2Seq") {
        program.state(super::checkpoint::CAUSAL, "true");
    }
    // These run transformers modules that unsloth compiles.
    let compiled = has("FastModel") || has("FastVisionModel");
    let fast = compiled || has("FastLanguageModel");
    if compiled {
        program.state(super::unsloth::COMPILED, "true");
    }
    let told = [super::quantized_peft::told(text), super::unsloth_full::told(text).filter(|_| fast)];
    told.into_iter().flatten().for_each(|(key, value)| program.state(key, value));
    if fast {
        let images = ["image", "Image", "video", "pixel"].iter().any(|word| text.contains(word));
        program.state(super::unsloth::SHOWN, if images { "images" } else { super::unsloth::TEXT });
        if !(with_adapters || adapters || text.contains("get_peft_model") || text.contains("peft_config")) {
            program.state(super::unsloth_full::BARE, "true");
        }
    }
    let objective = OBJECTIVES.iter().find(|(config, trainer, ..)| has(config) || trainers.contains(trainer));
    let objective = objective.filter(|(.., word)| [DPO, GRPO, ORPO].contains(word) || !fast);
    // Policies are often fine-tuned first in the same program; those arguments are not theirs.
    if objective.is_some_and(|(config, ..)| *config != "DPOConfig" && has(config)) {
        stages.without_tuning(&mut program.leaves);
    }
    for (name, key) in super::unsloth_rollouts::VARIABLES.iter().filter(|_| fast) {
        if super::unsloth_rollouts::is_set(text, name) {
            program.state(key, "true");
        }
    }
    if let Some((.., key, word)) = objective {
        program.state(key, word);
    }
    let dialect = calls::dialect(fast, &has, objective.is_some());
    let computed = std::mem::take(&mut program.computed);
    let mut open = std::mem::take(&mut program.open);
    let plain = is_called(&ARGUMENTS[..2]) && !is_called(&ARGUMENTS[2..]) && !is_called(&PREFERENCES);
    if !by_line {
        let stated = |key: &str| {
            program.leaves.iter().any(|leaf| leaf.path == key)
                || open.iter().any(|(field, ..)| field.name() == key)
        };
        program.leaves.extend(versions::defaults(
            dialect,
            plain,
            releases.of_trl(),
            has("LoraConfig"),
            &stated,
        ));
    }
    let long = |leaf: &Leaf| matches!(vocabulary::find(&leaf.path), Some(Meaning::Take(Field::SeqLength)));
    if dialect == Dialect::Transformers && !by_line && !program.leaves.iter().any(long) {
        program.cut();
    }
    let known = std::mem::take(&mut program.known);
    let options = &known.options;
    let taken: Vec<(String, String)> = std::mem::take(&mut program.taken)
        .into_iter()
        .filter_map(|name| Some((name.clone(), options.unless_given(&name)?.to_owned())))
        .collect();
    let mut leaves = std::mem::take(&mut program.leaves);
    let own = if by_line { None } else { line::by_default(text, file, &taken) };
    let asks = words.is_empty() && (by_line || own.is_some());
    if by_line && !asks {
        let wanted = |leaf: &Leaf| {
            let key = leaf.path.as_str();
            // Qwen's program is recognized by `lazy_preprocess`; and TRL truncates samples to its own length.
            let other = key == "lazy_preprocess" || key == "model_max_length" && dialect == Dialect::Trl;
            !other && (vocabulary::find(key).is_some() || changes(leaf))
        };
        for leaf in options.leaves(wanted) {
            // A value in the program's calls takes precedence over its options.
            if !leaves.iter().any(|known| known.path == leaf.path) {
                leaves.push(leaf);
            }
        }
    }
    if by_line {
        // After the line's own settings.
        let stated = |key: &str| leaves.iter().any(|leaf| leaf.path == key);
        leaves.extend(versions::defaults(dialect, plain, releases.of_trl(), false, &stated));
    }
    leaves.extend(releases.leaves(by_line, loaded));
    // Of a program alone: a line names the model elsewhere.
    let by_itself = other.filter(|_| plain && !by_line && dialect == Dialect::Transformers);
    leaves.extend(super::classes::told(by_itself, text, &mut open, &leaves));
    let scalars = Scalars::from_leaves(leaves);
    let mut reading = read_scalars(dialect, &scalars);
    if loaded && dialect == Dialect::Trl {
        let named = scalars.all().iter().find(|leaf| leaf.path == "model_name_or_path");
        versions::in_its_own_format(&mut reading, named.map(|leaf| leaf.value.as_str()));
    }
    if loaded && !dialect.is_unsloth() {
        releases.load(&mut reading);
    }
    // unsloth chooses formats and kernels itself.
    let whole = |field| matches!(field, Field::LoraTargetModules | Field::Packing);
    let open = open.into_iter().filter(|(field, ..)| !dialect.is_unsloth() || whole(*field)).collect();
    left::open(&mut reading, open);
    if let Some(at) = switched.filter(|_| !asks && !dialect.is_unsloth()) {
        left::checkpointing(&mut reading, at, base);
    }
    if !dialect.is_unsloth() && !asks {
        preparation.tell(&mut reading);
    }
    reading.diagnostics.extend(several.as_ref().map(stages::Several::said));
    let has_head = matches!(reading.value(Field::TrainingObjective), Some("reward" | "classify"));
    let evaluates = reading.value(Field::EvaluationBatchSize).is_some();
    let quantized = reading.value(Field::TrainType) == Some("qlora");
    // TRL's trainers are for decoders, however they load one.
    let pair = calls::as_pair(seq2seq.or((dialect == Dialect::Trl).then_some(false)), &reading);
    let mut lack = |item| reading.not_modelled.push(item);
    let named = |name: &str, effect, what: &str| NotModelled::new(name, "", effect, what);
    let by_itself = |what| NotModelled::of_program("", Effect::Memory, what);
    for (name, what) in several.iter().flat_map(stages::Several::unsure) {
        lack(named(name, Effect::Model, what));
    }
    if let Some(class) = other_adapter {
        lack(named(class, Effect::Memory, "adapters other than LoRA"));
    }
    if let Some(class) = own_model {
        lack(named(class, Effect::Model, "custom modules"));
    }
    if let Some(trainer) = own_trainer {
        lack(named(trainer, Effect::Memory, "a custom trainer"));
    } else if by_trainer && !has_trainer && !by_line && (plain || owned.writes_trainer) {
        lack(by_itself("training arguments that this program does not use"));
    }
    if !by_trainer {
        lack(by_itself("a custom training loop: its batch, optimizer and precision"));
    }
    // Values that depend on options are known only with the line.
    if !asks {
        for (name, effect, what) in hands::of_its_own(text, &known, with_adapters) {
            lack(named(name, effect, what));
        }
        if let Some(trainer) = built::either(&trainers_built, &known) {
            lack(named(trainer, Effect::Memory, built::EITHER));
        }
        if let Some(call) = replaced {
            lack(named(call, Effect::Memory, "modules of the model that the program replaces"));
        }
        if let Some(call) = computed {
            lack(named(&call, Effect::Memory, "keywords that the program computes"));
        }
    }
    if kept_logits && evaluates && other.is_none() {
        lack(named("compute_metrics", Effect::Memory, built::KEPT));
    }
    if adapters && !with_adapters {
        lack(named("PeftModel", Effect::Model, "adapters loaded from a checkpoint"));
    } else if !(asks || fast || with_adapters || by_line) && quantized {
        lack(named("quantization_config", Effect::Model, built::WITHOUT_ADAPTERS));
    }
    reading.found.extend(pair);
    let scores = |class: &&str| class.contains("SequenceClassification") && has_head;
    if let Some(class) = other.filter(|class| !scores(class)) {
        lack(named(class, Effect::Model, "a model other than a decoder-only language model"));
    }
    let read =
        |name: &str| objective.is_some_and(|(config, trainer, ..)| name == *config || name == *trainer);
    let by_trainer = trainers
        .iter()
        .filter(|name| **name != "DPOTrainer" && !PREFERENCES.iter().any(|config| has(config)));
    for name in PREFERENCES.iter().filter(|name| has(name)).chain(by_trainer).filter(|name| !read(name)) {
        let what = "reinforcement learning or preference training, and the models that it holds";
        lack(named(name, Effect::Memory, what));
    }
    if asks {
        line::ask(&mut reading, text, file, options.unless_given("model_name_or_path"), own);
    } else if (by_line || !words.is_empty()) && unsure && with_adapters {
        line::ask_for_adapters(&mut reading);
    }
    Some(reading)
}

#[cfg(test)]
mod tests;
