//! What layers compiled as a whole keep, compared with torchtitan's and lingua's own: equal to the byte.

use serde_json::Value;
use shardscope::operators::{Symbols, layer_operators};
use shardscope::plan::*;

use super::drafts::{draft, even_stages, int, kept};
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/compiled_layers.jsonl");

#[test]
fn recorded_layers_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let mut draft = draft();
        let model = &mut draft.model;
        model.hidden_size = int(&case, "h");
        model.ffn_hidden_size = int(&case, "f");
        model.num_attention_heads = int(&case, "a");
        model.num_query_groups = int(&case, "k");
        model.kv_channels = int(&case, "h") / int(&case, "a");
        model.seq_length = int(&case, "s");
        draft.layout.stages = even_stages(model.num_layers, 1, 0);
        let recipe = &mut draft.recipe;
        recipe.software = Software::Torchtitan;
        recipe.dp_sharding = DpSharding::Parameters;
        recipe.micro_batch_size = int(&case, "b");
        recipe.global_batch_size = recipe.micro_batch_size * recipe.num_micro_batches;
        recipe.params_dtype = NumberFormat::Bf16;
        recipe.loss = LossKind::Compiled;
        recipe.fusions.compiled_layers = true;
        let of = |draft: &super::drafts::Draft| {
            let plan = draft.plan();
            let x = Symbols::new(&plan);
            let operators = layer_operators(&x, plan.model().layer_kind(0));
            for saved in operators.iter().flat_map(|operator| operator.saved(&x)) {
                let value = evaluate(saved.formula.expression, &|name| x.value(name));
                assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
            }
            // No point of backward frees more than there is.
            for operator in &operators {
                let own = kept(&x, &[*operator]);
                assert!(
                    operator.transients(&x).iter().all(|point| point.returned.get() <= own),
                    "{operator:?}"
                );
            }
            kept(&x, &operators)
        };
        assert_eq!(of(&draft), int(&case, "kept"), "{}", case["package"]);
        // Without compilation more is kept: the activated half, and the attention's output a second time when it is
        // transposed.
        draft.recipe.fusions.compiled_layers = false;
        assert_ne!(of(&draft), int(&case, "kept"));
        compared += 1;
    }
    assert_eq!(compared, 4);
}
