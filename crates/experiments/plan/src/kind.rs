//! Differences between the kinds of plans.

use std::fmt::Debug;
use std::ops::Range;

use description::{MachineDescription, Misfit};
use experiment::FieldSet;
use toml::de::DeTable;

use crate::measure::{Measure, Quantity};
use crate::plan_errors::PlanErrors;
use crate::planned_trial::PlannedCase;
use crate::reference::PlanKey;
use crate::settings::Chosen;
use crate::table::{Type, Value};

/// A kind of cases in plans, with everything in which the kinds differ.
///
/// Implemented for [`Case`](experiment::Case), one access method by one pattern, and for
/// [`PlacementCase`](experiment::PlacementCase), jobs that share disks.
pub trait PlanKind: PlannedCase + Clone + Debug + 'static {
    /// Settings of a case, from its table of fields.
    type Choices: FieldSet<Case = Self>;

    /// The part of a case that is not a setting, for example an access pattern. Each subject of a plan is combined with
    /// each series.
    type Subject;

    /// Keys that are allowed only at the top of a plan.
    const TOP: &'static [PlanKey];

    /// Quantities of a cell that a published table or figure can show. Cells are compared by the first one.
    const QUANTITIES: &'static [Quantity];

    /// Parts of a cell's name in addition to its series.
    const PLACE: &'static [PlaceKey];

    /// Additional measures of a cell in results.
    const MEASURES: &'static [Measure];

    /// Returns the parts of this case's name in addition to its series: one value for each of [`PLACE`](Self::PLACE).
    fn place(&self) -> Vec<Value>;

    /// Returns the name of the only variant in a plan that defines none; an empty text if it has no name.
    fn usual_name(choices: &Self::Choices) -> String;

    /// Returns the subjects that a plan lists.
    fn subjects(table: &DeTable<'_>, misfits: &PlanErrors) -> impl ExactSizeIterator<Item = Self::Subject>;

    /// Returns the case of a subject with the settings of a variant, or `None` if plans exclude this case.
    fn case(
        subject: &Self::Subject,
        variant: &Chosen<String>,
        choices: &Self::Choices,
        machine: MachineDescription,
        seed: u64,
    ) -> Result<Option<Self>, Misfit>;

    /// Returns the place of the subject in the plan if the subject, and not the variant, is the mistake.
    fn place_of(error: &experiment::Error, subject: &Self::Subject) -> Option<Range<usize>>;
}

/// A part of a cell's name in addition to its series.
#[derive(Clone, Copy, Debug)]
pub struct PlaceKey {
    /// Name of the part, as shown in the form of a selection of trials.
    pub name: &'static str,
    /// Column in tables of results.
    pub column: &'static str,
    /// Kind of its values.
    pub kind: Type,
    /// Values that a selection can have for this part, for error messages.
    pub expected: &'static str,
}
