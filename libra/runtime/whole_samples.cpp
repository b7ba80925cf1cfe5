#include "libra/runtime/whole_samples.h"

#include <algorithm>
#include <cstddef>

#include "libra/base/index.h"

namespace libra {
namespace {

std::int64_t end_row(const Fragment& fragment) { return fragment.row + fragment.tokens.size(); }

void add_run(std::span<const Fragment> run, const WholeLimits& limits, WholeSamples& result) {
  if (run.empty()) return;
  const TokenRange rows{run.front().row, end_row(run.back())};
  if (rows.size() < limits.least_rows) return;
  result.rows.push_back(rows);
  for (const Fragment& fragment : run) {
    const std::int64_t tokens = fragment.tokens.size();
    result.contains[at(fragment.sample)] = true;
    result.entries.push_back(
        {fragment.row, tokens, fragment.row, tokens, 0, 0, Mask::kTopLeftCausal});
  }
}

}  // namespace

WholeSamples find_whole_samples(const HomeLayout& layout, std::span<const Fragment> fragments,
                                const std::vector<bool>& stayed, const WholeLimits& limits) {
  WholeSamples result{std::vector<bool>(layout.samples.size()), {}, {}};
  const auto is_whole = [&](const Fragment& fragment) {
    const std::int64_t tokens = fragment.tokens.size();
    return stayed[at(fragment.sample)] && tokens == layout.samples[at(fragment.sample)].tokens &&
           tokens <= limits.max_rows;
  };
  for (std::size_t begin = 0; begin < fragments.size();) {
    std::size_t end = begin;
    while (end < fragments.size() && is_whole(fragments[end]) &&
           (end == begin || end_row(fragments[end - 1]) == fragments[end].row)) {
      ++end;
    }
    add_run(fragments.subspan(begin, end - begin), limits, result);
    begin = std::max(end, begin + 1);
  }
  return result;
}

}  // namespace libra
