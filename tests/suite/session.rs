//! What the user sees if the text is not as it should be, and what follows if it is.

use shardscope::launch::Origin;
use shardscope::link::{Shared, decode, encode};
use shardscope::session::{EXAMPLE, Event, Pinned, State, UserInput, apply};
use shardscope::source::{Diagnostic, Severity};

/// The state after the box has held `text` for a while.
fn after(text: &str) -> State {
    let state = apply(State::default(), Event::Edit(text.to_owned()));
    apply(state, Event::Settle)
}

fn example(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "the example has no {from}");
    EXAMPLE.replace(from, to)
}

/// Checks that there is no report, and that an error contains `part` and, if `place` is given, points there.
#[track_caller]
fn refused(text: &str, part: &str, place: Option<&str>) -> Diagnostic {
    let state = after(text);
    assert!(state.shown.is_none(), "no report of another text");
    let errors: Vec<&Diagnostic> = state
        .answer
        .resolution
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .collect();
    let found = errors.iter().find(|error| error.message.contains(part));
    let Some(found) = found else { panic!("no error says {part:?}: {errors:#?}") };
    if let Some(place) = place {
        let span = found.span.unwrap_or_else(|| panic!("no place: {found:?}"));
        assert_eq!(state.answer.source.slice(span), place, "{found:?}");
    }
    (*found).clone()
}

#[test]
fn the_example_is_answered() {
    let state = State::default();
    assert!(state.shown.is_some());
    assert!(state.answer.resolution.diagnostics.iter().all(|found| found.severity < Severity::Warning));
    let shown = state.shown.expect("a plan");
    let layout = shown.plan.layout();
    assert_eq!((layout.world_size, layout.tensor, layout.pipeline, layout.data), (16, 2, 2, 4));
    let setting = shown.answer.resolution.settings.iter().find(|setting| setting.name() == "num_layers");
    let setting = setting.expect("num_layers");
    assert_eq!(setting.origin, Origin::Script);
    assert_eq!(shown.answer.source.slice(setting.span.expect("its place")), "24");
    assert!(shown.json().starts_with("{\n"));
}

#[test]
fn an_empty_box_says_what_to_do() {
    let found = refused("", "nothing to read", None);
    assert!(found.hint.is_some());
}

#[test]
fn prose_is_distinguished_from_a_script() {
    refused("Dear reader, how much memory would a training of ours take?", "training options", None);
}

#[test]
fn a_script_without_a_launch_line_asks_for_the_machines() {
    let text =
        example("torchrun $DISTRIBUTED_ARGS pretrain_gpt.py", "").replace("GPUS_PER_NODE=8\nNNODES=2", "");
    refused(&text, "number of GPUs is not stated", None);
    let state = after(&text);
    let asked: Vec<&str> = state.answer.resolution.questions.iter().map(|asked| asked.name()).collect();
    assert!(asked.contains(&"world_size"), "{asked:?}");
    let answered = |state, name: &str, value: &str| {
        apply(state, Event::Set { name: name.to_owned(), value: value.to_owned() })
    };
    let state = answered(answered(state, "num_nodes", "2"), "gpus_per_node", "8");
    assert!(state.shown.is_some(), "{:?}", state.answer.resolution.diagnostics);
}

/// A text with an undecided condition is not fully understood, whatever its result.
#[test]
fn a_condition_that_is_not_decided_is_counted() {
    assert_eq!(after(EXAMPLE).answer.undecided(), 0);
    let text = format!("if [ -f /opt/here ]; then\n  TP=2\nelse\n  TP=4\nfi\n{EXAMPLE}\necho $TP\n");
    let state = after(&text);
    assert!(state.shown.is_some(), "{:?}", state.answer.resolution.diagnostics);
    assert_eq!(state.answer.undecided(), 1);
}

/// An answer that is an entire line of text, which a link carries like any other.
#[test]
fn the_line_that_starts_a_program_is_an_answer() {
    let program = "parser = HfArgumentParser((ModelArguments, TrainingArguments))\n\
        model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)\n\
        trainer = Trainer(model=model, args=training_args)\n";
    let line = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --model_max_length 2048 --bf16 True \
        --per_device_train_batch_size 1";
    let open = after(program);
    let asked: Vec<&str> = open.answer.resolution.questions.iter().map(|asked| asked.name()).collect();
    assert_eq!(asked, ["command_line"]);
    let set = Event::Set { name: "command_line".to_owned(), value: line.to_owned() };
    let state = apply(open, set);
    assert!(state.shown.is_some(), "{:?}", state.answer.resolution.diagnostics);
    let text = encode(&Shared::Pasted(state.input.pasted()));
    let Ok(Some(Shared::Pasted(carried))) = decode(&text) else { panic!("no link: {text}") };
    assert_eq!(carried.environment, [("command_line".to_owned(), line.to_owned())]);
}

