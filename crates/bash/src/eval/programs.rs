//! Small programs whose output follows from their arguments and input alone.

use super::super::limits;
use super::super::value::{Value, Word};
use super::columns::{cut, ends, tr};
use super::python;
use super::regex::{Regex, Syntax};
use super::state::{Evaluator, Status};
use super::texts::{each_line, spaced};
use shardscope_source::Span;

/// What a program prints, if that can be determined.
pub(crate) fn run(shell: &mut Evaluator<'_>, words: &[Word], span: Span) -> Option<(Value, Status)> {
    let (program, arguments) = words.split_first()?;
    let program = base_name(program.known()?);
    let value = match program {
        "cat" => cat(shell, arguments)?,
        "tee" => tee(shell, arguments, span)?,
        "basename" => basename(arguments)?,
        "dirname" => dirname(arguments)?,
        "expr" => expr(shell, arguments, span)?,
        "bc" => {
            let library = match arguments {
                [] => false,
                [only] if only.known() == Some("-l") => true,
                _ => return None,
            };
            line(&super::bc::evaluate(known_input(shell)?, library)?, span)
        }
        "python" | "python3" if python::imports_of_npus(arguments) => {
            return Some((Value::default(), python::FAILS));
        }
        "python" | "python3" => python_output(shell, arguments, span)?,
        "wc" => count(shell, arguments, span)?,
        "sed" => super::sed::run(shell, arguments)?,
        "awk" | "gawk" => awk(shell, arguments, span)?,
        "grep" | "egrep" => return grep(shell, arguments),
        // A single line is already sorted; only options that affect the order are accepted.
        "sort" | "uniq" if is_line(known_input(shell)?.trim()) => {
            let order = |word: &Word| word.text().bytes().all(|byte| b"-nruVhgf".contains(&byte));
            if !(arguments.is_empty() || (program == "sort" && arguments.iter().all(order))) {
                return None;
            }
            shell.input.clone()?
        }
        "numfmt" if arguments.is_empty() => shell.input.clone()?,
        // It prints its input on one line, if there are no quotes to remove.
        "xargs" if arguments.is_empty() && !known_input(shell)?.contains(['\'', '"', '\\']) => {
            let mut words = Vec::new();
            for value in shell.input.clone()?.fields() {
                words.push(Word { value, span });
            }
            let mut value = spaced(&words, Some(span));
            value.add("\n", span);
            value
        }
        "seq" | "cut" | "tr" | "head" | "tail" => {
            // Their arguments decide where the text is cut: if one of them is unknown, so is the output.
            let mut known = Vec::new();
            for word in arguments {
                known.push(word.known()?);
            }
            match program {
                "seq" => seq(&known, span)?,
                "cut" => cut(shell.input.as_ref()?, &known)?,
                "tr" => Value::computed(&tr(known_input(shell)?, &known)?, span),
                _ => ends(shell.input.as_ref()?, program == "head", &known)?,
            }
        }
        _ => return None,
    };
    Some((value, Status::SUCCESS))
}

/// Whether a text is a single line.
fn is_line(text: &str) -> bool {
    !text.is_empty() && !text.contains('\n')
}

/// The last component of a path: what follows the last slash, or the whole path if there is none.
pub fn base_name(path: &str) -> &str {
    path.rfind('/').and_then(|at| path.get(at + 1..)).unwrap_or(path)
}

fn known_input<'s>(shell: &'s Evaluator<'_>) -> Option<&'s str> {
    shell.input.as_ref().and_then(Value::known)
}

fn line(text: &str, span: Span) -> Value {
    let mut line = Value::computed(text, span);
    line.add("\n", span);
    line
}

/// Arguments that are not options.
fn operands(arguments: &[Word]) -> Vec<&Word> {
    let mut operands = Vec::new();
    for word in arguments {
        if !word.text().starts_with('-') {
            operands.push(word);
        }
    }
    operands
}

fn cat(shell: &mut Evaluator<'_>, arguments: &[Word]) -> Option<Value> {
    let files = operands(arguments);
    if files.is_empty() {
        return shell.input.clone();
    }
    let mut out = Value::default();
    for file in files {
        // Includes files given along with the script; nothing if one of several is missing.
        out.append(&shell.readable(&file.value)?);
    }
    Some(out)
}

fn tee(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    let input = shell.input.clone()?;
    let append = arguments.iter().any(|word| word.text() == "-a");
    // Unknown output is not stored as a file: reading a missing file is just as unknown.
    let files = if input.only_hole().is_some() { Vec::new() } else { operands(arguments) };
    for file in files {
        shell.write_file(file.value.clone(), input.clone(), append, span);
    }
    Some(input)
}

