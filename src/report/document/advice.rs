//! `report.advice`.

use serde_json::{Map, Value, json};

use crate::report::Finding;

pub(super) fn advice(findings: &[Finding]) -> Value {
    findings
        .iter()
        .map(|finding| {
            let change: Map<String, Value> = finding
                .change
                .iter()
                .map(|(field, value)| (field.name().to_owned(), Value::from(value.as_str())))
                .collect();
            json!({
                "code": finding.code,
                "message": finding.message,
                "why": finding.why,
                "change": change,
                "expected": {
                    "step_seconds": finding.expected.step.map(|step| step.get()),
                    "peak_reserved": finding.expected.peak_reserved.map(|peak| peak.get()),
                },
            })
        })
        .collect()
}
