//! Settings by their place and by name.

use super::field::Field;

impl Field {
    /// Its place in [`Field::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The setting with this name; `-` counts as `_`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let same = |known: &str| {
            known.len() == name.len()
                && !name.is_empty()
                && known.bytes().zip(name.bytes()).all(|(a, b)| a == if b == b'-' { b'_' } else { b })
        };
        // By their stored ends: searching for line breaks would take a third of the time of reading a script.
        Self::ALL.iter().copied().find(|field| same(field.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::Field;

    #[test]
    fn names_are_found_and_single() {
        for (index, field) in Field::ALL.iter().enumerate() {
            assert_eq!(Field::named(field.name()), Some(*field), "{}", field.name());
            assert_eq!(field.index(), index);
            assert!(!field.about().is_empty(), "{}", field.name());
        }
        assert_eq!(Field::named("num-layers"), Some(Field::NumLayers));
        assert_eq!(Field::named("num_layer"), None);
        assert_eq!(Field::NumLayers.about(), "transformer layers");
    }
}
