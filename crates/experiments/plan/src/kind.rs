//! What plans of one kind have that plans of the other kind have not.

use std::fmt::Debug;
use std::ops::Range;

use description::{MachineDescription, Misfit};
use experiment::FieldSet;
use toml::de::DeTable;

use crate::measure::{Measure, Quantity};
use crate::misfits::Misfits;
use crate::planned_trial::PlannedCase;
use crate::reference::PlanKey;
use crate::settings::Chosen;
use crate::table::{Type, Value};

/// A kind of cases that plans can be of: all that the two kinds differ in.
///
/// Implemented for [`Case`](experiment::Case), one access method by one pattern, and for
/// [`PlacementCase`](experiment::PlacementCase), jobs that share disks.
pub trait PlanKind: PlannedCase + Clone + Debug + 'static {
    /// What is chosen for a case, of its table of fields.
    type Choices: FieldSet<Case = Self>;

    /// What a case is made of beside its choices: part of what is combined, such as an access pattern.
    type Subject;

    /// The keys that stand at the top of a plan only.
    const TOP: &'static [PlanKey];

    /// What a published table or figure can tell of a cell. The first is what all results are compared by.
    const QUANTITIES: &'static [Quantity];

    /// What names a cell beside its series.
    const PLACE: &'static [PlaceKey];

    /// What else results tell of a cell.
    const MEASURES: &'static [Measure];

    /// What names this case beside its series: a value for each of [`PLACE`](Self::PLACE).
    fn place(&self) -> Vec<Value>;

    /// What the only variant of a plan is called that has none; empty if there is no such name.
    fn usual_name(choices: &Self::Choices) -> String;

    /// The subjects that stand in a plan.
    fn subjects(table: &DeTable<'_>, misfits: &Misfits) -> impl ExactSizeIterator<Item = Self::Subject>;

    /// The case of a subject and choices for a variant; none if plans leave it out.
    fn case(
        subject: &Self::Subject,
        variant: &Chosen<String>,
        choices: &Self::Choices,
        machine: MachineDescription,
        seed: u64,
    ) -> Result<Option<Self>, Misfit>;

    /// Where what is wrong with a case of this subject stands, if that is not its variant.
    fn place_of(error: &experiment::Error, subject: &Self::Subject) -> Option<Range<usize>>;
}

/// A part of what names a cell beside its series.
#[derive(Clone, Copy, Debug)]
pub struct PlaceKey {
    /// What a selection of trials calls it.
    pub name: &'static str,
    /// Its column in tables of results.
    pub column: &'static str,
    /// The kind of its values.
    pub kind: Type,
    /// What a selection may have there, for complaints.
    pub expected: &'static str,
}
