//! Laws of selections: each selection is compared with the list of its bytes, one by one.

mod dealing;

use layout::{
    ArraySide, Chunk, Dimension, Distribution, Extent, FILE_BYTES_MAX, LayoutError, SELECTION_LEVELS_MAX,
    Selection, SelectionError, View,
};
use proptest::collection::vec;
use proptest::prelude::*;

use dealing::{dimension, places, places_by_definition, view};

/// A selection, and the file offset of each byte in memory.
#[derive(Clone, Debug)]
struct Known {
    selection: Selection,
    offsets: Vec<u64>,
}

impl Known {
    fn contiguous(extent: Extent) -> Self {
        Known {
            selection: Selection::contiguous(extent).unwrap(),
            offsets: (extent.offset..extent.end()).collect(),
        }
    }

    fn repeated(&self, count: u64, gap: u64) -> Self {
        let stride = self.selection.span().bytes + gap;
        let repeated = |times| self.offsets.iter().map(move |offset| offset + times * stride);
        Known {
            selection: self.selection.repeated(count, stride).unwrap(),
            offsets: (0..count).flat_map(repeated).collect(),
        }
    }

    fn joined(parts: &[(u64, Known)]) -> Self {
        let (mut placed, mut offsets, mut end) = (Vec::new(), Vec::new(), 0);
        for (gap, part) in parts {
            placed.push((end + gap, part.selection.clone()));
            offsets.extend(part.offsets.iter().map(|offset| end + gap + offset));
            end = offsets.last().map_or(0, |last| last + 1);
        }
        Known { selection: Selection::joined(&placed).unwrap(), offsets }
    }

    fn slice(&self, position: u64, bytes: u64) -> Self {
        let kept = self.offsets.iter().skip(position as usize).take(bytes as usize);
        Known { selection: self.selection.slice(position, bytes).unwrap(), offsets: kept.copied().collect() }
    }

    fn tiled(&self, gap: u64, position: u64, bytes: u64) -> Self {
        let count = (position + bytes).checked_div(self.selection.bytes()).unwrap_or(0) + 1;
        let stride = self.selection.span().bytes + gap;
        let selection = self.selection.tiled(stride).unwrap().slice(position, bytes).unwrap();
        Known { selection, ..self.repeated(count, gap).slice(position, bytes) }
    }
}

/// Returns selections of a few hundred bytes, built from smaller selections in every way.
fn known() -> impl Strategy<Value = Known> {
    let run = (0..20_u64, 0..9_u64).prop_map(|(offset, bytes)| Known::contiguous(Extent::new(offset, bytes)));
    run.prop_recursive(4, 24, 3, |inner| {
        let gap = prop_oneof![Just(0), 0..12_u64];
        prop_oneof![
            (inner.clone(), 0..5_u64, gap.clone())
                // An empty selection has length 0, so its stride must not be 0.
                .prop_map(|(of, count, gap)| of.repeated(count, gap + u64::from(of.offsets.is_empty()))),
            vec((gap.clone(), inner.clone()), 0..4).prop_map(|parts| Known::joined(&parts)),
            (inner.clone(), 0..40_u64, 0..80_u64).prop_map(|(of, position, bytes)| of.slice(position, bytes)),
            (inner, 1..12_u64, 0..40_u64, 0..60_u64)
                .prop_map(|(of, gap, position, bytes)| of.tiled(gap, position, bytes)),
        ]
    })
}

/// Returns the chunks of those `offsets` that lie in an extent, computed directly from the definition.
fn chunks_by_definition(offsets: &[u64], extent: Extent) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for (memory_offset, &file_offset) in offsets.iter().enumerate() {
        if !(extent.offset..extent.end()).contains(&file_offset) {
            continue;
        }
        match chunks.last_mut() {
            Some(last) if last.file_offset + last.bytes == file_offset => last.bytes += 1,
            _ => chunks.push(Chunk { file_offset, memory_offset: memory_offset as u64, bytes: 1 }),
        }
    }
    chunks
}

const EVERYWHERE: Extent = Extent::new(0, FILE_BYTES_MAX);

