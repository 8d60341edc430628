//! Tables for spreadsheets: bare numbers, one header line, fields quoted where they must be (RFC 4180).

use super::Report;
use shardscope_launch::Setting;

/// The memory of every stage. Unit: byte.
#[must_use]
pub fn memory_csv(report: &Report) -> String {
    let mut out = String::from(
        "pipeline_rank,parameters,gradients,optimizer,activations,temporaries,peak_allocated,framework,\
         peak_reserved,between_steps,capacity,fits,at\r\n",
    );
    for rank in &report.memory.ranks {
        let totals = &rank.totals;
        let beside = [totals.between_steps, report.memory.capacity];
        let mut fields = vec![rank.pipeline_rank.to_string()];
        for bytes in totals.columns().into_iter().chain(beside) {
            fields.push(bytes.get().to_string());
        }
        fields.push(rank.fits.to_string());
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
        if value.is_empty() {
            continue;
        }
        let flag = setting.flag.clone().unwrap_or_default();
        let note = setting.note.clone().unwrap_or_default();
        row(&mut out, &[setting.name.to_owned(), value, setting.origin.name().to_owned(), flag, note]);
    }
    out
}

fn row(out: &mut String, fields: &[String]) {
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
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
}
