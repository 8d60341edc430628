//! Every formula that the engine applied to one of [`plans()`], with its numbers.

use std::sync::OnceLock;

use maud::{Markup, html};
use shardscope::estimate::collective::{Algorithm, explain_wire};
use shardscope::estimate::time::time;
use shardscope::estimate::traffic::{Operation, Parallelism, traffic};
use shardscope::estimate::{flops, memory};
use shardscope::explain::{Breakdown, Explanation, Formula, anchor};
use shardscope::operators::{Symbols, sections_of};
use shardscope::session::plain;
use shardscope::units::{Bytes, Seconds, grouped, seconds, size};

use super::letters;
use super::plans::{Named, plans};
use super::write::Chapter;

/// The chapters in order: address, heading, introduction.
const CHAPTERS: [(&str, &str, &str); 6] = [
    (
        "states",
        "Memory: weights, gradients, optimizer, buffers",
        "What a rank holds whatever micro-batch runs, and what is beside torch's tensors.",
    ),
    (
        "kept",
        "Memory: kept for the backward pass",
        "Tensors that autograd keeps of each micro-batch, operator by operator. An input is named after the layer that reads it.",
    ),
    (
        "passing",
        "Memory: temporaries",
        "Tensors that exist only while an operator's pass runs. The peak is where these, the saved activations and what is held throughout add up to the most.",
    ),
    (
        "messages",
        "Messages",
        "What is handed to each collective, by parallel dimension. The size is that of the gathered tensor, or of the one to be scattered.",
    ),
    ("wire", "On the wire", "What a message of S bytes over n ranks puts on the wire, from each rank."),
    (
        "time",
        "Step time",
        "The parts of the breakdown; they add up to the step. How t, T and the like are worked out is in the guide.",
    ),
];

/// A formula with its use and its result.
#[derive(Clone)]
pub struct Entry {
    /// The formula.
    pub formula: &'static Formula,
    /// The index of its chapter.
    chapter: usize,
    /// The operator, dimension or kind of term.
    part: String,
    /// Quantities that it computes, in the order in which they were found.
    pub labels: Vec<String>,
    /// The collective whose message it describes; empty for all other formulas.
    collective: &'static str,
    /// Anchor in the page.
    pub id: String,
    /// The index of the plan whose numbers are substituted.
    plan: usize,
    why: Explanation,
    value: String,
}

/// All of them, in the order of the page.
#[must_use]
pub fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let mut found = Found::default();
        for (place, named) in plans().iter().enumerate() {
            found.plan = place;
            found.look(named);
        }
        found.name();
        found.entries
    })
}

/// Formulas found so far.
#[derive(Default)]
struct Found {
    plan: usize,
    entries: Vec<Entry>,
}

/// The place of a formula in the page.
struct Place<'a> {
    chapter: usize,
    part: &'a str,
    label: &'a str,
}

impl Found {
    fn look(&mut self, named: &Named) {
        let plan = &named.plan;
        let x = Symbols::new(plan);
        self.operators(&x);
        self.operators(&x.recomputed());
        let memory = memory(plan);
        for rank in &memory.ranks {
            self.tree(&rank.breakdown, "");
        }
        for phase in memory.rl.iter().flat_map(|rl| &rl.phases) {
            self.tree(&phase.breakdown, "");
        }
        for of in &traffic(plan).dimensions {
            for operation in &of.operations {
                self.message(&x, of.parallelism, operation);
                for algorithm in Algorithm::ALL {
                    self.wire(operation, algorithm);
                }
            }
        }
        self.times(&time(plan).breakdown);
        for convention in flops(plan).conventions() {
            let Some(count) = convention.flops else { continue };
            let why = Explanation::new(convention.formula, &[]);
            let value = format!("{:.4e} FLOP", count.get());
            self.add(Place { chapter: 5, part: "FLOPs of a step", label: convention.name }, why, value);
        }
    }

    fn operators(&mut self, x: &Symbols<'_>) {
        for stage in &x.plan.layout().stages.stages {
            for section in sections_of(x, stage) {
                for operator in section.kind.operators(x) {
                    let part = operator.name();
                    for saved in operator.saved(x).into_iter().chain(operator.sent_beside(x)) {
                        let place = Place { chapter: 1, part, label: saved.name };
                        self.add(place, x.explain(saved.formula), bytes(saved.bytes));
                    }
                    let points = operator.transients(x).into_iter().chain(operator.forward_points(x));
                    let held = points.flat_map(|point| point.tensors).chain(operator.passing(x));
                    for saved in held {
                        let place = Place { chapter: 2, part, label: saved.name };
                        self.add(place, x.explain(saved.formula), bytes(saved.bytes));
                    }
                }
            }
        }
    }

