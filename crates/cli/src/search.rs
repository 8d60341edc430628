//! `shardscope search`: what people ask before they launch, answered by searches for other layouts of the run.

mod compared;
mod written;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use shardscope::catalog::accelerator;
use shardscope::plan::{Field, Plan, Variant};
use shardscope::search::{Choices, Dimension, Inquiry, Question, Space, Values, exhaust, typed};
use shardscope::session::{self, Extent, Objective, UserInput, Varied};
use shardscope::units::Count;

use crate::input::Input;
use crate::output::{Format, NO_PLAN, print, print_json, print_prose, refuse, tell};
use compared::{AT_ONCE, Terms};
use written::Written;

/// `search`.
#[derive(Args)]
pub(crate) struct SearchArguments {
    #[command(flatten)]
    input: Input,
    /// What is asked.
    #[arg(long, value_enum, default_value_t = Asked::Fastest)]
    question: Asked,
    /// For `cheapest` and `which-gpu`: tokens to train on, for example 15e12 [default for `cheapest`: the run's own budget].
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    tokens: Option<u64>,
    /// For `cheapest` and `which-gpu`: days that there are.
    #[arg(long, value_name = "DAYS", value_parser = positive)]
    days: Option<f64>,
    /// For `cheapest` and `which-gpu`: price of an accelerator for an hour [default: the run's price_per_gpu_hour].
    #[arg(long, value_name = "PRICE", value_parser = positive)]
    price: Option<f64>,
    /// For `which-gpu`: kinds of accelerators, each with its price for an hour where cost decides, for example
    /// H100-SXM=2.5,A100-SXM-80GB=1.2.
    #[arg(long, value_name = "NAME[=PRICE]", value_delimiter = ',', value_parser = kind)]
    kinds: Vec<(String, Option<f64>)>,
    /// What trains: everything, LoRA's adapters, or adapters over weights of 4 bits [default: as in the run].
    #[arg(long, value_enum)]
    train: Option<Trained>,
    /// For `cheapest`, `scaling` and `which-gpu`: nodes that there are [default: the run's own].
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u64).range(1..=MOST_NODES))]
    most_nodes: Option<u64>,
    /// Keep a dimension as in the run: tp, pp, vpp, split, schedule, cp, ep, etp, mbs, sp, sharding, recompute, overlap,
    /// rank-order.
    #[arg(long, value_name = "DIMENSION", value_parser = dimension)]
    fix: Vec<Dimension>,
    /// Try sizes of a dimension between two bounds only, for example tp=1..4.
    #[arg(long, value_name = "DIMENSION=LEAST..MOST", value_parser = range)]
    range: Vec<(Dimension, u64, u64)>,
    /// Vary a dimension that is kept unless asked for: precision, offload (optimizer states on the host), offload-modules (what
    /// modules of a layer save on the host), instances (groups of replicas that each have all that is shared; HSDP).
    #[arg(long, value_name = "DIMENSION", value_parser = dimension)]
    open: Vec<Dimension>,
    /// For `fastest`: say why a layout is not the answer, written as people write it: "TP 4 PP 8 VPP 5 recompute full".
    #[arg(long, value_name = "LAYOUT")]
    why_not: Vec<String>,
    /// Layouts listed.
    #[arg(long, default_value_t = 10)]
    limit: usize,
    /// Work out every layout instead of leaving out by bounds: to check the search by, slow.
    #[arg(long)]
    exhaustive: bool,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Asked {
    /// The fastest layout that fits on these machines.
    Fastest,
    /// The fewest accelerators of this kind that hold the run.
    FewestGpus,
    /// The number of nodes on which the tokens cost least.
    Cheapest,
    /// The longest sequence that fits.
    LongestSequence,
    /// The largest micro-batch that fits.
    LargestMicroBatch,
    /// The fastest layout from one node up to --most-nodes.
    Scaling,
    /// What one more node brings.
    OneMoreNode,
    /// Of which of --kinds the fewest hold the run, or, with --tokens and prices, the tokens cost least.
    WhichGpu,
    /// The largest model of the catalog that fits on the run's machines, trained as --train says.
    LargestModel,
}

/// What trains.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Trained {
    /// Everything.
    Full,
    /// LoRA's adapters.
    Lora,
    /// Adapters over weights of 4 bits.
    Qlora,
}

impl From<Trained> for session::Trained {
    fn from(trained: Trained) -> Self {
        match trained {
            Trained::Full => Self::Full,
            Trained::Lora => Self::Lora,
            Trained::Qlora => Self::QLora,
        }
    }
}

