"""What has bitten people doing this job elsewhere, each as a test of the whole kind of fault.

What takes the whole way through the command line stands in tests/traps; `ELSEWHERE` names the tests of the parts. Not
yet: Triton kernels, reproductions.
"""

import pytest

from tests.commands import ROOT

#: The public report, what went wrong there, and the tests here that see to it (a file below tests/ and its tests).
ELSEWHERE = {
    # ---- grid files ----
    "pyyaml#165: a key given twice, the last wins": (
        "plan/test_loader.py: test_a_key_twice_names_key_and_both_lines test_merge_keys_are_no_duplicates",
        "plan/test_faults.py: test_a_key_twice_in_any_part_trains_nothing",
        "plan/test_grid.py: test_merge_keys_in_a_grid",
        "cli/test_input.py: test_a_grid_that_is_none",
    ),
    "yacs#46, LLaMA-Factory#4014: 1e-3 is text": (
        "plan/test_loader.py: test_numbers_of_yaml_1_2 test_values_of_the_command_line",
        "plan/test_overrides.py: test_a_number_is_one_number_wherever_it_stands test_values_are_typed_as_in_a_grid",
    ),
    "Modalities#97: an unknown key is ignored": (
        "plan/test_faults.py: test_a_typo_anywhere_names_line_and_nearest_key",
        "config/test_parse.py: test_unknown_keys_name_the_nearest",
        "cli/test_input.py: test_a_grid_that_is_none test_an_option_that_is_none",
    ),
    "wandb#1700: words that are booleans": (
        "plan/test_faults.py: test_words_that_yaml_1_1_takes_for_booleans_are_refused_as_what_they_are",
        "plan/test_loader.py: test_text_stays_text",
    ),
    "wandb#3482: pairs become a product": ("plan/test_grid.py: test_zip_pairs_and_multiplies_with_grid",),
    "wandb#2853: cells that differ in nothing": (
        "plan/test_merge.py: test_cells_that_are_the_same_are_merged_and_noted",
        "plan/test_order.py: test_a_key_exists_only_where_its_condition_holds",
    ),
    "wandb#2977: an empty grid": ("cli/test_input.py: test_a_grid_that_is_none", "plan/test_faults.py: test_shapes"),
    "syne-tune#560: a duplicate is run twice": (
        "plan/test_merge.py: test_equal_values_of_an_axis_run_once_and_are_noted",
        "runner/test_execute.py: test_equal_cells_share_their_runs",
    ),
    "hydra#2759: no way to see what would run": (
        "cli/test_dry_run.py: test_a_dry_run_says_what_would_run_and_writes_nothing",
        "verbs/test_dry_run.py: test_nothing_stored_yet",
    ),
    # ---- running, failing, resuming ----
    "hydra#1817: two grids in one folder": (
        "store/test_plan.py: test_a_folder_belongs_to_one_grid",
        "cli/test_ablate.py: test_another_grid_needs_leave_and_so_do_other_seeds",
    ),
    "hydra#2824: stop at once, or go on": (
        "runner/test_execute.py: test_fail_fast_and_max_failures test_a_pack_that_does_not_fit_is_split_until_it_does",
        "cli/test_ablate.py: test_where_failures_stop_it",
    ),
    "trackio#448: a shared log locks": (
        "runner/test_interrupts.py: test_two_workers_store_what_one_stores",
        "store/test_writing.py: test_a_kill_in_the_middle_of_a_write_leaves_nothing_torn",
    ),
    "optuna#1224: one run's shortage poisons the next": (
        "workers/test_pool.py: test_what_counts_as_out_of_memory test_torch_itself_is_out_of_memory",
        "runner/test_execute.py: test_a_pack_that_does_not_fit_is_split_until_it_does",
    ),
    # ---- searches ----
    "optuna#820: a locked database when many start": (
        "sweep/test_study.py: test_many_start_on_a_fresh_place_and_finish_exactly_as_many_as_asked",
        "sweep/test_processes.py: test_two_workers_measure_what_one_does",
    ),
    "optuna#1092, #4621: two make the tables at once": (
        "sweep/test_study.py: test_many_start_on_a_fresh_place_and_finish_exactly_as_many_as_asked",
        "sweep/test_processes.py: test_three_on_a_fresh_database_one_killed_finish_exactly_as_many_as_asked",
    ),
    "optuna#485, #1641: a killed trial runs for ever": (
        "sweep/test_processes.py: test_a_killed_search_goes_on_with_the_same_parameters",
        "sweep/test_study.py: test_one_that_dies_between_ask_and_its_name_is_rescued_whole"
        " test_one_that_dies_while_it_passes_a_trial_on_does_not_double_it",
    ),
    "optuna#3293: no heartbeat with ask and tell": (
        "sweep/test_study.py: test_a_killed_process_is_found_out_and_its_parameters_are_taken_over"
        " test_a_process_on_another_machine_is_given_up_when_it_is_silent_by_our_clock"
        " test_a_process_counts_up_while_it_lives test_a_live_process_keeps_its_trials",
    ),
    "optuna#6615: no heartbeat in a journal": (
        "sweep/test_processes.py: test_a_killed_search_goes_on_with_the_same_parameters",
        "sweep/test_study.py: test_a_killed_process_is_found_out_and_its_parameters_are_taken_over",
    ),
    "optuna#3256: failed cells of a grid count as visited": (
        "sweep/test_sweep.py: test_cells_of_a_grid_that_failed_are_tried_again",
    ),
    "optuna#5489, #4627, #2039: several workers visit cells twice or never": (
        "sweep/test_study.py: test_a_grid_that_several_share_visits_each_point_once",
    ),
    "optuna#2021, #5440: identical points again": (
        "sweep/test_sweep.py: test_points_that_were_measured_are_answered_and_counted",
        "sweep/test_study.py: test_a_study_draws_on_where_it_stood",
    ),
    "optuna#5138: a torn journal": (
        "sweep/test_journal.py: test_a_torn_last_line_is_cut_and_said test_wherever_it_is_cut_the_study_goes_on"
        " test_a_line_in_the_middle_that_is_none_is_refused_with_its_place",
    ),
    "optuna#2727, #136: the result of a NaN is lost": (
        "sweep/test_sweep.py: test_a_diverged_trial_stays_with_its_step_and_is_none_of_the_best"
        " test_one_bad_seed_ends_a_trial_as_that",
    ),
    "optuna-examples#40: a NaN that is reported": (
        "sweep/test_study.py: test_a_look_that_is_no_number_hurts_no_study",
        "sweep/test_pruning.py: test_a_look_that_is_no_number_stops_nothing",
        "sweep/test_sweep.py: test_a_diverged_trial_stays_with_its_step_and_is_none_of_the_best",
    ),
    "optuna#6477: a missing package found in the middle": (
        "sweep/test_samplers.py: test_a_missing_package_is_said_before_the_first_trial"
        " test_a_missing_driver_is_said_before_the_first_trial test_what_is_asked_for_wrongly_is_a_line",
    ),
    # ---- data ----
    "zoology: filler repeats a key": (
        "tasks/test_conformance.py: test_filler_repeats_no_live_key",
        "tasks/test_mqar.py: test_random_filler_holds_no_live_key"
        " test_distractors_contradict_eight_percent_of_the_queries",
        "verbs/sample/test_task.py: test_filler_without_distractors_contradicts_nothing_and_with_them_it_is_counted",
    ),
    "zoology: filler from the global random state": (
        "tasks/test_purity.py: test_random_states_are_neither_read_nor_written",
    ),
    "zoology, mad-lab: bad combinations without a message": (
        "config/test_parse.py: test_rules_between_keys_have_the_whole_path_and_their_fix_works",
        "config/test_task.py: test_what_does_not_fit_is_refused_with_a_fix_that_works",
        "cli/test_input.py: test_a_grid_that_is_none test_other_verbs_refuse_alike",
    ),
    "RAGEN#101: training meets validation": (
        "tasks/test_conformance.py: test_splits_are_disjoint",
        "tasks/test_purity.py: test_splits_share_no_sequence_where_all_of_them_come_up"
        " test_no_seeds_test_set_meets_any_seeds_training",
        "train/test_loop.py: test_overlap_is_counted_against_what_training_saw",
    ),
    "RULER#81: two generations differ": (
        "tasks/test_purity.py: test_another_process_with_another_random_state_makes_the_same"
        " test_the_data_has_not_changed",
    ),
    # ---- models, kernels, determinism, tables ----
    "titans-pytorch#22, #29: NaN in deep memories and long sequences": (
        "caching/test_memories.py: test_a_long_sequence_overflows_nothing",
        "train/test_cover.py: test_a_pairwise_cover_trains_and_sees_no_future",
    ),
    "titans-pytorch#53, #29: NaN, and no gradient norm to see it coming": (
        "train/test_loop.py: test_a_diverged_run_says_where_and_its_mate_is_unharmed test_an_outcome_says_everything",
        "report/table/test_frame_of_cells.py: test_a_diverged_run_counts_as_zero",
    ),
    "flash-linear-attention#1142, #88: lengths off the block, and short ones": (
        "kernels/test_linear.py: test_weighted_read_equals_recurrence"
        " test_plain_read_equals_recurrence_with_unit_weights",
        "caching/test_layer.py: test_equals_definition",
    ),
    "pytorch#79496: CPU and CUDA draw differently": (
        "models/test_lm.py: test_a_parameter_starts_from_its_own_name_alone",
        "tasks/test_purity.py: test_a_gpu_makes_the_same_bits test_only_integers_are_computed_with",
        "report/prose/test_verdict.py: test_mixtures_are_said",
    ),
}


@pytest.mark.parametrize("trap", ELSEWHERE)
def test_the_tests_named_for_a_trap_are_there(trap: str) -> None:
    for line in ELSEWHERE[trap]:
        file, _, names = line.partition(": ")
        text = (ROOT / "tests" / file).read_text()
        assert [name for name in names.split() if f"def {name}(" not in text] == []
