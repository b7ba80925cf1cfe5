// Where a token lives, looked up in the runs of a layout's parts: validate's own view of homes,
// which uses neither samples nor fragments.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/home_layout.h"

namespace libra {

class TokenHomes {
 public:
  struct Place {
    std::int32_t part = -1;
    std::int64_t row = -1;
    std::int64_t left = 0;  ///< tokens from here on that follow in consecutive rows
  };

  /// Requires runs that are not empty and lie within their sequences.
  explicit TokenHomes(const HomeLayout& layout);

  /// Of a token of a sequence; a Place without tokens left if no run holds it. O(log runs).
  Place find(std::int32_t replica, std::int64_t token) const;

  /// The first token in [0, tokens) that not exactly one run holds; -1 if there is none.
  std::int64_t first_without_one_home(std::int32_t replica, std::int64_t tokens) const;

 private:
  struct PlacedRun {
    std::int32_t replica = 0;
    TokenRange tokens;
    std::int32_t part = 0;
    std::int64_t row = 0;
  };
  std::vector<PlacedRun> runs_;  // by (replica, first token)
};

}  // namespace libra
