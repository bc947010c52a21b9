//! The access patterns of the STARFISH report: a 10 MiB file, 16 compute nodes, 16 disks, 8 KiB blocks,
//! records of 8192 and of 8 bytes.

use std::collections::BTreeSet;

use layout::{Chunk, Extent, Pattern, Problem, Striping, View};

const FILE_BYTES: u64 = 10 << 20;
const BLOCK_BYTES: u64 = 8192;
const NODES: u32 = 16;

fn view(name: &str, record_bytes: u64) -> View {
    let pattern: Pattern = name.parse().unwrap();
    pattern.view(&Problem::new(FILE_BYTES, record_bytes, NODES)).unwrap()
}

fn chunks(name: &str, record_bytes: u64, node: u32) -> Vec<Chunk> {
    view(name, record_bytes).chunks(node).collect()
}

fn striping() -> Striping {
    Striping::new(BLOCK_BYTES, 16).unwrap()
}

/// Returns the number of requests of a client for its chunks if no request may cross a block.
fn request_count(view: &View, node: u32) -> usize {
    view.chunks(node).map(|chunk| striping().requests(chunk.file_extent()).count()).sum()
}

/// Returns the disks that store records of a node.
fn disks(name: &str, record_bytes: u64, node: u32) -> BTreeSet<u32> {
    let chunks = view(name, record_bytes).chunks(node);
    chunks.flat_map(|chunk| striping().requests(chunk.file_extent())).map(|request| request.stripe).collect()
}

/// Returns the distinct offsets, in blocks, of the nodes' first chunks.
fn first_blocks(name: &str, record_bytes: u64) -> BTreeSet<u64> {
    let first = |node| view(name, record_bytes).chunks(node).next().unwrap().file_offset / BLOCK_BYTES;
    (0..NODES).map(first).collect()
}

/// Checks the chunk size, stride, number of chunks, and number of requests of node 0; size and stride are in records.
fn check(
    name: &str,
    record_bytes: u64,
    chunk: u64,
    stride: Option<u64>,
    chunk_count: usize,
    requests: usize,
) {
    let view = view(name, record_bytes);
    let chunks: Vec<_> = view.chunks(0).collect();
    let sizes: BTreeSet<_> = chunks.iter().map(|found| found.bytes).collect();
    assert_eq!(sizes, BTreeSet::from([chunk * record_bytes]), "{name}: chunk size");
    assert_eq!(chunks.len(), chunk_count, "{name}: chunks");
    assert_eq!(request_count(&view, 0), requests, "{name}: requests");
    let found = chunks.get(1).map(|second| (second.file_offset - chunks[0].file_offset) / record_bytes);
    assert_eq!(found, stride, "{name}: stride");
}

#[test]
fn chunks_and_strides_of_8192_byte_records_are_those_of_the_report() {
    check("ra", 8192, 1280, None, 1, 1280);
    check("rn", 8192, 1280, None, 1, 1280);
    check("rb", 8192, 80, None, 1, 80);
    check("rc", 8192, 1, Some(16), 80, 80);
    check("rnb", 8192, 2, Some(32), 40, 80);
    check("rbb", 8192, 8, Some(32), 10, 80);
    check("rcb", 8192, 8, Some(128), 10, 80);
    check("rbc", 8192, 1, Some(4), 80, 80);
    check("rcc", 8192, 1, Some(4), 80, 80);
    check("rcn", 8192, 32, Some(512), 3, 96);
}

#[test]
fn chunks_and_strides_of_8_byte_records_are_those_of_the_report() {
    check("rb", 8, 81_920, None, 1, 80);
    check("rc", 8, 1, Some(16), 81_920, 81_920);
    check("rnb", 8, 64, Some(1024), 1280, 1280);
    check("rbb", 8, 256, Some(1024), 320, 320);
    check("rcb", 8, 256, Some(4096), 320, 320);
    check("rbc", 8, 1, Some(4), 81_920, 81_920);
    check("rcc", 8, 1, Some(4), 81_920, 81_920);
    check("rcn", 8, 1024, Some(16_384), 80, 80);
}

#[test]
fn write_patterns_distribute_the_file_as_read_patterns_do() {
    for name in Pattern::NAMES.iter().filter(|name| name.starts_with('w')) {
        let reading = name.replacen('w', "r", 1);
        assert_eq!(view(name, 8), view(&reading, 8));
    }
}

#[test]
fn node_0_has_all_of_an_undistributed_file() {
    for name in ["rn", "rnn"] {
        assert_eq!(view(name, 8192).node_bytes(0), FILE_BYTES);
        assert_eq!(view(name, 8192).node_bytes(1), 0);
        assert_eq!(chunks(name, 8192, 1), []);
    }
}

#[test]
fn all_nodes_have_all_of_a_replicated_file() {
    let view = view("ra", 8192);
    for node in 0..NODES {
        let whole = Chunk { file_offset: 0, memory_offset: 0, bytes: FILE_BYTES };
        assert_eq!(view.chunks(node).collect::<Vec<_>>(), [whole]);
        assert_eq!(view.node_bytes(node), FILE_BYTES);
    }
    let pieces: Vec<_> = view.pieces(Extent::new(8192, 8192)).collect();
    assert_eq!(pieces.iter().map(|piece| piece.node).collect::<Vec<_>>(), (0..NODES).collect::<Vec<_>>());
    assert!(pieces.iter().all(|piece| (piece.file_offset, piece.memory_offset) == (8192, 8192)));
}

