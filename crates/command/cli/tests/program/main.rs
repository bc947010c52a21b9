//! End-to-end tests: they start the processes of the program and connect them over loopback. Each test has its own
//! agents and directories.
//!
//! All tests are in one executable, because each test executable links the whole file system. `cargo test -p starfish
//! --test program fsck::` runs the tests of one file.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../metrics/tests/exposition/mod.rs"]
mod exposition;
#[path = "../common/killing.rs"]
mod killing;
#[path = "../common/mount_point.rs"]
mod mount_point;
#[path = "../../../../machines/real/tests/common/postgres_server.rs"]
mod postgres_server;

mod advise;
mod agent_set;
mod agents;
mod bench_agents;
mod bench_enwrich;
mod bench_names;
mod bench_pdiol;
mod bench_placement;
mod broken_stderr;
mod completion;
mod convert;
mod demo;
mod doctor;
mod failing_disk;
mod failures;
mod fsck;
mod merge;
mod merges_killed;
mod metrics;
mod mount;
mod mount_kills;
mod mpi;
mod mpi_launched;
mod namespace;
mod namespace_fsck;
mod namespace_server;
mod power_cuts;
mod race;
mod refusals;
mod replay;
mod reproduce;
mod run;
mod simulate;
mod store;
mod trace;
mod traced;
mod traces;
mod two_mounts;
mod unfinished;
mod view;
mod write_caches;
