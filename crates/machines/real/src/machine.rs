//! Real node: clock, tasks, network, disks and buffers in one handle.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::SystemTime;

use machine::{
    BufferPool, Computer, Duration, Error, Instant, Machine, NodeId, NodeNotes, Present, Result, Work,
};
use nix::sys::resource::{Resource, getrlimit};
use nix::time::{ClockId, clock_gettime};

use crate::clock::Clock;
use crate::computer;
use crate::disk::Disk;
use crate::metadata::{self, Metadata};
use crate::net::{HANDSHAKES_MAX, Net};
use crate::settings::{Limits, Peer, Settings};
use crate::task::{RunningTask, Tasks};

/// Limit of open disk files of a node, if the process may have enough descriptors for these and for connections.
const FILES_OPEN_MAX: usize = 512;

/// Number of descriptors used neither by disk files nor by connections: by callers in a handshake, disks and their
/// directories, the runtime, and the program that contains the node.
const OTHER_DESCRIPTORS: usize = HANDSHAKES_MAX + 32;

/// Node made of this computer's clock, sockets and files. A clone is another handle to it.
#[derive(Clone)]
pub struct RealMachine {
    inner: Rc<Inner>,
}

struct Inner {
    node: NodeId,
    clock: Clock,
    tasks: Tasks,
    net: Net,
    disks: Vec<Disk>,
    metadata: Option<Metadata>,
    buffers: BufferPool,
    notes: Rc<NodeNotes>,
    drain: std::time::Duration,
}

/// Clock and tasks of the node, as recorded with its events.
struct Here {
    clock: Clock,
    tasks: Tasks,
}

impl Present for Here {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn task(&self) -> (u64, &'static str) {
        let RunningTask { number, name } = self.tasks.running();
        (number, name)
    }

    fn processor_time(&self) -> Option<Duration> {
        let worked = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
        Some(std::time::Duration::from(worked).into())
    }
}

impl RealMachine {
    /// Opens the disks, starts to listen, and connects to the peers of `settings`.
    ///
    /// Runs only within [`block_on`](crate::block_on). A caller that starts a node this way must also end it, with
    /// [`finish`](Self::finish). Ignores the driver of `settings`, since the runtime already has one.
    pub async fn start(settings: Settings) -> Result<Self> {
        let clock = Clock::start();
        let tasks = Tasks::new(settings.node, settings.reporter.clone());
        let notes = Rc::new(NodeNotes::new(settings.node, Rc::new(Here { clock, tasks: tasks.clone() })));
        let mut disks = Vec::with_capacity(settings.disks.len());
        let (files, connections) = share_descriptors(descriptors(), settings.disks.is_empty());
        let open_max = (files / settings.disks.len().max(1)).max(1);
        let silence = settings.limits.silence;
        for disk in &settings.disks {
            let noted = (notes.clone(), disks.len());
            let disk =
                Disk::start(disk, settings.node, clock, tasks.clone(), noted, open_max, silence).await?;
            disk.refuse_copy(&disks)?;
            disks.push(disk);
        }
        let metadata = settings.metadata.as_ref();
        let metadata = metadata.map(|place| Metadata::start(place, &settings)).transpose()?;
        let drain = settings.limits.drain;
        let limits = Limits { connections: settings.limits.connections.min(connections), ..settings.limits };
        let net = Net::start(
            settings.node,
            settings.keys,
            settings.listen,
            limits,
            settings.sockets,
            tasks.clone(),
            notes.clone(),
        )?;
        let buffers = BufferPool::new(settings.buffer_bytes);
        let inner = Inner { node: settings.node, clock, tasks, net, disks, metadata, buffers, notes, drain };
        let machine = RealMachine { inner: Rc::new(inner) };
        machine.connect(&settings.peers).await?;
        Ok(machine)
    }