/// Compares the result of every query of a selection with the list of its bytes.
fn check(selection: &Selection, offsets: &[u64], extent: Extent) -> Result<(), TestCaseError> {
    let all = chunks_by_definition(offsets, EVERYWHERE);
    prop_assert_eq!(selection.bytes(), offsets.len() as u64);
    prop_assert_eq!(selection.is_empty(), offsets.is_empty());
    prop_assert_eq!(selection.end(), offsets.last().map_or(0, |last| last + 1));
    prop_assert_eq!(selection.span().offset, offsets.first().copied().unwrap_or(0));
    prop_assert_eq!(selection.span().end(), selection.end());
    prop_assert_eq!(selection.runs(), all.len() as u64);
    prop_assert_eq!(selection.chunks().collect::<Vec<_>>(), all);
    let before = offsets.iter().filter(|offset| **offset < extent.offset).count();
    prop_assert_eq!(selection.bytes_before(extent.offset), before as u64);
    prop_assert_eq!(selection.next_from(extent.offset), offsets.get(before).copied());
    let pieces = chunks_by_definition(offsets, extent);
    prop_assert_eq!(selection.pieces_in(extent).collect::<Vec<_>>(), pieces);
    let within = selection.within(extent).unwrap();
    let kept: Vec<_> =
        offsets.iter().filter(|offset| (extent.offset..extent.end()).contains(offset)).collect();
    let found = within.chunks().flat_map(|chunk| chunk.file_offset..chunk.file_offset + chunk.bytes);
    prop_assert!(found.eq(kept.into_iter().copied()));
    let sent = postcard::to_allocvec(selection).unwrap();
    prop_assert_eq!(&postcard::from_bytes::<Selection>(&sent).unwrap(), selection);
    let (_, nodes): (u64, Vec<SentNode>) = postcard::from_bytes(&sent).unwrap();
    prop_assert_eq!(selection.nodes(), nodes.len() as u64);
    Ok(())
}

/// Returns the offsets of the bytes of a box, computed directly from the definition.
fn box_by_definition(element_bytes: u64, sides: &[ArraySide]) -> Vec<u64> {
    let mut offsets: Vec<u64> = vec![0];
    for side in sides {
        let rows =
            |offset: u64| (side.first..side.first + side.count).map(move |row| offset * side.length + row);
        offsets = offsets.into_iter().flat_map(rows).collect();
    }
    let bytes = |element| element * element_bytes..(element + 1) * element_bytes;
    offsets.into_iter().flat_map(bytes).collect()
}

fn side() -> impl Strategy<Value = ArraySide> {
    (1..8_u64)
        .prop_flat_map(|length| (Just(length), 0..length))
        .prop_flat_map(|(length, first)| (Just(length), Just(first), 0..=length - first))
        .prop_map(|(length, first, count)| ArraySide { length, first, count })
}

fn extent() -> impl Strategy<Value = Extent> {
    let bytes = prop_oneof![4 => 0..60_u64, 1 => Just(FILE_BYTES_MAX), 1 => Just(u64::MAX)];
    (0..300_u64, bytes).prop_map(|(offset, bytes)| Extent::new(offset, bytes))
}

