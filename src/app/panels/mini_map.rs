//! The cluster in miniature: GPUs if there are few, otherwise one cell per node or per several nodes. Hover over a
//! cell to see its group.

use shardscope::session::Event;
use shardscope::session::map::{Colour, HUES, NOTHING, company_of, group_caption};
use shardscope::topology::{Groups, Rank};
use shardscope::units::{decimal, grouped};
use web_sys::Element;
use yew::prelude::*;

use super::map_chips::chips;
use super::panel::PlanProps;
use crate::app::context::{AppContext, send, use_dispatch};

/// Maximum number of GPUs with one cell each.
const GPUS: u64 = 64;
/// Most cells.
const CELLS: u64 = 1_024;
/// Width of the picture, including the names of nodes. Unit: SVG unit.
const WIDTH: f64 = 228.0;
const NAMES: f64 = 28.0;
/// Minimum height of a row with a name, and the height of the name itself.
const NAMED: f64 = 10.0;

/// Layout of the cells.
#[derive(Clone, Copy)]
struct Grid {
    /// GPUs of a cell.
    each: u64,
    cells: u64,
    across: u64,
    /// From cell to cell.
    pitch: (f64, f64),
}

impl Grid {
    fn new(gpus: u64, per_node: u64) -> Self {
        let nodes = gpus.div_ceil(per_node);
        // Above that, whole nodes, so that no cell holds parts of two.
        let each = if gpus <= GPUS { 1 } else { per_node * nodes.div_ceil(CELLS) };
        let cells = gpus.div_ceil(each);
        let (across, high) = match cells {
            // If there are few, they are square, so that the picture fills its card.
            0..=32 => (8, 25.0),
            33..=GPUS => (8, 17.0),
            65..=256 => (16, 11.0),
            _ => (32, 6.25),
        };
        // If cells are GPUs, a row holds those of one node.
        let across = if each == 1 { across.min(per_node) } else { across };
        // At least as wide as eight would be: four GPUs in a node should not make giant cells.
        let wide = (WIDTH - NAMES) / f64::from(u32::try_from(across.max(8)).unwrap_or(8));
        Self { each, cells, across, pitch: (wide, high) }
    }

    fn rows(&self) -> u64 {
        self.cells.div_ceil(self.across)
    }

    /// Left and top of a cell.
    fn place(&self, cell: u64) -> (f64, f64) {
        let part = |of: u64| f64::from(u32::try_from(of).unwrap_or(0));
        (NAMES + part(cell % self.across) * self.pitch.0, part(cell / self.across) * self.pitch.1)
    }

    /// The cell at a place, as shares of width and height.
    fn at(&self, x: f64, y: f64) -> Option<u64> {
        let (x, y) = ((x * WIDTH - NAMES) / self.pitch.0, y * self.height() / self.pitch.1);
        let inside = x >= 0.0 && y >= 0.0;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let (column, row) = (x as u64, y as u64);
        let cell = row * self.across + column;
        (inside && column < self.across && cell < self.cells).then_some(cell)
    }

    fn height(&self) -> f64 {
        self.place(self.rows() * self.across).1
    }

    /// One path around the cells.
    fn path(&self, cells: &mut dyn Iterator<Item = u64>) -> String {
        // Corners are rounded by a stroke of this half width.
        let inset = 1.0 + self.pitch.1 * 0.08;
        let (wide, high) = (decimal(self.pitch.0 - 2.0 * inset, 2), decimal(self.pitch.1 - 2.0 * inset, 2));
        cells.fold(String::new(), |mut path, cell| {
            let (x, y) = self.place(cell);
            path += &format!("M{} {}h{wide}v{high}h-{wide}z", decimal(x + inset, 2), decimal(y + inset, 2));
            path
        })
    }
}

