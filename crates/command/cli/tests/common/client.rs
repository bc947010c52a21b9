//! Client nodes for tests.

use std::thread::{self, JoinHandle};

use super::key_file;
use node::{Agent, ConnectedNode};

/// Runs `work` as a client of the agents at these addresses, on a separate thread.
pub(crate) fn client<T, F>(
    addresses: &[&str],
    work: impl FnOnce(ConnectedNode) -> F + Send + 'static,
) -> JoinHandle<T>
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    let agents: Vec<Agent> = node::agents::named(addresses).expect("addresses");
    thread::spawn(move || {
        let keys = node::key::read(key_file()).expect("the key of the agents");
        let settings = real::Settings::new(node::new_node_id().expect("randomness"), keys);
        let done = real::run(settings, |machine| async move {
            work(ConnectedNode::to_all(&machine, &agents, None).await.expect("the agents run")).await
        });
        done.expect("a node")
    })
}
