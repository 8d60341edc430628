//! Small programs whose output follows from their arguments and input alone.

use super::super::limits;
use super::super::value::{Value, Word};
use super::state::{Evaluator, Status};
use super::{python, regex};
use crate::text::Span;

/// What a program prints, if that can be said.
pub(crate) fn run(shell: &mut Evaluator<'_>, words: &[Word], span: Span) -> Option<(Value, Status)> {
    let (program, arguments) = words.split_first()?;
    let program = program.known()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let value = match program {
        "cat" => cat(shell, arguments)?,
        "tee" => tee(shell, arguments, span)?,
        "basename" => basename(arguments)?,
        "dirname" => dirname(arguments)?,
        "expr" => expr(shell, arguments, span)?,
        "seq" => seq(arguments, span)?,
        "bc" => {
            python::evaluate(known_input(shell)?.trim(), python::Dialect::Bc).map(|text| line(&text, span))?
        }
        "python" | "python3" => python_output(shell, arguments, span)?,
        "wc" => count(shell, arguments, span)?,
        "cut" => cut(shell, arguments)?,
        "tr" => tr(shell, arguments, span)?,
        "head" | "tail" => ends(shell, program == "head", arguments)?,
        "sed" => super::sed::run(shell, arguments, span)?,
        "awk" | "gawk" => awk(shell, arguments, span)?,
        "grep" | "egrep" => return grep(shell, arguments),
        "sort" | "uniq" if known_input(shell)?.trim().lines().count() == 1 => shell.input.clone()?,
        "numfmt" | "xargs" if arguments.is_empty() => shell.input.clone()?,
        _ => return None,
    };
    Some((value, Status::SUCCESS))
}

fn known_input<'s>(shell: &'s Evaluator<'_>) -> Option<&'s str> {
    shell.input.as_ref().and_then(Value::known)
}

fn line(text: &str, span: Span) -> Value {
    Value::computed(&format!("{text}\n"), span)
}

/// Arguments that are no options.
fn operands(arguments: &[Word]) -> Vec<&Word> {
    arguments.iter().filter(|word| !word.text().starts_with('-')).collect()
}

fn cat(shell: &mut Evaluator<'_>, arguments: &[Word]) -> Option<Value> {
    let files = operands(arguments);
    if files.is_empty() {
        return shell.input.clone();
    }
    let mut out = Value::default();
    for file in files {
        out.append(&shell.readable(&file.value)?);
    }
    Some(out)
}

fn tee(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    let input = shell.input.clone()?;
    let append = arguments.iter().any(|word| word.text() == "-a");
    for file in operands(arguments) {
        shell.write_file(file.value.clone(), input.clone(), append, span);
    }
    Some(input)
}

fn basename(arguments: &[Word]) -> Option<Value> {
    let names = operands(arguments);
    let value = &names.first()?.value;
    let text = value.text().trim_end_matches('/');
    // A hole may hold slashes of its own, unless literal text with one follows it.
    let start = text.rfind('/').map_or(0, |at| at + 1);
    let part = value.slice(start, text.len());
    if part.has_holes() {
        return None;
    }
    let mut end = text.len();
    if let Some(suffix) = names.get(1).and_then(|word| word.known())
        && text.len() - start > suffix.len()
        && text.ends_with(suffix)
    {
        end -= suffix.len();
    }
    Some(value.slice(start, end))
}

fn dirname(arguments: &[Word]) -> Option<Value> {
    let value = &operands(arguments).first()?.value;
    let text = value.text().trim_end_matches('/');
    let cut = text.rfind('/')?;
    let last = value.slice(cut, text.len());
    if last.has_holes() {
        return None;
    }
    Some(value.slice(0, cut.max(1)))
}

fn expr(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    let mut text = Value::default();
    for (at, word) in arguments.iter().enumerate() {
        if at > 0 {
            text.append(&Value::computed(" ", span));
        }
        text.append(&word.value);
    }
    let numeric = text.pieces().all(|piece| {
        piece.hole.is_some()
            || piece.text.bytes().all(|byte| byte.is_ascii_digit() || b" +-*/%()<>=&|!".contains(&byte))
    });
    if !numeric {
        return None;
    }
    let mut value = shell.arithmetic_value(&text, span);
    value.append(&Value::computed("\n", span));
    Some(value)
}

fn seq(arguments: &[Word], span: Span) -> Option<Value> {
    let mut separator = "\n";
    let mut ends: Vec<i64> = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.known()? {
            "-s" => separator = words.next()?.known()?,
            "-w" => return None,
            number => ends.push(number.parse().ok()?),
        }
    }
    let (from, step, to) = match ends.as_slice() {
        [to] => (1, 1, *to),
        [from, to] => (*from, 1, *to),
        [from, step, to] if *step != 0 => (*from, *step, *to),
        _ => return None,
    };
    let mut numbers = Vec::new();
    let mut number = from;
    while (step > 0 && number <= to) || (step < 0 && number >= to) {
        numbers.push(number.to_string());
        number = number.checked_add(step)?;
        if numbers.len() > limits::WORDS {
            return None;
        }
    }
    Some(line(&numbers.join(separator), span))
}

