//! Messages and their answers, and nothing else: the time that these take by themselves.

use machine::Machine;

use crate::{Error, Member, Outcome};

/// The member asks one I/O node after the other for nothing, and waits for the answer each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTripsJob {
    /// How often.
    pub round_trips: u32,
}

/// One member's part in a job.
pub struct RoundTripsPart<M: Machine> {
    job: RoundTripsJob,
    member: Member<M>,
}

impl RoundTripsJob {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.round_trips == 0 {
            return Err(Error::Invalid("there must be a message".into()));
        }
        Ok(())
    }
}

impl<M: Machine> RoundTripsPart<M> {
    /// The first ones are not timed: connections are made by them.
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
        // Members begin with different nodes, so that they do not follow each other.
        let nodes =
            client.io_nodes().iter().cycle().skip(self.member.draws() as usize % client.io_nodes().len());
        for &node in nodes.take(self.job.round_trips as usize) {
            client.round_trip(node).await?;
        }
        Ok(Outcome { elapsed: machine.now().since(begin), ..Outcome::default() })
    }
}
