//! What agents hand in.

use std::collections::BTreeMap;

use rmcp::schemars::{self, JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use shardscope::link::{MAX_TEXT, MAX_TEXTS, Pasted, PastedText, decode};
use shardscope::plan::{Field, Plan};
use shardscope::report::Report;
use shardscope::search::Dimension;
use shardscope::session::{Asked, Topic, Trained, UserInput, Varied};
use shardscope::source::suggest;
use shardscope::units::Count;

use crate::answer::answer;
use crate::compare::Read;
use crate::input::{Answer, Changes, fragment, take};

/// Layouts or lines that are listed where the call names no number, and at most.
const LISTED: usize = 10;
const MOST_LISTED: usize = 40;

fn listed(limit: Option<usize>) -> usize {
    limit.unwrap_or(LISTED).min(MOST_LISTED)
}

/// A training run: texts or a link, and changes to it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(super) struct Run {
    /// The launch script (bash, sbatch) or settings file, whole and as it is.
    #[serde(default)]
    text: Option<String>,
    /// Further files that the script names (DeepSpeed JSON, YAML, sourced scripts, a model's config.json), read together.
    #[serde(default)]
    files: Vec<File>,
    /// A link of Shardscope's page, in place of texts.
    #[serde(default)]
    link: Option<String>,
    /// Accelerator in the catalog's spelling, for example "H100-SXM", "A100-SXM-80GB", "B200", "MI300X".
    #[serde(default)]
    accelerator: Option<String>,
    /// Settings by Megatron-LM's names in snake case on top of what the texts say, for example {"tensor_model_parallel_size": 4,
    /// "num_nodes": 8}. Memory is in bytes, times are in seconds.
    #[serde(default)]
    settings: BTreeMap<String, Value>,
    /// Variables that the script takes from its environment.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// The words after the script in its call.
    #[serde(default)]
    arguments: String,
    /// Settings listed under not_modelled to go on without; the answer is marked with them.
    #[serde(default)]
    without: Vec<String>,
    /// Arguments that there are not: an answer that left them out would be to another question.
    // serde's `deny_unknown_fields` does not work beside `flatten`: unknown arguments land here, and `pasted` refuses
    // them.
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: BTreeMap<String, Value>,
}

/// The fields of [`Run`], to suggest one for a misspelling.
const ARGUMENTS: [&str; 8] =
    ["text", "files", "link", "accelerator", "settings", "environment", "arguments", "without"];

/// A file by its name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct File {
    /// As the script names it.
    name: String,
    /// What it holds.
    text: String,
}

impl Run {
    /// # Errors
    /// A sentence that says what to change in the call.
    pub(super) fn pasted(&self) -> Result<Pasted, String> {
        if let Some(name) = self.unknown.keys().next() {
            return Err(match suggest(name, ARGUMENTS) {
                Some(known) => format!("there is no argument {name}; did you mean {known}?"),
                None => format!("there is no argument {name}; a run has {}", ARGUMENTS.join(", ")),
            });
        }
        let mut pasted = Pasted::default();
        if let Some(link) = &self.link {
            let shared = decode(fragment(link).unwrap_or(link)).map_err(|error| error.to_string())?;
            take(
                &mut pasted,
                shared.ok_or("the link carries nothing: pass all of it, including what follows #")?,
            );
        }
        // The script first and without a name: the files beside it are found by theirs.
        let one = self.text.iter().map(|text| PastedText { name: String::new(), text: text.clone() });
        let more = self.files.iter().map(|file| PastedText {
            // By base name, as a page's reader drops files: an agent's folders are not here.
            name: file.name.rsplit(['/', '\\']).next().unwrap_or(&file.name).to_owned(),
            text: file.text.clone(),
        });
        pasted.texts.extend(one.chain(more));
        if pasted.texts.len() > MAX_TEXTS {
            return Err(format!(
                "at most {MAX_TEXTS} files are read; pass the script and the files it names"
            ));
        }
        if pasted.texts.iter().map(|text| text.text.len()).sum::<usize>() > MAX_TEXT {
            return Err(format!(
                "at most {MAX_TEXT} bytes of text are read; pass the script and the files it names"
            ));
        }
        let changes = Changes {
            accelerator: self.accelerator.clone(),
            settings: self.settings.iter().map(|(name, value)| (name.clone(), written(value))).collect(),
            environment: self.environment.clone().into_iter().collect(),
            words: (!self.arguments.is_empty()).then(|| self.arguments.clone()),
            without: self.without.clone(),
        };
        changes.checked().map_err(|error| error.to_string())?;
        changes.put_into(&mut pasted);
        if pasted.texts.is_empty() && pasted.settings.is_empty() {
            return Err("pass the launch script as text, a link, or settings".to_owned());
        }
        Ok(pasted)
    }

