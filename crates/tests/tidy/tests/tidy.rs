//! Tests that the project follows the rules of its code base.

use std::path::{Path, PathBuf};

use tidy::{Tree, circles, contents, crates, documents, language, names, promises, sources};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn none(rule: impl Fn(&Tree) -> Vec<String>) {
    let tree = Tree::read(&root()).expect("the project can be read");
    assert!(tree.texts().count() > 100, "only {} texts found", tree.texts().count());
    let complaints = rule(&tree);
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn crates_have_only_allowed_dependencies() {
    none(crates::crates_have_only_allowed_dependencies);
}

#[test]
fn the_innermost_crates_use_few_others() {
    none(crates::the_innermost_crates_use_few_others);
}

#[test]
fn every_foreign_crate_has_a_reason() {
    none(crates::every_foreign_crate_has_a_reason);
}

#[test]
fn every_crate_inherits_the_common_lints() {
    none(crates::every_crate_inherits_the_common_lints);
}

#[test]
fn every_source_opens_with_an_introduction() {
    none(sources::every_source_opens_with_an_introduction);
}

#[test]
fn file_names_describe_their_contents() {
    none(sources::file_names_describe_their_contents);
}

#[test]
fn comments_keep_within_the_width() {
    none(sources::comments_keep_within_the_width);
}

#[test]
fn no_files_use_each_other_in_circles() {
    none(circles::no_files_use_each_other_in_circles);
}

#[test]
fn every_table_of_contents_is_complete() {
    none(contents::every_table_of_contents_is_complete);
}

#[test]
fn each_type_name_has_one_meaning() {
    none(names::each_type_name_has_one_meaning);
}

#[test]
fn every_promise_is_checked_in_both_configurations() {
    none(promises::every_promise_is_checked_in_both_configurations);
}

#[test]
fn every_source_file_is_declared() {
    none(sources::every_source_file_is_declared);
}

#[test]
fn pure_crates_do_not_query_the_host() {
    none(sources::pure_crates_do_not_query_the_host);
}

#[test]
fn the_file_system_never_inspects_a_payload() {
    none(sources::the_file_system_never_inspects_a_payload);
}

#[test]
fn layout_never_waits() {
    none(sources::layout_never_waits);
}

#[test]
fn unsafe_code_is_only_in_listed_files() {
    none(sources::unsafe_code_is_only_in_listed_files);
}

#[test]
fn every_decision_is_listed() {
    none(documents::every_decision_is_listed);
}

#[test]
fn every_decision_is_complete() {
    none(documents::every_decision_is_complete);
}

#[test]
fn every_calibrated_number_is_on_record() {
    none(documents::every_calibrated_number_is_on_record);
}

#[test]
fn every_link_has_a_target() {
    none(|tree| documents::every_link_has_a_target(tree, &root()));
}

#[test]
fn every_named_source_exists() {
    none(documents::every_named_source_exists);
}

#[test]
fn language_gets_no_worse() {
    let record = root().join("crates/tests/tidy/language.csv");
    let tree = Tree::read(&root()).expect("the project can be read");
    if std::env::var_os("STARFISH_LANGUAGE").is_some_and(|value| value == "write") {
        std::fs::write(&record, language::to_csv(&language::counts(&tree))).expect("room");
    }
    let recorded = std::fs::read_to_string(&record).expect("recorded counts");
    none(|tree| language::language_gets_no_worse(tree, &recorded));
}
