//! Common parts of tests: the machine of the reports with some costs set to zero, and a log of times.

use std::cell::RefCell;
use std::rc::Rc;

use description::MachineDescription;
use machine::{Instant, Machine};
use sim::{Settings, Simulation};

/// Returns the STARFISH machine without system costs and envelopes, with `changes` on top.
pub(crate) fn starfish(changes: &[(&str, &str)]) -> MachineDescription {
    let free = [
        ("processor.system.send_message", "0"),
        ("processor.system.receive_message", "0"),
        ("processor.system.disk_interrupt", "0"),
        ("processor.system.switch_thread", "0"),
        ("processor.cost.copy.cycles", "20"),
        ("processor.cost.copy.cycles_per_word", "1"),
        ("processor.cost.copy.level", "thread"),
        ("network.envelope", "0 B"),
        ("network.first_router", "0"),
    ];
    let changes: Vec<_> = free.iter().chain(changes).copied().collect();
    MachineDescription::load_with("starfish-1996", &changes).expect("a sound description")
}

/// Returns a simulation of `description` with default settings.
#[allow(dead_code, reason = "not every test file that shares this module needs all of it")]
pub(crate) fn simulation(description: &MachineDescription) -> Simulation {
    Simulation::new(description, Settings::default())
}

/// Names and times, in order of recording.
#[derive(Clone, Default)]
#[allow(dead_code, reason = "not every test file that shares this module needs all of it")]
pub(crate) struct Log(Rc<RefCell<Vec<(&'static str, u64)>>>);

#[allow(dead_code, reason = "not every test file that shares this module needs all of it")]
impl Log {
    pub(crate) fn note(&self, what: &'static str, machine: &impl Machine) {
        self.0.borrow_mut().push((what, machine.now().as_nanos()));
    }

    pub(crate) fn take(&self) -> Vec<(&'static str, u64)> {
        self.0.take()
    }
}

/// Sleeps until `nanoseconds` after the start.
#[allow(dead_code, reason = "not every test file that shares this module needs all of it")]
pub(crate) async fn until(machine: &impl Machine, nanoseconds: u64) {
    machine.sleep_until(Instant::from_nanos(nanoseconds)).await;
}
