//! Whatever a plan says: it is refused with the line to blame, or its cells can be run.

use plan::{CELLS_MAX, Plan};

const EXAMPLES: [&str; 4] = [
    include_str!("../../../experiments/starfish-3.0/table-02.toml"),
    include_str!("../../../experiments/starfish-3.0/figure-2.toml"),
    include_str!("../../../experiments/calibration/writes.toml"),
    include_str!("../../../experiments/calibration/requests.toml"),
];

fn look_at(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Plan::parse(&text, "experiments/starfish-3.0/fuzz.toml") {
        Ok(plan) => {
            assert!(!plan.cells.is_empty() && plan.cells.len() <= CELLS_MAX);
            plan.cells.iter().for_each(|cell| assert!(!cell.label().is_empty()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

#[test]
fn plans() {
    fuzz::target!("plans", |input| {
        look_at(input);
        let examples: Vec<Vec<u8>> = EXAMPLES.iter().map(|text| text.as_bytes().to_vec()).collect();
        look_at(&fuzz::changed(&examples, input));
    });
}