    pub(super) fn answer(&self) -> Result<Answer, String> {
        self.pasted().map(|pasted| answer(&pasted))
    }

    /// # Errors
    /// Everything that keeps the run from a plan, with what would help.
    pub(super) fn estimated(&self) -> Result<(Answer, Plan, Report), String> {
        let mut answer = self.answer()?;
        match answer.estimated() {
            Some((plan, report)) => Ok((answer, plan, report)),
            None => Err(no_plan(&answer) + self.bridge()),
        }
    }

    /// How adapters that were asked for become those of a library, if the run's software has none of its own.
    fn bridge(&self) -> &'static str {
        let asked = self.settings.get(Field::TrainType.name()).map(written);
        let trained = Trained::ALL.into_iter().find(|trained| asked.as_deref() == Some(trained.word()));
        let run = self.pasted().ok().map(UserInput::of_pasted);
        let settings = trained.zip(run).map(|(trained, run)| trained.settings(&run)).unwrap_or_default();
        if settings.iter().any(|(field, _)| *field == Field::AdapterLibrary) {
            "\nMegatron-LM has no adapters of its own: set adapter_library to megatron-bridge as well, and the answer is for \
             Megatron-Bridge's"
        } else {
            ""
        }
    }

    fn read(&self, changes: &BTreeMap<String, Value>) -> Result<Read, String> {
        let mut run = self.clone();
        run.settings.extend(changes.clone());
        run.estimated().map(|(answer, plan, report)| Read { answer, plan, report })
    }
}

fn no_plan(answer: &Answer) -> String {
    // The reader is not a terminal.
    let said = anstream::adapter::strip_str(&answer.obstacles()).to_string();
    format!(
        "the run makes no plan, so there are no figures. Answer each `open` setting through settings (its name stands in brackets), \
         pass the files that are named as missing, or correct the lines pointed at:\n{said}"
    )
}

/// A setting's value as `--set` takes it; null is the empty text, which takes a setting back.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// `estimate`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EstimateInput {
    #[serde(flatten)]
    pub(super) run: Run,
    /// Parts of the whole document to add: settings, parameters, topology, memory, communication, utilisation, time, flops. They are
    /// long; the answer has the figures most people ask for without them.
    #[serde(default)]
    pub(super) sections: Vec<String>,
}

/// `search`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SearchInput {
    #[serde(flatten)]
    pub(super) run: Run,
    /// How far dimensions are varied.
    #[serde(default)]
    #[schemars(schema_with = "dimensions")]
    pub(super) vary: Varied,
    /// Layouts listed [default: 10, most: 40]. Unit: layout.
    #[serde(default)]
    limit: Option<usize>,
}

impl SearchInput {
    pub(super) fn limit(&self) -> usize {
        listed(self.limit)
    }
}

/// `ask`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AskInput {
    #[serde(flatten)]
    pub(super) run: Run,
    /// What is asked.
    #[schemars(schema_with = "topics")]
    question: Topic,
    /// What trains; left out, as in the run.
    #[serde(default)]
    #[schemars(schema_with = "trainings")]
    train: Option<Trained>,
    /// For cheapest: tokens to train on, for example 15e12; left out, the run's own budget. Unit: token.
    #[serde(default)]
    tokens: Option<f64>,
    /// For cheapest: time that there is. Unit: day.
    #[serde(default)]
    days: Option<f64>,
    /// For cheapest: price of an accelerator for an hour; left out, the run's price_per_gpu_hour. Unit: any currency.
    #[serde(default)]
    price: Option<f64>,
    /// For cheapest and scaling: nodes that there are; left out, the run's own. Unit: node.
    #[serde(default)]
    most_nodes: Option<u64>,
    /// For which-gpu: prices of an accelerator for an hour by its name; these kinds are compared, by what the tokens cost. Unit: any
    /// currency.
    #[serde(default)]
    prices: BTreeMap<String, f64>,
    /// How far dimensions are varied in the searches for the answer.
    #[serde(default)]
    #[schemars(schema_with = "dimensions")]
    vary: Varied,
    /// Lines listed, those around the answer [default: 10, most: 40]. Unit: line.
    #[serde(default)]
    limit: Option<usize>,
}

