//! Work that needs the text readers, as tasks for a separate program: a page without readers starts sooner, and is
//! never blocked by a long text. Tasks and replies are JSON; settings use their documented names, so that programs of
//! different versions notice each other.

use serde::{Deserialize, Serialize};
use shardscope_export::{Exported, bridge_command, deepspeed_json, megatron_command};
use shardscope_launch::{Reading, Request, read, readings};
use shardscope_plan::Field;

use super::{File, Rewritten, UserInput, patched, rewritten};

/// A task for the program that reads, with its input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadTask {
    input: UserInput,
    work: ReadWork,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum ReadWork {
    Texts,
    Files(Vec<File>),
    Rewritten,
    Patched(Vec<(Field, String)>),
    Commands,
}

/// The result of a [`ReadTask`], by its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ReadReply {
    /// What the texts say.
    Texts(Vec<Reading>),
    /// The input with the given files.
    Input(Box<UserInput>),
    /// The input with the values by hand written into its texts, if there are such values.
    Rewritten(Option<Box<Rewritten>>),
    /// The text of the box with changes written into it, if it has places for all of them.
    Patched(Option<String>),
    /// The plan for Megatron-LM, for NeMo and Megatron-Bridge, and for DeepSpeed.
    Commands(Box<[Exported; 3]>),
}

impl ReadTask {
    /// A task to read the texts of `input`.
    #[must_use]
    pub fn texts(input: &UserInput) -> Self {
        Self::new(input, ReadWork::Texts)
    }

    /// A task to take up files, as [`UserInput::with_files`] does.
    #[must_use]
    pub fn files(input: &UserInput, files: Vec<File>) -> Self {
        Self::new(input, ReadWork::Files(files))
    }

    /// A task to write values given by hand into the texts, as [`rewritten`] does.
    #[must_use]
    pub fn rewritten(input: &UserInput) -> Self {
        Self::new(input, ReadWork::Rewritten)
    }

    /// A task to write changes into the text, as [`patched`] does.
    #[must_use]
    pub fn patched(input: &UserInput, changes: &[(Field, String)]) -> Self {
        Self::new(input, ReadWork::Patched(changes.to_vec()))
    }

    /// A task to write the plan as commands.
    #[must_use]
    pub fn commands(input: &UserInput) -> Self {
        Self::new(input, ReadWork::Commands)
    }

    fn new(input: &UserInput, work: ReadWork) -> Self {
        Self { input: input.clone(), work }
    }

    /// The input whose texts are to be read.
    #[must_use]
    pub fn input(&self) -> &UserInput {
        &self.input
    }

    /// Whether it only reads texts: the latest such task makes all earlier ones pointless.
    #[must_use]
    pub fn is_texts(&self) -> bool {
        matches!(self.work, ReadWork::Texts)
    }

    /// As JSON, for [`reply`].
    #[must_use]
    pub fn written(&self) -> String {
        // Writing to memory cannot fail, and all keys are text.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Runs the task here. Only a program with readers may do so: without them every text would come out as unread.
    #[must_use]
    pub fn done(self) -> ReadReply {
        let input = &self.input;
        match self.work {
            ReadWork::Texts => ReadReply::Texts(readings(&input.source(), &input.shell_environment())),
            ReadWork::Files(files) => ReadReply::Input(Box::new(input.with_files(files))),
            ReadWork::Rewritten => ReadReply::Rewritten(rewritten(input).map(Box::new)),
            ReadWork::Patched(changes) => ReadReply::Patched(patched(input, &changes)),
            ReadWork::Commands => {
                let (source, environment) = (input.source(), input.shell_environment());
                let request =
                    Request { source: &source, environment: &environment, overrides: &input.settings };
                // With the settings by hand: exports are of the plan as shown, not of the script alone.
                let plan = read(&request);
                ReadReply::Commands(Box::new([
                    megatron_command(&plan),
                    bridge_command(&plan),
                    deepspeed_json(&plan),
                ]))
            }
        }
    }
}

impl ReadReply {
    /// Whether it answers a task for which [`ReadTask::is_texts`] holds.
    #[must_use]
    pub fn is_texts(&self) -> bool {
        matches!(self, Self::Texts(_))
    }

    /// Parses what [`reply`] wrote; `None` if another version wrote it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Runs a task written by [`ReadTask::written`]; `None` if it is from another version.
#[must_use]
pub fn reply(task: &str) -> Option<String> {
    let task: ReadTask = serde_json::from_str(task).ok()?;
    serde_json::to_string(&task.done()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EXAMPLE, State};

    /// The reply to `task`, there and back as text.
    fn replied(task: &ReadTask) -> ReadReply {
        let text = reply(&task.written()).expect("a task");
        ReadReply::read(&text).expect("a reply")
    }

    #[test]
    fn readings_come_back_as_they_were() {
        let texts = [
            EXAMPLE,
            "accelerate launch --num_processes 8 train.py --model_name_or_path meta-llama/Llama-3.1-8B --bf16 true",
            "base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nmicro_batch_size: 1\nadapter: lora\n",
            "torchrun --nnodes $NODES pretrain_gpt.py --num-layers 2 --use-tp-pp-dp-mapping --no-such-flag 3",
            "a letter, not a script",
        ];
        for text in texts {
            let input = UserInput::from_text(text);
            let read = readings(&input.source(), &input.shell_environment());
            assert_eq!(replied(&ReadTask::texts(&input)), ReadReply::Texts(read), "{text}");
        }
    }

    #[test]
    fn what_needs_readers_is_done_elsewhere_as_here() {
        let files = vec![File { name: "run.sh".into(), text: "torchrun pretrain_gpt.py".into() }];
        let input = UserInput::from_text(EXAMPLE);
        let taken = ReadReply::Input(Box::new(input.with_files(files.clone())));
        assert_eq!(replied(&ReadTask::files(&input, files)), taken);
        let mut changed = input.clone();
        changed.settings = vec![("tensor_model_parallel_size".into(), "4".into())];
        let lines = rewritten(&changed).expect("a change");
        assert_eq!(lines.lines.len(), 1);
        assert_eq!(replied(&ReadTask::rewritten(&changed)), ReadReply::Rewritten(Some(Box::new(lines))));
        let change = vec![(Field::TensorModelParallelSize, "4".to_owned())];
        let text = patched(&input, &change);
        assert!(text.as_ref().is_some_and(|text| text != EXAMPLE));
        assert_eq!(replied(&ReadTask::patched(&input, &change)), ReadReply::Patched(text));
        let ReadReply::Commands(commands) = replied(&ReadTask::commands(&input)) else {
            panic!("no commands")
        };
        let state = State::new(input);
        assert_eq!(commands[0], megatron_command(&state.answer.resolution));
        assert_eq!(commands[2], deepspeed_json(&state.answer.resolution));
    }

    #[test]
    fn what_is_no_task_is_none() {
        assert_eq!(reply(""), None);
        assert_eq!(reply(r#"{"input":"{}","work":"Texts"}"#), None);
        assert_eq!(ReadReply::read(r#"{"Texts":[{"found":[{"field":"no_such_setting"}]}]}"#), None);
    }
}
