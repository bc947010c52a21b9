//! Exact results of the golden workload, to the nanosecond.

mod golden_workload;

#[test]
fn the_golden_workload_is_exact() {
    let outcome = golden_workload::run(20_000, true);
    assert_eq!(outcome.end, 170_290_895_022);
    assert_eq!(outcome.response_sum, 2_244_525_631_076);
    assert_eq!(outcome.events, 4 * 16 * 20_000);
    assert_eq!(outcome.digest, golden_workload::run(20_000, true).digest);
}

#[test]
fn without_variation_no_request_queues() {
    let requests = 1_000;
    let outcome = golden_workload::run(requests, false);
    assert_eq!(outcome.end, requests * 8_000_000);
    assert_eq!(outcome.response_sum, 16 * requests * 7_000_000);
}
