//! Base64 of the alphabet for addresses, without padding (RFC 4648, section 5).

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Adds `bytes` to `out`.
pub(super) fn encode(bytes: &[u8], out: &mut String) {
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        let number = number << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            let digit = number >> (18 - 6 * place) & 63;
            out.push(char::from(DIGITS[digit as usize]));
        }
    }
}

/// The bytes of `text`; nothing where it has other characters or ends within a byte.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut held, mut bits) = (0_u32, 0);
    for character in text.bytes() {
        let digit = DIGITS.iter().position(|digit| *digit == character)?;
        held = held << 6 | u32::try_from(digit).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits).to_le_bytes()[0]);
            held &= (1 << bits) - 1;
        }
    }
    (held == 0 && bits < 6).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    #[test]
    fn another_library_writes_and_reads_the_same() {
        for length in 0..40_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(length).wrapping_mul(37)).collect();
            let mut text = String::new();
            encode(&bytes, &mut text);
            assert_eq!(text, URL_SAFE_NO_PAD.encode(&bytes));
            assert_eq!(decode(&text), Some(bytes));
        }
        for text in ["A", "AA", "AB", "AAA", "AAB", "AAAA", "AAAAA", "AA==", "AA A", "AA+/", "__-_", "é", "Ā"]
        {
            assert_eq!(decode(text), URL_SAFE_NO_PAD.decode(text).ok(), "{text}");
        }
    }
}