/// The words of one of the engine's enumerations, each with its description, as a schema.
fn words<T: serde::Serialize>(all: impl IntoIterator<Item = T>, says: fn(&T) -> &'static str) -> Schema {
    let one = |word: T| json!({ "const": json!(word), "description": says(&word) });
    json_schema!({ "type": "string", "oneOf": all.into_iter().map(one).collect::<Vec<_>>() })
}

fn topics(_: &mut SchemaGenerator) -> Schema {
    words(Topic::ALL, |topic| topic.name())
}

/// Each dimension of a search by its name: fixed as in the run, open, one size, or two between which sizes are tried.
fn dimensions(_: &mut SchemaGenerator) -> Schema {
    let one = |dimension: Dimension| {
        let mut ways = vec![json!({ "enum": ["fixed", "open"] })];
        if dimension.has_sizes() {
            let size = json!({ "type": "integer", "minimum": 1 });
            let sizes = json!({ "type": "array", "items": size, "minItems": 2, "maxItems": 2 });
            ways.extend([size, sizes]);
        }
        json!({ "description": dimension.about(), "default": Varied::usual(dimension), "anyOf": ways })
    };
    let properties: serde_json::Map<String, Value> =
        Dimension::NAMED.into_iter().map(|(of, name)| (name.to_owned(), one(of))).collect();
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn trainings(_: &mut SchemaGenerator) -> Schema {
    words(Trained::ALL, |trained| trained.name())
}

impl AskInput {
    /// The question as the engine takes it.
    ///
    /// # Errors
    /// A sentence that says what to change in the call.
    pub(super) fn asked(&self) -> Result<Asked, String> {
        // What rounds to no token is none.
        let tokens = self.tokens.map(|tokens| Count::rounded_up(tokens).get());
        let asked = Asked {
            topic: self.question,
            trained: self.train,
            tokens,
            days: self.days,
            price: self.price,
            most_nodes: self.most_nodes,
            prices: self.prices.clone(),
            vary: self.vary.clone(),
        };
        asked.checked().map_err(|problem| problem.to_string())?;
        Ok(asked)
    }

    /// Whether what is to train takes a library that the run's software does not have.
    pub(super) fn is_bridged(&self, run: &UserInput) -> bool {
        let settings = self.train.map(|trained| trained.settings(run)).unwrap_or_default();
        settings.iter().any(|(field, _)| *field == Field::AdapterLibrary)
    }

    pub(super) fn limit(&self) -> usize {
        listed(self.limit)
    }
}

/// `compare`.
#[derive(Debug, Deserialize, JsonSchema)]
// There is no `flatten` in this one, so serde itself can refuse unknown arguments.
#[serde(deny_unknown_fields)]
pub(super) struct CompareInput {
    /// The run as it is.
    before: Run,
    /// The run as it would be; left out, it is `before` with `changes`.
    #[serde(default)]
    after: Option<Run>,
    /// Settings changed in `after` alone, for example {"micro_batch_size": 2}.
    #[serde(default)]
    changes: BTreeMap<String, Value>,
}

impl CompareInput {
    pub(super) fn sides(&self) -> Result<(Read, Read), String> {
        if self.after.is_none() && self.changes.is_empty() {
            return Err("pass after, or changes to before".to_owned());
        }
        let before = self.before.read(&BTreeMap::new()).map_err(|why| format!("before: {why}"))?;
        let after = self.after.as_ref().unwrap_or(&self.before);
        let after = after.read(&self.changes).map_err(|why| format!("after: {why}"))?;
        Ok((before, after))
    }
}

/// `explain`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ExplainInput {
    #[serde(flatten)]
    pub(super) run: Run,
    /// Words of the figure's place, all of which must be in it.
    pub(super) of: String,
}

/// `link`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct LinkInput {
    #[serde(flatten)]
    pub(super) run: Run,
    /// Address of the page; without it the link begins with # and is put behind one.
    #[serde(default)]
    pub(super) page: Option<String>,
    /// Carry the plan's settings and nothing of the texts.
    #[serde(default)]
    pub(super) settings_only: bool,
}