proptest! {
    #[test]
    fn a_selection_equals_its_bytes(known in known(), extent in extent()) {
        check(&known.selection, &known.offsets, extent)?;
    }

    /// A slice equals the slice of a prefix, down to the structure of the tree.
    #[test]
    fn a_slice_can_be_cut_at_either_end(known in known(), position in 0..60_u64, bytes in 0..90_u64) {
        let until = known.selection.slice(0, position + bytes).unwrap();
        prop_assert_eq!(until.slice(position, bytes), known.selection.slice(position, bytes));
    }

    #[test]
    fn a_vector_equals_its_bytes(
        offset in 0..50_u64, bytes in 0..9_u64, count in 0..9_u64, gap in 0..9_u64, extent in extent(),
    ) {
        let vector = Selection::vector(Extent::new(offset, bytes), count, bytes + gap).unwrap();
        let starts = (0..count).map(|number| offset + number * (bytes + gap));
        let offsets: Vec<_> = starts.flat_map(|start| start..start + bytes).collect();
        check(&vector, &offsets, extent)?;
    }

    #[test]
    fn a_list_equals_its_bytes_unless_they_overlap(
        extents in vec((0..150_u64, 0..20_u64), 0..7), in_order: bool, extent in extent(),
    ) {
        let mut extents: Vec<_> = extents.into_iter().map(|(at, bytes)| Extent::new(at, bytes)).collect();
        if in_order {
            extents.sort_by_key(|extent| extent.offset);
        }
        let offsets: Vec<_> = extents.iter().flat_map(|extent| extent.offset..extent.end()).collect();
        match Selection::list(&extents) {
            Ok(list) => check(&list, &offsets, extent)?,
            Err(error) => {
                let overlaps = matches!(error, SelectionError::PartOverlaps { .. });
                prop_assert!(overlaps && !offsets.is_sorted_by(|one, next| one < next));
            }
        }
    }

    #[test]
    fn a_subarray_equals_its_bytes(element_bytes in 0..4_u64, sides in vec(side(), 0..5), extent in extent()) {
        let selection = Selection::subarray(element_bytes, &sides).unwrap();
        check(&selection, &box_by_definition(element_bytes, &sides), extent)?;
    }

    #[test]
    fn the_part_of_a_node_equals_its_bytes(
        record_bytes in 1..4_u64, mut dimensions in vec(dimension(), 1..6), node: u32, extent in extent(),
    ) {
        // Keep all dimensions after the third short, so that the bytes can be checked one by one.
        for dimension in dimensions.iter_mut().skip(3) {
            dimension.length = dimension.length.min(3);
        }
        let node = node % places(&dimensions);
        let owners = places_by_definition(record_bytes, &dimensions);
        let owned = owners.iter().enumerate().filter(|(_, (owner, _))| *owner == node);
        let offsets: Vec<_> = owned.map(|(offset, _)| offset as u64).collect();
        check(&Selection::dealt(record_bytes, &dimensions, node).unwrap(), &offsets, extent)?;
    }

    #[test]
    fn a_selection_of_a_view_has_the_chunks_of_the_node(view in view()) {
        for node in 0..=view.nodes() {
            let selection = Selection::of_view(&view, node);
            prop_assert!(selection.chunks().eq(view.chunks(node)));
            prop_assert_eq!(selection.bytes(), view.node_bytes(node));
            let blocks = (0..view.file_bytes()).step_by(7).map(|offset| Extent::new(offset, 7));
            for block in blocks {
                let pieces = view.pieces(block).filter(|piece| piece.node == node);
                let pieces = pieces.map(|piece| (piece.file_offset, piece.memory_offset, piece.bytes));
                let found = selection.pieces_in(block);
                prop_assert!(found.map(|it| (it.file_offset, it.memory_offset, it.bytes)).eq(pieces));
            }
        }
    }

    #[test]
    fn any_bytes_decode_to_a_valid_selection_or_an_error(bytes in vec(any::<u8>(), 0..80)) {
        if let Ok(selection) = postcard::from_bytes::<Selection>(&bytes) {
            exercise(&selection)?;
        }
    }

    #[test]
    fn any_text_parses_to_a_valid_selection_or_an_error(text in "[0-9]{0,3}:?[-0-9:,()\\[\\]+]{0,40}") {
        if let Ok(selection) = text.parse::<Selection>() {
            exercise(&selection)?;
        }
    }

    #[test]
    fn absurd_nodes_decode_to_a_valid_selection_or_an_error(offset in number(), nodes in vec(node(), 0..12)) {
        let bytes = postcard::to_allocvec(&(offset, nodes)).unwrap();
        if let Ok(selection) = postcard::from_bytes::<Selection>(&bytes) {
            exercise(&selection)?;
        }
    }

    #[test]
    fn absurd_arrays_form_a_valid_selection_or_an_error(
        record_bytes in number(), node in number(), sides in vec((number(), number(), number()), 0..6),
    ) {
        let boxes: Vec<_> =
            sides.iter().map(|&(length, first, count)| ArraySide { length, first, count }).collect();
        if let Ok(selection) = Selection::subarray(record_bytes, &boxes) {
            exercise(&selection)?;
        }
        let dimensions: Vec<_> = sides.iter().map(|&(length, run, parts)| {
            Dimension { length, distribution: Distribution::Cyclic(run), parts: parts as u32 }
        }).collect();
        if let Ok(selection) = Selection::dealt(record_bytes, &dimensions, node as u32) {
            exercise(&selection)?;
        }
    }
}

