//! Definitions evaluated over a configuration.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use shardscope_config_tree::Node;

use crate::expression::Expression;
use crate::rules::{Defaults, Definitions};
use crate::value::{Number, Value};

/// Most layers of a model; the largest published ones have some hundred.
pub(crate) const MOST_LAYERS: u64 = 4096;
/// Most steps of one evaluation; a model of a hundred layers takes some twenty thousand.
const MOST_STEPS: u32 = 300_000;
/// Deepest chain of definitions.
const DEPTH: u32 = 48;

/// Why a configuration gives no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A key that its model type needs is neither written nor has a default.
    Missing(String),
    /// A key holds what its model type cannot use.
    Unfit(String),
    /// Its sizes are beyond anything that is built.
    TooLarge,
}

/// A key that a figure was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The key, as the configuration writes it.
    pub key: String,
    /// Whether it is written there; else it is a default of the model type.
    pub written: bool,
}

/// One configuration under the definitions of its type.
pub(crate) struct Evaluation<'c> {
    definitions: Definitions,
    defaults: Defaults,
    /// Node in which keys are looked up.
    place: &'c Node,
    /// Whether embeddings are tied, where that is said elsewhere.
    tied: Option<bool>,
    /// Width of the language model beside a tower.
    text_hidden: Option<u64>,
    // The layer that a definition is evaluated for; none outside of any layer.
    layer: Cell<Option<u64>>,
    // Known by name and layer: definitions refer to each other, and a sum over layers would evaluate each anew.
    known: RefCell<HashMap<(&'static str, Option<u64>), Value>>,
    used: RefCell<Vec<Used>>,
    // A budget for the whole configuration, not for each definition.
    steps: Cell<u32>,
    depth: Cell<u32>,
}

impl<'c> Evaluation<'c> {
    pub(crate) fn new(
        definitions: Definitions,
        defaults: Defaults,
        place: &'c Node,
        tied: Option<bool>,
    ) -> Self {
        Self {
            definitions,
            defaults,
            place,
            tied,
            text_hidden: None,
            layer: Cell::new(None),
            known: RefCell::default(),
            used: RefCell::default(),
            steps: Cell::new(0),
            depth: Cell::new(0),
        }
    }

    /// The same for the tower beside a language model of width `text_hidden`. A tower has no defaults: its sizes differ
    /// between the models of one type, so that they count only as written.
    pub(crate) fn of_tower(definitions: Definitions, root: &'c Node, text_hidden: u64) -> Self {
        let plain = Self::new(definitions, Defaults::default(), root, None);
        Self { text_hidden: Some(text_hidden), ..plain }
    }

    /// The keys looked at so far, each once.
    pub(crate) fn used(&self) -> Vec<Used> {
        self.used.borrow().clone()
    }

    /// A definition as a size.
    pub(crate) fn size(&self, name: &'static str) -> Result<u64, Stop> {
        let value = self.name(name)?;
        // The key that the definition begins with says more than the definition's name.
        let key = || self.definitions.get(name).map_or_else(|| name.to_owned(), named);
        let unfit = || if value == Value::Nothing { Stop::Missing(key()) } else { Stop::Unfit(key()) };
        match value.number().ok_or_else(unfit)? {
            // A negative size is written nonsense, or the rule of another version of the type.
            Number::Whole(whole) => u64::try_from(whole).map_err(|_| Stop::Unfit(key())),
            Number::Real(_) => Err(Stop::Unfit(key())),
        }
    }

    /// A definition as a size of layer `index`.
    pub(crate) fn size_at(&self, name: &'static str, index: u64) -> Result<u64, Stop> {
        self.within(index, || self.size(name))
    }

    /// A definition as a condition.
    pub(crate) fn holds(&self, name: &'static str) -> Result<bool, Stop> {
        Ok(self.name(name)?.holds())
    }

    /// A definition as a condition of layer `index`.
    pub(crate) fn holds_at(&self, name: &'static str, index: u64) -> Result<bool, Stop> {
        self.within(index, || self.holds(name))
    }

    /// A definition as words.
    pub(crate) fn words(&self, name: &'static str) -> Result<Vec<String>, Stop> {
        Ok(match self.name(name)? {
            Value::Text(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
            _ => Vec::new(),
        })
    }

    /// A definition of layer `index` as one word.
    pub(crate) fn word_at(&self, name: &'static str, index: u64) -> Result<String, Stop> {
        self.within(index, || Ok(self.words(name)?.concat()))
    }

    /// Whether the type defines a name.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.definitions.contains_key(name)
    }

    fn within<T>(&self, index: u64, inner: impl FnOnce() -> T) -> T {
        // Restored behind: sums nest, and the outer layer goes on.
        let outer = self.layer.replace(Some(index));
        let value = inner();
        self.layer.set(outer);
        value
    }

