//! Pickles as data. A pickle is a program for a stack machine (CPython's `Lib/pickletools.py`); only its instructions that make
//! numbers, strings, lists, tuples and dicts are implemented. An instruction that would import, construct or call something is
//! rejected by name, so that nothing in an untrusted pickle is ever run.

use std::fmt;

use super::tree::{Id, Node, Tree};

/// Most values that a pickle may create; each takes 32 bytes.
const MOST_VALUES: usize = 16 << 20;
/// The newest protocol.
const NEWEST: u8 = 5;

/// Why a pickle cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickleError {
    /// The file ends before the pickle's last instruction.
    Short,
    /// An instruction that imports, constructs or calls something.
    Runs(&'static str),
    /// An instruction that no memory snapshot contains.
    Unknown(u8),
    /// Its instructions are inconsistent.
    Broken,
    /// It has more values than the limit.
    TooMany,
}

impl fmt::Display for PickleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => out.write_str("it ends too early"),
            Self::Runs(name) => write!(out, "{name} would run arbitrary code"),
            Self::Unknown(code) => write!(out, "opcode {code:#04x} does not occur in memory snapshots"),
            Self::Broken => out.write_str("its opcodes are inconsistent"),
            Self::TooMany => write!(out, "it has more than {MOST_VALUES} values"),
        }
    }
}

impl std::error::Error for PickleError {}

/// Whether these bytes begin as a pickle of protocol 2 or newer does: PROTO, then its number. Protocols 0 and 1 have
/// no such head, and Python 3 writes neither unless told to.
#[must_use]
pub fn is_pickle(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=NEWEST, ..])
}

/// Reads a pickle.
///
/// # Errors
/// Why it is not read.
pub(crate) fn read(bytes: &[u8]) -> Result<Tree<'_>, PickleError> {
    let mut machine =
        Machine { bytes, at: 0, nodes: Vec::new(), stack: Vec::new(), marks: Vec::new(), memo: Vec::new() };
    let root = machine.run()?;
    Ok(Tree { bytes, nodes: machine.nodes, root })
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    /// Heights of the stack at its marks, the innermost last.
    marks: Vec<usize>,
    memo: Vec<Option<Id>>,
}

