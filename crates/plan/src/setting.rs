//! One setting with its value and where it comes from.

use super::Field;
use serde::{Deserialize, Serialize};
use shardscope_source::Span;

/// Where a setting's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// The pasted text.
    Script,
    /// A variable that the text leaves to its environment, filled in by the user of the page.
    Environment,
    /// The catalog of models, tokenizers and hardware.
    Catalog,
    /// A default of the framework.
    Default,
    /// Derived from other settings by a rule of the framework.
    Derived,
    /// A control of the page.
    User,
}

impl Origin {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Environment => "environment",
            Self::Catalog => "catalog",
            Self::Default => "default",
            Self::Derived => "derived",
            Self::User => "user",
        }
    }
}

/// A setting's value, in the type required by its [`crate::ValueKind`].
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// Not known or not applicable.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(u64),
    /// A real number.
    Real(f64),
    /// Text.
    Text(String),
    /// Several values.
    List(Vec<SettingValue>),
}

impl SettingValue {
    /// The value as settings are typed and as links carry them: empty for `Null`, lists joined by spaces.
    #[must_use]
    pub fn written(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
            Self::Text(value) => value.clone(),
            Self::List(values) => values.iter().map(Self::written).collect::<Vec<_>>().join(" "),
        }
    }
}

/// A resolved setting: its value and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Which setting.
    pub field: Field,
    /// Its value.
    pub value: SettingValue,
    /// Where the value comes from.
    pub origin: Origin,
    /// The flag or key that stated it.
    pub flag: Option<String>,
    /// Where it was stated.
    pub span: Option<Span>,
    /// Which framework's default, or which rule; `None` if the origin is explanation enough.
    pub note: Option<String>,
}

impl Setting {
    /// Its name ([`Field::name`]).
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.field.name()
    }
}
