//! Configurations that Python functions return: recipes of Megatron-Bridge, torchtitan's registries. The functions are
//! interpreted as far as they assign literals; nothing is executed.

mod bridge;
mod bridge_adapters;
mod bridge_layouts;
mod bridge_towers;
mod nemotron;
mod olmo_core;
mod options;
mod overrides;
mod providers;
mod stages;
mod table;
mod titan;
mod words;
mod xtuner;

use super::reader::Reader;
use crate::{Question, Reading};
use shardscope_python::evaluate::{Outcome, evaluate};
use shardscope_python::program::{self, Function};
use shardscope_source::{Code, Diagnostic, Span};

pub(crate) use bridge::{EXPERTS, PROVIDER};
pub use olmo_core::read_olmo_core;
use shardscope_resolve::Asked;
pub use table::{BRIDGE, TITAN};
pub use words::{counts_machines, read_changes, read_words};
pub use xtuner::{Xtuner, read_xtuner};

/// Most recipes offered as choices.
const OFFERED: usize = 200;

/// Recipes of Megatron-Bridge and registries of torchtitan. Their texts are programs, so
/// they are not offered as settings.
#[derive(Debug)]
pub struct Recipe;

impl Reader for Recipe {
    fn name(&self) -> &'static str {
        "a recipe in Python"
    }

    fn about(&self) -> &'static str {
        "recipes of Megatron-Bridge and registries of torchtitan: functions that return a configuration, one of which is asked \
         for; also by name (`--recipe`, `--model_recipe_name`, `--module` and `--config`)"
    }
}

/// The framework whose functions a program contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bridge,
    Titan,
}

impl Kind {
    /// Decided by the function's declared return type.
    fn from_function(function: &Function<'_>) -> Option<Self> {
        match function.returns {
            "ConfigContainer" => Some(Self::Bridge),
            returns if titan::trainer(returns).is_some() => Some(Self::Titan),
            _ => None,
        }
    }

    fn evaluate(self, functions: &[Function<'_>], name: &str) -> Outcome {
        match self {
            Self::Bridge => evaluate(functions, &bridge::Bridge, name),
            Self::Titan => evaluate(functions, &titan::Titan, name),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Bridge => "Megatron-Bridge",
            Self::Titan => "torchtitan",
        }
    }
}

/// Reads a program of recipes; `None` if it has none. `asked` is the recipe that the user names; `base` is the
/// offset of the program in its source.
pub fn read_recipes(text: &str, asked: Option<&str>, base: u32) -> Option<Reading> {
    let functions = program::functions(text);
    let whole = |function: &&Function<'_>| {
        !function.name.starts_with('_') && function.parameters.iter().all(|(_, default)| default.is_some())
    };
    let recipes: Vec<(&str, Kind)> = functions
        .iter()
        .filter(whole)
        .filter_map(|function| Some((function.name, Kind::from_function(function)?)))
        .collect();
    let chosen = match recipes.as_slice() {
        [] => return by_names(text, asked, base),
        [only] => Some(*only),
        _ => recipes.iter().find(|(name, _)| asked == Some(*name)).copied(),
    };
    let Some((name, kind)) = chosen else { return Some(which(&recipes, base)) };
    let outcome = kind.evaluate(&functions, name);
    // The results of a recipe's calls into files that are not supplied are known for recipes that the framework ships.
    let shipped =
        (kind == Kind::Bridge && !outcome.unknown.is_empty()).then(|| table::outcome(name)).flatten();
    let outcome = shipped.unwrap_or(outcome);
    Some(match kind {
        Kind::Bridge => bridge::read(&outcome, name, base, Vec::new()),
        Kind::Titan => {
            let mut reading = titan::read(&outcome, name, base);
            let returns =
                functions.iter().find(|function| function.name == name).map(|function| function.returns);
            titan::tell_trainer(&mut reading, returns.unwrap_or(""), &outcome);
            reading
        }
    })
}

/// The names of Megatron-Bridge's known recipes.
#[must_use]
pub fn recipe_names() -> Vec<&'static str> {
    table::names().collect()
}

/// The settings of a recipe's configuration, by path, and the calls that could not be followed.
#[derive(Clone, Debug, Default)]
pub struct RecipeSettings {
    /// The function's name.
    pub name: String,
    /// The paths that the reader of recipes looks at, and their values; an empty value stands for `None`.
    pub settings: Vec<(String, String)>,
    /// Paths whose values are computed.
    pub open: Vec<String>,
    /// Calls that may change anything.
    pub unknown: Vec<String>,
}

/// The settings of every recipe in a program, for the table of recipes by name. `beside` are the other files of the
/// framework, whose functions and constants the program may import.
#[must_use]
pub fn recipe_settings(text: &str, beside: &[&str]) -> Vec<RecipeSettings> {
    let mut functions = program::functions(text);
    let own = functions.len();
    functions.extend(beside.iter().flat_map(|text| program::functions(text)));
    let recipes = functions.get(..own).unwrap_or(&[]).iter();
    let kinds: Vec<(&str, Kind)> =
        recipes.filter_map(|function| Some((function.name, Kind::from_function(function)?))).collect();
    let mut out = Vec::new();
    for (name, kind) in kinds.into_iter().filter(|(name, _)| !name.starts_with('_')) {
        let outcome = kind.evaluate(&functions, name);
        let used = (kind == Kind::Bridge).then(|| bridge::used(&outcome, name));
        let Outcome { mut tree, unknown } = outcome;
        tree.retain(|(path, _)| used.as_ref().is_none_or(|used| used.contains(path)));
        let open =
            tree.iter().filter(|(_, scalar)| scalar.hole.is_some()).map(|(path, _)| path.clone()).collect();
        let settings = tree.into_iter().filter(|(_, scalar)| scalar.hole.is_none());
        out.push(RecipeSettings {
            name: name.to_owned(),
            settings: settings.map(|(path, scalar)| (path, scalar.text)).collect(),
            open,
            unknown,
        });
    }
    out
}

