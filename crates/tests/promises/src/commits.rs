//! What holds of files that are being made, replaced and extended: they are finished in one step or not at all.

use fs::protocol::Committed;
use fs::{Client, Error, FileId, Threads};
use layout::Striping;
use machine::conformance::Testbed;
use machine::{Disk, Duration, Machine, Net, Stage};

use super::{BLOCK, Base, contents, finished, read, run, small, start, write};

fn settings(base: Base) -> fs::IoNodeSettings {
    small(base, Threads::Pool(4))
}

async fn is_unfinished<M: Machine>(client: &Client<M>, name: &str) -> bool {
    matches!(client.open(name).await.err().as_deref(), Some(Error::Unfinished { .. }))
}

/// A file that was begun is refused until it is committed, unless it is asked for as it is; then it is as any other.
pub fn an_unfinished_file_is_refused_until_it_is_committed(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(5 * BLOCK + 3);
        let file = clients[0].create("new", FileId(1), BLOCK).await.expect("created");
        write(&file, 0, &data).await;
        file.flush().await.expect("flushed");
        assert!(is_unfinished(&clients[1], "new").await && is_unfinished(&clients[0], "new").await);
        let stat = clients[1].stat_unfinished("new").await.expect("it is there");
        assert!(stat.unfinished_since.is_some_and(|since| since <= nodes[3].date()), "{stat:?}");
        let as_it_is = clients[1].open_unfinished("new").await.expect("it is there");
        assert!(as_it_is.is_unfinished() && read(&as_it_is, 0, 10 * BLOCK).await == data);
        assert_eq!(clients[1].list().await, Ok(vec!["new".into()]));
        file.commit().await.expect("committed");
        let whole = clients[1].open("new").await.expect("finished");
        assert!(!whole.is_unfinished() && read(&whole, 0, 10 * BLOCK).await == data);
        assert_eq!(clients[1].stat("new").await.expect("finished").unfinished_since, None);
        assert_eq!(clients[1].stat_unfinished("new").await.err(), Some(not_found("new")));
        // A handle that was opened before finds it finished.
        assert_eq!(as_it_is.refresh().await, Ok(data.len() as u64));
        assert!(!as_it_is.is_unfinished());
        file.commit().await.expect("nothing is left to be done");
    });
}

fn busy(name: &str) -> Option<Box<Error>> {
    Some(Error::BeingWritten { name: name.into() }.into())
}

fn not_found(name: &str) -> Box<Error> {
    Error::NotFound { name: name.into() }.into()
}

/// A file stays as it is while another one of its name is written, whether or not that one is committed, and however it
/// is striped.
pub fn a_replaced_file_stays_until_the_new_one_is_committed(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let clients = start(base, &nodes, 3, settings(base)).await;
        let (old, new) = (contents(7 * BLOCK), contents(9 * BLOCK)[BLOCK as usize..].to_vec());
        for (round, stripes) in (0..).zip([3, 1, 2, 3]) {
            let file = finished(&clients[0], "name", FileId(100 + round)).await;
            write(&file, 0, &old).await;
            file.flush().await.expect("flushed");
            let striping = Striping::new(BLOCK, stripes).expect("a striping");
            let given_up = clients[0].create_replacing("name", FileId(200 + round), striping).await;
            write(&given_up.expect("begun"), 0, &new).await;
            let reader = clients[1].open("name").await.expect("the old one");
            assert!(read(&reader, 0, 20 * BLOCK).await == old);
            clients[0].unlink_unfinished("name").await.expect("given up");
            let file = clients[0].create_replacing("name", FileId(300 + round), striping).await;
            let file = file.expect("begun");
            write(&file, 0, &new).await;
            assert!(read(&reader, 0, 20 * BLOCK).await == old);
            file.commit().await.expect("committed");
            let reader = clients[1].open("name").await.expect("the new one");
            assert_eq!((reader.id(), reader.striping()), (FileId(300 + round), striping));
            assert!(read(&reader, 0, 20 * BLOCK).await == new);
            clients[1].unlink("name").await.expect("removed");
            assert_eq!(clients[1].list().await, Ok(vec![]), "nothing of the old one is left");
        }
    });
}

/// What makes a finished file longer counts for others when it has been flushed; what makes it shorter, at once.
pub fn a_file_keeps_its_length_until_what_makes_it_longer_is_flushed(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(12 * BLOCK);
        let file = finished(&clients[0], "log", FileId(1)).await;
        let reader = clients[1].open("log").await.expect("finished");
        for (from, to) in [(0, 3 * BLOCK), (3 * BLOCK, 3 * BLOCK + 1), (3 * BLOCK + 1, 12 * BLOCK)] {
            write(&file, from, &data[from as usize..to as usize]).await;
            assert_eq!((file.bytes(), reader.refresh().await), (to, Ok(from)));
            assert_eq!(clients[1].stat("log").await.expect("finished").bytes, from);
            file.flush().await.expect("flushed");
            assert_eq!(reader.refresh().await, Ok(to));
        }
        assert!(read(&reader, 0, 20 * BLOCK).await == data);
        file.truncate(5 * BLOCK).await.expect("cut");
        assert_eq!(reader.refresh().await, Ok(5 * BLOCK));
        file.truncate(6 * BLOCK).await.expect("extended");
        assert_eq!((file.bytes(), reader.refresh().await), (6 * BLOCK, Ok(5 * BLOCK)));
        file.flush().await.expect("flushed");
        assert_eq!(reader.refresh().await, Ok(6 * BLOCK));
    });
}