    /// The value of a definition, or of a key where no definition has that name.
    pub(crate) fn name(&self, name: &'static str) -> Result<Value, Stop> {
        match name {
            "true" => return Ok(Value::Truth(true)),
            "false" => return Ok(Value::Truth(false)),
            "null" => return Ok(Value::Nothing),
            // Names of the language themselves come before definitions and keys.
            "text_hidden" => {
                return self.text_hidden.map(|width| Value::Whole(i128::from(width))).ok_or(Stop::TooLarge);
            }
            "i" => {
                return self.layer.get().map(|index| Value::Whole(i128::from(index))).ok_or(Stop::TooLarge);
            }
            _ => {}
        }
        // `config.x` is the key even where a definition is called `x`, so that a rule can refine what a key says.
        if let Some(key) = name.strip_prefix("config.") {
            return Ok(self.key(key));
        }
        // What no rule defines is a key.
        let Some(expression) = self.definitions.get(name) else { return Ok(self.key(name)) };
        let at = (name, self.layer.get());
        if let Some(value) = self.known.borrow().get(&at) {
            return Ok(value.clone());
        }
        // Deeper than any rule goes: a definition that leads back to itself.
        if self.depth.get() >= DEPTH {
            return Err(Stop::TooLarge);
        }
        self.depth.set(self.depth.get() + 1);
        let value = self.value(expression);
        // Before a failure is passed on: whoever asked may go on without the value.
        self.depth.set(self.depth.get() - 1);
        let value = value?;
        self.known.borrow_mut().insert(at, value.clone());
        Ok(value)
    }

    /// The value of a key: as written under any of its names, or the type's default. A key that is
    /// written as `null` has no value even where there is a default, as in the library.
    fn key(&self, key: &str) -> Value {
        // Said by the whole composite; the part's own key is then not asked.
        if let (Some(tied), "tie_word_embeddings") = (self.tied, key) {
            self.note(key, true);
            return Value::Truth(tied);
        }
        let mut empty = false;
        for name in self.defaults.names(key) {
            // The next alias, since a configuration has only one of the names.
            let Some(node) = self.place.at(name) else { continue };
            let value = Value::from_node(node);
            if value != Value::Nothing {
                self.note(name, true);
                return value;
            }
            empty = true;
        }
        // Noted as written when it is `null`: the figure then follows from that, not from the default.
        self.note(key, empty);
        if empty { Value::Nothing } else { self.defaults.value(key) }
    }

    fn note(&self, key: &str, written: bool) {
        let mut used = self.used.borrow_mut();
        if used.iter().all(|known| known.key != key) {
            used.push(Used { key: key.to_owned(), written });
        }
    }

