//! A striped file that was read is replaced when the new one is whole: whatever goes wrong, its contents are somewhere.

mod common;

use std::fs;
use std::io::{Read, Write};

use applications::{FileName, Files, FilesArgs, Output, Storage};
use clap::{Args, Command, FromArgMatches};
use common::{Home, MYCAT};

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
