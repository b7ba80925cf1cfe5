#include "libra/plan/token_homes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace libra {

TokenHomes::TokenHomes(const HomeLayout& layout) {
  for (std::size_t part = 0; part < layout.parts.size(); ++part) {
    std::int64_t row = 0;
    for (const TokenRange run : layout.parts[part].runs) {
      runs_.push_back({layout.parts[part].replica, run, static_cast<std::int32_t>(part), row});
      row += run.size();
    }
  }
  std::sort(runs_.begin(), runs_.end(), [](const PlacedRun& a, const PlacedRun& b) {
    return std::pair(a.replica, a.tokens.begin) < std::pair(b.replica, b.tokens.begin);
  });
}

TokenHomes::Place TokenHomes::find(std::int32_t replica, std::int64_t token) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), std::pair(replica, token),
                                      [](const auto& key, const PlacedRun& run) {
                                        return key < std::pair(run.replica, run.tokens.begin);
                                      });
  if (after == runs_.begin()) return {};
  const PlacedRun& run = *std::prev(after);
  if (run.replica != replica || !run.tokens.contains(token)) return {};
  return {run.part, run.row + token - run.tokens.begin, run.tokens.end - token};
}

std::int64_t TokenHomes::first_without_one_home(std::int32_t replica, std::int64_t tokens) const {
  std::int64_t next = 0;
  for (const PlacedRun& run : runs_) {
    if (run.replica != replica) continue;
    if (run.tokens.begin != next) return std::min(next, run.tokens.begin);
    next = run.tokens.end;
  }
  return next == tokens ? -1 : std::min(next, tokens);
}

}  // namespace libra
