//! Which colour and caption each GPU gets.

use shardscope_plan::Plan;
use shardscope_topology::{GroupKind, Groups, Rank};
use shardscope_units::{Bytes, Quantity, gib, grouped, percent};

/// The quantity by which the map is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The pipeline stage.
    Stage,
    /// The group of a kind.
    Group(GroupKind),
    /// How full the memory is.
    Memory,
    /// How much a GPU sends per iteration.
    Traffic,
}

/// A colour as an address names it: `stage`, `memory`, `traffic` or a kind of group, as `data`.
#[must_use]
pub fn colour_slug(colour: Colour) -> &'static str {
    match colour {
        Colour::Stage => "stage",
        Colour::Memory => "memory",
        Colour::Traffic => "traffic",
        Colour::Group(kind) => kind.name(),
    }
}

/// The colour with this name in an address, if `plan` has such groups.
#[must_use]
pub fn colour_named(plan: &Plan, name: &str) -> Option<Colour> {
    // Only groups in which this plan communicates: a link may name a kind that it does not have.
    let groups = super::relations(plan).into_iter().map(Colour::Group);
    [Colour::Stage, Colour::Memory, Colour::Traffic]
        .into_iter()
        .chain(groups)
        .find(|colour| colour_slug(*colour) == name)
}

/// Colors for stages and groups, eight hues in three shades; with more of them the colours repeat, and numbers
/// distinguish them.
pub const HUES: u64 = 24;

/// Shades for amounts, the last for what does not fit.
const FULL: [(f64, &str); 5] =
    [(0.25, "up to 25%"), (0.5, "25 to 50%"), (0.75, "50 to 75%"), (0.9, "75 to 90%"), (1.0, "90 to 100%")];

/// The colour of every GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paint {
    /// The colour of each rank, starting with the first that is drawn.
    pub classes: Vec<u8>,
    /// Colours with their meanings.
    pub legend: Vec<Swatch>,
    /// Whether the colours are a scale of amounts rather than names.
    pub ramp: bool,
}

/// One line of the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swatch {
    /// Which colour.
    pub class: u8,
    /// Meaning of the colour.
    pub text: String,
}

/// Amounts of the GPUs of each stage, for colours that show an amount.
#[derive(Clone, Debug, Default)]
pub struct Amounts {
    /// Memory at the peak, by stage.
    pub memory: Vec<Bytes>,
    /// Bytes on the wire per iteration, by stage.
    pub traffic: Vec<Bytes>,
}

impl Amounts {
    pub(super) fn at(&self, colour: Colour, stage: u64) -> Option<Bytes> {
        let stage = usize::try_from(stage).ok()?;
        // A stage outside the list has no amount, which is drawn as [`NOTHING`] and not as zero.
        match colour {
            Colour::Memory => self.memory.get(stage).copied(),
            Colour::Traffic => self.traffic.get(stage).copied(),
            Colour::Stage | Colour::Group(_) => None,
        }
    }
}

fn hue(index: u64) -> u8 {
    u8::try_from(index % HUES).unwrap_or(0)
}

/// The colours of the GPUs of `plan` that are drawn.
#[must_use]
pub fn paint(plan: &Plan, colour: Colour, amounts: &Amounts, gpus: &mut dyn Iterator<Item = u64>) -> Paint {
    let groups = Groups::new(plan.layout());
    // Memory and traffic are equal within a stage, so a map of 200,000 cells looks them up by stage.
    let mut by_stage = Vec::new();
    let (legend, ramp) = match colour {
        Colour::Stage => {
            by_stage.extend((0..plan.layout().pipeline).map(hue));
            (named(plan.layout().pipeline, "stage"), false)
        }
        Colour::Group(kind) => (named(groups.count(kind), "group"), false),
        Colour::Memory => {
            // Accelerators described by hand may have no memory stated; a share of zero would be NaN.
            let capacity = plan.cluster().accelerator.memory.number().max(1.0);
            by_stage.extend(amounts.memory.iter().map(|used| fullness(used.number() / capacity)));
            (full_legend(), true)
        }
        Colour::Traffic => {
            let most = amounts.traffic.iter().copied().max().unwrap_or_default();
            by_stage.extend(amounts.traffic.iter().map(|sent| fifth(*sent, most)));
            (traffic_legend(most), true)
        }
    };
    let mut classes = Vec::new();
    for rank in gpus.map(Rank::new) {
        let class = match colour {
            Colour::Group(kind) => groups.group(kind, rank).map(|group| hue(group.index())),
            _ => {
                // Coordinates are arithmetic on the rank, as groups are: no table of ranks is built for a cluster of
                // any size.
                let stage = usize::try_from(groups.coordinates(rank).pipeline);
                stage.ok().and_then(|stage| by_stage.get(stage).copied())
            }
        };
        classes.push(class.unwrap_or(NOTHING));
    }
    Paint { classes, legend, ramp }
}

/// Colour of a GPU about which nothing is known, or that is in no group of the kind.
pub const NOTHING: u8 = 24;

fn named(count: u64, what: &str) -> Vec<Swatch> {
    if count > HUES {
        let text = format!("{what} 0, {HUES}, …: {} {what}s share {HUES} colors", grouped(count));
        return vec![Swatch { class: 0, text }];
    }
    (0..count).map(|index| Swatch { class: hue(index), text: format!("{what} {index}") }).collect()
}

fn fullness(share: f64) -> u8 {
    // Beyond the last bound it is out of memory, the class one past the table.
    let step = FULL.iter().position(|(most, _)| share <= *most).unwrap_or(FULL.len());
    u8::try_from(step).unwrap_or(NOTHING)
}

fn full_legend() -> Vec<Swatch> {
    let mut legend = Vec::new();
    for (class, text) in (0_u8..).zip(FULL.iter().map(|(_, text)| *text).chain(["out of memory"])) {
        legend.push(Swatch { class, text: text.to_owned() });
    }
    legend
}

fn fifth(sent: Bytes, most: Bytes) -> u8 {
    let share = sent.number() / most.number().max(1.0);
    // `>`: an amount on a bound belongs to the class below it, as the legend says "up to".
    let step = [0.2, 0.4, 0.6, 0.8].iter().filter(|bound| share > **bound).count();
    u8::try_from(step).unwrap_or(NOTHING)
}

fn traffic_legend(most: Bytes) -> Vec<Swatch> {
    (0_u8..5)
        .map(|class| {
            let upper = f64::from(class + 1) / 5.0;
            let text = if class == 4 {
                format!("up to {}", gib(most))
            } else {
                format!("up to {} of that", percent(upper))
            };
            Swatch { class, text }
        })
        .collect()
}
