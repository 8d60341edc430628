//! The number of accelerators, and their type.

use super::batch;
use super::fitting;
use super::rollout;
use super::table::{MACHINES, Table};
use crate::SettingValue::{Int, Text};
use crate::{Asked, Machines, Origin, Question};
use shardscope_catalog::{self as catalog, Platform};
use shardscope_plan::hints::counted;
use shardscope_plan::{Accelerator, Cluster, Field, Measured, Software};
use shardscope_source::{Code, Diagnostic};
use shardscope_units::{Bytes, BytesPerSecond, Count, FlopsPerSecond, Quantity};

/// The accelerator given by the settings, with the network of its platform, and the settings that follow from it.
pub(super) fn machine(table: &mut Table, software: Software) -> Accelerator {
    let platform = platform(table);
    let mut accelerator = accelerator(table, software);
    // Before the user's own figures, which may also replace those of the network.
    if let Some(platform) = platform {
        accelerator.network = platform.network;
    }
    own_figures(table, &mut accelerator);
    accelerator
}

/// The user's figures override the catalog: a custom accelerator is the closest one of the catalog with its figures
/// replaced.
fn own_figures(table: &Table, accelerator: &mut Accelerator) {
    let own = |field, held: &mut f64, scale: f64| {
        if let Some(given) = table.real(field) {
            *held = given * scale;
        }
    };
    let mut figures = [
        // All in floats, with every unit next to its setting. Memory is binary, as in nvidia-smi; rates are decimal, as
        // in data sheets.
        (Field::GpuMemoryGib, accelerator.memory.number(), 1_073_741_824.0),
        (Field::GpuMemoryTbps, accelerator.memory_bandwidth.get(), 1e12),
        (Field::GpuPeakTflops, accelerator.peaks.half.get(), 1e12),
        (Field::GpuPeakFp8Tflops, accelerator.peaks.fp8.map_or(0.0, FlopsPerSecond::get), 1e12),
        (Field::FastLinkGbps, accelerator.fast_link.bandwidth.get(), 1e9),
        (Field::NetworkGbps, accelerator.network.bandwidth.get(), 1e9),
    ];
    for (field, held, scale) in &mut figures {
        own(*field, held, *scale);
    }
    let [memory, bandwidth, half, fp8, link, network] = figures.map(|(_, figure, _)| figure);
    // Rounded up: a GiB value is a whole number of bytes, and rounding down would show less.
    accelerator.memory = Bytes::new(Count::rounded_up(memory).get());
    accelerator.memory_bandwidth = BytesPerSecond::new(bandwidth);
    accelerator.peaks.half = FlopsPerSecond::new(half);
    // The user can enter 0 to remove fp8 from an accelerator that has it in the catalog.
    accelerator.peaks.fp8 = (fp8 > 0.0).then(|| FlopsPerSecond::new(fp8));
    accelerator.fast_link.bandwidth = BytesPerSecond::new(link);
    accelerator.network.bandwidth = BytesPerSecond::new(network);
}

/// The machines; none if their number is unknown.
pub(super) fn cluster(table: &mut Table, accelerator: Accelerator) -> Option<Cluster> {
    let world = world(table, &accelerator.name)?;
    let per_node = table.count(Field::GpusPerNode)?;
    let nodes = table.count(Field::NumNodes)?;
    // A world that its nodes do not fill has been rejected; a plan needs both.
    if nodes.saturating_mul(per_node) != world {
        return None;
    }
    let measured = Measured {
        matmul: table.real(Field::MeasuredMatmulTflops).map(FlopsPerSecond::tera),
        fast_bus: table.real(Field::MeasuredFastBusGbps).map(BytesPerSecond::giga),
        network_bus: table.real(Field::MeasuredNetworkBusGbps).map(BytesPerSecond::giga),
        step: table.real(Field::MeasuredOverEstimated),
    };
    let cluster = catalog::cluster(accelerator, nodes, per_node);
    let fast_domain = table.count(Field::FastLinkDomain).unwrap_or(cluster.fast_domain);
    Some(Cluster { measured, fast_domain, ..cluster })
}

/// The node type, with its accelerator and network.
fn platform(table: &mut Table) -> Option<Platform> {
    let asked = table.word(Field::Platform).to_owned();
    let found = catalog::platform(&asked);
    match &found {
        // A stated accelerator is combined with the platform's network.
        Some(platform) if !table.has(Field::Accelerator) => {
            let accelerator = Text(platform.accelerator.to_owned());
            table.fill(Field::Accelerator, accelerator, Origin::Catalog, platform.name);
        }
        None if !asked.is_empty() => {
            let names: Vec<_> = catalog::platforms().map(|platform| platform.name).collect();
            let hint = "known: ".to_owned() + &names.join("; ");
            let message = asked + " is not a platform in the catalog";
            let warning = Diagnostic::warning(Code::UnknownPlatform, message);
            table.say(warning, &hint, table.span(Field::Platform));
        }
        _ => {}
    }
    found
}

