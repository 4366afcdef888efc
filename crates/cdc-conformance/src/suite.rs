//! The macros that turn lists of cases into tests.

/// Expands to one `#[test]` for every case of the sink suite.
///
/// `harness` is an async function or closure without arguments that makes a
/// [`crate::sink::SinkHarness`] on an empty target; each case gets its own. `block_on` runs a
/// future to its end on the adapter's runtime.
///
/// ```ignore
/// cdc_conformance::sink_suite! {
///     harness: async || MyHarness::on_empty_target(),
///     block_on: my_runtime_block_on,
/// }
/// ```
#[macro_export]
macro_rules! sink_suite {
    (harness: $harness:expr, block_on: $block_on:expr $(,)?) => {
        $crate::__sink_cases! { __sink_tests ($harness) ($block_on) }
    };
}

/// The tests of [`sink_suite!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __sink_tests {
    ($harness:tt $block_on:tt $($group:ident { $($name:ident)* })*) => {
        $($(
            #[test]
            fn $name() {
                let future = async {
                    let harness = $harness().await;
                    $crate::sink::run(stringify!($name), &harness).await
                };
                match $block_on(future) {
                    Ok($crate::Outcome::Passed) => {}
                    Ok($crate::Outcome::Skipped(why)) => {
                        println!("skipped {}: {why}", stringify!($name));
                    }
                    Err(failure) => panic!("{}: {failure}", stringify!($name)),
                }
            }
        )*)*
    };
}

/// Hands the list of sink cases to another macro: the one place where they are listed.
#[doc(hidden)]
#[macro_export]
macro_rules! __sink_cases {
    ($then:ident $($arguments:tt)*) => {
        $crate::$then! {
            $($arguments)*
            marks {
                the_first_attach_has_no_mark
                a_mark_round_trips_every_field
                a_mark_keeps_a_position_of_every_width
                the_same_mark_again_is_before_and_writes_nothing
                the_same_sequence_with_another_end_is_a_bug
                the_first_sequence_is_one
                a_lower_sequence_is_a_bug
                a_skipped_sequence_is_a_bug
                an_end_that_goes_back_is_a_bug
                an_end_may_stay
                the_next_generation_may_go_back
                a_later_epoch_is_no_step_back
                an_idle_commit_moves_the_mark
            }
            visibility {
                rows_and_mark_become_visible_together
                staged_rows_are_invisible_before_the_commit
                discarded_rows_never_appear
                rows_of_a_dropped_table_never_appear
                rows_of_a_closed_table_never_appear
                rows_staged_before_a_crash_never_appear
                rows_staged_before_a_newer_attach_never_appear
                rows_of_a_refused_commit_never_appear
                committed_rows_survive_a_crash
                many_stage_calls_become_one_commit
                a_huge_commit_streams_in_pieces
                empty_batches_add_nothing
                two_tables_do_not_mix
                inspect_of_nothing_is_none_and_creates_nothing
                inspect_tells_what_attach_tells
                a_target_of_another_source_table_is_refused
            }
            fencing {
                an_attach_is_repeatable
                a_newer_attach_fences_a_commit_of_rows
                a_newer_attach_fences_an_idle_commit
                a_newer_attach_fences_evolve
                a_newer_attach_fences_publish
                a_newer_attach_through_the_same_handle_fences_too
                a_fence_holds_after_the_newer_runner_left
                a_fence_guards_its_own_table_only
                inspect_fences_nobody
            }
            columns {
                columns_are_matched_ignoring_case_and_order
                a_column_that_a_batch_lacks_becomes_null
                an_unknown_column_is_refused_by_name
                odd_column_names_are_kept
                a_table_without_a_key_is_a_history
                evolve_adds_columns_and_older_rows_read_null
                evolve_is_idempotent_in_any_case
                evolve_leaves_rows_and_mark_alone
                evolve_to_a_type_that_does_not_fit_is_refused
                attach_with_a_type_that_does_not_fit_is_refused
                a_narrower_type_goes_into_the_wider_column
            }
            values {
                numbers_keep_their_extremes
                decimals_keep_every_digit
                dates_and_times_keep_their_extremes
                text_is_kept_as_it_is
                text_with_a_nul_is_kept_or_refused_by_name
                bytes_are_kept_as_they_are
                large_values_are_kept
                columns_of_nothing_but_null_are_kept
                an_error_never_carries_a_value
            }
            origins {
                both_images_of_an_update_are_kept
                a_deferred_update_ends_with_its_insert
                a_key_update_moves_the_row
                a_row_that_changes_often_ends_with_its_last_image
                snapshot_rows_bear_their_stamp
                chunk_rows_bear_snapshot_stamp_and_index
                an_older_chunk_never_overwrites_a_newer_change
                an_unknown_value_never_overwrites_a_known_one
                two_instances_feed_one_table
            }
            verdicts {
                a_verdict_is_stored_beside_the_data
                a_verdict_never_goes_back
                a_verdict_without_a_mark_is_a_bug
                a_verdict_beyond_the_mark_is_a_bug
                a_verdict_moves_no_mark
            }
        }
    };
}