/// To write no bytes changes nothing, wherever they were to go.
pub fn a_write_of_no_bytes_makes_no_file_longer(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let file = finished(&clients[0], "short", FileId(1)).await;
        write(&file, 0, b"short").await;
        write(&file, 10 * BLOCK, b"").await;
        assert_eq!(file.bytes(), 5);
        file.flush().await.expect("flushed");
        assert_eq!(file.refresh().await, Ok(5));
    });
}

/// A file that was committed on all its stripes is finished, although it has not been published yet: the next client
/// that looks for it publishes it. A file that lacks the commit of a single stripe is not finished.
pub fn a_committed_file_is_published_by_whoever_looks_for_it(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let clients = start(base, &nodes, 3, settings(base)).await;
        let old = finished(&clients[0], "name", FileId(1)).await;
        write(&old, 0, b"old").await;
        old.flush().await.expect("flushed");
        let striping = Striping::new(BLOCK, 2).expect("a striping");
        let file = clients[0].create_replacing("name", FileId(2), striping).await.expect("begun");
        write(&file, 0, b"new").await;
        file.flush().await.expect("flushed");
        let commit = async |node: usize| {
            let disk = &nodes[node].disks()[0];
            let object = disk.open("name", Stage::Pending).await.expect("begun");
            disk.commit(object.id, &Committed { bytes: 3 }.encode()).await.expect("a disk");
        };
        commit(0).await;
        let found = clients[1].open("name").await.expect("the old one");
        assert!(found.id() == FileId(1) && read(&found, 0, 10).await == b"old");
        commit(1).await;
        let found = clients[1].open("name").await.expect("the new one");
        assert!(found.id() == FileId(2) && read(&found, 0, 10).await == b"new");
        for node in &nodes[..3] {
            assert!(node.disks()[0].open("name", Stage::Pending).await.is_err());
        }
        assert!(nodes[2].disks()[0].open("name", Stage::Published).await.is_err(), "the old one is gone");
        file.commit().await.expect("it is");
    });
}

/// While a client writes a file no other client can make one of its name, or remove it. When the client is gone, what
/// it has left gives way to the next file of that name, and can be collected.
pub fn an_unfinished_file_is_left_alone_while_it_is_written(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let file = clients[0].create("mine", FileId(1), BLOCK).await.expect("created");
        write(&file, 0, &contents(3 * BLOCK)).await;
        clients[0].create("mine too", FileId(2), BLOCK).await.expect("created");
        for client in &clients {
            assert_eq!(client.create("mine", FileId(3), BLOCK).await.err(), busy("mine"));
        }
        assert_eq!(clients[1].unlink_unfinished("mine").await.err(), busy("mine"));
        let refused = clients[1].unlink("mine").await.err();
        assert!(matches!(refused.as_deref(), Some(Error::Unfinished { .. })), "{refused:?}");
        nodes[2].net().close();
        let deadline = nodes[3].now() + Duration::from_secs(20);
        let again = loop {
            match clients[1].create("mine", FileId(4), BLOCK).await {
                // It may take a moment until all know that the other is gone.
                Err(error) if matches!(*error, Error::BeingWritten { .. }) && nodes[3].now() < deadline => {
                    nodes[3].sleep_until(nodes[3].now() + Duration::from_millis(1)).await;
                }
                made => break made.expect("the name is free"),
            }
        };
        again.commit().await.expect("committed");
        assert_eq!(clients[1].stat("mine").await.map(|stat| (stat.file, stat.bytes)), Ok((FileId(4), 0)));
        clients[1].unlink_unfinished("mine too").await.expect("collected");
        assert_eq!(clients[1].unlink_unfinished("mine too").await.err(), Some(not_found("mine too")));
        assert_eq!(clients[1].list().await, Ok(vec!["mine".into()]));
    });
}

/// A file that an I/O node makes for a client that goes meanwhile has no writer: it gives way, and can be collected.
pub fn what_is_made_for_a_client_that_is_gone_is_nobodys(testbed: &impl Testbed, base: Base) {
    for micros in [200, 500, 1000, 2000, 5000, 10_000, 20_000] {
        run(testbed, 4, move |nodes| async move {
            let mut clients = start(base, &nodes, 2, settings(base)).await;
            let (gone, client) = (clients.remove(0), clients.remove(0));
            // The name is busy while the first file of that name is written and removed, so that making the second
            // waits.
            let first = client.create("name", FileId(1), BLOCK).await.expect("created");
            write(&first, 0, &contents(8 * BLOCK)).await;
            nodes[2].spawn("making the second", async move {
                // Until it waits for the first to be removed; and it may come to its end before the client goes.
                while gone.create("name", FileId(2), BLOCK).await.err() == busy("name") {}
                Ok(())
            });
            let leaving = nodes[2].clone();
            nodes[2].spawn("leaving", async move {
                leaving.sleep_until(leaving.now() + Duration::from_micros(micros)).await;
                leaving.net().close();
                Ok(())
            });
            // It may meet the second when the first has gone.
            let _ = client.unlink_unfinished("name").await;
            nodes[3].sleep_until(nodes[3].now() + Duration::from_millis(30)).await;
            let deadline = nodes[3].now() + Duration::from_secs(20);
            while let Err(error) = client.unlink_unfinished("name").await
                && !matches!(*error, Error::NotFound { .. })
            {
                assert!(nodes[3].now() < deadline, "after {micros} us: {error}");
                nodes[3].sleep_until(nodes[3].now() + Duration::from_millis(1)).await;
            }
        });
    }
}
