//! A replaced striped file stays until the new one is complete: no failure loses its contents.

mod common;

use std::io::{Read, Write};

use applications::{FileName, Files, FilesArgs, Output, Storage};
use clap::{Args, Command, FromArgMatches};
use common::{FS2PFS, Home, MYCAT};

/// Returns the files of a program called with these agents and options.
fn files(home: &Home, options: &[&str]) -> Files {
    let command = FilesArgs::augment_args(Command::new("program"));
    let (agents, key_file) = (home.agents(), home.key_file());
    let agents = ["program", "--agents", &agents, "--key", &key_file];
    let matches = command.get_matches_from(agents.iter().chain(options));
    Files::new(&FilesArgs::from_arg_matches(&matches).expect("all options are optional"))
}

/// Writes the replacement of a striped file, without finishing it.
fn begin<'a>(files: &'a Files, name: &FileName, new: &[u8]) -> Box<dyn Output + 'a> {
    let mut output = files.create(name, true).expect("it can be replaced");
    output.write_all(new).expect("room");
    output
}

#[test]
fn a_replaced_file_stays_until_the_new_one_is_complete() {
    let home = Home::start(2);
    let name = FileName::Striped("x".into());
    let is = |contents: &str| assert_eq!(home.succeed(MYCAT, &["pfs:x"]), contents.as_bytes());
    // The new file has the striping of the old one, or another striping.
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
            assert_eq!(home.striped(), ["x"]);
        }
    }
}

#[test]
fn a_file_that_cannot_be_renamed_stays_under_its_reported_name() {
    let home = Home::start(2);
    let files = files(&home, &[]);
    let output = begin(&files, &FileName::Striped("x".into()), b"new");
    home.make_striped_directory("x");
    let error = output.finish().expect_err("a directory has the name").to_string();
    let [name] = &home.striped()[..] else { panic!("{error}") };
    assert!(error.contains(&format!("mycat pfs:{name} -o pfs:x")), "{error}");
    assert_eq!(home.succeed(MYCAT, &[&format!("pfs:{name}")]), b"new");
}

#[test]
fn errors_contain_the_target_and_no_hidden_name() {
    let home = Home::start(2);
    home.make("x", b"contents");
    for (target, forced) in [("x", false), ("nodir/x", false), ("nodir/x", true)] {
        let stderr =
            home.fail(FS2PFS, &[&["x", target][..], if forced { &["--force"] } else { &[] }].concat());
        assert!(stderr.contains(&format!("{target}: ")) && !stderr.contains(".starfish-"), "{stderr}");
    }
    assert_eq!(home.striped(), ["x"]);
}
