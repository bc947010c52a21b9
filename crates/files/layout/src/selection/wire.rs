//! A selection in a message: its nodes in sequence, each after its children.
//!
//! The encoding stores gaps between selected bytes, not offsets and strides, so that it cannot express an overlap. A
//! received selection is checked like a constructed one, without recursion, in time proportional to its size.
//!
//! ```text
//!   ab..cd..ab..cd......ef       Run 2,  Repeat 8 bytes in all, gaps of 2,  Run 2,  List with a gap of 6
//! ```

use serde::{Deserialize, Serialize};

use super::Selection;
use super::error::{SELECTION_NODES_MAX, SelectionError};
use super::tree::{List, Tree};

/// The received numbers before they are checked.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Selection")]
pub(super) struct RawSelection {
    pub(super) offset: u64,
    pub(super) nodes: Vec<RawNode>,
}

/// One node.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Node")]
pub(super) enum RawNode {
    /// A run of this many bytes.
    Run(u64),
    /// The previous node, repeated with a gap in between until there are `bytes` bytes.
    Repeat { bytes: u64, gap: u64 },
    /// A list of the latest nodes without a parent, with these gaps between them.
    List(Vec<u64>),
}

impl RawSelection {
    /// Returns the message. Fails with `TooManyNodes` if it would be too large.
    pub(super) fn of(offset: u64, tree: &Tree) -> Result<Self, SelectionError> {
        if tree.nodes() > SELECTION_NODES_MAX as u64 {
            return Err(SelectionError::TooManyNodes { nodes: tree.nodes() as usize });
        }
        let mut nodes = Vec::new();
        if tree.bytes() > 0 {
            append(tree, &mut nodes);
        }
        Ok(RawSelection { offset, nodes })
    }

    /// Returns the received selection.
    pub(super) fn selection(&self) -> Result<Selection, SelectionError> {
        Selection::placed(self.offset, self.tree()?)
    }

    fn tree(&self) -> Result<Tree, SelectionError> {
        if self.nodes.len() > SELECTION_NODES_MAX {
            return Err(SelectionError::TooManyNodes { nodes: self.nodes.len() });
        }
        let mut open = Vec::new();
        for (node, raw) in self.nodes.iter().enumerate() {
            let tree = raw.tree(&mut open, |defect| SelectionError::Encoding { node, defect })?;
            open.push(tree);
        }
        match open.pop() {
            None => Ok(Tree::EMPTY),
            Some(tree) if open.is_empty() => Ok(tree),
            Some(_) => {
                let node = self.nodes.len() - 1;
                Err(SelectionError::Encoding { node, defect: "leaves nodes before it without a parent" })
            }
        }
    }
}

impl RawNode {
    /// Returns the node; removes its children from `open`.
    fn tree(
        &self,
        open: &mut Vec<Tree>,
        wrong: impl Fn(&'static str) -> SelectionError,
    ) -> Result<Tree, SelectionError> {
        match self {
            RawNode::Run(0) => Err(wrong("is empty")),
            RawNode::Run(bytes) => Tree::run(*bytes),
            RawNode::Repeat { bytes, gap } => {
                let of = open.pop().ok_or_else(|| wrong("repeats nothing"))?;
                if *bytes <= of.bytes() {
                    return Err(wrong("repeats less than one copy"));
                }
                let stride = of.end().checked_add(*gap).ok_or(SelectionError::TooLong)?;
                Tree::repeat(of, *bytes, stride)
            }
            RawNode::List(gaps) => {
                let first = open
                    .len()
                    .checked_sub(gaps.len() + 1)
                    .ok_or_else(|| wrong("lists more nodes than precede it"))?;
                let mut list = List::default();
                let gaps = std::iter::once(&0).chain(gaps);
                for (tree, gap) in open.drain(first..).zip(gaps) {
                    if matches!(tree, Tree::Parts(_)) {
                        return Err(wrong("lists a list"));
                    }
                    let offset = list.end().checked_add(*gap).ok_or(SelectionError::TooLong)?;
                    list.push(offset, tree)?;
                }
                list.finish().map(|(_, tree)| tree)
            }
        }
    }
}

/// Appends the nodes of a tree. May recurse, since the depth of the tree is bounded.
fn append(tree: &Tree, nodes: &mut Vec<RawNode>) {
    match tree {
        Tree::Run(bytes) => nodes.push(RawNode::Run(*bytes)),
        Tree::Repeat(repeat) => {
            append(&repeat.of, nodes);
            nodes.push(RawNode::Repeat { bytes: repeat.bytes, gap: repeat.stride - repeat.of.end() });
        }
        Tree::Parts(parts) => {
            let mut gaps = Vec::with_capacity(parts.list.len() - 1);
            let mut end = 0;
            for part in &parts.list {
                if part.before > 0 {
                    gaps.push(part.offset - end);
                }
                end = part.end();
                append(&part.tree, nodes);
            }
            nodes.push(RawNode::List(gaps));
        }
    }
}
