//! The questions that people have before they launch, as one form, and the answer with everything that was evaluated.

use std::collections::BTreeMap;

use shardscope::session::beside::{Reached, ReplyLine};
use shardscope::session::{Asked, Topic, Trained, Varied};
use shardscope::units::{decimal, gib, grouped, rounded, seconds};
use yew::prelude::*;

use super::layouts::bar;
use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{AppContext, send, use_dispatch};
use crate::app::question::Inquired;
use crate::app::widgets::{Options, head, section, wide};

/// What trains as it does in the run.
const AS_IS: &str = "as in the run";

/// Fields of the form, as typed.
#[derive(Clone, PartialEq)]
struct Typed {
    topic: Topic,
    trained: Option<Trained>,
    nodes: String,
    tokens: String,
    price: String,
    days: String,
    /// Kinds of accelerators with their prices: `H100-SXM=2.5, A100-SXM-80GB=1.2`.
    prices: String,
}

impl Typed {
    /// Whether kinds are compared by what the tokens cost.
    fn asks_prices(&self) -> bool {
        self.topic == Topic::WhichGpu && !self.prices.trim().is_empty()
    }

    fn asks_nodes(&self) -> bool {
        self.topic.asks_nodes() || self.asks_prices()
    }

    fn prices(&self) -> BTreeMap<String, f64> {
        let one = |part: &str| {
            let (name, price) = part.split_once('=').unwrap_or((part, ""));
            // An invalid price is asked for: silently dropping a kind would change the question.
            (name.trim().to_owned(), price.trim().parse().unwrap_or_default())
        };
        let parts = self.prices.split([',', ';']).map(str::trim).filter(|part| !part.is_empty());
        parts.filter(|_| self.asks_prices()).map(one).collect()
    }

    fn asked(&self, vary: &Varied) -> Asked {
        // Anything that is not a number counts as missing: the engine then asks for it, or uses the script's. A comma
        // before one or two digits is a decimal comma, as typed in much of Europe; otherwise it may group thousands.
        let number = |text: &str| {
            let text = text.trim();
            let decimal = text.split_once(',').filter(|(_, behind)| matches!(behind.len(), 1 | 2));
            let text =
                decimal.map_or_else(|| text.to_owned(), |(before, behind)| format!("{before}.{behind}"));
            text.parse::<f64>().ok().filter(|number| *number > 0.0)
        };
        Asked {
            topic: self.topic,
            trained: self.trained,
            // Tokens are typed as people write them: 15e12.
            tokens: number(&self.tokens).filter(|tokens| *tokens < MOST_TOKENS).map(whole),
            // A field that the form does not show must not answer for another question.
            days: number(&self.days).filter(|_| self.topic.asks_budget() || self.asks_prices()),
            price: number(&self.price),
            most_nodes: self.nodes.trim().parse().ok().filter(|_| self.asks_nodes()),
            prices: self.prices(),
            vary: vary.clone(),
        }
    }
}

/// Upper bound for a plausible token budget.
const MOST_TOKENS: f64 = 1e18;

fn whole(tokens: f64) -> u64 {
    shardscope::units::Count::rounded_up(tokens).get()
}

/// Nodes that a row goes up to, as many times the run's own.
const ROOM: u64 = 8;

