//! The allocator's rules one by one, and two recorded steps.

use super::*;

fn mib(mib: u64) -> Bytes {
    Bytes::mib(mib)
}

/// Bytes reserved after each of these allocations, without any frees.
fn reserved(grows: bool, bytes: &[u64]) -> Vec<u64> {
    let mut allocator = Allocator::new(grows);
    bytes
        .iter()
        .map(|bytes| {
            allocator.allocate(Bytes::new(*bytes));
            allocator.reserved().get()
        })
        .collect()
}

#[test]
fn segments_are_as_large_as_their_pool_has_them() {
    // Blocks up to 1 MiB get 2 MiB, below 10 MiB 20 MiB, larger ones their own size rounded up to 2 MiB.
    assert_eq!(reserved(false, &[1, MIB, MIB - 512, MIB]), [2 * MIB, 2 * MIB, 2 * MIB, 4 * MIB]);
    assert_eq!(reserved(false, &[MIB + 1]), [20 * MIB]);
    assert_eq!(reserved(false, &[10 * MIB - 512, 10 * MIB - 512, 10 * MIB]), [20 * MIB, 20 * MIB, 30 * MIB]);
    assert_eq!(reserved(false, &[11 * MIB, 11 * MIB]), [12 * MIB, 24 * MIB]);
}

#[test]
fn rests_are_split_off_above_a_mebibyte_and_small_ones_at_512_bytes() {
    let mut allocator = Allocator::new(false);
    let whole = allocator.allocate(mib(20));
    allocator.release(whole);
    // Only 1 MiB would remain, so the block is not split.
    let nearly = allocator.allocate(mib(19));
    assert_eq!(allocator.bytes(&nearly), mib(20));
    allocator.release(nearly);
    let less = allocator.allocate(Bytes::new(19 * MIB - 512));
    assert_eq!(allocator.bytes(&less), Bytes::new(19 * MIB - 512));
    // The remainder of 1 MiB and 512 bytes belongs to the large pool, so no small block takes it.
    allocator.allocate(Bytes::new(MIB + 512));
    assert_eq!(allocator.reserved(), mib(20));
    allocator.allocate(Bytes::new(1));
    assert_eq!(allocator.reserved(), mib(22));
    let small = allocator.allocate(Bytes::new(513));
    assert_eq!(allocator.bytes(&small), Bytes::new(1024));
}

#[test]
fn the_smallest_block_that_fits_is_taken_and_neighbours_join_within_a_segment_alone() {
    let mut allocator = Allocator::new(false);
    let [large, middle] = [64, 40].map(|size| allocator.allocate(mib(size)));
    allocator.release(large);
    allocator.release(middle);
    let taken = allocator.allocate(mib(30));
    // Cut from the 40: the 64 stay intact, and 10 remain of the 40, where 34 of the 64 would.
    let rest = allocator.allocate(mib(10));
    assert_eq!(allocator.reserved(), mib(104));
    allocator.allocate(mib(64));
    assert_eq!(allocator.reserved(), mib(104));
    allocator.release(taken);
    allocator.release(rest);
    // Merged into 40 again, which fit the next allocation exactly; 12 more fit nowhere.
    allocator.allocate(mib(40));
    assert_eq!(allocator.reserved(), mib(104));
    allocator.allocate(mib(12));
    assert_eq!(allocator.reserved(), mib(116));
}

#[test]
fn freed_blocks_of_one_segment_do_not_help_another() {
    let mut allocator = Allocator::new(false);
    let blocks = [16, 16].map(|size| allocator.allocate(mib(size)));
    blocks.into_iter().for_each(|block| allocator.release(block));
    allocator.allocate(mib(32));
    assert_eq!(allocator.reserved(), mib(64));
    // Both 16 MiB segments are idle when 32 MiB are requested, so a device of 32 MiB would suffice.
    assert_eq!(allocator.needed(), mib(32));
}

#[test]
fn a_segment_with_anything_in_use_is_needed_as_a_whole() {
    let mut allocator = Allocator::new(false);
    let whole = allocator.allocate(mib(64));
    allocator.release(whole);
    let part = allocator.allocate(mib(12));
    allocator.allocate(mib(60));
    assert_eq!([allocator.reserved(), allocator.needed()], [mib(124); 2]);
    allocator.release(part);
    allocator.allocate(mib(80));
    assert_eq!(allocator.reserved(), mib(204));
    assert_eq!(allocator.needed(), mib(140));
}

