//! The keys of a plan that are no fields of its cases: what each takes, what it is if it is left out, what it means.
//!
//! The decoder accepts the names that stand here and no others, and the manual's page of them is made from here.

/// A key of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanKey {
    /// Its name.
    pub name: &'static str,
    /// What its value may be.
    pub value: &'static str,
    /// Its value, as TOML, if it is left out; empty if there is none.
    pub default: &'static str,
    /// What it says, in a sentence or two.
    pub meaning: &'static str,
}

const fn key(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> PlanKey {
    PlanKey { name, value, default, meaning }
}

/// The keys that stand at the top of a plan only.
pub const TOP: [PlanKey; 9] = [
    key("name", "text", "", "What the plan is called in its results. Required."),
    key("title", "text", "", "A line for people."),
    key("trials", "1 to 1000", "5", "Runs of each cell, which differ in all that is random."),
    key(
        "seed",
        "whole number",
        "1",
        "Where all randomness comes from: the same seed gives the same results.",
    ),
    key(
        "patterns",
        "`\"all\"`, `\"reads\"`, `\"writes\"` or a list of patterns",
        "",
        "Access patterns, such as `[\"rb\", \"wcc\"]`. Required.",
    ),
    key("records", "list of sizes", "[\"8192 B\"]", "Sizes of records."),
    key(
        "table",
        "table",
        "",
        "The published table to compare with: `number`, `system` (such as `\"tpfs\"`) and `value`, which is \
         `\"throughput\"` or `\"movements\"`.",
    ),
    key("figure", "table", "", "The published figure to compare with: `number` and `value`, as above."),
    key(
        "vary",
        "table of lists",
        "",
        "Settings and the values they take. Every variant is run with every combination of them.",
    ),
];

/// The keys that stand at the top of a plan of jobs that share disks only.
pub const PLACEMENT_TOP: [PlanKey; 6] = [
    TOP[0],
    TOP[1],
    TOP[2],
    TOP[3],
    key("figure", "table", "", "The published figure that the plan is a part of: its `number`."),
    TOP[8],
];

/// The keys of tables, which are not settings themselves: in a plan, and `set` in a variant and in `[vary]`, too.
pub const TABLES: [PlanKey; 2] = [
    key("variant", "list of tables", "", "What is compared: each has a `name`, and settings of its own."),
    key(
        "set",
        "table",
        "",
        "Numbers of the machine that are replaced, by their keys: `set = { \"nodes.io\" = 8 }`. In `[vary]`, lists of \
         such numbers.",
    ),
];

/// The names of some keys.
pub(crate) const fn names<const N: usize>(keys: &[PlanKey; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = keys[index].name;
        index += 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use experiment::FIELDS;

    use super::*;
    use crate::Plan;

    const REQUIRED: &str = "name = \"x\"\npatterns = [\"rb\"]\nmethod = \"traditional\"\n";

    fn cells(text: &str) -> String {
        let plan: Plan = Plan::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        format!("{} {} {:?}", plan.trials, plan.seed, plan.cells)
    }

    /// A plan that writes a default down is the plan without it.
    #[test]
    fn defaults_are_those_of_the_decoder() {
        let without = cells(REQUIRED);
        let of_plans = TOP.iter().map(|key| (key.name, key.default));
        let of_cases = FIELDS.iter().map(|field| (field.name, field.default));
        for (name, default) in of_plans.chain(of_cases).filter(|(_, default)| !default.is_empty()) {
            assert_eq!(cells(&format!("{REQUIRED}{name} = {default}\n")), without, "{name}");
        }
    }
}
