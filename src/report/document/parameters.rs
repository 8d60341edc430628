//! `report.parameters`.

use serde_json::{Map, Value, json};

use crate::estimate::Parameters;

pub(super) fn parameters(parameters: &Parameters) -> Value {
    let ranks: Vec<Value> = parameters
        .ranks
        .iter()
        .map(|rank| {
            let breakdown: Map<String, Value> = rank
                .breakdown
                .iter()
                .map(|(account, count)| (account.name().to_owned(), Value::from(count.get())))
                .collect();
            json!({
                "pipeline_rank": rank.pipeline_rank,
                "tensor_rank": rank.tensor_rank,
                "expert_rank": rank.expert_rank,
                "count": rank.count.get(),
                "breakdown": breakdown,
            })
        })
        .collect();
    json!({
        "total": parameters.total.get(),
        "active_per_token": parameters.active_per_token.get(),
        "ranks": ranks,
    })
}