    /// The leaves of a rank's memory that no operator has reported.
    fn tree(&mut self, node: &Breakdown<Bytes>, part: &str) {
        if let Some(why) = node.why() {
            // A node may represent several equal ones, while its formula is for one.
            let once = Bytes::new(node.value().get() / node.multiplicity().max(1));
            self.add(Place { chapter: 0, part, label: node.label() }, why.clone(), bytes(once));
        }
        let part = match node.label() {
            label @ ("parameters" | "gradients" | "optimizer" | "activations" | "temporaries"
            | "framework") => label,
            _ => part,
        };
        for child in node.children() {
            self.tree(child, part);
        }
    }

    fn message(&mut self, x: &Symbols<'_>, dimension: Parallelism, operation: &Operation) {
        let label = format!("{}: {}", operation.name, operation.tensor);
        let place = Place { chapter: 3, part: dimension.name(), label: &label };
        self.add(place, operation.explain(x), bytes(operation.bytes()));
        // A formula describes what is done with the tensor, so it belongs to a single collective.
        if let Some(entry) = self.entries.iter_mut().find(|entry| *entry.formula == *operation.formula) {
            entry.collective = operation.collective.name();
        }
    }

    fn wire(&mut self, operation: &Operation, algorithm: Algorithm) {
        // A single rank sends nothing.
        if operation.ranks < 2 {
            return;
        }
        let why = explain_wire(algorithm, operation.collective, operation.ranks, operation.bytes());
        let part = operation.collective.name();
        let place = Place { chapter: 4, part, label: algorithm.name() };
        self.add(place, why, bytes(operation.wire(algorithm)));
    }

    fn times(&mut self, node: &Breakdown<Seconds>) {
        if let Some(why) = node.why().filter(|_| node.value().get() > 0.0) {
            let place = Place { chapter: 5, part: "Breakdown", label: node.label() };
            self.add(place, why.clone(), seconds(node.value()));
        }
        for child in node.children() {
            self.times(child);
        }
    }

    /// A formula appears once in the page, in the first chapter where it is found; on the wire, once per collective.
    fn add(&mut self, place: Place<'_>, why: Explanation, value: String) {
        // A rank's tree also contains what operators save: the first chapter does not repeat formulas of the others.
        let same = |entry: &&mut Entry| {
            *entry.formula == *why.formula
                && (place.chapter != 4 || entry.part == place.part)
                && (entry.chapter == place.chapter || place.chapter == 0)
        };
        if let Some(entry) = self.entries.iter_mut().find(same) {
            if entry.chapter == place.chapter && entry.labels.iter().all(|label| label != place.label) {
                entry.labels.push(place.label.to_owned());
            }
            // A result of zero shows little, so another plan's numbers replace it.
            if entry.value == NOTHING && value != NOTHING {
                (entry.plan, entry.why, entry.value) = (self.plan, why, value);
            }
            return;
        }
        self.entries.push(Entry {
            formula: why.formula,
            chapter: place.chapter,
            part: place.part.to_owned(),
            labels: vec![place.label.to_owned()],
            collective: "",
            id: String::new(),
            plan: self.plan,
            why,
            value,
        });
    }

    /// Gives every entry a unique address.
    fn name(&mut self) {
        let mut known: Vec<String> = Vec::new();
        for entry in &mut self.entries {
            let (chapter, ..) = CHAPTERS[entry.chapter];
            let base = format!("{chapter}-{}", anchor(&format!("{} {}", entry.part, entry.labels[0])));
            let mut id = base.clone();
            let mut number = 1;
            while known.contains(&id) {
                number += 1;
                id = format!("{base}-{number}");
            }
            known.push(id.clone());
            entry.id = id;
        }
    }
}

/// Zero bytes, as [`bytes`] writes them.
const NOTHING: &str = "0 B";

fn bytes(bytes: Bytes) -> String {
    let exact = format!("{} B", grouped(bytes.get()));
    if bytes.get() < 1 << 20 { exact } else { format!("{exact} = {}", size(bytes)) }
}