fn basename(arguments: &[Word]) -> Option<Value> {
    let names = operands(arguments);
    let value = &names.first()?.value;
    let text = value.text().trim_end_matches('/');
    // A hole may contain slashes, unless literal text with one follows it.
    let start = text.rfind('/').map_or(0, |at| at + 1);
    // `part` keeps a hole that it would cut through entire, which shows if the last component is inside a hole.
    let part = value.part(start, text.len());
    if part.has_holes() {
        return None;
    }
    let mut end = text.len();
    if let Some(suffix) = names.get(1).and_then(|word| word.known())
        // POSIX: a name that is nothing but the suffix keeps it.
        && text.len() - start > suffix.len()
        && text.ends_with(suffix)
    {
        end -= suffix.len();
    }
    Some(value.part(start, end))
}

fn dirname(arguments: &[Word]) -> Option<Value> {
    let value = &operands(arguments).first()?.value;
    let text = value.text().trim_end_matches('/');
    let cut = text.rfind('/')?;
    let last = value.part(cut, text.len());
    if last.has_holes() {
        return None;
    }
    Some(value.part(0, cut.max(1)))
}

fn expr(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    let mut words = arguments.to_vec();
    for word in &mut words {
        // No octal numbers here: `010` is ten.
        if let Some(text) =
            word.known().filter(|text| text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit()))
        {
            let digits = text.trim_start_matches('0');
            word.value = Value::computed(if digits.is_empty() { "0" } else { digits }, span);
        }
    }
    let text = spaced(&words, Some(span));
    for piece in text.pieces() {
        // `expr length`, `substr` and `:` are other operations, `|` and `&` are not bitwise, and words would be read
        // as variables.
        let plain = |byte: u8| byte.is_ascii_digit() || b" +-*/%()<>".contains(&byte);
        if piece.hole.is_none() && !piece.text.bytes().all(plain) {
            return None;
        }
    }
    let mut value = shell.arithmetic_value(&text, span);
    value.add("\n", span);
    Some(value)
}

fn seq(arguments: &[&str], span: Span) -> Option<Value> {
    let mut separator = "\n";
    let mut ends: Vec<i64> = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "-s" => separator = words.next()?,
            // Padding with zeros is not computed.
            "-w" => return None,
            number => ends.push(number.parse().ok()?),
        }
    }
    let (from, step, to) = match *ends {
        [to] => (1, 1, to),
        [from, to] => (from, 1, to),
        [from, step, to] if step != 0 => (from, step, to),
        _ => return None,
    };
    let mut out = String::new();
    let mut number = from;
    let mut count = 0;
    while (step > 0 && number <= to) || (step < 0 && number >= to) {
        if count > 0 {
            out.push_str(separator);
        }
        out.push_str(&number.to_string());
        // Past the bound the output is unknown rather than truncated: a loop over it would silently be shorter.
        number = number.checked_add(step)?;
        count += 1;
        if count > limits::WORDS {
            return None;
        }
    }
    Some(line(&out, span))
}

/// `python -c "print(1024 * 8)"`
fn python_output(shell: &Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    let flag = arguments.iter().position(|word| word.text() == "-c")?;
    let code = arguments.get(flag + 1)?.known()?.trim();
    // A device count depends on the machine; the scheduler's directives may state it.
    if code.contains("device_count()") {
        return machine_count(shell, code);
    }
    let inner = code.strip_prefix("print(")?.trim_end_matches(';').strip_suffix(')')?;
    Some(line(&python::evaluate(inner, python::Dialect::Python)?, span))
}

/// The count stated in the scheduler's directives, in place of one that a program would obtain from the machine.
pub(crate) fn machine_count(shell: &Evaluator<'_>, program: &str) -> Option<Value> {
    let devices =
        ["nvidia-smi", "rocm-smi", "amd-smi", "npu-smi"].iter().any(|name| program.starts_with(name));
    if devices || program.contains("device_count()") {
        return shell.scalar("SLURM_GPUS_ON_NODE").cloned();
    }
    program.starts_with("scontrol show hostname").then(|| shell.scalar("SLURM_NNODES").cloned())?
}

fn count(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    if arguments.len() != 1 || !operands(arguments).is_empty() {
        return None;
    }
    let hole = shell.input.as_ref().and_then(Value::only_hole);
    // `nvidia-smi -L | wc -l`: one line for each device.
    if let Some(program) = hole.and_then(|hole| shell.notes.holes.get(hole.0 as usize)) {
        return machine_count(shell, &program.name);
    }
    let text = known_input(shell)?;
    let number = match arguments.first()?.text() {
        "-l" => text.matches('\n').count(),
        "-w" => text.split_ascii_whitespace().count(),
        "-c" => text.len(),
        "-m" => text.chars().count(),
        _ => return None,
    };
    Some(line(&number.to_string(), span))
}

