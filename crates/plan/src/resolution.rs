//! What a reader's texts resolve to: settings with their origins, open questions, and a plan if there can be one.

use super::not_modelled::NotModelled;
use super::setting::{Setting, SettingValue};
use super::setting_word::Word;
use super::{Field, NumberFormat, Plan};
use serde::{Deserialize, Serialize};
use shardscope_source::Diagnostic;

/// What a question asks for. As text, in documents and links, it is its [name](Asked::name).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Asked {
    /// A value of this setting.
    Setting(Field),
    /// A variable of the script, by its name.
    Variable(String),
    /// A positional argument of the script: `$1` or the like.
    Argument(String),
    /// Several variables at once; the answer is `NAME=value` words.
    Variables,
    /// All positional arguments of the script.
    Arguments,
    /// Which of several recipes is meant.
    Recipe,
    /// The line that starts a program; the answer is read as if it were pasted along with the program.
    CommandLine,
}

impl Asked {
    /// What is asked for under this name: a setting if there is one of that name, otherwise a variable.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let fixed = [Self::Variables, Self::Arguments, Self::Recipe, Self::CommandLine];
        if let Some(known) = fixed.into_iter().find(|known| known.name() == name) {
            return known;
        }
        if name.starts_with('$') {
            return Self::Argument(name.to_owned());
        }
        Field::named(name).map_or_else(|| Self::Variable(name.to_owned()), Self::Setting)
    }

    /// Its name in documents, links and answers.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Setting(field) => field.name(),
            Self::Variable(name) | Self::Argument(name) => name,
            Self::Variables => "variables",
            Self::Arguments => "arguments",
            Self::Recipe => "recipe",
            Self::CommandLine => "command_line",
        }
    }

    /// The setting, if that is what is asked for.
    #[must_use]
    pub fn setting(&self) -> Option<Field> {
        match self {
            Self::Setting(field) => Some(*field),
            _ => None,
        }
    }

    /// The answer among answers by name; the first where there are several.
    #[must_use]
    pub fn answer<'a>(&self, answers: &'a [(String, String)]) -> Option<&'a str> {
        answers.iter().find(|(name, _)| name == self.name()).map(|(_, value)| value.as_str())
    }
}

impl From<String> for Asked {
    fn from(name: String) -> Self {
        Self::from_name(&name)
    }
}

impl From<Asked> for String {
    fn from(asked: Asked) -> Self {
        asked.name().to_owned()
    }
}

/// Something the text leaves open and the report needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The setting or variable asked for; `name` in documents.
    #[serde(rename = "name")]
    pub asks: Asked,
    /// The question in words.
    pub prompt: String,
    /// What may be answered; empty when anything may.
    pub choices: Vec<String>,
    /// A likely answer, if there is one.
    pub proposal: Option<String>,
}

impl Question {
    /// The name of what it asks for.
    #[must_use]
    pub fn name(&self) -> &str {
        self.asks.name()
    }
}

/// Everything that pasted texts and the reader's own settings resolve to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolution {
    /// The plan, if the settings allow one.
    pub plan: Option<Plan>,
    /// Every setting with its value and origin, in the order of [`Field::ALL`].
    pub settings: Vec<Setting>,
    /// What the text leaves open.
    pub questions: Vec<Question>,
    /// Diagnostics, errors first; the last one says how many more there are, where there are more.
    pub diagnostics: Vec<Diagnostic>,
    /// Those behind the bound on diagnostics, for readers who ask for all of them.
    pub further: Vec<Diagnostic>,
    /// Settings that change figures and are not modelled. There is a plan only if the reader continues without all of
    /// them.
    pub not_modelled: Vec<NotModelled>,
}

impl Resolution {
    /// A setting of the resolution; `None` if nothing was resolved.
    #[must_use]
    pub fn setting(&self, field: Field) -> Option<&Setting> {
        // All fields are present, in order.
        self.settings.get(field.index())
    }

    /// The value of a setting that holds one of some words.
    #[must_use]
    pub fn chosen<W: Word>(&self) -> Option<W> {
        match &self.setting(W::FIELD)?.value {
            SettingValue::Text(word) => W::from_word(word),
            _ => None,
        }
    }

    /// Whether a setting has this value.
    #[must_use]
    pub fn is<W: Word>(&self, value: W) -> bool {
        self.chosen() == Some(value)
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn on(&self, field: Field) -> bool {
        self.setting(field).is_some_and(|setting| setting.value == SettingValue::Bool(true))
    }

    /// A whole number.
    #[must_use]
    pub fn count(&self, field: Field) -> Option<u64> {
        match self.setting(field)?.value {
            SettingValue::Int(value) => Some(value),
            _ => None,
        }
    }

    /// A number format.
    #[must_use]
    pub fn format(&self, field: Field) -> Option<NumberFormat> {
        match &self.setting(field)?.value {
            SettingValue::Text(word) => NumberFormat::named(word),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_and_its_name_are_one() {
        let fixed = [Asked::Variables, Asked::Arguments, Asked::Recipe, Asked::CommandLine];
        let named = [Asked::Variable("WORLD_SIZE".to_owned()), Asked::Argument("$2".to_owned())];
        let settings = Field::ALL.iter().map(|field| Asked::Setting(*field));
        for asked in settings.chain(fixed).chain(named) {
            assert_eq!(Asked::from_name(asked.name()), asked);
        }
    }

    #[test]
    fn an_answer_is_found_by_the_name_of_its_question() {
        let answers =
            [("recipe".to_owned(), "llama3_8b".to_owned()), ("recipe".to_owned(), "other".to_owned())];
        assert_eq!(Asked::Recipe.answer(&answers), Some("llama3_8b"));
        assert_eq!(Asked::CommandLine.answer(&answers), None);
    }
}
