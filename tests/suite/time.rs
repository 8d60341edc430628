//! The step time against published runs, and what must hold of every estimate.

use shardscope::estimate::compute::Measured;
use shardscope::estimate::time::{Time, step_seconds, time};

use super::drafts::{draft, even_stages};
use super::rows::Row;

fn predicted(row: &Row) -> Time {
    let plan = row.try_plan().unwrap_or_else(|why| panic!("{}: {why}", row.text("id")));
    time(&plan, &Measured::default())
}

#[test]
fn the_parts_add_up_and_the_bounds_enclose_the_estimate() {
    for row in Row::all() {
        let Ok(plan) = row.try_plan() else { continue };
        let time = time(&plan, &Measured::default());
        let id = row.text("id");
        let sum: f64 = time.breakdown.children().iter().map(|part| part.value().get()).sum();
        assert!((sum / time.step.get() - 1.0).abs() < 1e-12, "{id}");
        assert_eq!(time.breakdown.value(), time.step, "{id}");
        assert!(time.breakdown.children().iter().all(|part| part.value().get() >= 0.0), "{id}");
        assert!(time.lower_bound <= time.step && time.step <= time.upper_bound, "{id}");
        let alone = step_seconds(&plan, &Measured::default()).get();
        assert!((alone / time.step.get() - 1.0).abs() < 0.03, "{id}: {}", alone / time.step.get());
        assert!(time.mfu > 0.0 && time.mfu < 1.0 && time.mfu <= time.hfu, "{id} {}", time.mfu);
        assert!((0.0..1.0).contains(&time.bubble_fraction), "{id} {}", time.bubble_fraction);
    }
}

fn of(id: &str) -> f64 {
    let row = Row::all().into_iter().find(|row| row.text("id") == id).expect("the row");
    predicted(&row).step.get()
}

#[test]
fn the_orderings_of_the_seeds_come_out() {
    let azure = |number: u64| of(&format!("seed-azure-nemo-22.06-{number:03}"));
    assert!(azure(10) < azure(17), "40B: TP 4 is faster than TP 8");
    assert!(azure(8) < azure(20), "20B: TP 2 PP 4 is faster than TP 8 PP 1");
    let (one, two, four) = (azure(3), azure(18), azure(19));
    assert!((1.3..1.7).contains(&(two / one)), "126M: PP 2 takes about 1.5 times: {}", two / one);
    assert!((1.75..2.75).contains(&(four / one)), "126M: PP 4 takes about 2.5 times: {}", four / one);
    let speedup = |nodes: f64, number| azure(14) * 105.0 / (azure(number) * nodes);
    assert!((speedup(140.0, 15) - 0.981).abs() < 0.02, "530B: {}", speedup(140.0, 15));
    assert!((speedup(175.0, 16) - 0.950).abs() < 0.02, "530B: {}", speedup(175.0, 16));
}

#[test]
fn an_even_pipeline_is_as_efficient_as_the_formula_says() {
    for (stages, micro_batches) in [(2, 4), (4, 8), (8, 64), (16, 16)] {
        let mut draft = draft();
        draft.model.num_layers = stages;
        draft.model.padded_vocab_size = 128;
        draft.model.hidden_size = 4096;
        draft.model.ffn_hidden_size = 16384;
        draft.model.seq_length = 4096;
        draft.layout.pipeline = stages;
        draft.layout.world_size = stages;
        draft.layout.stages = even_stages(stages, stages, 0);
        draft.cluster.num_nodes = stages.div_ceil(8);
        draft.recipe.num_micro_batches = micro_batches;
        draft.recipe.global_batch_size = micro_batches;
        draft.recipe.overlap.pipeline = false;
        draft.recipe.cuda_graphs = true;
        let time = time(&draft.plan(), &Measured::default());
        let expected = 1.0 - micro_batches as f64 / (micro_batches + stages - 1) as f64;
        let bubble = time.bubble_fraction;
        assert!((bubble - expected).abs() < 0.03, "{stages} stages, {micro_batches}: {bubble} {expected}");
    }
}

#[test]
fn larger_micro_batches_are_faster_and_measured_rates_count() {
    let step = |micro, measured: &Measured| {
        let mut draft = draft();
        draft.model.num_layers = 8;
        draft.model.hidden_size = 2048;
        draft.model.ffn_hidden_size = 8192;
        draft.model.seq_length = 2048;
        draft.layout.stages = even_stages(8, 1, 0);
        draft.recipe.micro_batch_size = micro;
        draft.recipe.global_batch_size = 16;
        draft.recipe.num_micro_batches = 16 / micro;
        time(&draft.plan(), measured).step.get()
    };
    let none = Measured::default();
    assert!(step(4, &none) < step(2, &none) && step(2, &none) < step(1, &none));
    let slow = Measured { matmul: Some(shardscope::quantity::FlopsPerSecond::tera(300.0)), ..none };
    assert!(step(4, &slow) > 1.5 * step(4, &none));
}
