//! PyTorch's caching allocator for one device and one stream (`c10/cuda/CUDACachingAllocator.cpp`, PyTorch 2.11, with
//! default settings): what it reserves for a sequence of allocations and frees.

use shardscope_units::Bytes;

const MIB: u64 = 1 << 20;
/// Every block is rounded up to a multiple of this many bytes (`kMinBlockSize`).
const UNIT: u64 = 512;
/// Largest block in the small pool, in bytes (`kSmallSize`).
const SMALL: u64 = MIB;
/// Bytes of a segment of small blocks (`kSmallBuffer`).
const SMALL_SEGMENT: u64 = 2 * MIB;
/// Bytes of a segment for blocks below [`LARGE`] (`kLargeBuffer`).
const MIDDLE_SEGMENT: u64 = 20 * MIB;
/// A block of at least this many bytes gets its own segment (`kMinLargeAlloc`).
const LARGE: u64 = 10 * MIB;
/// That segment is rounded up to a multiple of this many bytes (`kRoundLarge`).
const ROUND: u64 = 2 * MIB;

/// A part of a segment, in use or free. Its neighbours are in the same segment.
#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: u64,
    /// Where it begins, with all segments laid out one after another in order of creation.
    address: u64,
    before: Option<usize>,
    behind: Option<usize>,
    used: bool,
    small: bool,
}

/// A block in use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Held(usize);

/// The allocator and its peaks.
#[derive(Debug, Default)]
pub(super) struct Allocator {
    blocks: Vec<Block>,
    /// Indices in `blocks` that are currently unused.
    spare: Vec<usize>,
    /// Free blocks ordered by size and address, each with its index: those above [`SMALL`], then those of the small
    /// pool. They are few, so a sorted list is faster than a tree; size and address are stored inline because
    /// searching through indices alone took twice as long.
    free: [Vec<(u64, u64, usize)>; 2],
    /// Whether each pool is one segment that grows (`expandable_segments:True`), and the last block of each pool.
    grows: bool,
    last: [Option<usize>; 2],
    /// The address after the last segment.
    end: u64,
    reserved: u64,
    /// Bytes of segments with nothing in use.
    idle: u64,
    /// Peak bytes of segments with something in use.
    needed: u64,
}

impl Allocator {
    /// An allocator with nothing reserved; `grows` selects segments that grow.
    pub(super) fn new(grows: bool) -> Self {
        Self { grows, ..Self::default() }
    }

    /// Bytes reserved. Nothing is ever released, so this is also the peak.
    pub(super) fn reserved(&self) -> Bytes {
        Bytes::new(self.reserved)
    }

    /// Peak bytes of segments with something in use; anything reserved beyond that is released when the device is
    /// full (`release_cached_blocks`).
    pub(super) fn needed(&self) -> Bytes {
        Bytes::new(self.needed)
    }

    /// Bytes of a block after rounding.
    pub(super) fn bytes(&self, held: &Held) -> Bytes {
        Bytes::new(self.blocks[held.0].bytes)
    }

    /// Allocates a block of `bytes`: the smallest free one of its pool that is large enough (of equal ones the
    /// first), or else a new segment (`get_free_block`, `alloc_block`).
    pub(super) fn allocate(&mut self, bytes: Bytes) -> Held {
        let size = bytes.get().max(1).next_multiple_of(UNIT);
        let small = size <= SMALL;
        let at = match self.fitting(size, small) {
            Some(at) => {
                self.take(at);
                at
            }
            None if self.grows => self.grow(size, small),
            None => {
                let segment = match size {
                    _ if small => SMALL_SEGMENT,
                    ..LARGE => MIDDLE_SEGMENT,
                    _ => size.next_multiple_of(ROUND),
                };
                self.segment(segment, small)
            }
        };
        self.split(at, size);
        self.blocks[at].used = true;
        self.needed = self.needed.max(self.reserved - self.idle);
        Held(at)
    }

    /// Frees a block and merges it with free neighbours of its segment (`free_block`, `try_merge_blocks`).
    pub(super) fn release(&mut self, held: Held) {
        let mut at = held.0;
        self.blocks[at].used = false;
        let Block { before, behind, .. } = self.blocks[at];
        if let Some(behind) = behind.filter(|behind| !self.blocks[*behind].used) {
            self.take(behind);
            self.join(at, behind);
        }
        if let Some(before) = before.filter(|before| !self.blocks[*before].used) {
            self.take(before);
            self.join(before, at);
            at = before;
        }
        self.put(at);
    }