/// A chapter for each kind of formula, with parts in the order in which they were found.
pub(super) fn chapters() -> Vec<Chapter> {
    let mut out = Vec::new();
    for (index, (id, title, about)) in CHAPTERS.iter().enumerate() {
        let mut chapter = Chapter::new(id, title, html! { p.soft { (about) } });
        let mut parts: Vec<&str> = Vec::new();
        for entry in entries().iter().filter(|entry| entry.chapter == index) {
            if !parts.contains(&entry.part.as_str()) {
                parts.push(&entry.part);
            }
        }
        for part in parts {
            let of_part = entries().iter().filter(|entry| entry.chapter == index && entry.part == part);
            let list = html! { div.formulas { @for entry in of_part { (shown(entry)) } } };
            chapter = chapter.part(title_of(part), list);
        }
        out.push(chapter);
    }
    out
}

/// The heading for a part whose name is one of the document's.
fn title_of(part: &str) -> &str {
    match part {
        // Formulas that belong to no part of a layer or of the document.
        "" => "Phases of reinforcement learning",
        "parameters" => "Weights",
        "activations" => "Recomputed runs of layers",
        "tensor" => "Tensor and sequence parallel",
        "pipeline" => "Pipeline",
        "data" => "Data parallel",
        "context" => "Context parallel",
        "expert" => "Expert parallel",
        "scalars" => "Scalars",
        "input_layernorm" => "Norms",
        "self_attention" => "Attention",
        "multi_latent_attention" => "Multi-latent attention",
        "mlp" => "MLP",
        "moe" => "Mixture of experts",
        "output_layer" => "Output layer and loss",
        "mtp_projection" => "Multi-token prediction",
        "embedding" => "Embedding",
        "optimizer" => "Optimizer states",
        "framework" => "Framework memory",
        "temporaries" => "Buffers and the optimizer's step",
        other => other,
    }
}

fn shown(entry: &Entry) -> Markup {
    let Entry { formula, labels, id, why, value, collective, .. } = entry;
    let names = labels.get(..MOST_LABELS).unwrap_or(labels).join(", ");
    let more = labels.len().saturating_sub(MOST_LABELS);
    let numbers = match put_in(why) {
        // A single symbol is the value itself.
        numbers if why.symbols.is_empty() || value.starts_with(&format!("{numbers} ")) => String::new(),
        numbers => format!("{numbers} = "),
    };
    html! {
        article.formula id=(id) {
            h4 {
                a href={ "#" (id) } { (names) @if more > 0 { " and " (more) " more" } }
                " " span.also { (collective) }
            }
            p.expression { (letters::expression(formula.expression)) }
            p.meaning { (formula.meaning) }
            p.numbers {
                (numbers) (value)
                @if entry.plan > 0 { " " span.whose { "in " (plans()[entry.plan].name) } }
            }
            @if !formula.letters.is_empty() {
                p.numbers.own-letters {
                    @for (place, (letter, meaning)) in formula.letters.iter().enumerate() {
                        @if place > 0 { "; " }
                        (letters::expression(letter)) ": " (meaning)
                    }
                }
            }
            p.source { (source(formula.source)) }
        }
    }
}

/// The source of a formula; the model of a step's time is in the guide.
fn source(words: &str) -> Markup {
    let own = words.starts_with("Shardscope's step-time model");
    html! { @if own { a href="guide.html#time-model" { (words) } } @else { (words) } }
}

/// The most uses listed per formula.
const MOST_LABELS: usize = 3;

/// The expression with its symbols replaced by numbers.
fn put_in(why: &Explanation) -> String {
    let mut out = String::new();
    letters::words(why.formula.expression, &mut |word, is_name| {
        let symbol = why.symbols.iter().find(|symbol| is_name && symbol.name == word);
        out += &symbol.map_or_else(|| word.to_owned(), |symbol| plain(symbol.value));
    });
    out
}

#[cfg(test)]
mod tests {
    use super::entries;
    use shardscope::operators::letter_meaning;

    #[test]
    fn every_symbol_of_every_formula_says_what_it_means() {
        let mut silent: Vec<String> = Vec::new();
        for entry in entries() {
            for symbol in &entry.why.symbols {
                if letter_meaning(entry.formula, symbol).is_none() {
                    silent.push(format!(
                        "{} in {} ({})",
                        symbol.name, entry.formula.expression, entry.formula.meaning
                    ));
                }
            }
        }
        assert!(silent.is_empty(), "{silent:#?}");
        // A letter that its own expression lacks is a typo.
        for entry in entries() {
            for (letter, _) in entry.formula.letters {
                assert!(entry.formula.names().contains(letter), "{letter} in {}", entry.formula.expression);
            }
        }
    }
}
