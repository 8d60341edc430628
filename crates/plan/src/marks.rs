//! What a verdict must say beside its figures: which settings of the run it does not account for.

/// Settings that the figures do not account for. They travel with the plan, so that every output (text, Markdown,
/// document, link, embed) shows them with the verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Settings that change figures, are not modelled, and were left out at the reader's request.
    pub without: Vec<String>,
    /// Options and keys of the training that no reader knows, or that change a figure only slightly.
    pub not_read: Vec<String>,
    /// Whether step time and FLOPs leave out a vision tower and its projector.
    pub images_untimed: bool,
}

/// What a verdict on a model with a vision tower says.
const IMAGES_UNTIMED: &str = "Step time and FLOPs leave out the passes of the vision tower and its projector. Image tokens count in the sequence length.";

/// The most names that one sentence lists; those beyond are counted.
const LISTED: usize = 8;

impl Marks {
    /// Whether the verdict covers the whole run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.without.is_empty() && self.not_read.is_empty() && !self.images_untimed
    }

    /// The sentences that go with the verdict, one for each kind of mark.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut marks = Vec::new();
        if !self.without.is_empty() {
            let (names, verb) = (listed(&self.without), verb(&self.without));
            marks.push(format!("Without {names}, which {verb} not modelled."));
        }
        if !self.not_read.is_empty() {
            marks.push(format!("Not read: {}, which may change it.", listed(&self.not_read)));
        }
        if self.images_untimed {
            marks.push(IMAGES_UNTIMED.to_owned());
        }
        marks
    }

    /// The marks in a few words for a title; empty when there are none.
    #[must_use]
    pub fn short(&self) -> String {
        match (self.without.as_slice(), self.not_read.len()) {
            ([], 0) if self.images_untimed => " (vision tower not timed)".to_owned(),
            ([], 0) => String::new(),
            ([], 1) => " (1 option not read)".to_owned(),
            ([], count) => format!(" ({count} options not read)"),
            (without, _) => format!(" (without {})", listed(without)),
        }
    }
}

const fn verb(names: &[String]) -> &'static str {
    if names.len() == 1 { "is" } else { "are" }
}

fn listed(names: &[String]) -> String {
    let shown = names.get(..LISTED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::Marks;

    #[test]
    fn marks_are_said_in_one_sentence_each() {
        let names = |text: &str| text.split_ascii_whitespace().map(str::to_owned).collect();
        let marks =
            Marks { without: names("--lora-r --spec"), not_read: names("--mine"), images_untimed: false };
        assert_eq!(
            marks.sentences(),
            ["Without --lora-r, --spec, which are not modelled.", "Not read: --mine, which may change it."]
        );
        assert_eq!(marks.short(), " (without --lora-r, --spec)");
        assert!(Marks::default().is_empty() && Marks::default().sentences().is_empty());
        let images = Marks { images_untimed: true, ..Marks::default() };
        assert!(!images.is_empty() && images.sentences()[0].starts_with("Step time and FLOPs leave out"));
        assert_eq!(images.short(), " (vision tower not timed)");
        let many: Vec<String> = (0..11).map(|index| format!("a{index}")).collect();
        let marks = Marks { without: many, ..Marks::default() };
        assert!(marks.short().ends_with("a7 and 3 more)"), "{}", marks.short());
    }
}