/// `python -c "print(1024 * 8)"`
fn python_output(shell: &Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    let flag = arguments.iter().position(|word| word.text() == "-c")?;
    let code = arguments.get(flag + 1)?.known()?.trim();
    if code.contains("device_count()") {
        return machine_count(shell, code);
    }
    let inner = code.strip_prefix("print(")?.trim_end_matches(';').strip_suffix(')')?;
    python::evaluate(inner, python::Dialect::Python).map(|text| line(&text, span))
}

/// What the scheduler's lines say in place of a count that a program takes on the machine.
pub(crate) fn machine_count(shell: &Evaluator<'_>, program: &str) -> Option<Value> {
    let devices =
        ["nvidia-smi", "rocm-smi", "amd-smi", "npu-smi"].iter().any(|name| program.starts_with(name));
    if devices || program.contains("device_count()") {
        return shell.scalar("SLURM_GPUS_ON_NODE").cloned();
    }
    program.starts_with("scontrol show hostname").then(|| shell.scalar("SLURM_NNODES").cloned())?
}

fn count(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    if !operands(arguments).is_empty() {
        return None;
    }
    let hole = shell.input.as_ref().and_then(Value::only_hole);
    if let Some(program) = hole.and_then(|hole| shell.notes.holes.get(hole.0 as usize)) {
        return machine_count(shell, &program.name);
    }
    let text = known_input(shell)?;
    let number = match arguments.first()?.text() {
        "-l" => text.matches('\n').count(),
        "-w" => text.split_whitespace().count(),
        "-c" => text.len(),
        "-m" => text.chars().count(),
        _ => return None,
    };
    Some(line(&number.to_string(), span))
}

/// `cut -d= -f2` and its other spellings.
fn cut(shell: &mut Evaluator<'_>, arguments: &[Word]) -> Option<Value> {
    let mut delimiter = '\t';
    let mut fields = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.known()?;
        let (flag, value) = match (text.get(..2)?, text.get(2..)?) {
            (flag @ ("-d" | "-f"), "") => (flag, words.next()?.known()?),
            (flag @ ("-d" | "-f"), value) => (flag, value),
            _ => return None,
        };
        if flag == "-d" { delimiter = value.chars().next()? } else { fields = Some(value.to_owned()) }
    }
    let fields = fields?;
    let (first, last) = match fields.split_once('-') {
        Some((low, high)) => {
            (low.parse().unwrap_or(1), if high.is_empty() { usize::MAX } else { high.parse().ok()? })
        }
        None => (fields.parse().ok()?, fields.parse().ok()?),
    };
    let input = shell.input.clone()?;
    let mut out = Value::default();
    let mut start = 0;
    for text in input.text().split_inclusive('\n') {
        let content = text.trim_end_matches('\n');
        let mut at: usize = start;
        let mut kept = false;
        let whole = !content.contains(delimiter);
        for (index, field) in content.split(delimiter).enumerate() {
            let wanted = whole || (first..=last).contains(&(index + 1));
            if wanted {
                let from = if kept { at.saturating_sub(delimiter.len_utf8()) } else { at };
                out.append(&input.slice(from, at + field.len()));
                kept = true;
            }
            at += field.len() + delimiter.len_utf8();
        }
        out.append(&Value::computed("\n", Span::default()));
        start += text.len();
    }
    let cut_hole = input.pieces().any(|piece| piece.hole.is_some()) && !input.text().contains(delimiter);
    if cut_hole { None } else { Some(out) }
}

fn tr(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    let text = known_input(shell)?;
    let mut words = arguments.iter().map(Word::known);
    let first = words.next()??;
    if first == "-d" {
        let set = set_of(words.next()??)?;
        let kept: String = text.chars().filter(|c| !set.contains(c)).collect();
        return Some(Value::computed(&kept, span));
    }
    let (from, to) = (set_of(first)?, set_of(words.next()??)?);
    let last = *to.last()?;
    let changed: String = text
        .chars()
        .map(|c| match from.iter().position(|known| *known == c) {
            Some(at) => to.get(at).copied().unwrap_or(last),
            None => c,
        })
        .collect();
    Some(Value::computed(&changed, span))
}