#[test]
fn contradictions_point_at_the_number() {
    let heads = example("--num-attention-heads 32", "--num-attention-heads 29")
        .replace("--tensor-model-parallel-size 2", "--tensor-model-parallel-size 4");
    let found = refused(&heads, "29", None);
    assert!(found.span.is_some() && found.hint.is_some(), "{found:?}");
    let ranks = example("--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size 3");
    let found = refused(&ranks, "16", None);
    assert!(found.span.is_some() && found.hint.is_some(), "{found:?}");
}

#[test]
fn a_missing_size_is_named() {
    let found = refused(&example("    --hidden-size 4096 \\\n", ""), "hidden_size", None);
    assert!(
        found.hint.is_some()
            || !after(&example("    --hidden-size 4096 \\\n", "")).answer.resolution.questions.is_empty()
    );
}

#[test]
fn numbers_out_of_bounds_are_refused_where_they_stand() {
    refused(&example("--num-layers 24", "--num-layers -24"), "-24", Some("-24"));
    let enormous = "9".repeat(40);
    refused(
        &example("--hidden-size 4096", &format!("--hidden-size {enormous}")),
        "hidden_size",
        Some(&enormous),
    );
    refused(&example("NNODES=2", "NNODES=123456789012"), "123456789012", None);
}

#[test]
fn a_megabyte_of_noise_ends_in_a_sentence() {
    let mut seed = 1_u64;
    let mut noise = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    let bytes: Vec<u8> = (0..1_000_000).map(|_| noise()).collect();
    let state = after(&String::from_utf8_lossy(&bytes));
    assert!(state.shown.is_none());
    assert!(state.answer.resolution.diagnostics.iter().any(|found| found.severity == Severity::Error));
    let printable: String = bytes.iter().map(|byte| char::from(32 + byte % 95)).collect();
    assert!(after(&printable).shown.is_none());
}

#[test]
fn the_map_colours_what_is_asked_for() {
    use shardscope::session::map::{Amounts, Colour, paint};
    use shardscope::topology::GroupKind;
    let shown = State::default().shown.expect("a plan");
    let amounts = Amounts {
        memory: shown.stages.iter().map(|stage| stage.reserved).collect(),
        traffic: shown.report.traffic.stages().iter().map(|stage| stage.wire).collect(),
    };
    let classes = |colour| paint(&shown.plan, colour, &amounts, &mut (0..16)).classes;
    assert_eq!(classes(Colour::Stage), [[0; 8], [1; 8]].concat());
    assert_eq!(classes(Colour::Group(GroupKind::Tensor))[..6], [0, 0, 1, 1, 2, 2]);
    // 34 and 26 GiB of 80: both between a quarter and a half.
    assert_eq!(classes(Colour::Memory), [1; 16]);
    assert!(classes(Colour::Traffic).iter().all(|class| *class < 5));
}

#[test]
fn a_picked_gpu_is_reported_with_its_partners() {
    use shardscope::session::map::{Geometry, about, all_groups, edges, gpu_lines, shared};
    use shardscope::topology::{Link, Rank};
    let shown = State::default().shown.expect("a plan");
    let about = about(&shown.plan, Rank::new(1)).expect("rank 1");
    assert_eq!(about.holds, ["embedding, layers 0 to 11"]);
    let written: Vec<&str> = about.relations.iter().map(|relation| relation.written.as_str()).collect();
    assert_eq!(written, ["[n0_g0 n0_g1]", "[n0_g1 n1_g1]", "[n0_g1 n0_g3 n0_g5 n0_g7]", "[n0_g1 n1_g1]"]);
    let partner = shared(&about).into_iter().find(|(rank, _)| *rank == Rank::new(9)).expect("rank 9");
    assert_eq!(partner.1, "PP · EMB");
    let edges = edges(&shown.plan, &about, &Geometry::fit(16, 8, 700));
    assert_eq!(edges.iter().filter(|edge| edge.link == Link::Network).count(), 2);
    assert_eq!(edges.iter().filter(|edge| edge.link == Link::Fast).count(), 4);
    assert_eq!(gpu_lines(&shown.plan, 8, 100).len(), 8);
    let text = all_groups(&shown.plan);
    assert!(text.starts_with("8 tensor parallel groups\n[n0_g0 n0_g1]\n[n0_g2 n0_g3]\n"), "{text}");
}

