// The tests that every attention backend must pass. A backend takes part with a Subject and a line:
//
//   class MySubject final : public conformance::Subject { ... };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Mine, AttentionConformance, conformance::MySubject);
//
// Results are compared with dense attention (oracle.h) as judge.h describes. The type must be
// default-constructible.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "libra/attention/conformance/cases.h"
#include "libra/attention/conformance/subject.h"

namespace libra::conformance {

template <typename SubjectType>
class AttentionConformance : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = subject_.why_not(); !reason.empty()) GTEST_SKIP() << reason;
  }

  SubjectType subject_;
};

TYPED_TEST_SUITE_P(AttentionConformance);

TYPED_TEST_P(AttentionConformance, RandomProblemsMatchDenseAttention) {
  random_problems_match(this->subject_);
}

TYPED_TEST_P(AttentionConformance, EveryTinyShapeMatchesUnderEveryMask) {
  every_tiny_shape_matches(this->subject_);
}

TYPED_TEST_P(AttentionConformance, EveryHeadCountAndDimMatches) {
  every_head_count_and_dim_matches(this->subject_);
}

TYPED_TEST_P(AttentionConformance, HugeScoresStayFinite) {
  huge_scores_stay_finite(this->subject_);
}

TYPED_TEST_P(AttentionConformance, FarApartScoresStayExact) {
  far_apart_scores_stay_exact(this->subject_);
}

TYPED_TEST_P(AttentionConformance, CustomScaleMatches) { custom_scale_matches(this->subject_); }

TYPED_TEST_P(AttentionConformance, SharedKeysSumTheirGradients) {
  shared_keys_sum_their_gradients(this->subject_);
}

TYPED_TEST_P(AttentionConformance, RowsWithoutKeysAreZero) {
  rows_without_keys_are_zero(this->subject_);
}

TYPED_TEST_P(AttentionConformance, RowsThatNoEntryNamesAreUntouched) {
  rows_that_no_entry_names_are_untouched(this->subject_);
}

TYPED_TEST_P(AttentionConformance, GradientsAreAdded) { gradients_are_added(this->subject_); }

TYPED_TEST_P(AttentionConformance, BackwardIsAdditiveOverKeyRanges) {
  backward_is_additive_over_key_ranges(this->subject_);
}

TYPED_TEST_P(AttentionConformance, SameCallGivesSameBits) {
  same_call_gives_same_bits(this->subject_);
}

TYPED_TEST_P(AttentionConformance, HeadShiftMovesEveryEntry) {
  head_shift_moves_every_entry(this->subject_);
}

TYPED_TEST_P(AttentionConformance, FailurePoisons) { failure_poisons(this->subject_); }

TYPED_TEST_P(AttentionConformance, ArgumentsAreCopied) { arguments_are_copied(this->subject_); }

TYPED_TEST_P(AttentionConformance, SquaresAreWritten) { squares_are_written(this->subject_); }

TYPED_TEST_P(AttentionConformance, SquaresOfAllHeadsAreWritten) {
  squares_of_all_heads_are_written(this->subject_);
}

TYPED_TEST_P(AttentionConformance, DisjointEntriesAreWritten) {
  disjoint_entries_are_written(this->subject_);
}

TYPED_TEST_P(AttentionConformance, WhatSeesNothingIsWrittenAsZero) {
  what_sees_nothing_is_written_as_zero(this->subject_);
}

TYPED_TEST_P(AttentionConformance, SeventyThousandEntriesOfOneToken) {
  seventy_thousand_entries_of_one_token(this->subject_);
}

TYPED_TEST_P(AttentionConformance, OffsetsBeyond32Bits) { offsets_beyond_32_bits(this->subject_); }

TYPED_TEST_P(AttentionConformance, WrongArgumentsThrowAtOnce) {
  wrong_arguments_throw_at_once(this->subject_);
}

TYPED_TEST_P(AttentionConformance, CopyMovesStridedRows) {
  copy_moves_strided_rows(this->subject_);
}

TYPED_TEST_P(AttentionConformance, FillSetsTheViewOnly) { fill_sets_the_view_only(this->subject_); }

TYPED_TEST_P(AttentionConformance, AddAdds) { add_adds(this->subject_); }

TYPED_TEST_P(AttentionConformance, ConvertRounds) { convert_rounds(this->subject_); }

REGISTER_TYPED_TEST_SUITE_P(
    AttentionConformance, RandomProblemsMatchDenseAttention, EveryTinyShapeMatchesUnderEveryMask,
    EveryHeadCountAndDimMatches, HugeScoresStayFinite, FarApartScoresStayExact, CustomScaleMatches,
    SharedKeysSumTheirGradients, RowsWithoutKeysAreZero, RowsThatNoEntryNamesAreUntouched,
    GradientsAreAdded, BackwardIsAdditiveOverKeyRanges, SameCallGivesSameBits,
    HeadShiftMovesEveryEntry, FailurePoisons, ArgumentsAreCopied, SquaresAreWritten,
    SquaresOfAllHeadsAreWritten, DisjointEntriesAreWritten, WhatSeesNothingIsWrittenAsZero,
    SeventyThousandEntriesOfOneToken, OffsetsBeyond32Bits, WrongArgumentsThrowAtOnce,
    CopyMovesStridedRows, FillSetsTheViewOnly, AddAdds, ConvertRounds);

}  // namespace libra::conformance
