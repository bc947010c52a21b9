//! A selection as text, in one word.
//!
//! ```text
//!   100:8                  from byte 100 on, 8 bytes
//!   0:(8+24)4000           8 bytes and a gap of 24, repeated, 4000 bytes in total
//!   0:[8,92,(2+2)8,5,1]    8 bytes, a gap of 92, 8 bytes in pairs, a gap of 5, one byte
//!   -                      nothing
//! ```
//!
//! The text lists the same nodes as the encoding for messages (`wire.rs`), but in another order. Both are checked in
//! the same way. A text with more nodes than can be sent is rejected.

use std::fmt;
use std::str::FromStr;

use super::Selection;
use super::error::{SELECTION_LEVELS_MAX, SELECTION_NODES_MAX, SelectionError};
use super::tree::Tree;
use super::wire::{RawNode, RawSelection};

/// The text of the empty selection.
const NOTHING: &str = "-";

impl fmt::Display for Selection {
    /// Writes the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(NOTHING);
        }
        write!(f, "{}:", self.offset)?;
        write(&self.tree, f)
    }
}

/// Writes a tree. May recurse, since the depth of the tree is bounded.
fn write(tree: &Tree, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match tree {
        Tree::Run(bytes) => write!(f, "{bytes}"),
        Tree::Repeat(repeat) => {
            f.write_str("(")?;
            write(&repeat.of, f)?;
            write!(f, "+{}){}", repeat.stride - repeat.of.end(), repeat.bytes)
        }
        Tree::Parts(parts) => {
            let mut end = 0;
            for part in &parts.list {
                match part.before {
                    0 => f.write_str("[")?,
                    _ => write!(f, ",{},", part.offset - end)?,
                }
                write(&part.tree, f)?;
                end = part.end();
            }
            f.write_str("]")
        }
    }
}

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        if text == NOTHING {
            return Ok(Selection::empty());
        }
        let mut reader = TextReader { text, at: 0, nodes: Vec::new() };
        let offset = reader.number()?;
        reader.expect(":")?;
        reader.tree(0)?;
        if reader.at < text.len() {
            return Err(reader.wrong("the end"));
        }
        RawSelection { offset, nodes: reader.nodes }.selection()
    }
}

/// Reader of a text from front to back.
struct TextReader<'a> {
    text: &'a str,
    /// Current position in the text, in bytes.
    at: usize,
    /// Nodes read so far, in message order.
    nodes: Vec<RawNode>,
}

impl TextReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn wrong(&self, expected: &'static str) -> SelectionError {
        SelectionError::Text { at: self.at, expected }
    }

    /// Skips `mark` if the rest of the text begins with it. Returns true if so.
    fn passes(&mut self, mark: &str) -> bool {
        let is_there = self.rest().starts_with(mark);
        self.at += if is_there { mark.len() } else { 0 };
        is_there
    }

    fn expect(&mut self, mark: &'static str) -> Result<(), SelectionError> {
        if self.passes(mark) { Ok(()) } else { Err(self.wrong(mark)) }
    }

    fn number(&mut self) -> Result<u64, SelectionError> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest()[..digits].parse().map_err(|_| self.wrong("a number of bytes"))?;
        self.at += digits;
        Ok(number)
    }

    fn tree(&mut self, level: u32) -> Result<(), SelectionError> {
        if level > SELECTION_LEVELS_MAX {
            return Err(SelectionError::TooDeep);
        }
        let node = if self.passes("(") {
            self.tree(level + 1)?;
            self.expect("+")?;
            let gap = self.number()?;
            self.expect(")")?;
            RawNode::Repeat { bytes: self.number()?, gap }
        } else if self.passes("[") {
            let mut gaps = Vec::new();
            self.tree(level + 1)?;
            while self.passes(",") {
                gaps.push(self.number()?);
                self.expect(",")?;
                self.tree(level + 1)?;
            }
            self.expect("]")?;
            RawNode::List(gaps)
        } else {
            RawNode::Run(self.number()?)
        };
        self.nodes.push(node);
        match self.nodes.len() {
            nodes if nodes > SELECTION_NODES_MAX => Err(SelectionError::TooManyNodes { nodes }),
            _ => Ok(()),
        }
    }
}
