//! Fuzz test: a description is either refused with a line number, or a machine and a disk can be built from it.

use description::{Description, DiskDescription, Error, MachineDescription};
use disk::Model;
use machine::Instant;

/// Returns the built-in descriptions.
fn examples<D: Description>() -> Vec<Vec<u8>> {
    D::BUILT_IN.iter().map(|(_, text)| text.as_bytes().to_vec()).collect()
}

fn parse<D: Description>(bytes: &[u8]) -> Option<D> {
    let text = String::from_utf8_lossy(bytes);
    match D::parse(&text, "fuzz.toml") {
        Ok(description) => Some(description),
        Err(Error::Refused { file, line, message }) => {
            assert!(file == "fuzz.toml" && line <= 1 + text.lines().count() && !message.is_empty());
            None
        }
        Err(Error::Several(errors)) => {
            assert!(errors.len() > 1);
            None
        }
        Err(error) => panic!("neither accepted nor refused: {error}"),
    }
}

/// Checks that a disk with an accepted description serves a read and a write.
fn look_at_disk(bytes: &[u8]) {
    let Some(description) = parse::<DiskDescription>(bytes) else { return };
    let mut model = Model::new(&description, 0.25);
    let last = model.capacity_sectors() - 1;
    let read = model.read(Instant::START, last, 1);
    let written = model.write(read, 0, 1);
    assert!(Instant::START <= read && read <= written);
}

fn look_at_machine(bytes: &[u8]) {
    if let Some(machine) = parse::<MachineDescription>(bytes) {
        assert!(machine.node_count() > 0);
        assert_eq!(machine.disk().is_none(), machine.disks.model.value == "memory");
    }
}

#[test]
fn disks() {
    fuzz::target!("disks", |input| {
        look_at_disk(input);
        look_at_disk(&fuzz::changed(&examples::<DiskDescription>(), input));
    });
}

#[test]
fn machines() {
    fuzz::target!("machines", |input| {
        look_at_machine(input);
        look_at_machine(&fuzz::changed(&examples::<MachineDescription>(), input));
    });
}
