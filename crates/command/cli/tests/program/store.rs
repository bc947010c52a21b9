//! Files in stripes, end to end: put, get, cat, ls, stat and rm with real agents.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Output;

use crate::common::{Store, contents, fail, finish, hash, starfish, succeed, succeed_with_input, wait};
use pdiol::{OpenOptions, Session};

const SIZES: [usize; 6] = [0, 1, 65_535, 65_536, 65_537, 5 << 20];

#[test]
fn files_of_all_sizes_are_copied_unchanged_by_both_methods() {
    let store = Store::start(&[1, 2, 1]);
    for bytes in SIZES {
        let original = store.make_file("original", bytes);
        for (put, get) in [("traditional", "disk-directed"), ("disk-directed", "traditional")] {
            let args = [
                "put",
                "original",
                "copy",
                "--block",
                "64KiB",
                "--method",
                put,
                "--replace",
                "--verify",
                "--hash",
            ];
            assert_eq!(store.run(&args), format!("{original}  copy\n"));
            let printed = store.run(&["get", "copy", "back", "--method", get, "--force", "--hash"]);
            assert_eq!(printed, format!("{original}  copy\n"));
            assert_eq!(hash(&store.path("back")), original, "{bytes} bytes, {put} and {get}");
            let stat = store.run(&["stat", "copy"]);
            assert!(stat.contains(&format!("bytes     {bytes}\n")), "{stat}");
            assert!(stat.contains("64 KiB over 4 stripes"), "{stat}");
        }
    }
}

/// Programs in C and Rust, and the applications, use the library.
#[test]
fn the_library_and_the_program_read_each_others_files() {
    let store = Store::start(&[1, 2]);
    let session = Session::start(store.settings()).expect("the agents run");
    for bytes in SIZES {
        let original = store.make_file("original", bytes);
        store.run(&["put", "original", "put", "--replace", "--block", "16KiB"]);
        let mut read = Vec::new();
        let mut put = session.open("put", OpenOptions::new().read(true)).expect("it was put");
        put.read_to_end(&mut read).expect("its contents");
        assert!(read == contents(bytes), "{bytes} bytes");
        let options = OpenOptions::new().write(true).create(true).truncate(true);
        let mut written = session.open("written", options).expect("made");
        written.write_all(&contents(bytes)).expect("room");
        written.close().expect("written");
        for method in ["traditional", "disk-directed"] {
            let printed = store.run(&["get", "written", "back", "--method", method, "--force", "--hash"]);
            assert_eq!(printed, format!("{original}  written\n"));
        }
    }
    session.finish().expect("all is written");
}

#[test]
fn a_file_larger_than_the_window_and_the_cache_passes_through_them() {
    let store = Store::start_with(&[1, 1], &["--cache", "1MiB", "--block-max", "64KiB"]);
    let original = store.make_file("original", (64 << 20) + 12_345);
    for method in ["traditional", "disk-directed"] {
        store.run(&["put", "original", method, "--block", "48KiB", "--method", method]);
        store.run(&["get", method, "back", "--force", "--method", method]);
        assert_eq!(hash(&store.path("back")), original, "{method}");
    }
}

#[test]
fn one_missing_name_does_not_stop_ls_or_rm_of_the_others() {
    let store = Store::start(&[1, 1]);
    store.make_file("a", 70_000);
    store.make_file("b", 3);
    store.run(&["put", "a"]);
    store.run(&["put", "b"]);
    let Output { status, stdout, stderr } = finish(store.command(&["ls", "none", "a", "z*"]));
    assert_eq!((status.code(), &*stdout), (Some(1), &b"a\n"[..]));
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert!(stderr.contains("none: no such file") && stderr.contains("z*: no file matches"), "{stderr}");
    let both = succeed(store.command(&["cat", "a", "b"]));
    assert_eq!(both, [contents(70_000), contents(3)].concat());
    std::fs::create_dir(store.path("into")).expect("a directory");
    store.run(&["get", "b", "into"]);
    assert_eq!(hash(&store.path("into/b")), blake3::hash(&contents(3)));
    let error = store.run_failing(&["rm", "a", "nothing", "b"]);
    assert!(error.contains("nothing: no such file"), "{error}");
    assert_eq!(store.run(&["ls"]), "");
    assert!(store.stripe_files().is_empty());
}

