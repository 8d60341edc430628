//! `shardscope link`: links of the page, made and opened.

use std::process::ExitCode;

use clap::Args;
use shardscope::launch::minimal_settings;
use shardscope::link::{Pasted, Shared, encode};

use crate::beside::{Places, completed};
use crate::input;
use crate::output::{CYAN, coloured, harmless, print, refuse, tell};

/// `link`.
#[derive(Args)]
pub(crate) struct LinkArguments {
    #[command(flatten)]
    input: input::Input,
    /// Address of the page that the link begins with.
    #[arg(long, value_name = "URL", default_value = "")]
    page: String,
    /// Carry the settings of the plan without any text: shorter, and nothing of the script is given away.
    #[arg(long = "settings", conflicts_with = "open")]
    settings_alone: bool,
    /// Show what the run carries instead: settings, answers and texts.
    #[arg(long)]
    open: bool,
}

/// Prints the link that carries the input, or what the input carries.
pub(crate) fn run(arguments: &LinkArguments) -> ExitCode {
    match arguments.input.read() {
        Ok(pasted) if arguments.open => print(&carried(&pasted)),
        Ok(mut pasted) => {
            // Whoever opens the link has none of the files next to the script.
            let (answer, beside) = completed(&mut pasted, &Places::new(&arguments.input.files));
            for name in beside {
                // A settings link carries no file, but states what was read from it.
                let what = if arguments.settings_alone { "is read as well" } else { "goes with it" };
                let name = harmless(&name);
                tell(&format!("{}: {name} {what}, which the text names\n", coloured("note", CYAN)));
            }
            // What comes from standard input has no name in the page.
            pasted.texts.iter_mut().filter(|text| text.name == "-").for_each(|text| text.name.clear());
            let shared = if arguments.settings_alone {
                let Some(least) = minimal_settings(&answer.resolution) else {
                    tell(&answer.obstacles_to_caller());
                    return refuse("settings alone cannot express the plan of this run");
                };
                Shared::Settings(least)
            } else if pasted.texts.is_empty() {
                Shared::Settings(pasted.settings)
            } else {
                Shared::Pasted(pasted)
            };
            // The link's own fragment replaces any that the address has.
            let page = arguments.page.split('#').next().unwrap_or_default();
            print(&format!("{page}#{}\n", encode(&shared)));
        }
        Err(problem) => return refuse(&problem),
    }
    ExitCode::SUCCESS
}

/// Settings and answers, one per line, then the texts under their names.
fn carried(pasted: &Pasted) -> String {
    let mut out = String::new();
    for (name, value) in &pasted.settings {
        out += &format!("--set {name}={value}\n");
    }
    for (name, value) in &pasted.environment {
        out += &format!("--env {name}={value}\n");
    }
    if !pasted.arguments.is_empty() {
        out += &format!("--args {}\n", pasted.arguments);
    }
    for text in &pasted.texts {
        let name = if text.name.is_empty() { "pasted" } else { &text.name };
        out += &format!("==> {name} <==\n{}", text.text);
        if !text.text.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}