fn accelerator(table: &mut Table, software: Software) -> Accelerator {
    let asked = table.word(Field::Accelerator).to_owned();
    if let Some(found) = catalog::accelerator(&asked) {
        // From here on in the catalog's spelling, since later code looks it up by name.
        if found.name != asked {
            let rule = "the catalog's name for ".to_owned() + &asked;
            table.overrule(Field::Accelerator, Text(found.name.clone()), &rule);
        }
        return found;
    }
    let of_xla = software.semantics().compiled_step;
    let taken = if of_xla { catalog::DEFAULT_TPU } else { catalog::DEFAULT_ACCELERATOR };
    if !asked.is_empty() {
        let names: Vec<_> = catalog::accelerator_names().collect();
        let hint = "known: ".to_owned() + &names.join(", ");
        let message = format!("{asked} is not in the accelerator catalog; {taken} is used instead");
        let warning = Diagnostic::warning(Code::UnknownAccelerator, message);
        table.say(warning, &hint, table.span(Field::Accelerator));
    }
    propose(table, taken);
    // Also after the warning: everything below needs some accelerator, and the origin says that it is a default.
    let note = "assumed where the text names none";
    table.fill(Field::Accelerator, Text(taken.to_owned()), Origin::Default, note);
    catalog::accelerator(taken).unwrap_or_else(catalog::default_accelerator)
}

/// Says which accelerator the texts' words beside their settings name (`# 8xA100`): a proposal, as they may be of
/// another run.
fn propose(table: &mut Table, taken: &str) {
    let named =
        table.machines.iter().find_map(|machines| Some((machines.kind.clone()?, machines.said.clone())));
    let Some((kind, said)) = named.filter(|(kind, _)| kind != taken) else { return };
    let message = format!("{taken} is assumed, while the text says: {said}");
    let hint = format!("if that is where it runs, set accelerator to {kind}");
    table.say(Diagnostic::note(Code::AcceleratorInComment, message), &hint, None);
}

/// The total number of accelerators, from two of nodes, accelerators per node and world size, or from the data-parallel
/// size.
fn world(table: &mut Table, accelerator: &str) -> Option<u64> {
    let block = table.ranks_of_one();
    // A data-parallel size only determines the number of ranks if nothing else does; if machines are stated, it is
    // checked against them.
    if let Some(data) = table.count(Field::DataParallelSize)
        && table.count(Field::WorldSize).is_none()
        && !(table.has(Field::NumNodes) && table.has(Field::GpusPerNode))
    {
        table.derive(Field::WorldSize, Int(data.saturating_mul(block)), "DP x TP x PP x CP");
    }
    of_batch(table, block);
    let usual = catalog::usual_gpus_per_node(accelerator);
    let (nodes, per_node) = (table.count(Field::NumNodes), table.count(Field::GpusPerNode));
    if are_set(table) {
        // A variable from which the text takes the machines no longer changes anything.
        table.ask_for_machines_by_name();
    }
    match (table.count(Field::WorldSize), nodes, per_node) {
        // A world size stated in addition to both is checked in `both`.
        (_, Some(nodes), Some(per_node)) => {
            let rule = "nodes x GPUs per node";
            table.derive(Field::WorldSize, Int(nodes.saturating_mul(per_node)), rule);
            both(table, nodes, per_node)
        }
        (Some(world), Some(nodes), None) => split(table, world, Field::GpusPerNode, nodes),
        (Some(world), None, Some(per_node)) => split(table, world, Field::NumNodes, per_node),
        (Some(world), None, None) => {
            // The largest node size that divides: 12 GPUs become two nodes of 6, since all nodes of a plan are equal.
            let per_node = (1..=usual.min(world)).rev().find(|size| world.is_multiple_of(*size)).unwrap_or(1);
            // Within one usual node there is no doubt.
            if world > usual {
                ask_per_node(table, usual);
            }
            table.fill(
                Field::GpusPerNode,
                Int(per_node),
                Origin::Default,
                "the usual node of the accelerator",
            );
            split(table, world, Field::NumNodes, per_node)
        }
        (None, nodes, per_node) => {
            open(table, nodes, per_node, usual);
            None
        }
    }
}