#[test]
fn put_and_get_accept_pipes() {
    let store = Store::start(&[1, 1]);
    let input = contents(3_000_001);
    for method in ["traditional", "disk-directed"] {
        succeed_with_input(store.command(&["put", "-", method, "--method", method]), input.clone());
        assert_eq!(succeed(store.command(&["get", method, "-", "--method", method])), input);
    }
    let error = fail(store.command(&["put", "-"]), 2);
    assert!(error.contains("no name"), "{error}");
}

#[test]
fn unusual_names_are_accepted_and_no_path_leaves_the_root() {
    let store = Store::start(&[1, 1]);
    let original = store.make_file("local", 100_000);
    store.run(&["mkdir", "größe"]);
    for name in ["two words", "größe/文件 №1.dat", "...", "-dash", "100%25"] {
        store.run(&["put", "local", "--", name]);
        store.run(&["get", "--force", "--", name, "back"]);
        assert_eq!(hash(&store.path("back")), original, "{name}");
        assert!(store.run(&["ls", "-aR"]).lines().any(|line| line == name), "{name}");
        store.run(&["rm", "--", name]);
    }
    // The root directory is its own parent.
    for name in ["../escaped", "größe/../../escaped", "/../escaped", "größe//..//escaped"] {
        store.run(&["put", "local", name]);
        assert_eq!(store.run(&["ls"]), "escaped\ngröße/\n", "{name}");
        store.run(&["get", "--force", name, "back"]);
        assert_eq!(hash(&store.path("back")), original, "{name}");
        store.run(&["rm", name]);
    }
    for name in ["/etc/escaped", "no/../escaped", "no//escaped"] {
        let error = store.run_failing(&["put", "local", name]);
        assert!(error.contains("no such directory"), "{name}: {error}");
        let error = store.run_failing(&["get", name, "back2"]);
        assert!(error.contains("no such file"), "{name}: {error}");
    }
    assert!(!store.path("escaped").exists() && !store.path("back2").exists());
}

#[test]
fn existing_files_are_replaced_only_with_an_option() {
    let store = Store::start(&[1, 1]);
    let first = store.make_file("first", 1000);
    let second = store.make_file("second", 2000);
    store.run(&["put", "first", "name"]);
    let error = store.run_failing(&["put", "second", "name"]);
    assert!(error.contains("already exists") && error.contains("--replace"), "{error}");
    let error = store.run_failing(&["get", "name", "second"]);
    assert!(error.contains("second: already exists") && error.contains("--force"), "{error}");
    assert_eq!(hash(&store.path("second")), second);
    store.run(&["get", "name", "second", "--force"]);
    assert_eq!(hash(&store.path("second")), first);
}

#[test]
fn a_failed_replacement_leaves_the_old_file() {
    let store = Store::start(&[1, 1]);
    store.make_file("local", 1000);
    let original = store.make_file("data", 2000);
    store.run(&["put", "data"]);
    for (block, part) in [("2MiB", "at most 1048576"), ("0", "from 1 B to")] {
        for method in ["traditional", "disk-directed"] {
            let arguments = ["put", "local", "data", "--replace", "--block", block, "--method", method];
            let error = fail(store.command(&arguments), if block == "0" { 2 } else { 1 });
            assert!(error.contains(part), "{error}");
            store.run(&["get", "data", "back", "--force"]);
            assert_eq!(hash(&store.path("back")), original, "{arguments:?}");
        }
    }
}