/// `awk '{print $2}'`, with or without `-F`, and `awk 'BEGIN {print 2*3}'`.
fn awk(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Option<Value> {
    let mut separator = None;
    let mut words = arguments.iter();
    let mut program = None;
    while let Some(word) = words.next() {
        let text = word.known()?;
        if let Some(sign) = text.strip_prefix("-F") {
            let sign = if sign.is_empty() { words.next()?.known()? } else { sign };
            separator = match sign {
                " " => None,
                "\\t" => Some("\t"),
                // POSIX reads it as a tab; anything longer than a character is a regular expression.
                "t" => return None,
                sign if sign.chars().count() > 1
                    && !sign.chars().all(|c| c.is_alphanumeric() || "=:,_-".contains(c)) =>
                {
                    return None;
                }
                sign => Some(sign).filter(|sign| *sign != "\\"),
            };
        } else if text.starts_with('-') || program.is_some() {
            return None;
        } else {
            program = Some(text.trim());
        }
    }
    let program = program?;
    let body = program.strip_prefix("BEGIN").unwrap_or(program);
    let body = body.trim_start().strip_prefix('{')?.strip_suffix('}')?.trim();
    let printed = body.trim_end_matches(';').strip_prefix("print")?.trim();
    // No input is read, so only the arithmetic of `print` matters.
    if program.starts_with("BEGIN") {
        return Some(line(&python::evaluate(printed, python::Dialect::Awk)?, span));
    }
    let counts = printed == "NF";
    let field = if counts { "NF" } else { printed.strip_prefix('$')? };
    let input = shell.input.clone()?;
    let mut out = Value::default();
    each_line(input.known()?, &mut |content, start| {
        let row = input.part(start, start + content.len());
        let fields = match separator {
            Some(sign) => {
                let mut fields = Vec::new();
                let mut from = 0;
                for field in content.split(sign).filter(|_| !content.is_empty()) {
                    fields.push(row.part(from, from + field.len()));
                    from += field.len() + sign.len();
                }
                fields
            }
            // awk's own default: leading blanks make no empty field.
            None => row.fields_by(&|c| c == ' ' || c == '\t'),
        };
        let index = if field == "NF" { fields.len() } else { field.parse().ok()? };
        if counts {
            out.append(&Value::computed(&fields.len().to_string(), span));
        } else if index == 0 {
            out.append(&row);
        }
        if let Some(value) = index.checked_sub(1).and_then(|index| fields.get(index)).filter(|_| !counts) {
            out.append(value);
        }
        out.add("\n", span);
        Some(())
    })?;
    Some(out)
}

/// `grep -q word`, `grep word`, `grep -oP` of simple expressions, over known text.
fn grep(shell: &mut Evaluator<'_>, arguments: &[Word]) -> Option<(Value, Status)> {
    let mut flags = String::new();
    let mut pattern = None;
    for word in arguments {
        let text = word.text();
        if text.starts_with('-') {
            flags.push_str(text);
        } else if pattern.replace(word.known()?).is_some() {
            return None;
        }
    }
    let pattern = pattern?;
    // `-c`, `-A`, `-f` and the like print something different.
    if flags.bytes().any(|byte| !b"-qoEPFxiv".contains(&byte)) {
        return None;
    }
    let has = |flag: char| flags.contains(flag);
    let syntax = match (has('F'), has('P'), has('E')) {
        (true, ..) => Syntax::Fixed,
        (_, true, _) => Syntax::Perl,
        (.., true) => Syntax::Extended,
        _ => Syntax::Basic,
    };
    let regex = Regex::new(pattern, syntax, has('i'))?;
    let input = shell.input.clone()?;
    let (quiet, inverted) = (has('q'), has('v'));
    // The parts of a line that do not match are not one piece.
    if inverted && has('o') {
        return None;
    }
    let mut out = Value::default();
    let mut survives = false;
    each_line(input.known()?, &mut |content, start| {
        let mut at = 0;
        loop {
            if survives && quiet {
                return Some(());
            }
            // With -x a match counts only if it is the whole line.
            let found = regex.find(content, at)?.filter(|found| !has('x') || found.len() == content.len());
            let part = match found {
                // Without `-o` a line is kept or dropped as a whole, by its first match.
                _ if !has('o') && found.is_some() == inverted => return Some(()),
                _ if !has('o') => 0..content.len(),
                Some(found) if !found.is_empty() => found,
                _ => return Some(()),
            };
            survives = true;
            at = part.end;
            out.append(&input.part(start + part.start, start + part.end));
            out.add("\n", Span::default());
            if !has('o') {
                return Some(());
            }
        }
    })?;
    Some((if quiet { Value::default() } else { out }, Status::certain(survives)))
}
