//! Laws of the layout for all parameters, not only those of the report.

mod dealing;

use layout::{
    BlockPlace, Dimension, Distribution, Extent, FILE_BYTES_MAX, Piece, StripePlace, Striping, View,
};
use proptest::collection::vec;
use proptest::prelude::*;

use dealing::{places_by_definition, view, view_of};

fn striping() -> impl Strategy<Value = Striping> {
    let block_bytes = prop_oneof![1..20_u64, 1..=FILE_BYTES_MAX];
    let stripe_count = prop_oneof![1..20_u32, 1..=u32::MAX];
    (block_bytes, stripe_count).prop_map(|(bytes, count)| Striping::new(bytes, count).unwrap())
}

fn small_striping() -> impl Strategy<Value = Striping> {
    (1..20_u64, 1..20_u32).prop_map(|(bytes, count)| Striping::new(bytes, count).unwrap())
}

fn of_view(view: &View) -> Vec<(u32, u64)> {
    places_by_definition(view.record_bytes(), view.dimensions())
}

/// True if one piece begins at the end of the other, in the file and in the memory of the same node.
fn join(first: &Piece, second: &Piece) -> bool {
    first.node == second.node
        && first.file_offset + first.bytes == second.file_offset
        && first.memory_offset + first.bytes == second.memory_offset
}

