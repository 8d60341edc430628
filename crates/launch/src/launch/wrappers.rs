//! Launch scripts of frameworks that a text calls without containing them: torchtitan's `run_train.sh`, which takes
//! what it starts from variables (`MODULE=llama3 CONFIG=llama3_70b NGPU=8 ./run_train.sh`; before 2026
//! `CONFIG_FILE=...toml`).

use shardscope_bash::{Command, Script, Value, Word, base_name};
use shardscope_source::Source;

/// torchtitan's script, at the root of its repository.
const SCRIPT: &str = "run_train.sh";
/// Number of GPUs that it uses if `NGPU` is not set.
const GPUS: &str = "8";
/// Its variables, and the options of `torchtitan.train` that they become.
const OPTIONS: [(&str, &str); 3] =
    [("MODULE", "--module"), ("CONFIG", "--config"), ("CONFIG_FILE", "--job.config_file")];

/// Replaces the call of such a script by the command that it runs.
pub(super) fn unfold(script: &mut Script, source: &Source) {
    if source.parts().iter().any(|part| base_name(&part.name) == SCRIPT) {
        // The script is among the texts and is read itself.
        return;
    }
    let variables = &script.variables;
    for command in &mut script.commands {
        let Some(at) = called(command) else { continue };
        let variable = |name: &str| {
            let own = command.environment.iter().rev().find(|(known, _)| known == name);
            let own = own.map(|(_, word)| word.value.clone());
            own.or_else(|| variables.iter().find(|known| known.name == name)?.values.last().cloned())
        };
        let word = |value: Value| Word { value, span: command.span };
        let said = |text: &str| word(Value::computed(text, command.span));
        let options: Vec<Word> = OPTIONS
            .iter()
            .filter_map(|(name, option)| Some([said(option), word(variable(name)?)]))
            .flatten()
            .collect();
        if options.is_empty() {
            continue;
        }
        let gpus = variable("NGPU").unwrap_or_else(|| Value::computed(GPUS, command.span));
        let mut words = vec![said("torchrun"), said("--nproc_per_node"), word(gpus)];
        words.extend([said("-m"), said("torchtitan.train")]);
        words.extend(options);
        words.extend(command.words.get(at + 1..).unwrap_or(&[]).iter().cloned());
        command.words = words;
    }
}

/// The index at which a command names the script: as its program, or as the argument of a shell.
fn called(command: &Command) -> Option<usize> {
    let shell = |word: &Word| matches!(base_name(word.text()), "bash" | "sh");
    let at = usize::from(command.words.first().is_some_and(shell));
    command.words.get(at).filter(|word| base_name(word.text()) == SCRIPT).map(|_| at)
}
