//! Round trips: the member only sends messages and receives answers, so that their time is measured.

use machine::Machine;

use crate::{Error, Member, Outcome};

/// A job in which the member sends an empty message to each I/O node in turn, and waits for each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTripsJob {
    /// Number of round trips.
    pub round_trips: u32,
}

/// Part of the member in the job.
pub struct RoundTripsPart<M: Machine> {
    job: RoundTripsJob,
    member: Member<M>,
}

impl RoundTripsJob {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.round_trips == 0 {
            return Err(Error::Invalid("at least one round trip is needed".into()));
        }
        Ok(())
    }
}

impl<M: Machine> RoundTripsPart<M> {
    /// Prepares the part with one untimed round trip to each I/O node, which establishes the connections.
    pub(crate) async fn prepare(job: RoundTripsJob, member: Member<M>) -> Result<Self, Error> {
        let client = member.client()?;
        for &node in client.io_nodes() {
            client.round_trip(node).await?;
        }
        Ok(RoundTripsPart { job, member })
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let (machine, client) = (&self.member.machine, self.member.client()?);
        let begin = machine.now();
        // Members start with different nodes, so that their messages do not wait for each other.
        let nodes =
            client.io_nodes().iter().cycle().skip(self.member.draws() as usize % client.io_nodes().len());
        for &node in nodes.take(self.job.round_trips as usize) {
            client.round_trip(node).await?;
        }
        Ok(Outcome { elapsed: machine.now().since(begin), ..Outcome::default() })
    }
}
