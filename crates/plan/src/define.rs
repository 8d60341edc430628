//! How a setting is defined: one line each, from which the type, its names, kinds and descriptions are generated.

macro_rules! fields {
    ($($field:ident $name:literal $kind:expr, $about:literal;)*) => {
        /// A setting. More are added in any release.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Field {
            $(#[doc = $about] $field,)*
        }

        impl Field {
            /// Every setting, in the order in which reports list them.
            pub const ALL: &'static [Self] = &[$(Self::$field,)*];

            /// The name in settings, reports and links.
            #[must_use]
            pub fn name(self) -> &'static str {
                static NAMES: [&str; Field::ALL.len()] = [$($name,)*];
                NAMES[self.index()]
            }

            /// What it may hold.
            #[must_use]
            pub fn kind(self) -> ValueKind {
                static KINDS: [ValueKind; Field::ALL.len()] = [$($kind,)*];
                KINDS[self.index()]
            }

            /// What it is, in a few words.
            #[must_use]
            pub fn about(self) -> &'static str {
                static LINES: std::sync::OnceLock<Vec<&str>> = std::sync::OnceLock::new();
                let lines = LINES.get_or_init(|| ABOUTS.text().lines().collect());
                lines.get(self.index()).copied().unwrap_or_default()
            }
        }

        /// The tables of this crate: the description of each setting.
        pub fn tables() -> impl Iterator<Item = &'static shardscope_source::LaterText> {
            [&ABOUTS].into_iter()
        }

        /// The description of each setting, one line each in the order of [`Field::ALL`]. A program with the feature
        /// `tables-later` has only the names until it is given this text.
        static ABOUTS: shardscope_source::LaterText = shardscope_source::LaterText::new(
            "settings",
            if cfg!(feature = "tables-later") { None } else { Some(concat!($($about, "\n"),*)) },
        );
    };
}

pub(crate) use fields;
