//! Small arrays with every distribution, and the owner of each byte computed directly from the definition.

use std::collections::BTreeMap;

use layout::{Dimension, Distribution, View};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns short dimensions with every distribution.
pub(crate) fn dimension() -> impl Strategy<Value = Dimension> {
    let distribution = prop_oneof![
        Just(Distribution::None),
        Just(Distribution::Block),
        (1..6_u64).prop_map(Distribution::Cyclic),
    ];
    (1..12_u64, distribution, 1..5_u32).prop_map(|(length, distribution, parts)| Dimension {
        length,
        distribution,
        parts: if distribution == Distribution::None { 1 } else { parts },
    })
}

/// Returns views of small arrays of one to four dimensions, with every distribution.
pub(crate) fn view() -> impl Strategy<Value = View> {
    view_of(4)
}

/// Returns views of small arrays of at most `dimensions_max` dimensions, with every distribution.
pub(crate) fn view_of(dimensions_max: usize) -> impl Strategy<Value = View> {
    (1..5_u64, vec(dimension(), 1..=dimensions_max)).prop_map(|(record_bytes, dimensions)| {
        View::new(record_bytes, &dimensions, places(&dimensions)).unwrap()
    })
}

/// Returns the number of nodes in the grid: the product of the parts of all dimensions.
pub(crate) fn places(dimensions: &[Dimension]) -> u32 {
    dimensions.iter().map(|dimension| dimension.parts).product()
}

/// Returns the owner and memory offset of each byte of the array, computed directly from the definition: record by
/// record, with divisions.
pub(crate) fn places_by_definition(record_bytes: u64, dimensions: &[Dimension]) -> Vec<(u32, u64)> {
    let mut memory: BTreeMap<u32, u64> = BTreeMap::new();
    let records = dimensions.iter().map(|dimension| dimension.length).product::<u64>();
    let mut found = Vec::new();
    for record in 0..records {
        let (mut rest, mut node, mut stride) = (record, 0, 1);
        for dimension in dimensions.iter().rev() {
            let index = rest % dimension.length;
            rest /= dimension.length;
            let parts = u64::from(dimension.parts);
            let part = match dimension.distribution {
                Distribution::None => 0,
                Distribution::Block => index / dimension.length.div_ceil(parts),
                Distribution::Cyclic(run) => index / run % parts,
            };
            node += part as u32 * stride;
            stride *= dimension.parts;
        }
        let next = memory.entry(node).or_default();
        found.extend((*next..*next + record_bytes).map(|offset| (node, offset)));
        *next += record_bytes;
    }
    found
}