#[test]
fn every_figure_of_the_memory_table_says_why() {
    use shardscope::session::{Use, explain_memory};
    let shown = State::default().shown.expect("a plan");
    for stage in &shown.stages {
        for kind in [
            None,
            Some(Use::Parameters),
            Some(Use::Gradients),
            Some(Use::Optimizer),
            Some(Use::Activations),
            Some(Use::Temporaries),
            Some(Use::Framework),
        ] {
            let branch = explain_memory(&shown.report.memory, stage.stage, kind);
            let branch = branch.unwrap_or_else(|| panic!("{kind:?} of stage {} says nothing", stage.stage));
            assert!(!branch.parts.is_empty() || branch.reason.is_some());
        }
    }
}

#[test]
fn the_schedule_is_drawn_to_the_end_and_its_memory_rises_and_falls() {
    use shardscope::session::schedule::{StepTimeline, Viewport, WIDTH};
    let text = example("--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size 4");
    let alone = example("--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size 1");
    for (layout, micro_batches) in [(EXAMPLE.to_owned(), 32), (text, 64), (alone, 16)] {
        let shown = after(&layout).shown.expect("a plan");
        let timeline = StepTimeline::new(&shown);
        assert_eq!(timeline.micro_batches, (micro_batches, micro_batches));
        assert_eq!(u64::from(timeline.lanes()), shown.plan.layout().pipeline);
        let boxes = |window| -> usize {
            timeline.picture(window).paths.iter().map(|(_, path)| path.matches('M').count()).sum()
        };
        let all = boxes(Viewport::WHOLE);
        // Each stage's passes, and the end of its step.
        assert_eq!(all as u64, (u64::from(micro_batches) * 2 + 1) * u64::from(timeline.lanes()));
        let near = Viewport { from: 0.5, length: 0.1 };
        assert!(boxes(near) > 0 && boxes(near) < all / 5, "a tenth of the step has a tenth of the work");
        let (first, last) = timeline.phases();
        assert!(0.0 < first && first < last && last < 1.0);
        for window in [Viewport::WHOLE, near] {
            let curve = timeline.curve(&shown, 0, window).expect("a stage");
            assert!(curve.held < curve.peak && curve.peak <= 1.0);
            let points: Vec<(f64, f64)> = curve
                .area
                .split('L')
                .skip(1)
                .map(|point| point.trim_end_matches('z').split_once(' ').expect("two numbers"))
                .map(|(x, y)| (x.parse().expect("x"), y.parse().expect("y")))
                .collect();
            assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0), "from left to right");
            assert!(points.iter().all(|(x, _)| (0.0..=f64::from(WIDTH)).contains(x)));
            let heights = points.iter().rev().skip(1).map(|(_, y)| *y);
            let (top, bottom) = (heights.clone().fold(f64::MAX, f64::min), heights.fold(0.0, f64::max));
            let kept = shown.report.memory.ranks[0].chunks[0].kept.in_gib() / curve.most.in_gib() * 100.0;
            assert!((bottom - top) / kept > 0.9, "a micro-batch comes and goes: {top} to {bottom}, {kept}");
            assert!(top > (1.0 - curve.peak) * 100.0 - 0.01, "below the peak");
        }
    }
}

/// Passes of zero duration change the memory at once: the curve once divided by their length.
#[test]
fn passes_of_no_time_have_their_place_in_the_curve() {
    use shardscope::schedule::{ChunkTime, StageDurations};
    use shardscope::session::schedule::{StepTimeline, Viewport};
    use shardscope::units::Seconds;
    let shown = after(EXAMPLE).shown.expect("a plan");
    let mut times = shown.report.time.schedule.clone();
    let chunk = ChunkTime { forward: Seconds::new(1.0), ..ChunkTime::default() };
    times.durations = StageDurations::even(&times.shape, chunk, Seconds::ZERO);
    for window in [Viewport::WHOLE, Viewport { from: 0.3, length: 0.2 }] {
        let curve = StepTimeline::of_times(&times).curve(&shown, 0, window).expect("a stage");
        assert!(!curve.area.contains("NaN"), "{}", curve.area);
    }
}

