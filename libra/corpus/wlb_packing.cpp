#include "libra/corpus/wlb_packing.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "libra/base/index.h"

namespace libra {
namespace {

class Bins {
 public:
  Bins(std::int32_t count, std::int64_t cap)
      : cap_(cap), work_(at(count), 0), sequences_(at(count)) {}

  // Whether the sample found a bin.
  bool add(std::int64_t tokens, double work, bool must) {
    std::size_t bin = index_of_least(work_);
    if (!has_room(bin, tokens)) {
      bin = shortest();
      if (!must && !has_room(bin, tokens)) return false;
    }
    work_[bin] += work;
    sequences_[bin].tokens += tokens;
    sequences_[bin].sample_tokens.push_back(tokens);
    return true;
  }

  std::vector<PackedSequence> take() && { return std::move(sequences_); }

 private:
  static std::size_t index_of_least(const std::vector<double>& values) {
    return static_cast<std::size_t>(std::min_element(values.begin(), values.end()) -
                                    values.begin());
  }
  std::size_t shortest() const {
    const auto shorter = [](const PackedSequence& a, const PackedSequence& b) {
      return a.tokens < b.tokens;
    };
    return static_cast<std::size_t>(
        std::min_element(sequences_.begin(), sequences_.end(), shorter) - sequences_.begin());
  }
  bool has_room(std::size_t bin, std::int64_t tokens) const {
    return sequences_[bin].tokens + tokens <= cap_;
  }

  std::int64_t cap_;
  std::vector<double> work_;
  std::vector<PackedSequence> sequences_;
};

int length_class(std::int64_t tokens) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(tokens)));
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

}  // namespace

double WlbPacker::work(std::int64_t tokens) const {
  const double x = static_cast<double>(tokens) / options_.equal_cost_tokens;
  return x * x + x;
}

// Moves samples that are more work than the mean bin from `samples` to the queues.
void WlbPacker::queue_outliers(std::vector<std::int64_t>& samples) {
  double total = 0;
  for (const std::int64_t tokens : samples) total += work(tokens);
  const double mean = total / options_.bins;
  const auto stays = [&](std::int64_t tokens) { return work(tokens) <= mean; };
  const auto first = std::stable_partition(samples.begin(), samples.end(), stays);
  for (auto outlier = first; outlier != samples.end(); ++outlier) {
    outliers_[length_class(*outlier)].push_back(*outlier);
  }
  samples.erase(first, samples.end());
}

// The oldest of a queue, one for each bin.
void WlbPacker::release_full_queues(std::vector<std::int64_t>& samples) {
  for (auto& [unused, queue] : outliers_) {
    if (queue.size() < at(options_.bins)) continue;
    const auto end = queue.begin() + options_.bins;
    samples.insert(samples.end(), queue.begin(), end);
    queue.erase(queue.begin(), end);
  }
}

std::vector<PackedSequence> WlbPacker::pack(std::span<const PackedSequence> window) {
  std::vector<std::int64_t> samples;
  for (const PackedSequence& sequence : window) {
    samples.insert(samples.end(), sequence.sample_tokens.begin(), sequence.sample_tokens.end());
  }
  if (options_.delay) {
    queue_outliers(samples);
    samples.insert(samples.end(), deferred_.begin(), deferred_.end());
    deferred_.clear();
    release_full_queues(samples);
  }
  std::stable_sort(samples.begin(), samples.end(), std::greater<>());
  const double cap = options_.token_cap * static_cast<double>(options_.bin_tokens);
  Bins bins(options_.bins, static_cast<std::int64_t>(cap));
  for (const std::int64_t tokens : samples) {
    if (!bins.add(tokens, work(tokens), !options_.delay)) deferred_.push_back(tokens);
  }
  return std::move(bins).take();
}

std::int64_t WlbPacker::waiting_tokens() const {
  std::int64_t tokens = sum(deferred_);
  for (const auto& [unused, queue] : outliers_) tokens += sum(queue);
  return tokens;
}

}  // namespace libra