/// `NAME` or `NAME=PRICE`, a name of the catalog.
fn kind(text: &str) -> Result<(String, Option<f64>), String> {
    let (name, price) = text.split_once('=').map_or((text, None), |(name, price)| (name, Some(price)));
    let known = accelerator(name).ok_or("`shardscope accelerators` lists the names")?;
    let price = price.map(positive).transpose().map_err(|problem| format!("the price: {problem}"))?;
    Ok((known.name, price))
}

/// A positive finite number.
fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "it is not a positive number".to_owned())
}

/// A number of tokens as people write it (15e12), whole.
fn tokens(text: &str) -> Result<u64, String> {
    let tokens = positive(text).ok().filter(|tokens| (1.0..MOST_TOKENS).contains(tokens));
    tokens
        .map(|tokens| Count::rounded_up(tokens).get())
        .ok_or_else(|| "it is not a number of tokens".to_owned())
}

fn dimension(text: &str) -> Result<Dimension, String> {
    Dimension::named(text).ok_or_else(|| {
        let names: Vec<&str> = Dimension::NAMED.iter().map(|(_, name)| *name).collect();
        format!("one of {}", names.join(", "))
    })
}

fn range(text: &str) -> Result<(Dimension, u64, u64), String> {
    let form = || "it is not DIMENSION=LEAST..MOST".to_owned();
    let (name, sizes) = text.split_once('=').ok_or_else(form)?;
    // `tp=4` is a range of one size.
    let (least, most) = sizes.split_once("..").unwrap_or((sizes, sizes));
    let size = |text: &str| text.trim().parse::<u64>().map_err(|_| form());
    let (dimension, least, most) = (dimension(name)?, size(least)?, size(most)?);
    // An empty range would end as "nothing fits".
    Varied::default().with(dimension, Extent::Between(least, most))?;
    Ok((dimension, least, most))
}

impl Asked {
    /// Its name in a call.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl SearchArguments {
    fn choices(&self) -> Choices {
        let open = self.open.iter().map(|dimension| (*dimension, Values::Open));
        let fixed = self.fix.iter().map(|dimension| (*dimension, Values::Stated));
        let ranged =
            self.range.iter().map(|(dimension, least, most)| (*dimension, Values::Between(*least, *most)));
        // The later of two options for a dimension counts: opened and then bounded means bounded.
        open.chain(fixed)
            .chain(ranged)
            .fold(Choices::default(), |choices, (dimension, values)| choices.with(dimension, values))
    }

    fn question(&self, plan: &Plan) -> Result<Question, String> {
        let most_nodes = self.most_nodes.unwrap_or(plan.cluster().num_nodes);
        Ok(match self.question {
            Asked::Fastest => Question::Fastest,
            Asked::LargestModel => Question::Fits,
            // Without tokens nothing has a cost: the fewest accelerators decide.
            Asked::WhichGpu if self.tokens.is_none() => Question::FewestGpus,
            Asked::FewestGpus => Question::FewestGpus,
            Asked::LongestSequence => Question::LongestSequence,
            Asked::LargestMicroBatch => Question::LargestMicroBatch,
            Asked::Scaling => Question::Scaling { most_nodes },
            Asked::OneMoreNode => Question::OneMoreNode,
            Asked::Cheapest | Asked::WhichGpu => {
                let budget = &plan.recipe().budget;
                let tokens = self.tokens.or(budget.tokens).ok_or("how many tokens? add --tokens")?;
                // If every kind has its own price, the common one is not used, but the question still requires a
                // number.
                let priced =
                    self.question == Asked::WhichGpu && self.kinds.iter().all(|(_, price)| price.is_some());
                let price = self.price.or(budget.price_per_gpu_hour).or(priced.then_some(0.0));
                let price = price.ok_or("what does an accelerator-hour cost? add --price")?;
                Question::Cheapest { tokens, days: self.days, price, most_nodes }
            }
        })
    }

