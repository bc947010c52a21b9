//! A striped file that is replaced stays until the new one is whole: whatever goes wrong, its contents are not lost.

mod common;

use std::fs;
use std::io::{Read, Write};

use applications::{FileName, Files, FilesArgs, Output, Storage};
use clap::{Args, Command, FromArgMatches};
use common::{FS2PFS, Home, MYCAT, PFS2FS};

/// What a program opens files with that was called with these agents and options.
fn files(home: &Home, options: &[&str]) -> Files {
    let command = FilesArgs::augment_args(Command::new("program"));
    let (agents, key_file) = (home.agents(), home.key_file());
    let agents = ["program", "--agents", &agents, "--key", &key_file];
    let matches = command.get_matches_from(agents.iter().chain(options));
    Files::new(&FilesArgs::from_arg_matches(&matches).expect("none has to be given"))
}

/// Begins to replace a striped file.
fn begin<'a>(files: &'a Files, name: &FileName, new: &[u8]) -> Box<dyn Output + 'a> {
    let mut output = files.create(name, true).expect("it can be replaced");
    output.write_all(new).expect("room");
    output
}

#[test]
fn what_is_replaced_stays_until_the_new_one_is_whole() {
    let home = Home::start(2);
    let name = FileName::Striped("x".into());
    let is = |contents: &str| {
        assert_eq!(home.succeed(MYCAT, &["pfs:x"]), contents.as_bytes());
        assert_eq!(home.striped(), ["x"]);
    };
    // Striped as the old one, and otherwise.
    for options in [&[][..], &["--block", "8KiB"], &["--disks", "1"]] {
        for is_read in [false, true] {
            home.make("x", b"old");
            let files = files(&home, options);
            if is_read {
                files.open(&name).expect("it is there").read_to_end(&mut Vec::new()).expect("its contents");
            }
            let output = begin(&files, &name, b"new");
            is("old");
            drop(output);
            is("old");
            begin(&files, &name, b"new").finish().expect("room");
            is("new");
        }
    }
}

#[test]
fn if_the_new_one_cannot_get_the_name_the_old_one_stays() {
    let home = Home::start(2);
    home.make("x", b"old");
    let (files, name) = (files(&home, &[]), FileName::Striped("x".into()));
    let output = begin(&files, &name, b"new");
    // A directory is no stripe.
    let (stripe, aside) = (home.disk(0).join("x.stripe"), home.path("aside"));
    fs::rename(&stripe, &aside).and_then(|()| fs::create_dir(&stripe)).expect("room");
    output.finish().expect_err("it cannot get the name");
    fs::remove_dir(&stripe).and_then(|()| fs::rename(&aside, &stripe)).expect("it is empty");
    assert_eq!((home.succeed(MYCAT, &["pfs:x"]), home.striped()), (b"old".into(), vec!["x".into()]));
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
    let (files, name) = (files(&home, &[]), FileName::Striped("x".into()));
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
    for arguments in [&["x", "nodir/x"][..], &["x", "nodir/x", "--force"]] {
        let told = home.fail(FS2PFS, arguments);
        assert!(
            told.contains("nodir/x: ") && !told.contains(".new"),
            "of a file that the user knows: {told}"
        );
    }
}