/// A node in a message.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
enum SentNode {
    Run(u64),
    Repeat { bytes: u64, gap: u64 },
    List(Vec<u64>),
}

fn node() -> impl Strategy<Value = SentNode> {
    prop_oneof![
        3 => number().prop_map(SentNode::Run),
        3 => (number(), number()).prop_map(|(bytes, gap)| SentNode::Repeat { bytes, gap }),
        1 => vec(number(), 0..3).prop_map(SentNode::List),
    ]
}

/// Returns numbers that often reveal defects.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 1..9_u64,
        2 => (0..64_u32).prop_map(|bit| 1 << bit),
        2 => (0..64_u32).prop_map(|bit| (1 << bit) - 1),
        1 => any::<u64>(),
    ]
}

/// Calls every query of a selection, with bounded iteration.
fn exercise(selection: &Selection) -> Result<(), TestCaseError> {
    prop_assert!(selection.end() <= FILE_BYTES_MAX);
    prop_assert!(selection.bytes() <= selection.span().bytes);
    prop_assert!(selection.runs() <= selection.bytes());
    let middle = selection.span().offset + selection.span().bytes / 2;
    for extent in [EVERYWHERE, Extent::new(middle, 1000), Extent::new(u64::MAX, 1)] {
        let mut end = None;
        for piece in selection.pieces_in(extent).take(100) {
            prop_assert!(end < Some(piece.file_offset), "pieces are in order, and as long as possible");
            prop_assert_eq!(selection.bytes_before(piece.file_offset), piece.memory_offset);
            prop_assert!(piece.bytes > 0 && piece.memory_offset + piece.bytes <= selection.bytes());
            end = Some(piece.file_offset + piece.bytes);
        }
        if let Ok(within) = selection.within(extent) {
            prop_assert!(
                within
                    .chunks()
                    .take(100)
                    .map(|it| it.bytes)
                    .eq(selection.pieces_in(extent).take(100).map(|it| it.bytes))
            );
        }
    }
    let sent = postcard::to_allocvec(selection).unwrap();
    prop_assert_eq!(&postcard::from_bytes::<Selection>(&sent).unwrap(), selection);
    let text = selection.to_string();
    prop_assert!(!text.contains(char::is_whitespace));
    prop_assert_eq!(&text.parse::<Selection>().expect(&text), selection);
    Ok(())
}

fn cyclic(length: u64, run: u64, parts: u32) -> Dimension {
    Dimension { length, distribution: Distribution::Cyclic(run), parts }
}