/// A program without recipes of its own that names some of Megatron-Bridge's, like its modules of aliases; `None` if it
/// calls something, which may modify them.
fn by_names(text: &str, asked: Option<&str>, base: u32) -> Option<Reading> {
    if program::functions(text).iter().any(|function| !function.name.starts_with('_')) {
        return None;
    }
    /// Most names that are looked up; modules of aliases have a dozen.
    const MOST: usize = 64;
    let mut named: Vec<(&str, Kind)> = Vec::new();
    let mut looked_up = 0;
    for word in text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.ends_with("_config"))
    {
        looked_up += 1;
        if looked_up > MOST {
            break;
        }
        if !named.iter().any(|(known, _)| *known == word) && table::outcome(word).is_some() {
            named.push((word, Kind::Bridge));
        }
    }
    let chosen = match named.as_slice() {
        [] => return None,
        [only] => Some(only.0),
        _ => asked.filter(|asked| named.iter().any(|(name, _)| name == asked)),
    };
    match chosen {
        Some(name) => table::outcome(name).map(|outcome| bridge::read(&outcome, name, base, Vec::new())),
        None => Some(which(&named, base)),
    }
}

/// If there are several recipes, asks which one is meant. Those for debugging come last.
fn which(recipes: &[(&str, Kind)], base: u32) -> Reading {
    let mut names: Vec<&str> = recipes.iter().map(|(name, _)| *name).take(OFFERED).collect();
    names.sort_by_key(|name| name.contains("debug"));
    let whose = recipes.first().map_or("", |(_, kind)| kind.name());
    let message = format!(
        "{} recipes of {whose} are here, and the text does not say which one is meant",
        recipes.len()
    );
    let said = Diagnostic::error(Code::OpenValue, message).hint("name one of them").at(Span::new(base, base));
    let question = Question {
        asks: Asked::Recipe,
        prompt: format!("Which recipe of {whose} is trained?"),
        proposal: names.first().map(|name| (*name).to_owned()),
        choices: names.into_iter().map(str::to_owned).collect(),
    };
    Reading { diagnostics: vec![said], questions: vec![question], ..Reading::default() }
}

#[cfg(test)]
mod tests {
    use super::read_recipes;
    use crate::spent::processor_time;
    use shardscope_plan::Field;
    use std::time::Duration;

    /// Far above the time that an optimized build takes: tests run without optimization.
    const LONG: Duration = Duration::from_secs(3);

    /// The optimizer's settings are the first of a pair; what the recipe says of them afterwards is added.
    #[test]
    fn optimizers_come_in_pairs_with_their_schedule() {
        let of = |function: &str| {
            let text = format!(
                "def mine() -> ConfigContainer:\n    cfg = _pretrain_common()\n    opt_cfg, scheduler = {function}(max_lr=1e-4)\n    \
                 opt_cfg.exp_avg_dtype = torch.bfloat16\n    cfg.optimizer = opt_cfg\n    cfg.ddp.use_distributed_optimizer = False\n    \
                 return cfg\n"
            );
            let read = read_recipes(&text, None, 0).expect("a recipe");
            [Field::Optimizer, Field::ExpAvgDtype].map(|field| read.value(field).map(str::to_owned))
        };
        let [kind, moments] = of("distributed_muon_with_cosine_annealing");
        assert_eq!((kind.as_deref(), moments.as_deref()), (Some("dist_muon"), Some("torch.bfloat16")));
        let [kind, _] = of("distributed_fused_adam_with_cosine_annealing");
        assert_eq!(kind.as_deref(), Some("adam"));
        // A function that is not known.
        assert_eq!(of("lion_with_my_schedule")[0], None);
    }

    #[test]
    fn hostile_programs_end_soon() {
        let of = |body: &str| format!("def a() -> ConfigContainer:\n{body}    return cfg\n");
        let mut names = String::new();
        let mut assigned = String::from("    cfg = X()\n");
        for number in 0..40_000 {
            names.push_str(&format!("import x{number}_config\n"));
            assigned.push_str(&format!("    cfg.a{number} = {number}\n"));
        }
        let doubled = "    cfg = X(a=cfg, b=cfg)\n".repeat(5_000);
        let called = "    cfg = a()\n    b(cfg)\n".repeat(5_000);
        let nested = format!("    cfg = {}1{}\n", "X(a=".repeat(100_000), ")".repeat(100_000));
        let texts = [
            names,
            of(&assigned),
            of(&doubled),
            of(&called),
            of(&nested),
            of(&"    if a > b:\n".repeat(50_000)),
            of(&format!("    {}b = a()\n", "a, ".repeat(100_000)).repeat(3)),
        ];
        for text in texts {
            let start = processor_time();
            let _ = read_recipes(&text, None, 0);
            let took = processor_time().saturating_sub(start);
            assert!(took < LONG, "{took:?} for {}", text.get(..60).unwrap_or(""));
        }
    }
}