#[test]
fn replacing_a_local_file_keeps_links_to_it() {
    let store = Store::start(&[1]);
    let original = store.make_file("data", 2000);
    store.run(&["put", "data"]);
    store.make_file("data-17", 10);
    std::os::unix::fs::symlink("data-17", store.path("latest")).expect("a link");
    store.run(&["get", "data", "latest", "--force"]);
    assert_eq!(std::fs::read_link(store.path("latest")).expect("a link"), Path::new("data-17"));
    assert_eq!(hash(&store.path("data-17")), original);
}

#[test]
fn a_missing_local_directory_is_reported() {
    let store = Store::start(&[1]);
    store.make_file("data", 2000);
    store.run(&["put", "data"]);
    for method in ["traditional", "disk-directed"] {
        let error = fail(store.command(&["get", "data", "new/", "--method", method]), 2);
        assert!(error.contains("new/: no such directory"), "{error}");
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let store = Store::start(&[1, 1]);
    store.make_file("large", 20 << 20);
    store.run(&["put", "large"]);
    for arguments in [
        &["cat", "large", "large"][..],
        &["get", "large", "-"],
        &["get", "large", "-", "--method", "disk-directed"],
    ] {
        let mut child = store.command(arguments).spawn().expect("the program");
        let mut few = [0; 10];
        child.stdout.take().expect("piped").read_exact(&mut few).expect("some output");
        let status = wait(&mut child);
        let mut stderr = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
        assert!(status.success() && stderr.is_empty(), "{arguments:?}: {status}: {stderr}");
    }
}

#[test]
fn a_failed_transfer_leaves_no_partial_file() {
    let store = Store::start(&[1, 1]);
    store.make_file("local", 1000);
    let error = store.run_failing(&["put", "local", "--block", "2MiB"]);
    assert!(error.contains("at most 1048576"), "{error}");
    assert_eq!(store.run(&["ls", "-a"]), "");
    store.run_failing(&["get", "nothing", "back"]);
    let entries = std::fs::read_dir(store.directory.path()).expect("the directory");
    let left: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left.len(), 3, "only two disks and the local file, not {left:?}");
}

#[test]
fn agents_are_named_by_option_environment_or_file_in_this_order() {
    let store = Store::start(&[1]);
    let address = &store.agents[0].address;
    store.make_file("file", 10);
    store.run(&["put", "file"]);
    let config = store.path("starfish/config.toml");
    std::fs::create_dir_all(store.path("starfish")).expect("a directory");
    std::fs::write(&config, format!("agents = [\"{address}\"]\n")).expect("a file");

    let error = fail(starfish(["ls"]), 2);
    assert!(
        error.contains("neither STARFISH_AGENTS, PDIOLCONF nor") && error.contains("STARFISH_AGENTS"),
        "{error}"
    );
    let mut by_option = starfish(["ls", "--agents", address]);
    by_option.env("STARFISH_AGENTS", "127.0.0.1:1");
    assert_eq!(succeed(by_option), b"file\n");
    let config = config.to_str().expect("UTF-8");
    assert_eq!(succeed(starfish(["ls", "--config", config])), b"file\n");
    let mut by_environment = starfish(["ls", "--config", config]);
    by_environment.env("STARFISH_AGENTS", "127.0.0.1:1");
    assert!(fail(by_environment, 1).contains("agent 127.0.0.1:1: "));
    let mut usual = starfish(["ls"]);
    usual.env("XDG_CONFIG_HOME", store.directory.path());
    assert_eq!(succeed(usual), b"file\n");

    let error = fail(starfish(["ls", "--config", "/nonexistent/x.toml"]), 2);
    assert!(error.contains("/nonexistent/x.toml: no such file"), "{error}");
    let error = fail(starfish(["ls", "--agents", &format!("{address},{address}")]), 2);
    assert!(error.contains("it is the same as agent"), "{error}");
    let error = fail(starfish(["ls", "--agents", "127.0.0.1:port"]), 2);
    assert!(error.contains("HOST:PORT"), "{error}");
}