#[test]
fn a_selection_is_printed_and_parsed_as_one_word() {
    for text in ["-", "100:8", "0:(8+24)4000", "7:[8,92,(2+2)8,5,1]", "0:((1+1)4+9)16"] {
        assert_eq!(text.parse::<Selection>().expect(text).to_string(), text);
    }
    let vector = Selection::vector(Extent::new(5, 8), 500, 32).unwrap();
    assert_eq!(vector.to_string(), "5:(8+24)4000");
    for (text, why) in [
        ("", "expected a number of bytes at byte 0 (from 0)"),
        ("8", "expected : at byte 1 (from 0)"),
        ("0:(8+)4", "at byte 5"),
        ("0:[8,1]", "at byte 6"),
        ("0:8 ", "expected the end at byte 3 (from 0)"),
        ("0:0", "invalid encoded selection: its node 0 (from 0) is empty"),
        ("0:(8+24)8", "repeats less than one copy"),
        ("18446744073709551616:1", "at byte 0"),
        ("9223372036854775807:9223372036854775807", "would end beyond"),
    ] {
        let error = text.parse::<Selection>().expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    let deep = format!("0:{}1", "(".repeat(100_000));
    assert_eq!(deep.parse::<Selection>(), Err(SelectionError::TooDeep));
}

#[test]
fn a_block_cyclic_array_is_encoded_in_less_than_64_bytes() {
    // Includes sides whose length is not a whole number of runs or cycles.
    for (length, run) in [(1024, 4), (1000, 7), (1 << 16, 1)] {
        let dimensions = [cyclic(length, run, 4); 3];
        let selection = Selection::dealt(8, &dimensions, 21).unwrap();
        let bytes = postcard::to_allocvec(&selection).unwrap().len();
        assert!(bytes < 64, "{bytes} bytes for {length} in runs of {run}");
        assert!(selection.runs() > 1 << 18, "{}", selection.runs());
    }
}

#[test]
fn a_distant_offset_is_found_without_walking_the_runs() {
    // A walk from the beginning would pass 2^55 runs.
    let tiled = Selection::vector(Extent::new(100, 8), 3, 16).unwrap().tiled(64).unwrap();
    let far = 100 + (1 << 60);
    let pieces: Vec<_> = tiled.pieces_in(Extent::new(far + 4, 61)).collect();
    let memory = (1 << 60) / 64 * 24;
    let piece = |file, memory, bytes| Chunk { file_offset: file, memory_offset: memory, bytes };
    assert_eq!(
        pieces,
        [
            piece(far + 4, memory + 4, 4),
            piece(far + 16, memory + 8, 8),
            piece(far + 32, memory + 16, 8),
            piece(far + 64, memory + 24, 1),
        ]
    );
    assert!(tiled.end() <= FILE_BYTES_MAX && tiled.end() > FILE_BYTES_MAX - 64);
}

/// Small calls through an irregular view make such slices. If each slice copied the parts before it, the test would
/// take minutes.
#[test]
fn small_slices_of_a_long_list_are_cheap() {
    const PARTS: u64 = 100_000;
    let extents: Vec<Extent> = (0..PARTS).map(|part| Extent::new(part * 10 + part % 3, 4)).collect();
    let view = Selection::list(&extents).unwrap().tiled(PARTS * 10).unwrap();
    for part in 0..PARTS {
        let found = view.slice((PARTS + part) * 4 + 2, 4).unwrap();
        assert_eq!((found.bytes(), found.runs()), (4, 2));
    }
}

#[test]
fn slices_of_whole_repetitions_need_no_list() {
    let vector = Selection::vector(Extent::new(5, 2), 9, 10).unwrap();
    assert_eq!(vector.slice(0, 18), Ok(vector.clone()));
    assert_eq!(vector.slice(4, 6), Selection::vector(Extent::new(25, 2), 3, 10));
    let planes = vector.repeated(4, 1000).unwrap();
    assert_eq!(planes.slice(18, 36), vector.shifted(1000).unwrap().repeated(2, 1000));
}

#[test]
fn an_mpi_file_view_is_a_shifted_tiled_and_sliced_type() {
    // Displacement 1000; the type selects bytes 2, 3 and 8 of every 12. The slice has five bytes from position 4 on.
    let of_type = Selection::list(&[Extent::new(2, 2), Extent::new(8, 1)]).unwrap();
    let wanted = of_type.shifted(1000).unwrap().tiled(12).unwrap().slice(4, 5).unwrap();
    let offsets: Vec<_> = wanted.chunks().map(|chunk| (chunk.file_offset, chunk.bytes)).collect();
    assert_eq!(offsets, [(1015, 1), (1020, 1), (1026, 2), (1032, 1)]);
}

#[test]
fn adjacent_extents_form_one_run() {
    let one = Selection::contiguous(Extent::new(4, 12)).unwrap();
    let extents: Vec<_> = (0..4).map(|number| Extent::new(4 + number * 3, 3)).collect();
    assert_eq!(Selection::list(&extents).unwrap(), one);
    assert_eq!(Selection::vector(Extent::new(4, 2), 6, 2).unwrap(), one);
    let whole = |length| ArraySide { length, first: 0, count: length };
    let of_box = Selection::subarray(1, &[ArraySide { length: 9, first: 1, count: 3 }, whole(2), whole(2)]);
    assert_eq!(of_box.unwrap(), one);
}

#[test]
fn an_invalid_selection_is_an_error() {
    let at = |offset, bytes| Extent::new(offset, bytes);
    let overlapping = Selection::list(&[at(0, 4), at(9, 0), at(3, 1)]).unwrap_err();
    assert_eq!(overlapping, SelectionError::PartOverlaps { part: 2, offset: 3, end: 4 });
    let close = Selection::vector(at(7, 4), 2, 3).unwrap_err();
    assert_eq!(close, SelectionError::RepetitionOverlaps { bytes: 4, stride: 3 });
    let tile = Selection::contiguous(at(0, 4)).unwrap();
    for stride in [0, 3] {
        assert_eq!(tile.tiled(stride), Err(SelectionError::RepetitionOverlaps { bytes: 4, stride }));
    }
    let long = [
        Selection::contiguous(at(FILE_BYTES_MAX, 1)),
        Selection::contiguous(at(u64::MAX, 1)),
        Selection::vector(at(0, 1), 3, 1 << 62),
        Selection::list(&[at(0, 1), at(u64::MAX, 9)]),
        tile.shifted(FILE_BYTES_MAX - 3),
        tile.repeated(u64::MAX, 4),
        Selection::subarray(1 << 32, &[ArraySide { length: 1 << 32, first: 0, count: 1 }]),
    ];
    assert_eq!(long, [const { Err(SelectionError::TooLong) }; 7]);
    let outside = ArraySide { length: 4, first: 3, count: 2 };
    let error = Selection::subarray(1, &[ArraySide { count: 1, ..outside }, outside]).unwrap_err();
    assert_eq!(error, SelectionError::OutsideSide { side: 1, length: 4, first: 3, count: 2 });
    let no_parts = Selection::dealt(1, &[cyclic(4, 1, 0)], 0).unwrap_err();
    assert_eq!(no_parts, SelectionError::Array(LayoutError::NoParts { dimension: 0 }));
    let no_node = Selection::dealt(1, &[cyclic(4, 1, 3), cyclic(4, 1, 2)], 6).unwrap_err();
    assert_eq!(no_node, SelectionError::NoSuchNode { node: 6, places: 6 });
}

#[test]
fn the_number_of_levels_is_limited() {
    let mut selection = Selection::contiguous(Extent::new(0, 2)).unwrap();
    let one_more = |of: &Selection| {
        // The second copy is cut short, so that no level can be merged with the level inside it.
        of.repeated(2, of.span().bytes + 1)?.slice(0, of.bytes() + 1)
    };
    for _ in 0..SELECTION_LEVELS_MAX {
        selection = one_more(&selection).unwrap();
    }
    assert_eq!(one_more(&selection), Err(SelectionError::TooDeep));
    let sent = postcard::to_allocvec(&selection).unwrap();
    assert_eq!(postcard::from_bytes(&sent), Ok(selection));
}

#[test]
fn an_invalid_encoded_selection_is_rejected_with_the_reason() {
    use SentNode::{List, Repeat, Run};
    let wrong = [
        (vec![Run(0)], "invalid encoded selection: its node 0 (from 0) is empty"),
        (vec![Repeat { bytes: 8, gap: 1 }], "invalid encoded selection: its node 0 (from 0) repeats nothing"),
        (
            vec![Run(8), Repeat { bytes: 8, gap: 1 }],
            "invalid encoded selection: its node 1 (from 0) repeats less than one copy",
        ),
        (
            vec![Run(8), Run(8)],
            "invalid encoded selection: its node 1 (from 0) leaves nodes before it without a parent",
        ),
        (
            vec![Run(8), List(vec![4])],
            "invalid encoded selection: its node 1 (from 0) lists more nodes than precede it",
        ),
        (
            vec![Run(1), Run(1), List(vec![4]), Run(1), List(vec![4])],
            "invalid encoded selection: its node 4 (from 0) lists a list",
        ),
        (
            vec![Run(8), Repeat { bytes: 16, gap: u64::MAX - 7 }],
            "the selection would end beyond byte 9223372036854775807, the end of the largest possible file",
        ),
    ];
    for (nodes, expected) in wrong {
        let sent = serde_json::to_value((0, nodes)).unwrap();
        let error = serde_json::from_value::<Selection>(sent).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn each_node_selects_one_run_of_a_replicated_view() {
    let view = View::replicated(8, &[Dimension::whole(100)], 3).unwrap();
    let whole = Selection::contiguous(Extent::new(0, 800)).unwrap();
    assert_eq!([Selection::of_view(&view, 2), Selection::of_view(&view, 3)], [whole, Selection::empty()]);
}