#[test]
fn nodes_are_numbered_along_the_rows_of_the_grid() {
    // Node 6 is in row 1 and column 2 of the 4 x 4 grid: rows 10-19, columns 16-23.
    assert_eq!(chunks("rbb", 8192, 6)[0].file_offset, (10 * 32 + 16) * 8192);
    // Rows 1, 5, 9, ... and columns 2, 6, 10, ...
    assert_eq!(chunks("rcc", 8192, 6)[0].file_offset, (32 + 2) * 8192);
}

#[test]
fn rows_that_do_not_divide_leave_some_nodes_with_fewer() {
    for node in 0..NODES {
        let rows = if node < 8 { 3 } else { 2 };
        assert_eq!(view("rcn", 8192).node_bytes(node), rows * 32 * 8192);
        assert_eq!(chunks("rcn", 8192, node).len() as u64, rows);
    }
}

#[test]
fn patterns_omitted_in_the_report_equal_others() {
    for record_bytes in [8, 8192] {
        assert!(view("rnn", record_bytes).agrees_with(&view("rn", record_bytes)));
        assert!(view("rnc", record_bytes).agrees_with(&view("rc", record_bytes)));
    }
    assert!(view("rbn", 8).agrees_with(&view("rb", 8)));
    // HPF's blocks of 40 rows for 16 nodes are 3 rows each, and 1 for node 13; `rb` gives each node 2.5 rows.
    assert!(!view("rbn", 8192).agrees_with(&view("rb", 8192)));
    assert_eq!(view("rbn", 8192).node_bytes(13), 32 * 8192);
    assert_eq!(view("rbn", 8192).node_bytes(14), 0);
}

#[test]
fn a_row_of_small_records_is_a_block_so_rcn_is_rc_of_blocks() {
    for node in 0..NODES {
        assert_eq!(chunks("rcn", 8, node), chunks("rc", 8192, node));
    }
}

#[test]
fn two_phase_uses_the_block_pattern_as_conforming_pattern() {
    let pattern: Pattern = "wcc".parse().unwrap();
    assert_eq!(pattern.conforming().to_string(), "wb");
}

#[test]
fn a_column_is_always_on_the_same_disk() {
    // A row of 32 blocks has exactly two blocks on each of 16 disks.
    for node in 0..NODES {
        let column = node % 4;
        let every_fourth: BTreeSet<_> = (0..16).filter(|disk| disk % 4 == column).collect();
        assert_eq!(disks("rbc", 8192, node), every_fourth);
        assert_eq!(disks("rcc", 8192, node), every_fourth);
        let half: BTreeSet<_> = if column % 2 == 0 { (0..8).collect() } else { (8..16).collect() };
        assert_eq!(disks("rbb", 8192, node), half);
        assert_eq!(disks("rcb", 8192, node), half);
    }
}

#[test]
fn groups_of_rows_are_localities_on_disk() {
    // Two blocks that are adjacent on a disk are 16 blocks apart in the file.
    let rows_apart = |name, blocks| {
        let rows: BTreeSet<_> = first_blocks(name, 8192).iter().map(|block| block / blocks).collect();
        rows.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(rows_apart("rbb", 32 * 10), [0, 1, 2, 3], "four groups, 10 rows or 20 blocks on a disk apart");
    assert_eq!(rows_apart("rbc", 32 * 10), [0, 1, 2, 3]);
    assert_eq!(rows_apart("rb", 80), (0..16).collect::<Vec<_>>(), "sixteen groups, 5 blocks on a disk apart");
}

#[test]
fn first_chunks_of_small_records_in_row_blocks_lie_on_one_disk() {
    let first_disks = |name| -> BTreeSet<_> {
        first_blocks(name, 8).iter().map(|&block| striping().place_of_block(block).stripe).collect()
    };
    // The first chunks are 320 rows apart, and a row is a block. 320 is a multiple of 16, so all are on one disk, in
    // four places.
    for name in ["rbb", "rbc"] {
        assert_eq!(first_disks(name), BTreeSet::from([0]));
        assert_eq!(first_blocks(name, 8), BTreeSet::from([0, 320, 640, 960]));
    }
    for name in ["rcb", "rcc"] {
        assert_eq!(first_disks(name), BTreeSet::from([0, 1, 2, 3]));
    }
}

#[test]
fn a_block_of_small_records_is_split_among_nodes() {
    let pieces = |name| view(name, 8).pieces(Extent::new(5 * BLOCK_BYTES, BLOCK_BYTES)).collect::<Vec<_>>();
    assert_eq!(pieces("rb").len(), 1);
    assert_eq!(pieces("rc").len(), 1024);
    assert_eq!(pieces("rnb").len(), 16);
    assert_eq!(pieces("rcn").len(), 1);
    // Row 5 is local row 1 of grid row 1; a node has 256 records of each of its rows.
    let found: Vec<_> = pieces("rcb").iter().map(|piece| (piece.node, piece.memory_offset)).collect();
    assert_eq!(found, [(4, 2048), (5, 2048), (6, 2048), (7, 2048)]);
}