impl Machine<'_> {
    /// Every iteration consumes at least one byte, so the loop ends.
    fn run(&mut self) -> Result<Id, PickleError> {
        loop {
            let code = self.byte()?;
            match code {
                b'.' => return self.pop(),
                // PROTO and FRAME: the frame's length is not needed, as the whole file is in memory.
                0x80 => drop(self.byte()?),
                0x95 => drop(self.take(8)?),
                b'(' => self.marks.push(self.stack.len()),
                // NONE, NEWTRUE, NEWFALSE.
                b'N' | 0x88 | 0x89 => self.push(Node::Other)?,
                // BININT1, BININT2, BININT, LONG1, LONG4.
                b'K' => {
                    let number = self.number(1)?;
                    self.push(Node::Int(number.cast_signed()))?;
                }
                b'M' => {
                    let number = self.number(2)?;
                    self.push(Node::Int(number.cast_signed()))?;
                }
                b'J' => {
                    let bytes = self.take(4)?;
                    let number = <[u8; 4]>::try_from(bytes).map(i32::from_le_bytes).unwrap_or_default();
                    self.push(Node::Int(number.into()))?;
                }
                0x8a => self.long(1)?,
                0x8b => self.long(4)?,
                // BINFLOAT: no figure of a snapshot is a float.
                b'G' => {
                    self.take(8)?;
                    self.push(Node::Other)?;
                }
                // SHORT_BINUNICODE and its relatives, by the width of their length in bytes.
                0x8c | b'U' => self.words(1)?,
                b'X' | b'T' => self.words(4)?,
                0x8d => self.words(8)?,
                // Bytes, which contain no figure.
                b'C' => self.skipped(1)?,
                b'B' => self.skipped(4)?,
                0x8e => self.skipped(8)?,
                b']' | b')' | 0x8f => self.push(Node::List(Vec::new()))?,
                b'}' => self.push(Node::Dict(Vec::new()))?,
                // LIST, TUPLE, FROZENSET: all are stored as members in order.
                b'l' | b't' | 0x91 => {
                    let items = self.marked()?;
                    self.push(Node::List(items))?;
                }
                b'd' => {
                    let items = self.marked()?;
                    let pairs = pairs(&items)?;
                    self.push(Node::Dict(pairs))?;
                }
                // TUPLE1 to TUPLE3, without a mark.
                0x85..=0x87 => {
                    let from = self.height(usize::from(code - 0x84))?;
                    let items = self.stack.split_off(from);
                    self.push(Node::List(items))?;
                }
                b'a' => {
                    let item = self.pop()?;
                    self.extend(vec![item])?;
                }
                b'e' | 0x90 => {
                    let items = self.marked()?;
                    self.extend(items)?;
                }
                b's' => {
                    let from = self.height(2)?;
                    let items = self.stack.split_off(from);
                    self.set(&items)?;
                }
                b'u' => {
                    let items = self.marked()?;
                    self.set(&items)?;
                }
                b'0' => drop(self.pop()?),
                b'1' => drop(self.marked()?),
                b'2' => {
                    let top = self.top()?;
                    self.stack.push(top);
                }
                b'q' => self.remember_at(1)?,
                b'r' => self.remember_at(4)?,
                0x94 => self.remember(self.memo.len())?,
                b'h' => self.recall(1)?,
                b'j' => self.recall(4)?,
                _ => return Err(runs(code).map_or(PickleError::Unknown(code), PickleError::Runs)),
            }
        }
    }

    fn take(&mut self, count: usize) -> Result<&[u8], PickleError> {
        // A length of 8 bytes may be any number; it is checked against the file's size before it is used.
        let end = self.at.checked_add(count).ok_or(PickleError::Short)?;
        let bytes = self.bytes.get(self.at..end).ok_or(PickleError::Short)?;
        self.at = end;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, PickleError> {
        self.take(1)?.first().copied().ok_or(PickleError::Short)
    }

    /// A little-endian number of `width` bytes.
    fn number(&mut self, width: usize) -> Result<u64, PickleError> {
        let mut whole = [0; 8];
        for (to, from) in whole.iter_mut().zip(self.take(width)?) {
            *to = *from;
        }
        Ok(u64::from_le_bytes(whole))
    }

    fn length(&mut self, width: usize) -> Result<usize, PickleError> {
        usize::try_from(self.number(width)?).map_err(|_| PickleError::Short)
    }

    /// An integer of that many bytes, in two's complement.
    fn long(&mut self, width: usize) -> Result<(), PickleError> {
        let length = self.length(width)?;
        let bytes = self.take(length)?;
        // Sign-extended: LONG1 writes only as many bytes as the number needs.
        let sign = bytes.last().map_or(0, |last| if *last >= 0x80 { 0xff } else { 0 });
        let mut whole = [sign; 8];
        let fits = bytes.len() <= whole.len();
        for (to, from) in whole.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.push(if fits { Node::Int(i64::from_le_bytes(whole)) } else { Node::Other })
    }

    fn words(&mut self, width: usize) -> Result<(), PickleError> {
        let length = self.length(width)?;
        let start = self.at;
        self.take(length)?;
        // Strings are not copied: a node stores their position in the file.
        let place = |at: usize| u32::try_from(at).map_err(|_| PickleError::Short);
        let text = Node::Text(place(start)?, place(self.at)?);
        self.push(text)
    }

    fn skipped(&mut self, width: usize) -> Result<(), PickleError> {
        let length = self.length(width)?;
        self.take(length)?;
        self.push(Node::Other)
    }

    fn push(&mut self, node: Node) -> Result<(), PickleError> {
        let id = u32::try_from(self.nodes.len()).map_err(|_| PickleError::TooMany)?;
        if self.nodes.len() == MOST_VALUES {
            return Err(PickleError::TooMany);
        }
        self.nodes.push(node);
        self.stack.push(Id(id));
        Ok(())
    }

    /// The height of the stack `count` below its top: never below the last mark.
    fn height(&self, count: usize) -> Result<usize, PickleError> {
        // Values below the last mark belong to a list or dict that is still being filled.
        let least = self.marks.last().copied().unwrap_or(0);
        self.stack.len().checked_sub(count).filter(|height| *height >= least).ok_or(PickleError::Broken)
    }

    fn pop(&mut self) -> Result<Id, PickleError> {
        self.height(1)?;
        self.stack.pop().ok_or(PickleError::Broken)
    }

    fn top(&self) -> Result<Id, PickleError> {
        self.height(1)?;
        self.stack.last().copied().ok_or(PickleError::Broken)
    }

    /// Removes and returns everything above the last mark.
    fn marked(&mut self) -> Result<Vec<Id>, PickleError> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len()).ok_or(PickleError::Broken)?;
        Ok(self.stack.split_off(mark))
    }

    fn extend(&mut self, more: Vec<Id>) -> Result<(), PickleError> {
        let list = self.top()?;
        match self.nodes.get_mut(list.0 as usize) {
            Some(Node::List(items)) => items.extend(more),
            _ => return Err(PickleError::Broken),
        }
        Ok(())
    }

    fn set(&mut self, more: &[Id]) -> Result<(), PickleError> {
        let dict = self.top()?;
        match self.nodes.get_mut(dict.0 as usize) {
            Some(Node::Dict(known)) => known.extend(pairs(more)?),
            _ => return Err(PickleError::Broken),
        }
        Ok(())
    }

    fn remember_at(&mut self, width: usize) -> Result<(), PickleError> {
        let place = self.length(width)?;
        self.remember(place)
    }

    fn remember(&mut self, place: usize) -> Result<(), PickleError> {
        let top = self.top()?;
        if place >= MOST_VALUES {
            return Err(PickleError::TooMany);
        }
        // The writer chooses the numbers of memo entries; the bound above keeps the table at 128 MiB.
        if place >= self.memo.len() {
            self.memo.resize(place + 1, None);
        }
        if let Some(slot) = self.memo.get_mut(place) {
            *slot = Some(top);
        }
        Ok(())
    }

    fn recall(&mut self, width: usize) -> Result<(), PickleError> {
        let place = self.length(width)?;
        let id = self.memo.get(place).copied().flatten().ok_or(PickleError::Broken)?;
        self.stack.push(id);
        Ok(())
    }
}

