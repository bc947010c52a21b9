//! The keys of a plan: what each takes, what it is if it is left out, and what it means.
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
    key("name", "text", "", "What the plan is called, and its results. Required."),
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

/// The settings of an experiment: at the top as defaults of all variants, in a variant, and in `[vary]` as lists.
pub const SETTINGS: [PlanKey; 16] = [
    key(
        "machine",
        "name or path",
        "\"starfish-1996\"",
        "The machine: a name that `starfish machines` lists, or a TOML file, relative to the plan.",
    ),
    key(
        "method",
        "`\"traditional\"`, `\"two-phase\"` or `\"disk-directed\"`",
        "",
        "The access method. Required, in each variant or for all.",
    ),
    key("layout", "`\"contiguous\"` or `\"random\"`", "\"contiguous\"", "How the file lies on each disk."),
    key("file_size", "size", "\"10 MiB\"", "Size of the file."),
    key("block", "size", "\"8 KiB\"", "Size of a block: of a disk request, and of the stripe unit."),
    key(
        "shape",
        "`\"RxC\"`",
        "",
        "Rows and columns of the matrix in the file, in records. Without this: as square as can be.",
    ),
    key(
        "grid",
        "`\"RxC\"`",
        "",
        "Rows and columns of the grid of compute nodes. Without this: as square as can be.",
    ),
    key(
        "contents",
        "`\"real\"` or `\"phantom\"`",
        "\"real\"",
        "Whether bytes are moved, or only statements about bytes: for files larger than memory.",
    ),
    key("phantom", "flag", "false", "`true` is the same as `contents = \"phantom\"`."),
    key(
        "outstanding",
        "1 to 65536",
        "4",
        "Requests that each compute node has in flight to each disk (the reports' K); traditional only.",
    ),
    key(
        "scheduling",
        "`\"fcfs\"`, `\"cyclic-scan\"` or `\"physical-cyclic-scan\"`",
        "\"cyclic-scan\"",
        "The order in which a disk serves queued requests; traditional only.",
    ),
    key(
        "thread_per_request",
        "flag",
        "false",
        "Start a thread for each request, instead of having a pool; traditional only.",
    ),
    key(
        "prefetch",
        "0 to 65536",
        "1",
        "Blocks that an I/O node prefetches after each read; traditional only.",
    ),
    key(
        "memget_writes",
        "flag",
        "false",
        "I/O nodes fetch the data of a write (Memget), instead of receiving them with the request; not disk-directed.",
    ),
    key(
        "queued",
        "`\"never\"`, `\"always\"` or `\"small-records\"`",
        "\"small-records\"",
        "Which Memputs and Memgets are queued, to go with others to the same node.",
    ),
    key("presort", "flag", "false", "Sort each disk's blocks by position first; disk-directed only."),
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
    use super::*;
    use crate::Plan;

    const REQUIRED: &str = "name = \"x\"\npatterns = [\"rb\"]\nmethod = \"traditional\"\n";

    fn cells(text: &str) -> String {
        let plan = Plan::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        format!("{} {} {:?}", plan.trials, plan.seed, plan.cells)
    }

    /// A plan that writes a default down is the plan without it.
    #[test]
    fn defaults_are_those_of_the_decoder() {
        let without = cells(REQUIRED);
        for PlanKey { name, default, .. } in TOP.iter().chain(&SETTINGS).filter(|key| !key.default.is_empty())
        {
            assert_eq!(cells(&format!("{REQUIRED}{name} = {default}\n")), without, "{name}");
        }
    }

    /// What stands in code style among the values can be chosen.
    #[test]
    fn values_that_are_named_are_accepted() {
        for PlanKey { name, value, .. } in SETTINGS.iter().filter(|key| key.value.starts_with("`\"")) {
            for value in value.split('`').filter(|part| part.starts_with('"')) {
                let value = if value == "\"RxC\"" { "\"16x1\"" } else { value };
                let required: Vec<&str> = REQUIRED.lines().filter(|line| !line.starts_with(name)).collect();
                cells(&format!("{}\nrecords = [\"640 KiB\"]\n{name} = {value}\n", required.join("\n")));
            }
        }
    }
}