#[component(MiniMap)]
pub(super) fn mini_map(PlanProps { shown }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let hovered = use_state_eq(|| None::<u64>);
    let app = use_context::<AppContext>();
    let (colour, picked) = app.map_or((Colour::Stage, None), |app| (app.session.colour, app.session.picked));
    let plan = &shown.plan;
    let groups = Groups::new(plan.layout());
    let (world, per_node) = (plan.layout().world_size, plan.cluster().gpus_per_node.max(1));
    let grid = Grid::new(world, per_node);
    let shade = |cell: u64| {
        // The first GPU of a cell represents all of it.
        let rank = Rank::new(cell * grid.each);
        match colour {
            Colour::Group(kind) => {
                groups.group(kind, rank).map_or(NOTHING.into(), |group| group.index() % HUES)
            }
            _ => groups.coordinates(rank).pipeline % HUES,
        }
    };
    let shown_rank = (*hovered).or(picked.map(Rank::get)).unwrap_or(0).min(world.saturating_sub(1));
    // For quantities without a chip here, show the stage.
    let colour = if matches!(colour, Colour::Group(_)) { colour } else { Colour::Stage };
    let lit = hovered.is_some() || picked.is_some();
    let mut members = if lit {
        company_of(plan, colour, Rank::new(shown_rank), &(0..plan.layout().world_size))
    } else {
        Vec::new()
    };
    // Ranks of a group are in order, so equal cells are neighbours.
    members.iter_mut().for_each(|gpu| *gpu /= grid.each);
    members.dedup();
    let under = move |event: &MouseEvent| {
        let svg = event.target_dyn_into::<Element>()?.closest("svg").ok().flatten()?;
        let area = svg.get_bounding_client_rect();
        let x = (f64::from(event.client_x()) - area.left()) / area.width().max(1.0);
        let y = (f64::from(event.client_y()) - area.top()) / area.height().max(1.0);
        // A cell of several GPUs picks its first.
        grid.at(x, y).map(|cell| cell * grid.each)
    };
    let onmousemove = {
        let hovered = hovered.setter();
        move |event: MouseEvent| hovered.set(under(&event))
    };
    let onmouseleave = {
        let hovered = hovered.setter();
        move |_| hovered.set(None)
    };
    let onclick = {
        let dispatch = dispatch.clone();
        move |event: MouseEvent| {
            if let Some(gpu) = under(&event) {
                dispatch.emit(Event::Pick(Some(Rank::new(gpu))).into());
            }
        }
    };
    let kinds =
        chips(shown).into_iter().filter(|chip| matches!(chip.colour, Colour::Stage | Colour::Group(_)));
    let nodes = grid.each / per_node;
    let name = |row: u64| {
        let cell = row * grid.across;
        // Low rows have names only now and then, or the names would overlap.
        let named = grid.pitch.1 > NAMED || row.is_multiple_of(4);
        let first = grid.each > 1 || cell.is_multiple_of(per_node);
        (named && first).then(|| {
            let y = decimal(grid.place(cell).1 + (grid.pitch.1 / 2.0 + NAMED * 0.35).min(grid.pitch.1), 1);
            html! { <text class="node-name" x="0" {y}>{ format!("n{}", cell * grid.each / per_node) }</text> }
        })
    };
    html! {
        <div class="mini-map map">
            <div class="chips" role="group" aria-label="Trace">
                { for kinds.map(|chip| {
                    let to = chip.colour;
                    html! {
                        <button
                            type="button"
                            class="chip"
                            title={chip.title}
                            aria-pressed={(to == colour).to_string()}
                            onclick={send(&dispatch, move || Event::Paint(to).into())}
                        >{ chip.name }</button>
                    }
                }) }
            </div>
            <svg
                viewBox={format!("0 0 {WIDTH} {}", grid.height())}
                role="img"
                aria-label={format!("{} GPUs, each cell is {}", grouped(world), unit(grid.each, nodes))}
                {onmousemove}
                {onmouseleave}
                {onclick}
            >
                { for (0..grid.rows()).filter_map(name) }
                // One more than there are hues: `NOTHING` is the last class.
                { for (0..=HUES).map(|hue| html! {
                    <path class={format!("cell c{hue}")} d={grid.path(&mut (0..grid.cells).filter(|cell| shade(*cell) == hue))} />
                }) }
                if lit {
                    <path class="member" d={grid.path(&mut members.into_iter())} />
                    <path class="picked" d={grid.path(&mut std::iter::once(shown_rank / grid.each))} />
                }
            </svg>
            if grid.each > 1 {
                <p class="soft small">{ format!("{} GPUs, each cell is {}", grouped(world), unit(grid.each, nodes)) }</p>
            }
            <p class="group-caption small">{ group_caption(plan, &shown.report.traffic, colour, Rank::new(shown_rank)) }</p>
        </div>
    }
}

/// What one cell represents, in words.
fn unit(gpus: u64, nodes: u64) -> String {
    match (gpus, nodes) {
        (1, _) => "one GPU".to_owned(),
        (_, 1) => "one node".to_owned(),
        _ => format!("{nodes} nodes"),
    }
}