#[component(Questions)]
pub(super) fn questions() -> Html {
    let dispatch = use_dispatch();
    let app = use_context::<AppContext>();
    let plan = app.as_ref().and_then(|app| app.session.shown.as_ref().map(|shown| shown.plan.clone()));
    // Only initially: what was typed stays, whatever plan is shown meanwhile.
    let typed = use_state(|| {
        let nodes = plan.as_ref().map_or(ROOM, |plan| plan.cluster().num_nodes.saturating_mul(ROOM));
        let budget = plan.as_ref().map(|plan| plan.recipe().budget).unwrap_or_default();
        Typed {
            topic: Topic::FewestGpus,
            trained: None,
            nodes: nodes.to_string(),
            tokens: budget.tokens.map(|tokens| tokens.to_string()).unwrap_or_default(),
            price: budget.price_per_gpu_hour.map(|price| price.to_string()).unwrap_or_default(),
            days: String::new(),
            prices: String::new(),
        }
    });
    let Some(app) = app else { return html!() };
    let going = app.ui.inquiry.as_ref().is_some_and(|inquiry| inquiry.going);
    let submit = {
        let (dispatch, typed, vary) = (dispatch.clone(), typed.clone(), app.ui.vary.clone());
        move |event: SubmitEvent| {
            event.prevent_default();
            // The same button stops running work.
            dispatch.emit(Action::Ask((!going).then(|| Box::new(typed.asked(&vary)))));
        }
    };
    let topic = {
        let typed = typed.clone();
        move |name: String| {
            if let Some(topic) = Topic::ALL.into_iter().find(|topic| topic.name() == name) {
                typed.set(Typed { topic, ..(*typed).clone() });
            }
        }
    };
    let trained = {
        let typed = typed.clone();
        move |name: String| {
            let trained = Trained::ALL.into_iter().find(|trained| trained.name() == name);
            typed.set(Typed { trained, ..(*typed).clone() });
        }
    };
    let field_of = |mode: &'static str,
                    label: &'static str,
                    hint: &'static str,
                    value: &str,
                    put: fn(&mut Typed, String)| {
        let typed = typed.clone();
        let oninput = move |event: InputEvent| {
            let mut next = (*typed).clone();
            put(&mut next, browser::value_of(&event));
            typed.set(next);
        };
        html! {
            <label>
                { label }
                <input class="field" inputmode={mode} autocomplete="off" placeholder={hint} value={value.to_owned()} {oninput} />
            </label>
        }
    };
    let field = |label, hint, value: &str, put| field_of("decimal", label, hint, value, put);
    section(
        "questions",
        "",
        "Questions",
        html! { "Each size, GPU type or model gets its own layout search, within what is varied above; any row opens as a plan." },
        html! { <><form class="asking" onsubmit={submit}>
            <label>
                { "Question" }
                <Options
                    names={Topic::ALL.into_iter().map(|topic| AttrValue::Static(topic.name())).collect::<Vec<_>>()}
                    chosen={typed.topic.name()}
                    onchange={topic}
                />
            </label>
            <label>
                { "What trains" }
                <Options
                    names={[AS_IS].into_iter().chain(Trained::ALL.into_iter().map(Trained::name)).map(AttrValue::Static).collect::<Vec<_>>()}
                    chosen={typed.trained.map_or(AS_IS, Trained::name)}
                    onchange={trained}
                />
            </label>
            if typed.topic == Topic::WhichGpu {
                { field_of("text", "Prices of GPU-hours, if cost decides", "H100-SXM=2.5, A100-SXM-80GB=1.2", &typed.prices, |typed, value| typed.prices = value) }
            }
            if typed.asks_prices() {
                { field("Tokens", "15e12", &typed.tokens, |typed, value| typed.tokens = value) }
                { field("Days at most", "any", &typed.days, |typed, value| typed.days = value) }
            }
            if typed.topic.asks_budget() {
                { field("Tokens", "15e12", &typed.tokens, |typed, value| typed.tokens = value) }
                { field("Price of a GPU-hour", "2.50", &typed.price, |typed, value| typed.price = value) }
                { field("Days at most", "any", &typed.days, |typed, value| typed.days = value) }
            }
            if typed.asks_nodes() {
                { field("Nodes at most", "8", &typed.nodes, |typed, value| typed.nodes = value) }
            }
            <button type="submit" class="button">{ if going { "Stop" } else { "Answer" } }</button>
        </form>
        if typed.trained.is_some_and(|trained| trained != Trained::Full) {
            <p class="soft small">{ "Megatron-LM has no adapters of its own: such a run is asked about with Megatron-Bridge's." }</p>
        }
        if let Some(inquiry) = app.ui.inquiry.clone() {
            { answered(&inquiry) }
        }</> },
    )
}

