//! Raw deflate (RFC 1951), written and read: small rather than fast, for the texts of a link.

mod ladder;
mod read;
mod write;

pub(super) use read::inflate;
pub(super) use write::deflate;

#[cfg(test)]
mod tests {
    use super::{deflate, inflate};

    /// Texts of every kind: none, short, of one byte, of many, with matches near and far, of noise.
    fn texts() -> Vec<Vec<u8>> {
        let mut seed = 1_u32;
        let mut noise = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed.to_be_bytes()[0]
        };
        let mut texts: Vec<Vec<u8>> =
            ["", "a", "ab", "aaa", "abcabcabc"].map(|text| text.as_bytes().to_vec()).to_vec();
        texts.push(vec![0; 100_000]);
        texts.push((0..=255).collect());
        texts.push("TP=2 # ü\n".repeat(300).into_bytes());
        texts.push(include_str!("write.rs").into());
        let random: Vec<u8> = (0..50_000).map(|_| noise()).collect();
        texts.push([&random[..], &random[..], &random[..33_000]].concat());
        texts.push((0..60_000).map(|_| noise() % 3).collect());
        // Frequencies that grow like Fibonacci's numbers ask for codes longer than there are.
        let (mut one, mut other, mut skewed) = (1, 1, Vec::new());
        for byte in 0..24 {
            skewed.extend(std::iter::repeat_n(byte, one));
            (one, other) = (other, one + other);
        }
        texts.push(skewed);
        texts
    }

    #[test]
    fn another_library_reads_what_is_written() {
        for text in texts() {
            let written = deflate(&text);
            assert_eq!(miniz_oxide::inflate::decompress_to_vec(&written).ok().as_ref(), Some(&text));
            assert_eq!(inflate(&written, text.len()), Some(text));
        }
    }

    #[test]
    fn what_another_library_writes_is_read() {
        for text in texts() {
            for level in 0..=10 {
                let written = miniz_oxide::deflate::compress_to_vec(&text, level);
                assert_eq!(inflate(&written, text.len()).as_ref(), Some(&text), "level {level}");
            }
        }
    }

    #[test]
    fn scripts_become_as_small_as_another_library_makes_them() {
        for text in [include_str!("write.rs"), include_str!("read.rs")] {
            let theirs = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 9).len();
            let ours = deflate(text.as_bytes()).len();
            assert!(ours * 100 <= theirs * 102, "{ours} {theirs}");
        }
    }

    #[test]
    fn damage_is_found_or_harmless() {
        let text = "TP=2 # ü\n".repeat(30);
        let written = deflate(text.as_bytes());
        assert_eq!(inflate(&written, text.len() - 1), None, "more than is wanted");
        for end in 0..written.len() {
            assert_eq!(inflate(&written[..end], 1000), None, "cut at {end}");
        }
        for at in 0..written.len() * 8 {
            let mut damaged = written.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            let ours = inflate(&damaged, 1000);
            if let Ok(theirs) = miniz_oxide::inflate::decompress_to_vec_with_limit(&damaged, 1000) {
                assert_eq!(ours, Some(theirs), "bit {at}");
            }
        }
    }
}
