//! Fuzz test: any plan is either rejected with the number of the invalid line, or all its cells can run.

use plan::{CELLS_MAX, Plan, PlanKind, PlanSet};

const EXAMPLES: [&str; 6] = [
    include_str!("../../../../experiments/starfish-3.0/table-02.toml"),
    include_str!("../../../../experiments/starfish-3.0/figure-2.toml"),
    include_str!("../../../../experiments/calibration/writes.toml"),
    include_str!("../../../../experiments/calibration/requests.toml"),
    include_str!("../../../../experiments/placement/figure-02.toml"),
    include_str!("../../../../experiments/placement/figure-08.toml"),
];

fn look_at(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    match PlanSet::parse(&[(text, "experiments/starfish-3.0/fuzz.toml".to_owned())]) {
        Ok(PlanSet::Patterns(plans)) => plans.iter().for_each(can_be_run),
        Ok(PlanSet::Placements(plans)) => plans.iter().for_each(can_be_run),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn can_be_run<K: PlanKind>(plan: &Plan<K>) {
    assert!(!plan.cells.is_empty() && plan.cells.len() <= CELLS_MAX);
    plan.cells.iter().for_each(|cell| assert!(!cell.label().is_empty()));
}

#[test]
fn plans() {
    fuzz::target!("plans", |input| {
        look_at(input);
        let examples: Vec<Vec<u8>> = EXAMPLES.iter().map(|text| text.as_bytes().to_vec()).collect();
        look_at(&fuzz::changed(&examples, input));
    });
}
