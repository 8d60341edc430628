//! `report.parameters`.

use crate::estimate::Parameters;
use crate::json::Writer;

pub(super) fn parameters(w: &mut Writer, parameters: &Parameters) {
    w.object("parameters");
    w.count("total", parameters.total.get());
    w.count("active_per_token", parameters.active_per_token.get());
    w.list("ranks");
    for rank in &parameters.ranks {
        w.object("");
        w.count("pipeline_rank", rank.pipeline_rank);
        w.count("tensor_rank", rank.tensor_rank);
        w.count("expert_rank", rank.expert_rank);
        w.count("count", rank.count.get());
        w.object("breakdown");
        for (account, count) in rank.breakdown.iter() {
            w.count(account.name(), count.get());
        }
        w.close();
        w.close();
    }
    w.close();
    w.close();
}