proptest! {
    #[test]
    fn striping_is_a_bijection_of_blocks(striping in striping(), block in 0..=u64::MAX) {
        prop_assert_eq!(striping.block_of_place(striping.place_of_block(block)), Ok(block));
    }

    #[test]
    fn striping_is_a_bijection_of_bytes(striping in striping(), offset in 0..FILE_BYTES_MAX) {
        prop_assert_eq!(striping.file_offset_of(striping.place_of(offset)), Ok(offset));
    }

    #[test]
    fn any_stripe_offset_is_a_byte_of_the_file_or_an_error(
        striping in striping(), stripe: u32, offset: u64, block: u64, lengths in vec(any::<u64>(), 0..4),
    ) {
        if let Ok(found) = striping.file_offset_of(StripePlace { stripe, offset }) {
            prop_assert_eq!(striping.place_of(found), StripePlace { stripe, offset });
        }
        if let Ok(found) = striping.block_of_place(BlockPlace { stripe, block }) {
            prop_assert_eq!(striping.place_of_block(found), BlockPlace { stripe, block });
        }
        let _ = striping.file_bytes(&lengths);
        let _ = striping.stripe_bytes(offset, stripe);
        let _ = striping.block_extent(block, offset);
        prop_assert!(striping.blocks_of_stripe(stripe, offset).take(3).all(|block| block.bytes > 0));
        prop_assert!(striping.requests(Extent::new(offset, block)).take(3).all(|piece| piece.bytes > 0));
    }

    #[test]
    fn the_stripe_lengths_determine_the_file_size(
        striping in small_striping(), file_bytes in 0..5000_u64,
    ) {
        let lengths: Vec<_> =
            (0..striping.stripe_count()).map(|stripe| striping.stripe_bytes(file_bytes, stripe)).collect();
        prop_assert_eq!(lengths.iter().sum::<u64>(), file_bytes);
        prop_assert_eq!(striping.file_bytes(&lengths), Ok(file_bytes));
    }

    #[test]
    fn requests_cover_an_extent_exactly(
        striping in small_striping(), offset in 0..FILE_BYTES_MAX - 1000, bytes in 0..1000_u64,
    ) {
        let mut next = offset;
        for request in striping.requests(Extent::new(offset, bytes)) {
            let place = StripePlace { stripe: request.stripe, offset: request.stripe_offset };
            prop_assert_eq!(request.file_offset, next);
            prop_assert_eq!(striping.place_of(next), place);
            prop_assert_eq!(striping.block_at(next), striping.block_at(next + request.bytes - 1));
            next += request.bytes;
        }
        prop_assert_eq!(next, offset + bytes);
    }

    #[test]
    fn the_blocks_of_all_stripes_form_the_file(striping in small_striping(), file_bytes in 0..3000_u64) {
        let stripes = 0..striping.stripe_count();
        let mut blocks: Vec<_> =
            stripes.flat_map(|stripe| striping.blocks_of_stripe(stripe, file_bytes)).collect();
        blocks.sort_by_key(|block| block.file_offset);
        let whole = striping.requests(Extent::new(0, file_bytes)).collect::<Vec<_>>();
        prop_assert_eq!(blocks.len() as u64, striping.block_count(file_bytes));
        prop_assert_eq!(blocks, whole);
    }

    #[test]
    fn chunks_distribute_the_whole_file_and_fill_each_memory(view in view()) {
        let expected = of_view(&view);
        let mut found = vec![None; expected.len()];
        for node in 0..view.nodes() {
            let (mut memory_offset, mut file_end) = (0, None);
            for chunk in view.chunks(node) {
                prop_assert!(file_end < Some(chunk.file_offset), "chunks are in order, and as long as possible");
                prop_assert_eq!(chunk.memory_offset, memory_offset);
                for byte in 0..chunk.bytes {
                    let place = &mut found[(chunk.file_offset + byte) as usize];
                    prop_assert_eq!(place.replace((node, memory_offset + byte)), None);
                }
                memory_offset += chunk.bytes;
                file_end = Some(chunk.file_offset + chunk.bytes);
            }
            prop_assert_eq!(memory_offset, view.node_bytes(node));
        }
        let found: Vec<_> = found.into_iter().flatten().collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn pieces_cover_an_extent_exactly_and_agree_with_chunks(
        view in view(), from in 0.0..1.0, bytes in prop_oneof![0..10_u64, 0..100_000_u64],
    ) {
        let expected = of_view(&view);
        let offset = (view.file_bytes() as f64 * from) as u64;
        let extent = Extent::new(offset, bytes).clip(view.file_bytes());
        let pieces: Vec<_> = view.pieces(Extent::new(offset, bytes)).collect();
        let mut next = extent.offset;
        for piece in &pieces {
            prop_assert_eq!(piece.file_offset, next);
            for byte in 0..piece.bytes {
                let place = (piece.node, piece.memory_offset + byte);
                prop_assert_eq!(expected[(next + byte) as usize], place);
            }
            next += piece.bytes;
        }
        prop_assert_eq!(next, extent.end());
        prop_assert!(!pieces.windows(2).any(|pair| join(&pair[0], &pair[1])), "pieces are as long as possible");
    }

    #[test]
    fn views_that_agree_put_every_byte_in_the_same_place(first in view(), second in view()) {
        if first.agrees_with(&second) {
            prop_assert_eq!(of_view(&first), of_view(&second));
        }
    }

    #[test]
    fn a_record_equals_one_more_dimension_of_bytes(view in view_of(3)) {
        let mut dimensions = view.dimensions().to_vec();
        dimensions.push(Dimension::whole(view.record_bytes()));
        let bytewise = View::new(1, &dimensions, view.nodes()).unwrap();
        prop_assert_eq!(of_view(&bytewise), of_view(&view));
        prop_assert!(bytewise.agrees_with(&view));
    }

    #[test]
    fn encoded_views_and_stripings_are_decoded(view in view(), striping in striping()) {
        let bytes = postcard::to_allocvec(&view).unwrap();
        prop_assert!(bytes.len() < 40, "an encoded view is small");
        prop_assert_eq!(postcard::from_bytes::<View>(&bytes).unwrap(), view);
        let bytes = postcard::to_allocvec(&striping).unwrap();
        prop_assert_eq!(postcard::from_bytes::<Striping>(&bytes).unwrap(), striping);
    }

    #[test]
    fn any_bytes_decode_to_a_valid_view_or_an_error(bytes in vec(any::<u8>(), 0..60)) {
        let _ = postcard::from_bytes::<Striping>(&bytes);
        if let Ok(view) = postcard::from_bytes::<View>(&bytes) {
            exercise(&view);
        }
    }

    #[test]
    fn absurd_numbers_decode_to_a_valid_view_or_an_error(
        record_bytes in number(), nodes in number(), replicated: bool,
        dimensions in vec((number(), prop_oneof![
            Just(Distribution::None),
            Just(Distribution::Block),
            number().prop_map(Distribution::Cyclic),
        ], number()), 0..6),
    ) {
        let dimensions: Vec<_> = dimensions.into_iter().map(|(length, distribution, parts)| {
            Dimension { length, distribution, parts: parts as u32 }
        }).collect();
        let raw = (record_bytes, nodes as u32, replicated, dimensions);
        let bytes = postcard::to_allocvec(&raw).unwrap();
        if let Ok(view) = postcard::from_bytes::<View>(&bytes) {
            exercise(&view);
        }
    }
}

/// Returns numbers that often reveal defects.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 1..5_u64,
        2 => (0..64_u32).prop_map(|bit| 1 << bit),
        2 => (0..64_u32).prop_map(|bit| (1 << bit) - 1),
        1 => any::<u64>(),
    ]
}

/// Calls every query of a view, with bounded iteration.
fn exercise(view: &View) {
    assert!(view.file_bytes() <= FILE_BYTES_MAX);
    for node in [0, 1, view.nodes() / 2, view.nodes() - 1, view.nodes(), u32::MAX] {
        assert!(view.node_bytes(node) <= view.file_bytes());
        let taken: u64 = view.chunks(node).take(100).map(|chunk| chunk.bytes).sum();
        assert!(taken <= view.node_bytes(node));
    }
    let middle = view.file_bytes() / 2;
    for extent in [Extent::new(0, u64::MAX), Extent::new(middle, 1000), Extent::new(u64::MAX, 1)] {
        for piece in view.pieces(extent).take(100) {
            assert!(piece.memory_offset + piece.bytes <= view.node_bytes(piece.node));
        }
    }
}
