//! Values of settings in the type that a stage needs, with a fallback if there is none.

use super::{Table, listed_names};
use shardscope_plan::{Field, NumberFormat, SettingValue, Software, Word};

impl Table {
    /// A count.
    pub(crate) fn count(&self, field: Field) -> Option<u64> {
        match self.get(field)?.value {
            SettingValue::Int(value) => Some(value),
            _ => None,
        }
    }

    /// A count, or 0 if there is none.
    pub(crate) fn number(&self, field: Field) -> u64 {
        self.count(field).unwrap_or(0)
    }

    /// A count that is a degree, or 1 if there is none.
    pub(crate) fn degree(&self, field: Field) -> u64 {
        // At least 1, because it is used as a divisor.
        self.count(field).unwrap_or(1).max(1)
    }

    /// Whether something that is not modelled counts beside these settings.
    pub(crate) fn meets(&self, item: &crate::NotModelled) -> bool {
        let is = |(field, value): &(Field, String)| {
            self.get(*field).is_some_and(|setting| setting.value.written() == *value)
        };
        item.only_at.as_ref().is_none_or(is) && !item.unless_at.as_ref().is_some_and(is)
    }

    /// The ranks of one replica: TP x PP x CP.
    pub(crate) fn ranks_of_one(&self) -> u64 {
        let degrees =
            [Field::TensorModelParallelSize, Field::PipelineModelParallelSize, Field::ContextParallelSize];
        degrees.iter().fold(1, |ranks, field| ranks.saturating_mul(self.degree(*field)))
    }

    /// A switch, or off if there is none.
    pub(crate) fn on(&self, field: Field) -> bool {
        self.switch(field).unwrap_or(false)
    }

    /// A switch, if it has a value.
    pub(crate) fn switch(&self, field: Field) -> Option<bool> {
        match self.get(field)?.value {
            SettingValue::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// A real number.
    pub(crate) fn real(&self, field: Field) -> Option<f64> {
        match self.get(field)?.value {
            SettingValue::Real(value) => Some(value),
            _ => None,
        }
    }

    /// A word or text, or empty if there is none.
    pub(crate) fn word(&self, field: Field) -> &str {
        match self.get(field).map(|setting| &setting.value) {
            Some(SettingValue::Text(value)) => value,
            _ => "",
        }
    }

    /// The value of a setting that holds one of some words.
    pub(crate) fn chosen<W: Word>(&self) -> Option<W> {
        W::from_word(self.word(W::FIELD))
    }

    /// Whether a setting has this value.
    pub(crate) fn is<W: Word>(&self, value: W) -> bool {
        self.chosen() == Some(value)
    }

    /// Whether a setting has one of these values.
    pub(crate) fn is_any<W: Word>(&self, values: &[W]) -> bool {
        self.chosen().is_some_and(|value| values.contains(&value))
    }

    /// Whether a setting has no value or one of these.
    pub(crate) fn is_unset_or<W: Word>(&self, values: &[W]) -> bool {
        self.chosen().is_none_or(|value| values.contains(&value))
    }

    /// The values of a setting that holds several of some words; others are passed over.
    pub(crate) fn listed<W: Word>(&self) -> Vec<W> {
        self.words(W::FIELD).into_iter().filter_map(W::from_word).collect()
    }

    /// A number format.
    pub(crate) fn format(&self, field: Field) -> Option<NumberFormat> {
        NumberFormat::named(self.word(field))
    }

    /// Whether a setting has this number format.
    pub(crate) fn is_format(&self, field: Field, format: NumberFormat) -> bool {
        self.format(field) == Some(format)
    }

    /// Whether the software is Megatron's legacy models or their DeepSpeed fork.
    pub(crate) fn is_old(&self) -> bool {
        self.is_any(&[Software::MegatronLegacy, Software::MegatronDeepspeed])
    }

    /// How missing settings can be given: by flags, if the command has them, or else by an answer. Other trainers have
    /// their own names for them, and none for some.
    pub(crate) fn way_to_state(&self, fields: &[Field]) -> String {
        const WITH_FLAGS: [Software; 4] = [
            Software::MegatronLegacy,
            Software::MegatronCoreLocal,
            Software::MegatronCoreTe,
            Software::MegatronDeepspeed,
        ];
        if self.is_any(&WITH_FLAGS) {
            return "add --".to_owned() + &listed_names(fields, ", --").replace('_', "-");
        }
        const SHAPE: [Field; 3] = [Field::NumLayers, Field::HiddenSize, Field::NumAttentionHeads];
        if SHAPE.iter().all(|field| fields.contains(field)) {
            "name the model, paste its config.json, or answer the questions".to_owned()
        } else {
            "answer the questions".to_owned()
        }
    }

    /// A list of words.
    pub(crate) fn words(&self, field: Field) -> Vec<&str> {
        let mut words = Vec::new();
        for value in self.list(field) {
            if let SettingValue::Text(word) = value {
                words.push(word.as_str());
            }
        }
        words
    }

    fn list(&self, field: Field) -> &[SettingValue] {
        match self.get(field).map(|setting| &setting.value) {
            Some(SettingValue::List(values)) => values,
            _ => &[],
        }
    }

    /// A list of counts.
    pub(crate) fn counts(&self, field: Field) -> Vec<u64> {
        let mut counts = Vec::new();
        for value in self.list(field) {
            if let SettingValue::Int(count) = value {
                counts.push(*count);
            }
        }
        counts
    }
}
