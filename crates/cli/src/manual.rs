//! `shardscope man`: manual pages, written from the arguments themselves.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::output::{print, refuse};

/// `man`.
#[derive(Args)]
pub(crate) struct ManArguments {
    /// Write a page for the program and one for each command into this folder, which is there.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints the page of the program, or writes all pages.
pub(crate) fn run(command: clap::Command, arguments: &ManArguments) -> ExitCode {
    if let Some(folder) = &arguments.folder {
        return match clap_mangen::generate_to(command, folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&format!("{} cannot be written to: {error}", folder.display())),
        };
    }
    let mut out = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut out);
    print(&String::from_utf8_lossy(&out));
    rendered.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