fn pairs(items: &[Id]) -> Result<Vec<(Id, Id)>, PickleError> {
    if !items.len().is_multiple_of(2) {
        return Err(PickleError::Broken);
    }
    Ok(items.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))).collect())
}

/// The name of an instruction that imports, constructs or calls something.
const fn runs(code: u8) -> Option<&'static str> {
    Some(match code {
        b'c' => "GLOBAL",
        0x93 => "STACK_GLOBAL",
        b'R' => "REDUCE",
        b'b' => "BUILD",
        b'i' => "INST",
        b'o' => "OBJ",
        0x81 => "NEWOBJ",
        0x92 => "NEWOBJ_EX",
        0x82 => "EXT1",
        0x83 => "EXT2",
        0x84 => "EXT4",
        b'P' => "PERSID",
        b'Q' => "BINPERSID",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{PickleError, is_pickle, read};
    use crate::tree::Tree;

    fn whole(tree: &Tree<'_>, key: &str) -> Option<u64> {
        tree.whole(tree.get(tree.root(), key)?)
    }

    /// `pickle.dumps({"a": 7, "b": [1, 300, 70000, -1, 2**40], "c": ("x", None, True, 1.5)}, protocol=4)`, by CPython 3.11.
    const FOUR: &[u8] = b"\x80\x04\x95@\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94K\x07\x8c\x01b\x94]\x94(K\x01M,\x01Jp\x11\x01\x00J\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01e\x8c\x01c\x94(\x8c\x01x\x94N\x88G?\xf8\x00\x00\x00\x00\x00\x00t\x94u.";

    #[test]
    fn values_are_read() {
        assert!(is_pickle(FOUR));
        let tree = read(FOUR).unwrap();
        assert_eq!(whole(&tree, "a"), Some(7));
        let items = tree.list(tree.get(tree.root(), "b").unwrap()).unwrap();
        let numbers: Vec<_> = items.iter().map(|id| tree.whole(*id)).collect();
        assert_eq!(numbers, [Some(1), Some(300), Some(70_000), None, Some(1 << 40)]);
        let tuple = tree.list(tree.get(tree.root(), "c").unwrap()).unwrap();
        assert_eq!((tuple.len(), tree.text(tuple[0])), (4, Some(&b"x"[..])));
        assert_eq!(tree.get(tree.root(), "d"), None);
    }

    #[test]
    fn nothing_is_run() {
        // pickle.dumps of an object whose __reduce__ is (os.system, ("echo",)), protocols 2 and 4.
        for (bytes, name) in [
            (&b"\x80\x02cposix\nsystem\nq\x00X\x04\x00\x00\x00echoq\x01\x85q\x02Rq\x03."[..], "GLOBAL"),
            (b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04echo\x94\x85\x94R\x94.", "STACK_GLOBAL"),
            (b"\x80\x02)R.", "REDUCE"),
            (b"\x80\x02}}b.", "BUILD"),
            (b"\x80\x02Pabc\n.", "PERSID"),
        ] {
            assert_eq!(read(bytes).err(), Some(PickleError::Runs(name)));
        }
    }

    #[test]
    fn what_is_broken_is_refused() {
        for end in 1..FOUR.len() {
            assert!(read(&FOUR[..end]).is_err(), "{end}");
        }
        for bytes in [
            &b"\x80\x04."[..],
            b"\x80\x04e.",
            b"\x80\x04K\x01a.",
            b"\x80\x04](K\x01u.",
            b"\x80\x04}(K\x01u.",
            b"\x80\x04K\x01(0.",
            b"\x80\x04h\x05.",
            b"\x80\x04]r\xff\xff\xff\xff.",
            b"\x80\x04X\xff\xff\xff\xff.",
            b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
            b"\x80\x04\xff.",
        ] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
        // A list that contains itself.
        let tree = read(b"\x80\x04]\x94h\x00a.").unwrap();
        let items = tree.list(tree.root()).unwrap();
        assert_eq!(items, [tree.root()]);
    }
}
