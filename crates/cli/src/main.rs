//! Shardscope in the terminal. Nothing is sent anywhere: no command opens a connection.

mod catalog;
mod check;
mod input;
mod link;
mod output;
mod report;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use output::print;

/// Whether an LLM training run fits, what it sends over which wires, and how fast it will be: from its launch script.
#[derive(Parser)]
#[command(name = "shardscope", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print every estimate of a run: memory, communication, time, advice.
    Report(report::ReportArguments),
    /// Say in one line whether a run fits; exits with 0 where it does, 1 where not, 2 where there is no plan.
    Check(check::CheckArguments),
    /// Make a link that opens a run in the page, or show what a link carries.
    Link(link::LinkArguments),
    /// List the models that are known by name.
    Models(catalog::ListArguments),
    /// List the accelerators that are known by name.
    Accelerators(catalog::ListArguments),
    /// Print completions for a shell.
    Completions {
        /// bash, elvish, fish, powershell or zsh.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, for `man -l -`.
    #[command(hide = true)]
    Man,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Report(arguments) => report::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Link(arguments) => link::run(&arguments),
        Command::Models(arguments) => catalog::models(&arguments),
        Command::Accelerators(arguments) => catalog::accelerators(&arguments),
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "shardscope", &mut out);
            print(&String::from_utf8_lossy(&out));
            ExitCode::SUCCESS
        }
        Command::Man => {
            let mut out = Vec::new();
            let rendered = clap_mangen::Man::new(Arguments::command()).render(&mut out);
            print(&String::from_utf8_lossy(&out));
            rendered.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
        }
    }
}
