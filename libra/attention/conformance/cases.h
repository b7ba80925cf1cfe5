// The conformance suite's cases, one function each; attention_conformance.h makes tests of them.
// Each records GoogleTest failures and names the seed that shows them.
#pragma once

#include "libra/attention/conformance/subject.h"

namespace libra::conformance {

// cases_oracle.cpp: against dense attention.
void random_problems_match(const Subject& subject);
void every_tiny_shape_matches(const Subject& subject);
void every_head_count_and_dim_matches(const Subject& subject);
void huge_scores_stay_finite(const Subject& subject);
void far_apart_scores_stay_exact(const Subject& subject);
void custom_scale_matches(const Subject& subject);
void shared_keys_sum_their_gradients(const Subject& subject);

// cases_contract.cpp: promises of attention.h.
void rows_without_keys_are_zero(const Subject& subject);
void rows_that_no_entry_names_are_untouched(const Subject& subject);
void gradients_are_added(const Subject& subject);
void backward_is_additive_over_key_ranges(const Subject& subject);
void same_call_gives_same_bits(const Subject& subject);
void head_shift_moves_every_entry(const Subject& subject);
void failure_poisons(const Subject& subject);
void arguments_are_copied(const Subject& subject);

// cases_written.cpp: gradients that are written and not added.
void squares_are_written(const Subject& subject);
void squares_of_all_heads_are_written(const Subject& subject);
void disjoint_entries_are_written(const Subject& subject);
void what_sees_nothing_is_written_as_zero(const Subject& subject);

// cases_scale.cpp: sizes that overflow something elsewhere.
void seventy_thousand_entries_of_one_token(const Subject& subject);
void offsets_beyond_32_bits(const Subject& subject);

// cases_arguments.cpp
void wrong_arguments_throw_at_once(const Subject& subject);

// cases_elementwise.cpp
void copy_moves_strided_rows(const Subject& subject);
void fill_sets_the_view_only(const Subject& subject);
void add_adds(const Subject& subject);
void convert_rounds(const Subject& subject);

}  // namespace libra::conformance
