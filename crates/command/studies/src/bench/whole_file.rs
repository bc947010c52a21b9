//! Put and get of whole files on agents started for a benchmark, each by a separate node.

use std::io;
use std::path::Path;

use command_line::failure::Result;
use command_line::progress::{Progress, Show};
use node::sparse::Dense;
use node::whole_file::Method;
use transfer::cluster::Cluster;
use transfer::interrupt::Interruption;
use transfer::local::{self, Hashing};
use transfer::namespace::Namespace;
use transfer::one_file::{self, Done, Put};

/// Uploads a local file to the agents under this name.
pub fn put(cluster: &Cluster, local: &Path, name: &str, put: Put, show: Show) -> Result<Done> {
    let (input, size) = local::open(local)?;
    let progress = Progress::bytes(show, "put");
    progress.expect(size.unwrap_or(0));
    let input = Hashing::new(Dense(input), false);
    let (name, counted) = (name.to_owned(), progress.clone());
    let done = cluster.run(move |connection| async move {
        let namespace = Namespace::of(&connection).await?;
        one_file::put(&namespace, &name, &put, input, &counted, &Interruption::never()).await
    })?;
    progress.finish();
    Ok(done)
}

/// Reads a file from the agents. Computes its hash if `is_hashed` is set.
pub fn get(cluster: &Cluster, name: &str, method: Method, is_hashed: bool, show: Show) -> Result<Done> {
    let progress = Progress::bytes(show, "get");
    let output = Hashing::new(Dense(io::sink()), is_hashed);
    let (name, counted) = (name.to_owned(), progress.clone());
    let done = cluster.run_with_present(move |connection| async move {
        let namespace = Namespace::of(&connection).await?;
        one_file::get(&namespace, &name, method, output, &counted).await
    })?;
    progress.finish();
    Ok(done)
}
