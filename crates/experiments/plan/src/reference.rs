//! The keys of a plan that are not fields of its cases, each with its values, default and meaning.
//!
//! The decoder accepts only the keys in this list. The manual's page of the keys is generated from this list.

/// A key of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanKey {
    /// Name of the key.
    pub name: &'static str,
    /// Allowed values.
    pub value: &'static str,
    /// Default value as TOML; empty without a default.
    pub default: &'static str,
    /// Meaning, in one or two sentences.
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

/// Keys that are allowed only at the top of a plan.
pub const TOP: [PlanKey; 9] = [
    key("name", "text", "", "Name of the plan in its results. Required."),
    key("title", "text", "", "Title for readers."),
    key("trials", "1 to 1000", "5", "Number of runs of each cell, which differ in their random numbers."),
    key("seed", "whole number", "1", "Seed of all randomness: the same seed produces the same results."),
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

/// Keys that are allowed only at the top of a plan of jobs that share disks.
pub const PLACEMENT_TOP: [PlanKey; 6] = [
    TOP[0],
    TOP[1],
    TOP[2],
    TOP[3],
    key("figure", "table", "", "The published figure that the plan is a part of: its `number`."),
    TOP[8],
];

/// Keys in tables that are not settings. `set` is allowed in a plan, a variant and `[vary]`.
pub const TABLES: [PlanKey; 2] = [
    key("variant", "list of tables", "", "Variants to compare: each has a `name`, and separate settings."),
    key(
        "set",
        "table",
        "",
        "Numbers of the machine that are replaced, by their keys: `set = { \"nodes.io\" = 8 }`. In `[vary]`, lists of \
         such numbers.",
    ),
];

/// Returns the names of keys.
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

    /// A default that is written explicitly does not change a plan.
    #[test]
    fn documented_defaults_equal_those_of_the_decoder() {
        let without = cells(REQUIRED);
        let of_plans = TOP.iter().map(|key| (key.name, key.default));
        let of_cases = FIELDS.iter().map(|field| (field.name, field.default));
        for (name, default) in of_plans.chain(of_cases).filter(|(_, default)| !default.is_empty()) {
            assert_eq!(cells(&format!("{REQUIRED}{name} = {default}\n")), without, "{name}");
        }
    }
}
