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
            fn $name() -> ::std::result::Result<(), $crate::Failure> {
                let future = async {
                    let harness = $harness().await;
                    $crate::sink::run(stringify!($name), &harness).await
                };
                if let $crate::Outcome::Skipped(why) = $block_on(future)? {
                    println!("skipped {}: {why}", stringify!($name));
                }
                Ok(())
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
                an_owner_is_never_told_that_it_was_superseded
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

/// Expands to one `#[test]` for every case of the source suite.
///
/// `harness` is an async function or closure without arguments that makes a
/// [`crate::source::SourceHarness`] on an empty database; each case gets its own. `block_on` runs
/// a future to its end on the adapter's runtime. A case that asks for more than the harness is
/// able to do prints that it is skipped, and why.
#[macro_export]
macro_rules! source_suite {
    (harness: $harness:expr, block_on: $block_on:expr $(,)?) => {
        $crate::__source_cases! { __source_tests ($harness) ($block_on) }
    };
}

/// The tests of [`source_suite!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __source_tests {
    ($harness:tt $block_on:tt $($group:ident { $($name:ident)* })*) => {
        $($(
            #[test]
            fn $name() -> ::std::result::Result<(), $crate::Failure> {
                let future = async {
                    let harness = $harness().await;
                    $crate::source::run(stringify!($name), &harness).await
                };
                if let $crate::Outcome::Skipped(why) = $block_on(future)? {
                    println!("skipped {}: {why}", stringify!($name));
                }
                Ok(())
            }
        )*)*
    };
}

/// Hands the list of source cases to another macro: the one place where they are listed.
#[doc(hidden)]
#[macro_export]
macro_rules! __source_cases {
    ($then:ident $($arguments:tt)*) => {
        $crate::$then! {
            $($arguments)*
            changes {
                changes_come_in_change_order
                both_images_of_an_update_share_a_record_batch
                a_key_update_is_a_delete_and_an_insert
                both_ends_of_a_range_belong_to_it
                neighbouring_ranges_tile
                a_range_without_changes_is_empty
                a_transaction_over_two_tables_has_one_position
                columns_come_in_the_order_asked
                an_unknown_instance_is_refused_by_name
                an_unknown_column_is_refused_by_name
                has_changes_answers_in_the_order_asked
                an_error_in_the_middle_is_the_last_item
                a_stream_dropped_early_harms_nothing
                calls_may_run_at_once
                computed_columns_and_large_objects_read_null_as_declared
            }
            positions {
                high_is_null_before_capture_wrote
                high_covers_what_was_captured
                high_stands_still_while_capture_is_stopped
                low_of_an_unknown_instance_is_no_position
                low_is_no_position_before_capture_reached_the_instance
                low_answers_in_the_order_asked
                a_purged_range_reads_empty_and_low_says_so
                low_moves_before_rows_go
                a_commit_has_a_time_and_its_neighbours_have_none
                a_position_of_another_width_is_refused
                the_nth_commit_is_counted_over_the_database
                the_nth_commit_counts_idle_entries
                the_position_at_a_moment_is_the_latest_and_never_after
                times_never_go_back_in_log_order
                times_are_never_before_the_time_known_before
            }
            catalog {
                an_instance_tells_its_columns_key_and_start
                an_instance_holds_the_columns_it_was_enabled_with
                names_match_exactly_or_else_ignoring_case
                an_unknown_table_is_refused_with_what_looks_like_it
                instances_come_oldest_first
                two_instances_agree_from_the_newer_start
                schema_changes_lie_in_their_range
                an_altered_column_says_so
                an_added_column_is_not_captured
                a_dropped_column_reads_null
                a_missing_right_names_its_grant
                a_preflight_finds_nothing_wrong_with_a_captured_table
                a_preflight_makes_a_finding_of_an_unknown_table
            }
            rows {
                rows_are_what_the_table_holds_now
                rows_hold_computed_values_and_large_objects
                a_record_batch_has_at_most_the_rows_asked
                an_empty_table_has_no_key_extent
                the_key_extent_is_the_least_and_the_greatest_key
                ranges_between_bounds_tile_the_table
                ranges_over_a_composite_key_tile_the_table
                null_sorts_first_in_a_range
                a_range_is_half_open
                a_bound_leaves_that_many_rows_below
                an_unknown_table_or_key_is_refused
            }
            values {
                numbers_round_trip
                dates_and_times_round_trip
                text_and_bytes_round_trip
            }
        }
    };
}