    fn value(&self, expression: &Expression) -> Result<Value, Stop> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS {
            return Err(Stop::TooLarge);
        }
        Ok(match expression {
            Expression::Whole(whole) => Value::Whole(*whole),
            Expression::Real(real) => Value::Real(*real),
            Expression::Text(text) => Value::Text((*text).to_owned()),
            Expression::Name(name) => self.name(name)?,
            Expression::List(values) => {
                Value::List(values.iter().map(|value| self.value(value)).collect::<Result<_, _>>()?)
            }
            Expression::Not(inner) => Value::Truth(!self.value(inner)?.holds()),
            Expression::Minus(inner) => match self.number(inner)? {
                Number::Whole(whole) => Value::Whole(-whole),
                Number::Real(real) => Value::Real(-real),
            },
            Expression::Choice(parts) => {
                // Only the branch that is taken: the other may ask for keys that this type has not.
                let [condition, one, other] = &**parts;
                self.value(if self.value(condition)?.holds() { one } else { other })?
            }
            Expression::Two(operator, sides) => self.two(operator, &sides[0], &sides[1])?,
            Expression::Call(function, arguments) => self.call(function, arguments)?,
        })
    }

    fn two(&self, operator: &str, left: &Expression, right: &Expression) -> Result<Value, Stop> {
        Ok(match operator {
            "??" => match self.value(left)? {
                Value::Nothing => self.value(right)?,
                value => value,
            },
            // Short-circuited, for the same reason.
            "||" => Value::Truth(self.value(left)?.holds() || self.value(right)?.holds()),
            "&&" => Value::Truth(self.value(left)?.holds() && self.value(right)?.holds()),
            "==" => Value::Truth(self.value(left)?.same(&self.value(right)?)),
            "!=" => Value::Truth(!self.value(left)?.same(&self.value(right)?)),
            _ => arithmetic(operator, self.number(left)?, self.number(right)?)?,
        })
    }

    /// A number, or what is wrong with the key or definition that should be one.
    fn number(&self, expression: &Expression) -> Result<Number, Stop> {
        let value = self.value(expression)?;
        value.number().ok_or_else(|| {
            let name = named(expression);
            if value == Value::Nothing { Stop::Missing(name) } else { Stop::Unfit(name) }
        })
    }

    fn whole(&self, expression: &Expression) -> Result<i128, Stop> {
        match self.number(expression)? {
            Number::Whole(whole) => Ok(whole),
            Number::Real(_) => Err(Stop::Unfit(named(expression))),
        }
    }

    fn call(&self, function: &str, arguments: &[Expression]) -> Result<Value, Stop> {
        let unfit = || Stop::Unfit(arguments.first().map(named).unwrap_or_default());
        Ok(match (function, arguments) {
            // The bound variable `i` is implied; the first argument names it for the reader of the rules.
            ("sum", [_, count, each]) => Value::Whole(self.sum(count, each)?),
            ("at", [list, index]) => match (self.value(list)?, self.whole(index)?) {
                (Value::List(values), index) => {
                    usize::try_from(index).ok().and_then(|index| values.into_iter().nth(index))
                }
                // A pattern of letters: "M-M*".
                (Value::Text(letters), index) => usize::try_from(index)
                    .ok()
                    .and_then(|index| letters.chars().nth(index))
                    .map(|letter| Value::Text(letter.to_string())),
                _ => return Err(unfit()),
            }
            .unwrap_or(Value::Nothing),
            ("in", [value, list]) => {
                let value = self.value(value)?;
                let found = match self.value(list)? {
                    Value::List(values) => values.iter().any(|one| one.same(&value)),
                    // A list that is not there holds nothing, as `in (x or [])` of Python.
                    Value::Nothing => false,
                    _ => return Err(unfit()),
                };
                Value::Truth(found)
            }
            ("len", [list]) => match self.value(list)? {
                Value::List(values) => Value::Whole(i128::try_from(values.len()).unwrap_or(0)),
                Value::Text(text) => Value::Whole(i128::try_from(text.chars().count()).unwrap_or(0)),
                _ => return Err(unfit()),
            },
            ("list", [value]) => Value::Truth(matches!(self.value(value)?, Value::List(_))),
            ("ceil", [value, step]) | ("up", [value, step]) => {
                let (value, step) = (self.whole(value)?, self.whole(step)?);
                if step <= 0 || value < 0 {
                    return Err(unfit());
                }
                // In 128 bits, where sizes of 64 do not overflow.
                let parts = (value + step - 1) / step;
                Value::Whole(if function == "up" { parts * step } else { parts })
            }
            #[expect(
                clippy::cast_possible_truncation,
                reason = "int() of Python cuts the fraction; sizes are small"
            )]
            ("int", [value]) => match self.number(value)? {
                Number::Whole(whole) => Value::Whole(whole),
                Number::Real(real) => Value::Whole(real as i128),
            },
            _ => return Err(Stop::Unfit(function.to_owned())),
        })
    }

    fn sum(&self, count: &Expression, each: &Expression) -> Result<i128, Stop> {
        let count = u64::try_from(self.whole(count)?).map_err(|_| Stop::Unfit(named(count)))?;
        // Before looping: the count is a number of the configuration.
        if count > MOST_LAYERS {
            return Err(Stop::TooLarge);
        }
        let mut sum: i128 = 0;
        for index in 0..count {
            let one = self.within(index, || self.whole(each))?;
            sum = sum.checked_add(one).ok_or(Stop::TooLarge)?;
        }
        Ok(sum)
    }
}

/// The name at fault in an expression.
fn named(expression: &Expression) -> String {
    match expression {
        Expression::Name(name) => name.strip_prefix("config.").unwrap_or(name).to_owned(),
        Expression::Two(_, sides) => named(&sides[0]),
        Expression::Choice(parts) => named(&parts[1]),
        Expression::Call(_, arguments) => arguments.first().map(named).unwrap_or_default(),
        Expression::Not(inner) | Expression::Minus(inner) => named(inner),
        _ => String::new(),
    }
}

fn arithmetic(operator: &str, left: Number, right: Number) -> Result<Value, Stop> {
    let unfit = || Stop::Unfit(operator.to_owned());
    if let (Number::Whole(left), Number::Whole(right)) = (left, right) {
        let whole = match operator {
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            // `//` of Python, for sizes: the result is cut.
            "/" if right != 0 => left.checked_div_euclid(right),
            "%" if right != 0 => left.checked_rem_euclid(right),
            "/" | "%" => return Err(unfit()),
            "<" => return Ok(Value::Truth(left < right)),
            ">" => return Ok(Value::Truth(left > right)),
            "<=" => return Ok(Value::Truth(left <= right)),
            ">=" => return Ok(Value::Truth(left >= right)),
            _ => return Err(unfit()),
        };
        return whole.map(Value::Whole).ok_or(Stop::TooLarge);
    }
    let (left, right) = (left.real(), right.real());
    Ok(match operator {
        "+" => Value::Real(left + right),
        "-" => Value::Real(left - right),
        "*" => Value::Real(left * right),
        "/" if right != 0.0 => Value::Real(left / right),
        "<" => Value::Truth(left < right),
        ">" => Value::Truth(left > right),
        "<=" => Value::Truth(left <= right),
        ">=" => Value::Truth(left >= right),
        _ => return Err(unfit()),
    })
}