#[test]
fn a_segment_that_grows_does_so_by_what_is_lacking() {
    assert_eq!(reserved(true, &[MIB + 1, 18 * MIB, 30 * MIB]), [20 * MIB, 20 * MIB, 60 * MIB]);
    assert_eq!(reserved(true, &[1, MIB, MIB]), [2 * MIB, 2 * MIB, 4 * MIB]);
    let mut allocator = Allocator::new(true);
    let blocks = [16, 16, 16].map(|size| allocator.allocate(mib(size)));
    assert_eq!(allocator.reserved(), mib(60));
    let [first, second, third] = blocks;
    allocator.release(first);
    allocator.release(second);
    // Neighbours that were allocated one by one are now one block; the last block is left to grow.
    allocator.allocate(mib(32));
    assert_eq!(allocator.reserved(), mib(60));
    allocator.release(third);
    allocator.allocate(mib(40));
    assert_eq!(allocator.reserved(), mib(80));
}

#[test]
fn the_last_block_of_what_grows_is_taken_last_and_stays_the_last() {
    // The rest of a page is the last block, and grows.
    assert_eq!(reserved(true, &[30 * MIB, 30 * MIB]), [40 * MIB, 60 * MIB]);
    let of = |sizes: [u64; 4], freed: [usize; 2]| {
        let mut allocator = Allocator::new(true);
        let blocks = sizes.map(|size| allocator.allocate(mib(size)));
        for (at, block) in blocks.into_iter().enumerate() {
            if freed.contains(&at) {
                allocator.release(block);
            }
        }
        allocator
    };
    // Freed neighbours become one last block, which grows.
    let mut joined = of([20; 4], [2, 3]);
    joined.allocate(mib(60));
    assert_eq!(joined.reserved(), mib(100));
    // 20 fit into the last block, which could become larger than the 60 before it.
    let mut last = of([60, 20, 20, 20], [0, 3]);
    last.allocate(mib(20));
    last.allocate(mib(60));
    assert_eq!(last.reserved(), mib(160));
    // They fit into one that cannot, so that the 60 stay whole.
    let mut within = of([20, 20, 60, 20], [0, 2]);
    within.allocate(mib(20));
    within.allocate(mib(60));
    assert_eq!(within.reserved(), mib(120));
}

#[test]
fn whole_pages_of_what_grows_can_be_released() {
    let mut allocator = Allocator::new(true);
    let large = allocator.allocate(mib(100));
    allocator.release(large);
    // Small blocks grow apart. Of the five pages of 20 MiB one may have neighbours.
    for _ in 0..90 {
        allocator.allocate(mib(1));
    }
    assert_eq!([allocator.reserved(), allocator.needed()], [mib(190), mib(190 - 80)]);
}

/// Two recorded steps (`tests/record/allocations.py`) match what an H200 reserved in the same runs, 20 and 24 GB, to
/// 44 and 42 MB.
#[test]
fn recorded_steps_reserve_what_a_gpu_did() {
    for (events, reserved, measured) in [
        (
            include_str!("../../../../../tests/data/torch/allocations-llama-1b.txt"),
            22_586_327_040_u64,
            22_630_367_232_u64,
        ),
        (
            include_str!("../../../../../tests/data/torch/allocations-qwen-0.5b.txt"),
            29_924_261_888,
            29_966_204_928,
        ),
    ] {
        let mut allocator = Allocator::new(false);
        let mut blocks: Vec<Option<Held>> = Vec::new();
        for number in events.split_whitespace() {
            match number.parse::<i64>().expect("a number") {
                // Nothing is allocated for a tensor without elements.
                0 => blocks.push(None),
                bytes @ 1.. => {
                    let bytes = Bytes::new(bytes.unsigned_abs());
                    blocks.push(Some(allocator.allocate(bytes)));
                }
                back => {
                    let at = blocks.len() - usize::try_from(back.unsigned_abs()).expect("a place");
                    if let Some(block) = blocks[at].take() {
                        allocator.release(block);
                    }
                }
            }
        }
        assert_eq!(allocator.reserved().get(), reserved);
        assert!(measured - reserved < 45_000_000);
    }
}