fn answered(inquiry: &Inquired) -> Html {
    let Some(reply) = &inquiry.reply else {
        return html! { <p class="small soft" role="status">{ "Searching…" }</p> };
    };
    // Only lines with a layout have a rate; the longest bar is the best of them.
    let most = reply.lines.iter().filter_map(|line| line.reached.as_ref());
    let most = most.map(|reached| reached.tokens_per_second).fold(f64::MIN_POSITIVE, f64::max);
    let priced =
        reply.lines.iter().any(|line| line.reached.as_ref().is_some_and(|reached| reached.cost.is_some()));
    // If the rows are numbers of machines, the name is that number.
    let by_gpus = matches!(
        inquiry.asked.topic,
        Topic::FewestGpus | Topic::Cheapest | Topic::Scaling | Topic::OneMoreNode
    );
    // Number of columns after the name, for a line without cells.
    let columns = 6 + usize::from(!by_gpus) + 2 * usize::from(priced);
    let named = match inquiry.asked.topic {
        Topic::LongestSequence => "tokens",
        Topic::LargestMicroBatch => "MBS",
        Topic::LargestModel => "model",
        Topic::WhichGpu => "GPU",
        _ => "GPUs",
    };
    let line = |line: &ReplyLine| {
        let reached = line.reached.as_ref().map(|reached| &reached.layout.changes);
        // `chosen` is `None` until a line is shown, and a line without a layout has no changes either; the two must
        // not match.
        let class = (reached.is_some() && reached == inquiry.chosen.as_ref()).then_some("chosen");
        html! {
            <tr {class}>
                <th scope="row" class={line.is_answer.then_some("strong")}>
                    { &line.name }
                    if line.is_answer { <span class="hidden">{ ", the answer" }</span> }
                </th>
                if let Some(reached) = &line.reached {
                    { cells(inquiry, reached, most, (by_gpus, priced)) }
                } else {
                    <td colspan={columns.to_string()} class="soft">{ "nothing fits" }</td>
                }
            </tr>
        }
    };
    html! {
        <>
            <p class="searched" role="status">
                if inquiry.going {
                    { format!("Searching: {} checked", grouped(reply.lines.len() as u64)) }
                } else {
                    <strong>{ &reply.sentence }</strong>
                }
            </p>
            if !reply.lines.is_empty() {
                { wide("Candidates", html! { <table class="figures layout-table">
                        <thead>
                            <tr>
                                { head(named) }
                                if !by_gpus { { head(">GPUs") } }
                                { head("layout") }{ head(">step") }{ head(">peak") }
                                <th scope="col" class="number" colspan="2">{ "tokens/s" }</th>
                                if priced { { head(">days") }{ head(">cost") } }
                                <th scope="col"><span class="hidden">{ "apply" }</span></th>
                            </tr>
                        </thead>
                        <tbody>{ for reply.lines.iter().map(line) }</tbody>
                    </table> }) }
            }
        </>
    }
}

fn cells(inquiry: &Inquired, reached: &Reached, most: f64, (by_gpus, priced): (bool, bool)) -> Html {
    let layout = &reached.layout;
    let number = |figure: Option<String>| html! { <td class="number">{ figure.unwrap_or_default() }</td> };
    html! {
        <>
            if !by_gpus { { number(Some(grouped(reached.gpus))) } }
            <td>{ layout.words() }</td>
            { number(Some(seconds(layout.step()))) }
            <td class="number">
                { gib(layout.peak()) }
                if layout.tight { <span class="tight-mark">{ " tight" }</span> }
            </td>
            <td class="bar-cell">{ bar(reached.tokens_per_second / most, "step-time") }</td>
            { number(Some(rounded(reached.tokens_per_second))) }
            if priced {
                { number(reached.days.map(|days| decimal(days, 1))) }
                { number(reached.cost.map(rounded)) }
            }
            <td><Take inquiry={inquiry.clone()} changes={layout.changes.clone()} /></td>
        </>
    }
}

#[derive(Properties, PartialEq)]
struct TakeProps {
    inquiry: Inquired,
    changes: Vec<(String, String)>,
}

/// The button that shows a line as a plan.
#[component(Take)]
fn take(TakeProps { inquiry, changes }: &TakeProps) -> Html {
    let dispatch = use_dispatch();
    if inquiry.chosen.as_ref() == Some(changes) {
        return html! { <span class="soft">{ "shown" }</span> };
    }
    let changes = changes.clone();
    html! {
        <button type="button" class="button" onclick={send(&dispatch, move || Action::Answered(changes.clone()))}>
            { "Apply" }
        </button>
    }
}
