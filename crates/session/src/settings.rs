//! The settings as a table: grouped, each with how it may be changed.

use shardscope_launch::{Origin, Setting, SettingValue};
use shardscope_plan::{Field, ValueKind};

/// A group of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// Heading of the group.
    pub title: &'static str,
    /// The settings that have a value.
    pub rows: Vec<Row>,
}

/// A setting that has a value, with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which.
    pub field: Field,
    /// The setting as resolved.
    pub setting: Setting,
}

impl Row {
    /// Whether it was stated explicitly: by the script, its environment or the user.
    #[must_use]
    pub fn is_stated(&self) -> bool {
        matches!(self.setting.origin, Origin::Script | Origin::Environment | Origin::User)
    }

    /// The value in words.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.setting.value {
            SettingValue::Bool(true) => "yes".to_owned(),
            SettingValue::Bool(false) => "no".to_owned(),
            other => other.written(),
        }
    }

    /// The possible values; empty if any value of its kind is allowed.
    #[must_use]
    pub fn choices(&self) -> Vec<&'static str> {
        match self.field.kind() {
            // Flags are offered with both values: if the text states one, the user wants to try the other.
            ValueKind::Flag => vec!["true", "false"],
            ValueKind::Word(words) => words.to_vec(),
            _ => Vec::new(),
        }
    }
}

/// First setting of each group, in the order of [`Field::ALL`], which is grouped accordingly.
const CHAPTERS: [(Field, &str); 8] = [
    (Field::Model, "Model"),
    (Field::Accelerator, "Cluster"),
    (Field::TensorModelParallelSize, "Parallel layout"),
    (Field::MicroBatchSize, "Batch"),
    (Field::Software, "Software and precision"),
    (Field::Optimizer, "Optimizer and sharding"),
    (Field::TrainType, "Fine-tuning and trainer"),
    (Field::RecomputeGranularity, "Activations, kernels and overlap"),
];

/// The settings that have a value, by group.
#[must_use]
pub fn chapters(settings: &[Setting]) -> Vec<Chapter> {
    let mut chapters: Vec<Chapter> = Vec::new();
    // A resolution holds one setting for each field, in this order, unset ones as `Null`.
    for (field, setting) in Field::ALL.iter().zip(settings) {
        if let Some((_, title)) = CHAPTERS.iter().find(|(first, _)| first == field) {
            chapters.push(Chapter { title, rows: Vec::new() });
        }
        if setting.value != SettingValue::Null
            && let Some(chapter) = chapters.last_mut()
        {
            chapter.rows.push(Row { field: *field, setting: setting.clone() });
        }
    }
    // A group can be empty: nothing of experts or fine-tuning is resolved for a dense pre-training.
    chapters.retain(|chapter| !chapter.rows.is_empty());
    chapters
}
