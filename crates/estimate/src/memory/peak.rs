//! The peak of a stage: how many micro-batches each chunk holds, and what runs then.

use super::flight::{Flight, PerChunk, flights};
use super::moments::{ChunkSum, Moment};
use shardscope_schedule::Shape;
use shardscope_units::Bytes;

/// Bytes that `flight` holds.
pub(super) fn held(chunks: &[ChunkSum], flight: &Flight) -> Bytes {
    let kept: Bytes = chunks.iter().zip(&flight.counts).map(|(chunk, &count)| chunk.kept * count).sum();
    let left: Bytes = chunks.iter().zip(&flight.waiting).map(|(chunk, &count)| chunk.waiting * count).sum();
    kept + left
}

/// The peak of the forward pass that ends with `flight`, and its chunk. Of other chunks' offloaded modules, only
/// those that the next backward needs first are on the device.
fn in_forward(chunks: &[ChunkSum], flight: &Flight) -> Option<(usize, Moment)> {
    let of = flight.forward?;
    let chunk = chunks.get(of)?;
    let moment = chunk.forward?;
    let next = chunks.get(flight.backward).map_or(Bytes::ZERO, |next| next.groups.ready());
    let gone = chunk.ready.less(next);
    let net = moment.net - i128::from(gone.get());
    Some((of, Moment { modules: moment.modules.less(gone), net, ..moment }))
}

/// The flight with the most bytes alive, out of the candidates, and what runs then.
pub(super) fn peak(shape: Shape, chunks: &[ChunkSum], rank: u64) -> (Flight, Option<Moment>) {
    let stage = u32::try_from(rank).unwrap_or(u32::MAX);
    let none = Flight {
        counts: PerChunk::from_elem(0, chunks.len()),
        waiting: PerChunk::new(),
        backward: 0,
        forward: None,
    };
    let mut best = (none, None, i128::MIN);
    for flight in flights(shape, stage, chunks.len()) {
        // Signed sums: a moment late in backward can free more than it adds.
        let held = i128::from(held(chunks, &flight).get());
        if let Some((of, moment)) = in_forward(chunks, &flight)
            && held + moment.net > best.2
        {
            best = (Flight { backward: of, ..flight.clone() }, Some(moment), held + moment.net);
        }
        let moment = chunks.get(flight.backward).and_then(|chunk| chunk.fullest);
        let alive = held + moment.map_or(0, |moment| moment.net);
        if alive > best.2 {
            best = (flight, moment, alive);
        }
    }
    (best.0, best.1)
}

#[cfg(test)]
mod tests {
    use super::{ChunkSum, Flight, PerChunk, in_forward};
    use crate::memory::kept::LayersKept;
    use crate::memory::moments::Moment;
    use crate::memory::offloaded::Groups;
    use crate::memory::unit::Counts;
    use shardscope_operators::SectionKind;
    use shardscope_units::Bytes;

    /// If the chunk that runs backward next has nothing offloaded, no other chunk's modules wait during a forward
    /// pass.
    #[test]
    fn what_waits_in_forward_is_of_the_chunk_that_runs_backward_next() {
        let moment = Moment {
            kind: SectionKind::ALL[0],
            point: 0,
            recomputed: Bytes::ZERO,
            returned: Bytes::ZERO,
            back: None,
            modules: Bytes::new(130),
            absent: Bytes::ZERO,
            added: Bytes::ZERO,
            net: 1000,
        };
        let chunk = |forward| ChunkSum {
            counts: Counts::default(),
            layers: LayersKept::default(),
            groups: Groups::default(),
            keeps_input: false,
            kept: Bytes::ZERO,
            waiting: Bytes::ZERO,
            once: Bytes::ZERO,
            to_come: Bytes::ZERO,
            fullest: None,
            forward,
            ready: Bytes::new(100),
        };
        let chunks = [chunk(Some(moment)), chunk(None)];
        let flight = |forward| Flight {
            counts: PerChunk::from_elem(1, 2),
            waiting: PerChunk::new(),
            backward: 1,
            forward,
        };
        let (of, found) = in_forward(&chunks, &flight(Some(0))).expect("a forward pass");
        assert_eq!((of, found.modules, found.net), (0, Bytes::new(30), 900));
        assert_eq!(in_forward(&chunks, &flight(Some(1))), None);
        assert_eq!(in_forward(&chunks, &flight(None)), None);
    }
}