fn set_of(text: &str) -> Option<Vec<char>> {
    let text = match text {
        "[:lower:]" => "a-z",
        "[:upper:]" => "A-Z",
        "[:space:]" => return Some(vec![' ', '\t', '\n', '\r']),
        other if other.contains("[:") => return None,
        other => other,
    };
    let chars: Vec<char> = text.replace("\\n", "\n").replace("\\t", "\t").chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        if chars.get(at + 1) == Some(&'-')
            && let Some(high) = chars.get(at + 2)
        {
            out.extend((*c..=*high).take(256));
            at += 3;
        } else {
            out.push(*c);
            at += 1;
        }
    }
    Some(out)
}

fn ends(shell: &mut Evaluator<'_>, first: bool, arguments: &[Word]) -> Option<Value> {
    let input = shell.input.clone()?;
    input.known()?;
    let digits = |text: &str| text.trim_start_matches(['-', 'n']).parse::<usize>().ok();
    let count = arguments.iter().find_map(|word| digits(word.text())).unwrap_or(10);
    if arguments.iter().any(|word| !word.text().starts_with('-') && digits(word.text()).is_none()) {
        return None;
    }
    let mut starts: Vec<usize> = input
        .text()
        .match_indices('\n')
        .map(|(at, _)| at + 1)
        .filter(|at| *at < input.text().len())
        .collect();
    starts.insert(0, 0);
    let length = input.text().len();
    Some(if first {
        input.slice(0, starts.get(count).copied().unwrap_or(length))
    } else {
        input.slice(starts.get(starts.len().saturating_sub(count)).copied().unwrap_or(length), length)
    })
}

/// `awk '{print $2}'`, with or without `-F`, and `awk 'BEGIN {print 2*3}'`.
fn awk(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    let mut separator = None;
    let mut words = arguments.iter();
    let mut program = None;
    while let Some(word) = words.next() {
        let text = word.known()?;
        if text == "-F" {
            separator = words.next()?.known()?.chars().next();
        } else if let Some(sign) = text.strip_prefix("-F") {
            separator = sign.chars().next();
        } else if text.starts_with('-') || program.is_some() {
            return None;
        } else {
            program = Some(text);
        }
    }
    let program = program?.trim();
    if let Some(body) = program.strip_prefix("BEGIN") {
        let inner = body
            .trim()
            .strip_prefix('{')?
            .strip_suffix('}')?
            .trim()
            .trim_end_matches(';')
            .strip_prefix("print")?;
        return python::evaluate(inner.trim(), python::Dialect::Awk).map(|text| line(&text, span));
    }
    let field = program.strip_prefix('{')?.strip_suffix('}')?.trim().strip_prefix("print")?.trim();
    let field = field.strip_prefix('$')?;
    let input = shell.input.clone()?;
    input.known()?;
    let mut out = Value::default();
    let mut start = 0;
    for text in input.text().split_inclusive('\n') {
        let row = input.slice(start, start + text.trim_end_matches('\n').len());
        let fields = match separator {
            Some(sign) => super::words::strict_fields(&row, |c| c == sign),
            None => row.fields_by(|c| c == ' ' || c == '\t'),
        };
        let index = if field == "NF" { fields.len() } else { field.parse().ok()? };
        if let Some(value) = index.checked_sub(1).and_then(|index| fields.get(index)) {
            out.append(value);
        }
        out.append(&Value::computed("\n", span));
        start += text.len();
    }
    Some(out)
}

/// `grep -q word`, `grep word`, `grep -oP` of simple expressions, over known text.
fn grep(shell: &mut Evaluator<'_>, arguments: &[Word]) -> Option<(Value, Status)> {
    let operands = operands(arguments);
    let flags: String = arguments.iter().map(Word::text).filter(|text| text.starts_with('-')).collect();
    if operands.len() != 1 || flags.bytes().any(|byte| !b"-qoEPFxiv".contains(&byte)) {
        return None;
    }
    let pattern = operands.first()?.known()?;
    let input = shell.input.clone()?;
    input.known()?;
    let mut out = Value::default();
    let mut start = 0;
    for text in input.text().split_inclusive('\n') {
        let content = text.trim_end_matches('\n');
        let chars: Vec<char> = content.chars().collect();
        let found = if flags.contains('F') {
            content.contains(pattern).then_some((0, chars.len()))
        } else {
            regex::find(pattern, &chars)?
        };
        let keeps = found.is_some() != flags.contains('v');
        if keeps && !flags.contains('q') {
            let byte = |at: usize| content.char_indices().nth(at).map_or(content.len(), |(byte, _)| byte);
            let (from, to) = match found {
                Some((from, to)) if flags.contains('o') => (byte(from), byte(to)),
                _ => (0, content.len()),
            };
            out.append(&input.slice(start + from, start + to));
            out.append(&Value::computed("\n", Span::default()));
        }
        if keeps && flags.contains('q') {
            return Some((Value::default(), Status::SUCCESS));
        }
        start += text.len();
    }
    let found = !out.is_empty();
    Some((out, Status::certain(found)))
}