/// If more boxes would be drawn than can be seen, columns are sampled: every lane is still busy throughout.
#[test]
fn a_large_schedule_is_sampled() {
    use shardscope::session::schedule::{StepTimeline, Viewport};
    let text = example("--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size 8")
        .replace("--tensor-model-parallel-size 2", "--tensor-model-parallel-size 1")
        .replace("--micro-batch-size 4", "--micro-batch-size 1")
        .replace("--global-batch-size 512", "--global-batch-size 2048");
    let shown = after(&text).shown.expect("a plan");
    let timeline = StepTimeline::new(&shown);
    assert_eq!(timeline.micro_batches, (1024, 1024));
    let size = |window| timeline.picture(window).paths.iter().map(|(_, path)| path.len()).sum::<usize>();
    assert!(size(Viewport::WHOLE) < 300_000, "{}", size(Viewport::WHOLE));
    assert!(timeline.picture(Viewport::WHOLE).numbers.is_empty());
    assert!(!timeline.picture(Viewport { from: 0.3, length: 0.01 }).numbers.is_empty());
}

/// Every schedule that the example's layers and micro-batches allow: a smaller bubble needs more memory.
#[test]
fn schedules_trade_memory_for_the_bubble() {
    use shardscope::session::schedule::alternatives;
    let shown = after(EXAMPLE).shown.expect("a plan");
    let tried = alternatives(&shown.plan);
    let own: Vec<_> = tried.iter().filter(|one| one.changes.is_empty()).collect();
    assert_eq!(own.len(), 1);
    assert_eq!((own[0].name, own[0].step), ("1f1b", shown.report.time.step));
    assert_eq!(own[0].peak, shown.report.memory.worst.peak_reserved);
    let named = |name: &str| tried.iter().find(|one| one.name == name).expect("it is allowed here");
    assert_eq!(named("gpipe").in_flight, 32, "all of them");
    assert!(named("gpipe").peak > own[0].peak && !named("gpipe").fits);
    assert!(named("interleaved").bubble < own[0].bubble);
    assert!(named("zb-h1").bubble < own[0].bubble);
    assert!(named("zb-h2").peak > named("zb-h1").peak);
    assert!(tried.iter().all(|one| (0.0..1.0).contains(&one.bubble)));
    // Two copies of the model on every rank.
    let [held, twice] = [own[0].peak, named("dualpipe").peak];
    assert!(twice.get() > held.get() / 10 * 16, "{held:?} {twice:?}");
}

/// Every term between torch's count and the device's can be left out.
#[test]
fn terms_of_the_device_can_be_left_out() {
    let shown = after(EXAMPLE).shown.expect("a plan");
    let of = |names: &str| {
        let set = Event::Set { name: "memory_left_out".to_owned(), value: names.to_owned() };
        let shown = apply(State::new(UserInput::from_text(EXAMPLE)), set).shown.expect("a plan");
        shown.report.memory.ranks[0].totals
    };
    let (all, bare) = (shown.report.memory.ranks[0].totals, of("context communicators slack"));
    assert_eq!(bare.peak_reserved, bare.peak_allocated);
    assert_eq!(bare.peak_allocated, all.peak_allocated);
    let context = shown.plan.cluster().accelerator.context;
    assert_eq!(of("context").peak_reserved + context, all.peak_reserved);
    assert!(of("workspaces").peak_allocated < all.peak_allocated);
}

#[test]
fn a_text_is_held_with_its_own_answer_while_it_is_typed() {
    let edit = |count: &str| Event::Edit(example("--num-layers 24", &format!("--num-layers {count}")));
    let layers = |pinned: &Pinned| pinned.shown.plan.model().num_layers;
    let state = apply(apply(State::default(), edit("12")), Event::Pin);
    let pinned = state.pinned.clone().expect("a plan");
    assert_eq!((layers(&pinned), pinned.input == state.input), (12, true));
    let other = apply(apply(State::default(), Event::Hold(pinned)), edit("6"));
    let swapped = apply(other, Event::Swap);
    let pinned = swapped.pinned.clone().expect("a plan");
    assert_eq!((layers(&pinned), pinned.input.text.contains("--num-layers 6 ")), (6, true));
    assert_eq!(swapped.shown.map(|shown| shown.plan.model().num_layers), Some(12));
}
