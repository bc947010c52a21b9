//! A striped file that was read is replaced when the new one is whole: whatever goes wrong, its contents are not lost.

mod common;

use std::fs;
use std::io::{Read, Write};

use applications::{FileName, Files, FilesArgs, Output, Storage};
use clap::{Args, Command, FromArgMatches};
use common::{FS2PFS, Home, MYCAT, PFS2FS};

/// What a program opens files with that was called with these agents.
fn files(home: &Home) -> Files {
    let command = FilesArgs::augment_args(Command::new("program"));
    let key_file = home.key_file();
    let matches = command.get_matches_from(["program", "--agents", &home.agents(), "--key", &key_file]);
    Files::new(&FilesArgs::from_arg_matches(&matches).expect("none has to be given"))
}

/// Reads a striped file and begins to replace it.
fn begin<'a>(files: &'a Files, name: &FileName, new: &[u8]) -> Box<dyn Output + 'a> {
    files.open(name).expect("it is there").read_to_end(&mut Vec::new()).expect("its contents");
    let mut output = files.create(name, true).expect("it can be replaced");
    output.write_all(new).expect("room");
    output
}

#[test]
fn what_was_read_stays_until_the_new_one_is_whole() {
    let home = Home::start(2);
    home.make("x", b"old");
    let (files, name) = (files(&home), FileName::Striped("x".into()));
    let output = begin(&files, &name, b"new");
    assert_eq!(home.succeed(MYCAT, &["pfs:x"]), b"old");
    drop(output);
    assert_eq!((home.succeed(MYCAT, &["pfs:x"]), home.striped()), (b"old".into(), vec!["x".into()]));
    begin(&files, &name, b"new").finish().expect("room");
    assert_eq!((home.succeed(MYCAT, &["pfs:x"]), home.striped()), (b"new".into(), vec!["x".into()]));
}

#[test]
fn if_the_new_one_cannot_take_its_place_it_stays_and_is_named() {
    let home = Home::start(2);
    home.make("x", b"old");
    let (files, name) = (files(&home), FileName::Striped("x".into()));
    let output = begin(&files, &name, b"new");
    let stripe = home.disk(0).join("x.stripe");
    fs::remove_file(&stripe).expect("a stripe");
    fs::create_dir(&stripe).expect("room");
    let said = output.finish().expect_err("a directory is no stripe").to_string();
    let names = home.striped();
    let new = names.iter().find(|name| name.starts_with("x.new-")).expect("it stays");
    assert!(said.contains(&format!("What pfs:x was to hold is in pfs:{new}.")), "{said}");
    assert_eq!(home.succeed(MYCAT, &[&format!("pfs:{new}")]), b"new");
}

/// In a namespace programs copy files to and from its paths, and what one replaces stays until the new one is whole.
#[test]
fn in_a_namespace_files_are_copied_by_their_paths_and_replaced_in_one_step() {
    let home = Home::start(2);
    home.begin_namespace();
    home.make("x", b"first");
    assert_eq!(home.striped(), ["x"], "with a namespace, paths");
    for program in [PFS2FS, MYCAT] {
        assert_eq!(home.succeed(program, &["pfs:x"]), b"first");
    }
    let (files, name) = (files(&home), FileName::Striped("x".into()));
    let mut output = files.create(&name, true).expect("it can be replaced");
    output.write_all(b"half of it").expect("room");
    assert_eq!(home.succeed(PFS2FS, &["x"]), b"first", "until the new one is whole");
    drop(output);
    assert_eq!((home.succeed(PFS2FS, &["x"]), home.striped()), (b"first".into(), vec!["x".into()]));
    fs::write(home.path("x"), "second").expect("a file");
    home.fail(FS2PFS, &["x"]);
    home.succeed(FS2PFS, &["x", "--force"]);
    assert_eq!((home.succeed(PFS2FS, &["x"]), home.striped()), (b"second".into(), vec!["x".into()]));
    home.succeed(PFS2FS, &["x", "back"]);
    assert_eq!(home.read("back"), b"second");
}