    /// An option of another question, and the questions that support it: an answer that ignored it would answer a
    /// different question.
    fn misplaced(&self) -> Option<String> {
        let priced = [Asked::Cheapest, Asked::WhichGpu];
        let nodes = [Asked::Cheapest, Asked::Scaling, Asked::WhichGpu];
        let given: [(&str, bool, &[Asked]); 5] = [
            ("--tokens", self.tokens.is_some(), &priced),
            ("--days", self.days.is_some(), &priced),
            ("--price", self.price.is_some(), &priced),
            ("--most-nodes", self.most_nodes.is_some(), &nodes),
            ("--kinds", !self.kinds.is_empty(), &[Asked::WhichGpu]),
        ];
        let (option, _, takes) =
            given.into_iter().find(|(_, given, takes)| *given && !takes.contains(&self.question))?;
        let takes: Vec<String> = takes.iter().map(|question| question.name()).collect();
        Some(format!(
            "--question {} takes no {option}; {} {}",
            self.question.name(),
            takes.join(", "),
            if takes.len() == 1 { "does" } else { "do" }
        ))
    }
}

/// Upper bound for a plausible token budget.
const MOST_TOKENS: f64 = 1e18;

/// What is answered where adapters of another library stand in.
pub(crate) const BRIDGED: &str =
    "Megatron-LM has no adapters of its own; the answer is for Megatron-Bridge's";

/// Most nodes that a row goes up to, as many as the search for the fewest accelerators.
const MOST_NODES: u64 = 1 << 12;

/// Prints the answer, and diagnostics to standard error.
pub(crate) fn run(arguments: &SearchArguments) -> ExitCode {
    let mut input = arguments.input.clone();
    if arguments.exhaustive
        && (arguments.question != Asked::Fastest || !matches!(arguments.format, Format::Text))
    {
        return refuse("--exhaustive lists the fastest layouts, as text: leave --question and --format out");
    }
    if let Some(problem) = arguments.misplaced() {
        return refuse(&problem);
    }
    let mut pasted = match input.read() {
        Ok(pasted) => pasted,
        Err(problem) => return refuse(&problem),
    };
    // Each compared model has its own plan for what trains.
    if let Some(train) = arguments.train.filter(|_| arguments.question != Asked::LargestModel) {
        for (field, value) in session::Trained::from(train).settings(&UserInput::of_pasted(pasted.clone())) {
            if field == Field::AdapterLibrary {
                tell(&format!("note: {BRIDGED}\n"));
            }
            let setting = (field.name().to_owned(), value);
            input.changes.settings.push(setting.clone());
            pasted.settings.push(setting);
        }
    }
    let answer = input.answer_of(pasted.clone());
    let Some(plan) = &answer.resolution.plan else {
        tell(&answer.obstacles_to_caller());
        return ExitCode::from(NO_PLAN);
    };
    tell(&answer.problems());
    let question = match arguments.question(plan) {
        Ok(question) => question,
        Err(problem) => return refuse(&problem),
    };
    let terms = Terms {
        kinds: &arguments.kinds,
        price: arguments.price,
        choices: arguments.choices(),
        limit: arguments.limit,
        format: arguments.format,
    };
    match arguments.question {
        Asked::WhichGpu => return compared::kinds(&terms, (&input, &pasted), plan, question),
        Asked::LargestModel => {
            let objective = arguments
                .train
                .map_or(Objective::PreTrain, |train| session::Trained::from(train).objective());
            return compared::models(&terms, objective, plan, question);
        }
        _ => {}
    }
    if arguments.exhaustive {
        let found = exhaust(&Space::with(plan, arguments.choices()));
        print(&written::exhausted(&found));
        let fits = found.best.is_some() || found.tight.is_some();
        return if fits { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let asked_why = match asked_why(&arguments.why_not, plan, question) {
        Ok(asked) => asked,
        Err(problem) => return refuse(&problem),
    };
    let mut inquiry = Inquiry::new(plan, question, arguments.choices());
    while inquiry.step(AT_ONCE) {}
    let written = Written::new(plan, &inquiry, arguments.limit, asked_why);
    match arguments.format {
        Format::Text => print_prose(&written.text()),
        Format::Json => print_json(&written),
        Format::Markdown => print(&written.markdown()),
    }
    if written.is_answered() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The typed layouts, to explain why they are not the answer.
fn asked_why(texts: &[String], plan: &Plan, question: Question) -> Result<Vec<(String, Variant)>, String> {
    if !texts.is_empty() && question != Question::Fastest {
        return Err("--why-not is held against the fastest layout: leave --question out".to_owned());
    }
    let read = |text: &String| match typed(plan, text) {
        Ok(layout) => Ok((text.clone(), layout)),
        Err(word) => Err(format!(
            "--why-not: {} is not understood; write sizes as TP, PP, VPP, CP, EP, ETP and MBS, also SP on or off, and recompute \
             none, selective or full",
            word.trim()
        )),
    };
    texts.iter().map(read).collect()
}
