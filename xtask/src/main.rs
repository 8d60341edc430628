//! `cargo xtask COMMAND`.
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::phases::{self, Phase};
use xtask::{
    browser, container, deny, docs_tools, documents, fuzz, hooks, install, installed, javascript, page,
    public_files, publish, published, reproducible, same_everywhere, search_speed, speed, versions, weight,
    wheel,
};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds, serves, tests and weighs Shardscope")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds the page and serves it on this machine, after installing what is missing
    Serve {
        /// The port on 127.0.0.1; where it is taken, the next free one
        #[arg(long, default_value_t = 8080)]
        port: u16,
        /// Serve an unoptimised page that Trunk rebuilds and reloads at every change
        #[arg(long, conflicts_with = "build")]
        dev: bool,
        /// Only build the release page, into dist/
        #[arg(long)]
        build: bool,
    },
    /// Runs every test, or only the given phases, after installing what is missing
    Test {
        /// Phases to run, always in this order
        #[arg(value_enum)]
        phases: Vec<Phase>,
    },
    /// Installs what building or testing needs and this machine lacks
    Install {
        /// What for
        #[arg(value_enum)]
        what: install::For,
    },
    /// Weighs what dist/ makes a reader load; fails above the limit, or well above the recorded weight
    Size {
        /// Record today's weight as the one that growth is measured from
        #[arg(long)]
        record: bool,
    },
    /// Builds the JavaScript package into npm/dist and tests it against the terminal's document
    Npm {
        /// Only build it
        #[arg(long)]
        build: bool,
        /// Only test what is in npm/dist
        #[arg(long, conflicts_with = "build")]
        test: bool,
    },
    /// Builds the Python wheel, installs it into an environment of its own and tests it there
    Wheel,
    /// Installs the terminal program by `cargo install --path` into a folder of its own and calls it there
    Installed,
    /// Fails where the version is not everywhere that of the workspace; prints it
    Version {
        /// The tag of a release
        #[arg(long)]
        tag: Option<String>,
    },
    /// Builds the release page into dist/, changed or not
    #[command(hide = true)]
    Build,
    /// Checks licences, sources and known faults of the dependencies
    Deny,
    /// Packs and compiles the crates as `cargo publish` would; uploads nothing
    Publish,
    /// Assembles what is published, into target/site, from the page in dist/, and checks it below a path; SITE_URL is its address
    Site {
        /// Leave out the API documentation
        #[arg(long)]
        without_api: bool,
    },
    /// Serves the page in dist/ as its container does, by Docker or else by nginx, and asks for everything in it
    Container,
    /// Times estimates as WebAssembly against natively; fails above 2.5 times as long
    Speed,
    /// Times searches over whole spaces natively and as WebAssembly in Node; fails where they do not find the same, bit for bit
    SearchSpeed {
        /// Only pairs of model and cluster whose names hold this
        part: Option<String>,
    },
    /// Compares documents and searches of this machine with WebAssembly in Node, Chromium and Firefox, byte for byte
    SameEverywhere {
        /// Plans, drawn at random
        #[arg(default_value_t = 1000)]
        plans: u32,
    },
    /// Runs fuzz targets one after the other and makes what they found small; wants a nightly compiler
    Fuzz {
        /// Seconds for each
        #[arg(default_value_t = 30)]
        seconds: u32,
        /// Targets; all where none is named
        targets: Vec<String>,
    },
    /// Fetches the public launch files of the tables and checks what comes of each
    PublicFiles {
        /// Write the tables and the guide's anew instead
        #[arg(long)]
        update: bool,
        /// Where the files lie, or will [default: target/public-files]
        folder: Option<PathBuf>,
    },
    /// Builds the page twice from nothing and fails where the bytes differ
    Reproducible,
    /// Keeps the JSON reports of all fixtures and examples, or compares with those kept: a refactoring changes none
    Documents {
        /// Keep them as they are now
        #[arg(long)]
        save: bool,
        /// Compare with those kept; fails where one differs
        #[arg(long, conflicts_with = "save", required_unless_present = "save")]
        compare: bool,
    },
    /// Prints where the browser, its driver and axe-core are
    Browser,
    /// Prints which documentation tools are here, for the examples of embedding
    DocsTools,
    /// Trunk's pre_build hook: style sheets and the pages beside the main page
    #[command(hide = true)]
    Prebuild,
    /// Trunk's post_build hook: content security policies and the service worker's list
    #[command(hide = true)]
    Postbuild,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Serve { port, dev: true, .. } => page::serve_dev(port),
        Command::Serve { build: true, .. } => page::build_if_changed(),
        Command::Serve { port, .. } => page::serve(port),
        Command::Test { phases } => phases::run(&phases),
        Command::Install { what } => install::install(what),
        Command::Size { record } => weight::gate(record),
        Command::Npm { build: true, .. } => javascript::build(),
        Command::Npm { test: true, .. } => javascript::test(),
        Command::Npm { .. } => javascript::build().and_then(|()| javascript::test()),
        Command::Wheel => wheel::test(),
        Command::Installed => installed::test(),
        Command::Version { tag } => versions::check(tag.as_deref()),
        Command::Build => page::build(),
        Command::Deny => deny::check(),
        Command::Publish => publish::dry_run(),
        Command::Site { without_api } => published::assemble(without_api),
        Command::Container => container::check(),
        Command::Speed => speed::compare(),
        Command::SearchSpeed { part } => search_speed::compare(part.as_deref()),
        Command::SameEverywhere { plans } => same_everywhere::check(plans),
        Command::Fuzz { seconds, targets } => fuzz::fuzz(seconds, &targets),
        Command::PublicFiles { update, folder } => public_files::check(folder, update),
        Command::Reproducible => reproducible::check(),
        Command::Documents { save: true, .. } => documents::save(),
        Command::Documents { .. } => documents::compare(),
        Command::Browser => browser::print(),
        Command::DocsTools => docs_tools::print(),
        Command::Prebuild => hooks::prebuild(),
        Command::Postbuild => hooks::postbuild(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
