//! The length of samples if the program truncates them itself: `tokenizer(text, truncation=True, max_length=512)`, or
//! `input_ids = input_ids[:512]`.

use super::known::Known;
use super::literal::call_end;
use shardscope_python::value::Value;

/// Most tokenizer calls that are examined.
const MOST: usize = 32;

/// The length to which every tokenizer call truncates samples, and the position of the first call; `None` if there is
/// none, or if they differ or one is unknown. Prompts for generation are tensors without padding, and their
/// truncation does not concern training.
pub(super) fn length(text: &str, known: &Known<'_>) -> Option<(String, usize)> {
    let mut found: Option<(String, usize)> = None;
    let named = tokenizers(text);
    let mut calls: Vec<(usize, usize)> = Vec::new();
    for name in std::iter::once("tokenizer").chain(named.iter().copied()) {
        let called = text.match_indices(name).map(|(at, _)| (at, at + name.len()));
        calls.extend(called.filter(|(_, open)| text[*open..].starts_with('(')).take(MOST));
    }
    for (at, open) in calls {
        let start = at - text.get(..at)?.bytes().rev().take_while(|byte| is_name(*byte)).count();
        let whole = text.get(start..open)?;
        let is_one = whole.ends_with("tokenizer") || named.contains(&whole);
        if !is_one || text.get(..start)?.trim_end().ends_with("def") {
            continue;
        }
        let call = text.get(start..call_end(text, open))?;
        let given = |key: &str| known.keyword(call, start, key);
        let cuts = given("truncation").flatten().and_then(|value| value.setting());
        let cuts = cuts.is_some_and(|how| !matches!(how.as_str(), "" | "false" | "do_not_truncate"));
        let padded = given("padding").flatten().and_then(|value| value.setting());
        let tensors = given("return_tensors").is_some_and(|value| value != Some(Value::None));
        let Some(cut) = given("max_length").filter(|_| cuts) else { continue };
        if tensors && padded.as_deref() != Some("max_length") {
            continue;
        }
        let cut = cut?.setting()?;
        match &found {
            Some((before, _)) if *before != cut => return None,
            Some(_) => {}
            None => found = Some((cut, start)),
        }
    }
    if found.is_none() {
        found = sliced(text, known)?;
    }
    found.filter(|(cut, _)| cut.parse::<u64>().is_ok_and(|tokens| tokens > 0))
}

/// Names, other than those ending in `tokenizer`, that the program gives to the result of
/// `AutoTokenizer.from_pretrained` and similar calls.
fn tokenizers(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices("Tokenizer.from_pretrained(").take(MOST) {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let Some((name, class)) = line.split_once('=') else { continue };
        let name = name.trim();
        let is_plain = !name.is_empty() && name.bytes().all(is_name);
        if is_plain
            && class.trim().bytes().all(is_name)
            && !name.ends_with("tokenizer")
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// The length to which the program truncates the tokens of its samples by a slice, and the position of the first slice;
/// the inner `None` means no slice, the outer one that slices differ or one is unknown.
fn sliced(text: &str, known: &Known<'_>) -> Option<Option<(String, usize)>> {
    /// The name of a sample's tokens.
    const TOKENS: &str = "input_ids";
    let mut found: Option<(String, usize)> = None;
    for (at, _) in text.match_indices(TOKENS).take(MOST) {
        // `input_ids = input_ids[:LONGEST]`, also with a sample's key or an attribute.
        let line = text.get(..at)?.rsplit('\n').next().unwrap_or_default();
        let behind = text.get(at + TOKENS.len()..)?;
        let behind =
            behind.strip_prefix(['"', '\'']).and_then(|rest| rest.strip_prefix(']')).unwrap_or(behind);
        let Some((cut, _)) = behind.strip_prefix("[:").and_then(|rest| rest.split_once(']')) else {
            continue;
        };
        let assigned = line.contains(TOKENS) && line.contains('=') && !line.trim_start().starts_with('#');
        if !assigned || cut.is_empty() || cut.contains([',', '\n']) {
            continue;
        }
        let cut = known.value(cut.trim(), at)?;
        match &found {
            Some((before, _)) if *before != cut => return None,
            Some(_) => {}
            None => found = Some((cut, at)),
        }
    }
    Some(found)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::super::names::Names;
    use super::super::options::Options;
    use super::{Known, length};

    fn cut(text: &str) -> Option<String> {
        let known = Known::new(text, Options::new(text, 0, "", &Names::new(text), &[]));
        length(text, &known).map(|(cut, _)| cut)
    }

    #[test]
    fn samples_are_as_long_as_every_tokenizer_cuts_them() {
        let training = "LONGEST = 256\ndef tokenize(row):\n    return tokenizer(row['text'], truncation=True, padding='max_length', max_length=LONGEST)\n";
        let prompt = "inputs = tokenizer(question, return_tensors='pt', truncation=True, max_length=64)\n";
        assert_eq!(cut(training).as_deref(), Some("256"));
        assert_eq!(cut(&format!("{training}{prompt}")).as_deref(), Some("256"));
        assert_eq!(
            cut(&format!("{training}again = self.tokenizer(row, truncation=True, max_length=128)\n")),
            None
        );
        let named = "tok = AutoTokenizer.from_pretrained('gpt2')\nrows = rows.map(lambda row: tok(row['text'], truncation=True, max_length=512))\n";
        assert_eq!(cut(named).as_deref(), Some("512"));
        // Other functions whose names contain this one do not count.
        assert_eq!(cut(&named.replace("lambda row: tok(", "lambda row: bpe_tok(")), None);
        for none in [
            prompt,
            "out = tokenizer(row, max_length=256)\n",
            "out = tokenizer(row, truncation=False, max_length=256)\n",
            "out = tokenizer(row, truncation=True, max_length=length())\n",
            "def tokenizer(row, truncation=True, max_length=256):\n    return row\n",
        ] {
            assert_eq!(cut(none), None, "{none}");
        }
    }

    #[test]
    fn samples_are_as_long_as_the_slice_that_is_left_of_them() {
        let by = |slice: &str| {
            format!(
                "def process(row):\n    LONGEST = 1024\n    ids = tokenizer(row['text'])\n    input_ids = ids['input_ids']\n    \
                 if len(input_ids) > LONGEST:\n        {slice}\n    return {{'input_ids': input_ids}}\n"
            )
        };
        for slice in [
            "input_ids = input_ids[:LONGEST]",
            "row['input_ids'] = row['input_ids'][:1024]",
            "x.input_ids = x.input_ids[:2 * 512]",
        ] {
            assert_eq!(cut(&by(slice)).as_deref(), Some("1024"), "{slice}");
        }
        for slice in [
            "input_ids = input_ids[:longest()]",
            "input_ids = input_ids[:-1]",
            "print(input_ids[:16])",
            "# input_ids = input_ids[:16]",
            "input_ids = input_ids[:, :16]",
            "input_ids = input_ids[:512]\n        input_ids = input_ids[:256]",
        ] {
            assert_eq!(cut(&by(slice)), None, "{slice}");
        }
        // The tokenizer's own truncation takes precedence.
        let both = format!(
            "{}tokenizer(row, truncation=True, max_length=64)\n",
            by("input_ids = input_ids[:LONGEST]")
        );
        assert_eq!(cut(&both).as_deref(), Some("64"));
    }
}