    /// The free block that an allocation takes. The last block of a segment that grows is treated as if it were as
    /// large as it could become.
    fn fitting(&self, size: u64, small: bool) -> Option<usize> {
        let pool = usize::from(small);
        let free = &self.free[pool];
        let place = free.partition_point(|(bytes, ..)| *bytes < size);
        let (.., first) = *free.get(place)?;
        let next = free.get(place + 1).filter(|_| self.grows && self.last[pool] == Some(first));
        Some(next.map_or(first, |(.., next)| *next))
    }

    /// The position of a block in the free list of its pool.
    fn place_of(&self, block: &Block) -> usize {
        let free = &self.free[usize::from(block.small)];
        free.partition_point(|(bytes, address, _)| (*bytes, *address) < (block.bytes, block.address))
    }

    /// Extends the pool's segment by whole pages until its last block has `size` bytes
    /// (`try_allocate_expandable_block`).
    fn grow(&mut self, size: u64, small: bool) -> usize {
        let (pool, page) = (usize::from(small), if small { SMALL_SEGMENT } else { MIDDLE_SEGMENT });
        let last = self.last[pool].filter(|last| !self.blocks[*last].used);
        let lacking = size - last.map_or(0, |last| self.blocks[last].bytes);
        let more = lacking.next_multiple_of(page);
        let at = if let Some(last) = last {
            self.take(last);
            self.reserved += more;
            self.blocks[last].bytes += more;
            last
        } else {
            let before = self.last[pool];
            let at = self.segment(more, small);
            self.blocks[at].before = before;
            if let Some(before) = before {
                self.blocks[before].behind = Some(at);
            }
            at
        };
        self.last[pool] = Some(at);
        at
    }

    /// A new segment: a single unused block.
    fn segment(&mut self, bytes: u64, small: bool) -> usize {
        self.reserved += bytes;
        // Each pool that grows has its own address range.
        let address = self.end;
        self.end += bytes;
        self.place(Block { bytes, address, before: None, behind: None, used: false, small })
    }

    /// Shrinks a block to `size` bytes and makes the remainder a free block, if it is large enough (`should_split`).
    fn split(&mut self, at: usize, size: u64) {
        let block = self.blocks[at];
        let rest = block.bytes - size;
        let splits = if block.small || self.grows { rest >= UNIT } else { rest > SMALL };
        if !splits {
            return;
        }
        let other =
            self.place(Block { bytes: rest, address: block.address + size, before: Some(at), ..block });
        if let Some(behind) = block.behind {
            self.blocks[behind].before = Some(other);
        }
        let pool = usize::from(block.small);
        if self.last[pool] == Some(at) {
            self.last[pool] = Some(other);
        }
        self.blocks[at].bytes = size;
        self.blocks[at].behind = Some(other);
        self.put(other);
    }

    /// Merges two neighbours into one block.
    fn join(&mut self, first: usize, second: usize) {
        let gone = self.blocks[second];
        self.blocks[first].bytes += gone.bytes;
        self.blocks[first].behind = gone.behind;
        if let Some(behind) = gone.behind {
            self.blocks[behind].before = Some(first);
        }
        let pool = usize::from(gone.small);
        if self.last[pool] == Some(second) {
            self.last[pool] = Some(first);
        }
        self.spare.push(second);
    }

    fn place(&mut self, block: Block) -> usize {
        if let Some(at) = self.spare.pop() {
            self.blocks[at] = block;
            return at;
        }
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    /// Inserts a block into the free list.
    fn put(&mut self, at: usize) {
        let block = self.blocks[at];
        let place = self.place_of(&block);
        self.free[usize::from(block.small)].insert(place, (block.bytes, block.address, at));
        self.idle += self.alone(at);
    }

    /// Removes a block from the free list.
    fn take(&mut self, at: usize) {
        let block = self.blocks[at];
        let place = self.place_of(&block);
        self.free[usize::from(block.small)].remove(place);
        self.idle -= self.alone(at);
    }

    /// Bytes of a free block that can be released: an entire segment, or whole pages if segments grow
    /// (`unmap_block`).
    fn alone(&self, at: usize) -> u64 {
        let block = self.blocks[at];
        if self.grows {
            let page = if block.small { SMALL_SEGMENT } else { MIDDLE_SEGMENT };
            // The block's offset within its pages is not tracked: one page less than its length is certain to be free
            // of neighbours.
            return (block.bytes / page).saturating_sub(1) * page;
        }
        if block.before.is_none() && block.behind.is_none() { block.bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests;