/// DeepSpeed's engine stops unless its batch is micro-batch x accumulation x ranks
/// (`runtime/config.py:_batch_assertion`), so if all three sizes are stated, and no machines are, they determine the
/// number of ranks.
fn of_batch(table: &mut Table, block: u64) {
    let machines =
        table.has(Field::WorldSize) || (table.has(Field::NumNodes) && table.has(Field::GpusPerNode));
    if machines || !batch::is_stated_whole(table) {
        return;
    }
    let global = table.number(Field::GlobalBatchSize);
    let share = table.number(Field::MicroBatchSize).saturating_mul(table.number(Field::NumMicroBatches));
    if share > 0 && global > 0 && global.is_multiple_of(share) {
        let world = (global / share).saturating_mul(block);
        let rule = "train batch / (micro batch x accumulation) x TP x PP x CP, as DeepSpeed's engine asserts";
        table.derive(Field::WorldSize, Int(world), rule);
    }
}

fn both(table: &mut Table, nodes: u64, per_node: u64) -> Option<u64> {
    let world = table.count(Field::WorldSize)?;
    let product = nodes.saturating_mul(per_node);
    if world == product {
        return Some(world);
    }
    let by_user = |field| table.get(field).is_some_and(|setting| setting.origin == Origin::User);
    // The user wants to try the value set by hand, so it overrides what the text says about the machines. A world that
    // its nodes cannot fill is rejected below, whoever set it.
    if by_user(Field::WorldSize) && world.is_multiple_of(per_node) {
        table.fill(Field::NumNodes, Int(world / per_node), Origin::Derived, "world size / GPUs per node");
        return Some(world);
    }
    if !by_user(Field::WorldSize) && (by_user(Field::NumNodes) || by_user(Field::GpusPerNode)) {
        table.fill(Field::WorldSize, Int(product), Origin::Derived, "nodes x GPUs per node");
        return Some(product);
    }
    let message = format!(
        "{} of {} are {product}, but the world size is given as {world}",
        counted(nodes, "node"),
        counted(per_node, "GPU")
    );
    let fields = [Field::WorldSize, Field::NumNodes, Field::GpusPerNode];
    table.refuse(Code::WorldSizeStatedTwice, &fields, message, "");
    None
}

/// Derives nodes (or accelerators per node) from the world size and the other number.
fn split(table: &mut Table, world: u64, other: Field, by: u64) -> Option<u64> {
    if world.is_multiple_of(by.max(1)) {
        let rule = if other == Field::NumNodes { "world size / GPUs per node" } else { "world size / nodes" };
        table.derive(other, Int(world / by.max(1)), rule);
        return Some(world);
    }
    let (known, over) = if other == Field::NumNodes {
        (Field::GpusPerNode, format!("nodes of {by}"))
    } else {
        (Field::NumNodes, counted(by, "node"))
    };
    let message = format!("{} cannot be divided over {over}", counted(world, "GPU"));
    let below = world / by.max(1) * by.max(1);
    // Both neighbouring values, as the text may mean either.
    let hint = format!("{} or {} GPUs would", below.max(by), below.saturating_add(by));
    let fields = [Field::WorldSize, known];
    table.refuse(Code::WorldOverNodes, &fields, message, &hint);
    None
}

fn ask_per_node(table: &mut Table, usual: u64) {
    ask(table, Field::GpusPerNode, "GPUs per node?", usual, "");
}

fn ask_nodes(table: &mut Table, proposal: u64) {
    ask(table, Field::NumNodes, "Number of nodes?", proposal, "");
}

/// Asks for one of the machine numbers; `said` is the part of the text that suggests the proposal.
fn ask(table: &mut Table, field: Field, prompt: &str, proposal: u64, said: &str) {
    let prompt = if said.is_empty() { prompt.to_owned() } else { format!("{prompt} The text says: {said}") };
    table.ask(Question {
        asks: Asked::Setting(field),
        prompt,
        choices: Vec::new(),
        proposal: Some(proposal.to_string()),
    });
}

/// The number suggested by the text for a machine number that is asked for, if the layout fits it.
fn remarked(table: &Table, nodes: Option<u64>, per_node: Option<u64>) -> Option<(u64, String)> {
    table
        .machines
        .iter()
        .find_map(|remark| Some((fitting_count(table, remark, nodes, per_node)?, remark.said.clone())))
}

fn fitting_count(table: &Table, remark: &Machines, nodes: Option<u64>, per_node: Option<u64>) -> Option<u64> {
    let count = match (nodes, per_node) {
        (Some(_), _) if remark.per_node => remark.count,
        (Some(nodes), _) => remark.count / nodes.max(1),
        // The size of one node does not give the number of nodes.
        (None, Some(_)) if remark.per_node => remark.nodes?,
        (None, Some(per_node)) => remark.count / per_node.max(1),
        (None, None) => remark.count.saturating_mul(remark.nodes.unwrap_or(1)),
    };
    let world = count.saturating_mul(nodes.or(per_node).unwrap_or(1));
    let exact = remark.per_node || world == remark.count;
    // Words that name a kind alone give no number.
    (remark.count > 0 && exact && fitting::holds(table, world)).then_some(count)
}