    /// Returns the listening address of this node, with its actual port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.inner.net.address()
    }

    /// Starts to listen, unless this node already does, at an address that nodes able to reach `beside` can reach too:
    /// this computer's address on the route there, and any free port. Returns the listening address.
    pub fn listen_beside(&self, beside: SocketAddr) -> Result<SocketAddr> {
        let towards = || -> io::Result<IpAddr> {
            // Connecting a datagram socket sends nothing: the system only looks up the route.
            let any: IpAddr =
                if beside.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect(beside)?;
            Ok(socket.local_addr()?.ip())
        };
        let own = towards().map_err(|error| Error::Io {
            what: format!("cannot look up the route to {beside}"),
            why: error.to_string(),
        })?;
        self.inner.net.listen((own, 0).into())
    }

    /// Connects to all of `peers` not connected yet. Fails at the first peer that cannot be reached.
    pub async fn connect(&self, peers: &[Peer]) -> Result<()> {
        for &peer in peers {
            self.inner.net.connect(peer).await?;
        }
        Ok(())
    }

    /// Connects to the node that listens at `address`, and returns its name.
    ///
    /// An existing connection to that node is kept, even if it was made at another address of the node.
    pub async fn connect_to(&self, address: SocketAddr) -> Result<NodeId> {
        self.inner.net.connect_to(address).await
    }

    /// Closes the network. Waits until all sent messages have left, all transfers have completed and the metadata store
    /// is closed.
    pub async fn finish(&self) {
        use machine::Net as _;
        self.inner.net.close();
        let drained = async {
            self.inner.net.drained().await;
            self.inner.tasks.transfers_completed().await;
        };
        // The limit applies to peers that do not read the messages sent to them.
        let _ = compio::time::timeout(self.inner.drain, drained).await;
        if let Some(metadata) = &self.inner.metadata {
            let _ = compio::time::timeout(metadata::CLOSING, metadata.close()).await;
        }
    }
}

/// Returns the number of descriptors that this process may have.
fn descriptors() -> usize {
    // Fall back to the usual limit if the system does not report one.
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Divides `descriptors` between disk files and connections. Returns the number of files, and of connections at two
/// descriptors each.
fn share_descriptors(descriptors: usize, is_without_disks: bool) -> (usize, usize) {
    let free = descriptors.saturating_sub(OTHER_DESCRIPTORS);
    let files = if is_without_disks { 0 } else { FILES_OPEN_MAX.min(free / 2) };
    (files, ((free - files) / 2).max(1))
}

impl Machine for RealMachine {
    type Net = Net;
    type Disk = Disk;
    type Metadata = Metadata;

    fn node(&self) -> NodeId {
        self.inner.node
    }

    fn now(&self) -> Instant {
        self.inner.clock.now()
    }

    #[expect(clippy::disallowed_methods, reason = "it is the clock on the wall that is asked for")]
    fn date(&self) -> Duration {
        // A clock before 1970 is wrong in any case, so 0 is good enough.
        let date = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Duration::from_nanos(u64::try_from(date.as_nanos()).unwrap_or(u64::MAX))
    }

    fn computer(&self) -> Option<Computer> {
        computer::this()
    }

    async fn sleep_until(&self, deadline: Instant) {
        self.inner.clock.sleep_until(deadline).await;
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = Result<()>> + 'static) {
        self.inner.tasks.spawn(name, task);
    }

    async fn contain<T>(&self, name: &'static str, work: impl Future<Output = T>) -> Result<T> {
        self.inner.tasks.contain(name, work).await
    }

    async fn compute(&self, _work: Work) {}

    fn net(&self) -> &Net {
        &self.inner.net
    }

    fn disks(&self) -> &[Disk] {
        &self.inner.disks
    }

    fn metadata(&self) -> Option<&Metadata> {
        self.inner.metadata.as_ref()
    }

    fn buffers(&self) -> &BufferPool {
        &self.inner.buffers
    }

    fn notes(&self) -> &NodeNotes {
        &self.inner.notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_connections_share_the_available_descriptors() {
        assert_eq!(share_descriptors(1024, false), (464, 232));
        assert_eq!(share_descriptors(1024, true), (0, 464));
        assert_eq!(share_descriptors(256, false), (80, 40));
        assert_eq!(share_descriptors(1 << 20, false), (512, (1 << 19) - 304));
        assert_eq!(share_descriptors(0, false), (0, 1));
    }
}
