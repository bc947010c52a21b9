//! Names in a PostgreSQL server. A metadata agent stores the names there, and if it is lost, another agent takes over.

use crate::common::{Agent, Store, fail, finish, hash, starfish};
use crate::postgres_server::Server;

/// Returns the address of a new database in the form that users write.
fn url(server: &Server) -> String {
    let address = server.new_database();
    let database = address.rsplit('=').next().expect("its name");
    let socket = server.directory.path().to_str().expect("text").replace('/', "%2F");
    format!("postgresql://starfish@{socket}/{database}")
}

#[test]
fn names_in_postgresql_survive_a_move_of_the_metadata_agent() {
    let Some(server) = Server::start() else { return };
    let url = url(&server);
    let mut store = Store::start(&[1]);
    let root = store.directory.path().join("keeper");
    // Any other agent could become the metadata server, so this agent starts alone.
    let first_agent = Agent::start(vec![root.clone()], &["--namespace", &url]);
    let others = std::mem::replace(&mut store.agents, vec![first_agent]);
    store.run(&["mkdir", "d"]);
    store.agents.extend(others);
    let contents = store.make_file("local", 300_000);
    store.run(&["put", "local", "d/file"]);
    assert!(!root.join("namespace/namespace.db").exists(), "the agent stores no names on its disk");
    store.agents[0].child.kill().expect("a child process of the test");
    store.agents[0].child.wait().expect("it ends");
    // The agent is restarted with its disk at another address, as on another computer.
    store.agents[0] = Agent::start(vec![root], &["--namespace", &url]);
    assert_eq!(store.run(&["ls", "d"]), "file\n");
    store.run(&["get", "d/file", "back"]);
    assert_eq!(hash(&store.path("back")), contents);
    store.run(&["mv", "d/file", "d/other"]);
    store.run(&["fsck"]);
}

#[test]
fn an_invalid_namespace_address_or_a_copy_of_it_is_rejected() {
    let agent = |options: &[&str]| {
        starfish([&["agent", "--listen", "127.0.0.1:0", "--root", "/nowhere"], options].concat())
    };
    let wrong = fail(agent(&["--namespace", "mysql://here/there"]), 2);
    assert!(wrong.contains("postgresql://USER:PASSWORD@HOST/DATABASE"), "{wrong}");
    let both = ["--namespace", "postgresql://here/there", "--copy-namespace", "/tmp"];
    assert_eq!(finish(agent(&both)).status.code(), Some(2));
}