/// Whether any of the machine numbers is set by hand.
fn are_set(table: &Table) -> bool {
    let set = |field: &Field| table.get(*field).is_some_and(|setting| setting.origin == Origin::User);
    MACHINES.iter().any(set)
}

/// The layout does not fit the stated accelerators, which many scripts leave at the single node of the machine they
/// were written on: asks for nodes, with the smallest number that fits.
pub(super) fn ask_for_more(table: &mut Table) {
    let Some(per_node) = table.count(Field::GpusPerNode) else { return };
    // Machines set by hand are what the user wants to know about; a proposal would argue with that.
    if !are_set(table) {
        let fits = fitting::nodes(table, per_node);
        let all = table.variable_of(Field::WorldSize).map(str::to_owned);
        // If the variable for all GPUs is already asked for, one question is enough.
        if !all.is_some_and(|variable| table.propose(&variable, &(fits * per_node).to_string())) {
            ask_nodes(table, fits);
        }
    }
}

/// The number of accelerators is unknown: reports this and asks once, with the smallest number that fits.
fn open(table: &mut Table, nodes: Option<u64>, per_node: Option<u64>, usual: u64) {
    // One question for the machines, instead of one for each variable that they depend on.
    table.ask_for_machines_by_name();
    let fits = fitting::nodes(table, per_node.unwrap_or(usual));
    // The product: that variable is the total number of accelerators.
    let all = Some((Field::WorldSize, fits * per_node.unwrap_or(usual)));
    let suggested = remarked(table, nodes, per_node).map(|(count, _)| count);
    let part = match (nodes, per_node) {
        (None, Some(_)) => Some((Field::NumNodes, suggested.unwrap_or(fits))),
        (Some(_), None) => Some((Field::GpusPerNode, suggested.unwrap_or(usual))),
        _ => None,
    };
    let mut proposes = |(field, works): (Field, u64)| {
        let hole = table.left_to(field).map(|(hole, _)| hole.to_owned());
        hole.is_some_and(|hole| table.propose(&hole, &works.to_string()))
    };
    // A variable that decides more than the machines, such as the global batch or the number of micro-batches: its
    // answer also gives the number of machines.
    if !all.into_iter().chain(part).any(&mut proposes) {
        let (field, prompt, works) = match (nodes, per_node) {
            (Some(_), _) => (Field::GpusPerNode, "GPUs per node?", usual),
            (None, Some(_)) => (Field::NumNodes, "Number of nodes?", fits),
            // A batch too small for a full node is proposed on part of one.
            (None, None) => match rollout::beside_own_engine(table, usual) {
                // TRL's own engine before 0.16 takes the device after those that train.
                Some(trains) => {
                    let prompt = "Number of GPUs that train (num_processes)? vLLM takes one more";
                    (Field::WorldSize, prompt, trains)
                }
                None => {
                    let works = fitting::fewer(table, usual).unwrap_or(fits * usual);
                    (Field::WorldSize, "Number of GPUs in total?", works)
                }
            },
        };
        let (proposal, said) = remarked(table, nodes, per_node).unwrap_or((works, String::new()));
        ask(table, field, prompt, proposal, &said);
    }
    let mut left = String::new();
    for (field, known) in &[(Field::NumNodes, nodes), (Field::GpusPerNode, per_node)] {
        if let Some((hole, _)) = table.left_to(*field).filter(|_| known.is_none()) {
            left.push_str(if left.is_empty() { ": it leaves " } else { ", and " });
            left.push_str(&format!("{} to {hole}", field.about()));
        }
    }
    let mut message = match (nodes, per_node) {
        (None, Some(per_node)) => {
            format!("the text gives {} per node and no number of nodes", counted(per_node, "GPU"))
        }
        (Some(nodes), None) => {
            format!("the text gives {} and no number of GPUs per node", counted(nodes, "node"))
        }
        // Neither is given, or both are open.
        _ => "the number of GPUs is not stated".to_owned(),
    };
    message.push_str(&left);
    let places = [Field::NumNodes, Field::GpusPerNode, Field::WorldSize];
    let place = places.iter().find_map(|field| table.left_to(*field)?.1);
    let hint = format!("{}, or answer the questions", table.states_machines);
    // Nothing is underlined for a value that is not in the text.
    table.say(Diagnostic::error(Code::NoWorldSize, message), &hint, place);
}
