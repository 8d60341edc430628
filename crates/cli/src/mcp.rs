//! `shardscope mcp`: the engine as tools for agents, over standard input and output (Model Context Protocol).
//!
//! Texts come with the call: no file is read and no connection opened, whatever an agent asks for.

mod input;
mod output;
#[cfg(test)]
mod units;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use input::{AskInput, CompareInput, EstimateInput, ExplainInput, LinkInput, SearchInput};
use output::{Answered, Estimate, Explanations, Found, Layout, Line, Link, by_reason};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::{Json, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use shardscope::Origin;
use shardscope::launch::minimal_settings;
use shardscope::link::{Shared, encode};
use shardscope::plan::Field;
use shardscope::report::document::Document;
use shardscope::search::Walk;
use shardscope::session::{Asking, UserInput};

use crate::compare::{Differences, document};
use crate::explain::explained;
use crate::input::Answer;
use crate::output::refuse;
use crate::search::BRIDGED;

/// Time limit of a search. Unit: second.
const SEARCH: Duration = Duration::from_secs(20);
/// Candidates evaluated between two clock checks, for a question.
const STEP: u64 = 8;
/// Layouts tried between two clock checks.
const SLICE: u64 = 256;

/// What an agent is told of the whole.
const INSTRUCTIONS: &str = "Estimates LLM training runs from their launch scripts (Megatron-LM and relatives, DeepSpeed, NeMo, \
torchtitan, Hugging Face trainers): whether they fit, what they send, how fast they are. Hand in the script as text, with the \
settings files it names; nothing is executed or sent anywhere. Call estimate first. Where it returns plan=false, answer what it \
lists under to_do through settings, environment or further files, and call again: never guess a figure instead. What figures.marks \
names is not in the numbers, and what assumed lists was not said by anybody: pass both on with the verdict. Before you explain a number to somebody, call explain.";

/// Whether the caller's settings give the run adapters of a library that its software has none of.
fn is_bridged(answer: &Answer) -> bool {
    let library = answer.resolution.setting(Field::AdapterLibrary);
    library.is_some_and(|setting| setting.origin == Origin::User)
}

/// The tools.
#[derive(Clone, Debug)]
struct Tools;

#[tool_router]
impl Tools {
    #[tool(
        description = "Memory, step time, communication and advice of a training run, from its launch script. With plan=false it says \
                       under to_do what is missing.",
        annotations(title = "Estimate a run", read_only_hint = true, open_world_hint = false)
    )]
    fn estimate(&self, Parameters(input): Parameters<EstimateInput>) -> Result<Json<Estimate>, String> {
        let mut answer = input.run.answer()?;
        let found = answer.estimated();
        let document =
            Document::new(&answer.source, &answer.resolution, found.as_ref().map(|(_, report)| report));
        Estimate::new(&answer, found.as_ref(), &document.to_json(false), &input.sections).map(Json)
    }

    #[tool(
        description = "Other layouts of the same run (tensor, pipeline, context, expert parallel sizes, micro-batch, recomputation): the \
                       fastest that fit, and those that none beats in both time and memory.",
        annotations(title = "Search layouts", read_only_hint = true, open_world_hint = false)
    )]
    fn search(&self, Parameters(input): Parameters<SearchInput>) -> Result<Json<Found>, String> {
        let (answer, plan, _) = input.run.estimated()?;
        let mut walk = Walk::with(&plan, input.vary.choices());
        // The call blocks until it has an answer, so the clock ends it; `complete` states whether everything was
        // tried.
        let until = Instant::now() + SEARCH;
        let mut more = true;
        while more && Instant::now() < until {
            more = walk.step(SLICE);
        }
        let (tried, of) = walk.progress();
        Ok(Json(Found {
            tried,
            of,
            complete: !more,
            refused: walk.refused(),
            refused_by_reason: by_reason(walk.tally()),
            too_large: walk.too_large(),
            best: walk.ranked().take(input.limit()).map(Layout::from_outcome).collect(),
            frontier: walk.frontier().iter().take(input.limit()).map(Layout::from_outcome).collect(),
            note: is_bridged(&answer).then_some(BRIDGED),
        }))
    }

    #[tool(
        description = "What people ask before they launch, answered by searches for other layouts of the run: the fewest GPUs, which kind \
                       of GPU, the cheapest number of nodes, scaling, one more node, the longest sequence, the largest micro-batch, the \
                       largest model. Every answer has the settings to change.",
        annotations(title = "Ask before launching", read_only_hint = true, open_world_hint = false)
    )]
    fn ask(&self, Parameters(input): Parameters<AskInput>) -> Result<Json<Answered>, String> {
        // What keeps the run from being a plan is reported as in every other tool.
        let (answer, ..) = input.run.estimated()?;
        let run = UserInput::of_pasted(input.run.pasted()?);
        let bridged = is_bridged(&answer) || input.is_bridged(&run);
        let mut asking = Asking::new(&run, &input.asked()?).map_err(|missing| missing.to_string())?;
        let until = Instant::now() + SEARCH;
        let mut more = true;
        while more && Instant::now() < until {
            more = asking.step(STEP);
        }
        let lines = asking.lines();
        // `limit` lines around the answer are shown, with the window shifted if it would run past the end.
        let chosen = lines.iter().position(|line| line.chosen);
        let limit = input.limit().max(1);
        let first = chosen.unwrap_or(0).saturating_sub(limit / 2).min(lines.len().saturating_sub(limit));
        Ok(Json(Answered {
            answer: asking.answer(),
            answered: chosen.is_some(),
            complete: !more,
            lines: lines.iter().skip(first).take(limit).map(Line::new).collect(),
            note: bridged.then_some(BRIDGED),
        }))
    }

    #[tool(
        description = "Two runs side by side, or one beside itself with settings changed: every figure that differs, and which parts of \
                       memory and time it comes from.",
        annotations(title = "Compare two runs", read_only_hint = true, open_world_hint = false)
    )]
    fn compare(&self, Parameters(input): Parameters<CompareInput>) -> Result<Json<Differences>, String> {
        let (before, after) = input.sides()?;
        Ok(Json(document(&before, &after)))
    }

    #[tool(
        description = "Why a figure has its value: formula, the values of its symbols in this run, and the paper or framework file it is \
                       from. `of` are words of the figure's place, such as \"optimizer\" or \"time pipeline\".",
        annotations(title = "Explain a figure", read_only_hint = true, open_world_hint = false)
    )]
    fn explain(&self, Parameters(input): Parameters<ExplainInput>) -> Result<Json<Explanations>, String> {
        let (answer, _, report) = input.run.estimated()?;
        let document = Document::new(&answer.source, &answer.resolution, Some(&report));
        let (figures, more) = explained(&document.to_json(false), &input.of)?;
        Ok(Json(Explanations { figures, more }))
    }

    #[tool(
        description = "A link that opens the run in Shardscope's page, for a person to look at. With settings_only it carries nothing of \
                       the script's text.",
        annotations(title = "Make a link", read_only_hint = true, open_world_hint = false)
    )]
    fn link(&self, Parameters(input): Parameters<LinkInput>) -> Result<Json<Link>, String> {
        let shared = if input.settings_only {
            // Errors where there is no plan: `minimal_settings` is the difference between a plan and the defaults.
            let (answer, ..) = input.run.estimated()?;
            let least = minimal_settings(&answer.resolution);
            Shared::Settings(least.ok_or("settings alone cannot express this plan; leave settings_only out")?)
        } else {
            let pasted = input.run.pasted()?;
            // Without a script nothing reads the environment or the words of its call: the settings are the whole
            // run.
            if pasted.texts.is_empty() { Shared::Settings(pasted.settings) } else { Shared::Pasted(pasted) }
        };
        // An address copied from the page has a link behind `#` already.
        let page = input.page.as_deref().unwrap_or_default().split('#').next().unwrap_or_default();
        Ok(Json(Link { link: format!("{page}#{}", encode(&shared)) }))
    }
}

#[tool_handler]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("shardscope", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }
}

/// Serves until the client closes the connection.
pub(crate) fn run() -> ExitCode {
    // One thread is enough: the tools compute and never wait.
    let served = tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| {
        runtime.block_on(async {
            let service = Tools.serve(rmcp::transport::stdio()).await.map_err(|error| error.to_string())?;
            service.waiting().await.map(|_| ()).map_err(|error| error.to_string())
        })
    });
    match served {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(problem)) => refuse(&problem),
        Err(error) => refuse(&error.to_string()),
    }
}
