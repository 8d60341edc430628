//! `report.advice`.

use crate::json::Writer;
use crate::report::Finding;

pub(super) fn advice(w: &mut Writer, findings: &[Finding]) {
    w.list("advice");
    for finding in findings {
        w.object("");
        w.text("code", finding.code);
        w.text("message", &finding.message);
        w.text("why", &finding.why);
        w.object("change");
        for (field, value) in &finding.change {
            w.text(field.name(), value);
        }
        w.close();
        w.object("expected");
        w.some_real("step_seconds", finding.expected.step.map(|step| step.get()));
        w.some_count("peak_reserved", finding.expected.peak_reserved.map(|peak| peak.get()));
        w.close();
        w.close();
    }
    w.close();
}
