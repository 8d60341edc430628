//! Pictures that move: screenshots joined into one animated PNG, whose frames are the screenshots' own bytes.
//! Form: the APNG part of "Portable Network Graphics (PNG) Specification, third edition".
use std::fs;
use std::path::{Path, PathBuf};

use crate::page::screenshots;

/// How every PNG begins.
const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// One part of a PNG.
struct Chunk<'a> {
    kind: [u8; 4],
    data: &'a [u8],
}

/// Joins `frames`, each with its duration in milliseconds, into `target/screenshots/NAME.png`.
///
/// # Panics
/// If a file is not a PNG, or if they differ in size or colour type.
#[track_caller]
pub fn moving_picture(name: &str, frames: &[(PathBuf, u16)]) -> PathBuf {
    let read = |(file, stays): &(PathBuf, u16)| (fs::read(file).expect("a screenshot"), *stays);
    let joined = joined(&frames.iter().map(read).collect::<Vec<_>>());
    let file = screenshots().join(format!("{name}.png"));
    fs::write(&file, joined).expect("a picture");
    file
}

fn joined(frames: &[(Vec<u8>, u16)]) -> Vec<u8> {
    let count = u32::try_from(frames.len()).expect("few frames");
    let head = chunks(&frames.first().expect("a frame").0).into_iter().next().expect("a head").data.to_vec();
    let mut out = SIGNATURE.to_vec();
    put(&mut out, *b"IHDR", &head);
    // Loops forever.
    put(&mut out, *b"acTL", &[count.to_be_bytes(), 0_u32.to_be_bytes()].concat());
    let mut number = 0_u32;
    let mut next = || {
        number += 1;
        (number - 1).to_be_bytes()
    };
    for (place, (frame, stays)) in frames.iter().enumerate() {
        let parts = chunks(frame);
        assert!(parts.first().is_some_and(|first| first.data == head), "frame {place} is of another size");
        // Width and height, no offset, the time over 1000, and the frame replacing the previous one.
        let size = head.get(..8).expect("a size");
        let control =
            [&next()[..], size, &[0; 8], &stays.to_be_bytes(), &1000_u16.to_be_bytes(), &[0, 0]].concat();
        put(&mut out, *b"fcTL", &control);
        for part in parts.iter().filter(|part| part.kind == *b"IDAT") {
            match place {
                0 => put(&mut out, *b"IDAT", part.data),
                _ => put(&mut out, *b"fdAT", &[&next()[..], part.data].concat()),
            }
        }
    }
    put(&mut out, *b"IEND", &[]);
    out
}

fn chunks(png: &[u8]) -> Vec<Chunk<'_>> {
    let mut rest = png.strip_prefix(&SIGNATURE).expect("a PNG");
    let mut all = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let (kind, behind) = behind.split_first_chunk::<4>().expect("a kind");
        let (data, behind) = behind.split_at_checked(length).expect("a whole chunk");
        all.push(Chunk { kind: *kind, data });
        rest = behind.get(4..).expect("a check");
    }
    all
}

fn put(out: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    out.extend(u32::try_from(data.len()).expect("a short chunk").to_be_bytes());
    let checked = [&kind[..], data].concat();
    out.extend(&checked);
    out.extend(check(&checked).to_be_bytes());
}

/// CRC-32 as in PNG.
fn check(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// The frames of an animated PNG, according to its header.
///
/// # Panics
/// If the file is not such a picture.
#[must_use]
pub fn frames_of(file: &Path) -> u32 {
    let png = fs::read(file).expect("a picture");
    let parts = chunks(&png);
    let control = parts.iter().find(|part| part.kind == *b"acTL").expect("an animation");
    u32::from_be_bytes(control.data.first_chunk::<4>().copied().expect("a count"))
}

#[cfg(test)]
mod tests {
    use super::{check, chunks, joined};

    #[test]
    fn frames_keep_their_bytes_and_every_chunk_its_check() {
        // Every PNG contains the CRC of the empty last chunk.
        assert_eq!(check(b"IEND"), 0xae42_6082);
        let card = include_bytes!("../../assets/icon-192.png").to_vec();
        let both = joined(&[(card.clone(), 500), (card.clone(), 700)]);
        let parts = chunks(&both);
        let of = |kind: &[u8; 4]| parts.iter().filter(|part| part.kind == *kind).collect::<Vec<_>>();
        assert_eq!(of(b"acTL")[0].data, [0, 0, 0, 2, 0, 0, 0, 0]);
        assert_eq!(of(b"fcTL").len(), 2);
        let own: Vec<u8> = chunks(&card)
            .iter()
            .filter(|part| part.kind == *b"IDAT")
            .flat_map(|part| part.data.to_vec())
            .collect();
        let first: Vec<u8> = of(b"IDAT").iter().flat_map(|part| part.data.to_vec()).collect();
        let second: Vec<u8> = of(b"fdAT").iter().flat_map(|part| part.data[4..].to_vec()).collect();
        assert_eq!((first, second), (own.clone(), own));
        // Sequence numbers of frames and of their data run through all of them.
        let numbered: Vec<u32> = parts
            .iter()
            .filter(|part| matches!(&part.kind, b"fcTL" | b"fdAT"))
            .map(|part| u32::from_be_bytes(part.data[..4].try_into().expect("a number")))
            .collect();
        assert_eq!(numbered, (0..u32::try_from(numbered.len()).expect("few")).collect::<Vec<_>>());
    }
}
