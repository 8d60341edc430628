//! `shardscope export`: the plan in another framework's words.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use shardscope::export::{
    accelerate_yaml, bridge_command, deepspeed_json, megatron_command, torchtitan_toml,
};

use crate::check::FAILS;
use crate::input::Input;
use crate::output::{NO_PLAN, YELLOW, coloured, print, refuse, tell};

/// `export`.
#[derive(Args)]
pub(crate) struct ExportArguments {
    /// In whose words.
    #[arg(long, value_enum)]
    to: Target,
    /// Print also what says another plan than this one; what it cannot say is named on standard error in any case.
    #[arg(long)]
    partial: bool,
    #[command(flatten)]
    input: Input,
}

#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// A Megatron-LM command.
    Megatron,
    /// A Megatron-Bridge command with its overrides.
    Bridge,
    /// DeepSpeed's JSON, to lie beside the Megatron command.
    Deepspeed,
    /// torchtitan's TOML, with the command that takes it.
    Torchtitan,
    /// accelerate's YAML, with the command of a trainer that says the rest.
    Accelerate,
}

/// Prints the plan; prints nothing and exits with 1 if reading it back would give a different plan.
pub(crate) fn run(arguments: &ExportArguments) -> ExitCode {
    let answer = match arguments.input.answer() {
        Ok(answer) => answer,
        Err(problem) => return refuse(&problem),
    };
    if answer.resolution.plan.is_none() {
        tell(&answer.obstacles_to_caller());
        return ExitCode::from(NO_PLAN);
    }
    let exported = match arguments.to {
        Target::Megatron => megatron_command(&answer.resolution),
        Target::Bridge => bridge_command(&answer.resolution),
        Target::Deepspeed => deepspeed_json(&answer.resolution),
        Target::Torchtitan => torchtitan_toml(&answer.resolution),
        Target::Accelerate => accelerate_yaml(&answer.resolution),
    };
    // Nothing lacking: reading it back gives the same plan.
    if exported.unsaid.is_empty() {
        print(&exported.text);
        return ExitCode::SUCCESS;
    }
    // Reported before the text and on standard error, so that it is visible even if the output is redirected.
    let names: Vec<&str> = exported.unsaid.iter().map(|field| field.name()).collect();
    let cannot = coloured("it cannot say", YELLOW);
    tell(&format!("{cannot}: {}\n", names.join(", ")));
    if arguments.partial {
        print(&exported.text);
        return ExitCode::SUCCESS;
    }
    tell("read back, it would give another plan; --partial prints it anyway\n");
    ExitCode::from(FAILS)
}
