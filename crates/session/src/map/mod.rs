//! The map of the cluster: where each GPU is, how it is coloured, and which others it works with.

mod about;
mod caption;
mod colour;
mod geometry;
mod picture;
mod table;

pub use about::{About, Edge, Relation, about, edges, find_gpu, holds, relation_name, relations, shared};
pub use caption::{company_of, group_caption};
pub use colour::{Amounts, Colour, HUES, NOTHING, Paint, Swatch, colour_named, colour_slug, paint};
pub use geometry::steps::Step;
pub use geometry::{Area, Detail, Geometry, MOST_DRAWN};
pub use picture::{Caption, Picture, Row, Tile, overview, per_rack, picture_of, tile};
pub use table::{GpuLine, all_groups, gpu_lines};
