#include "libra/sim/distca_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "libra/base/index.h"
#include "libra/cost/attention_shape.h"

namespace libra {
namespace {

std::vector<DistcaItem> items_at_home(std::span<const PackedSequence> sequences, std::int32_t cp) {
  std::vector<DistcaItem> items;
  std::int32_t document = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const PackedSequence& sequence = sequences[s];
    std::int64_t begin = 0;
    for (const std::int64_t tokens : sequence.sample_tokens) {
      const TokenRange place = {begin, begin + tokens};
      for (std::int32_t rank = 0; rank < cp; ++rank) {
        const TokenRange held = {sequence.tokens * rank / cp, sequence.tokens * (rank + 1) / cp};
        const TokenRange share = intersect(place, held);
        if (share.empty()) continue;
        const std::int32_t worker = static_cast<std::int32_t>(s) * cp + rank;
        items.push_back(
            {worker, worker, document, tokens, {share.begin - begin, share.end - begin}});
      }
      begin += tokens;
      ++document;
    }
  }
  return items;
}

class Greedy {
 public:
  Greedy(std::vector<DistcaItem> items, std::int32_t workers, const DistcaOptions& options)
      : options_(options), items_(std::move(items)), load_(at(workers), 0) {
    for (const DistcaItem& item : items_) load_[at(item.worker)] += item.pairs();
    const std::int64_t total = std::accumulate(load_.begin(), load_.end(), std::int64_t{0});
    mean_ = total / workers;
    slack_ = static_cast<std::int64_t>(options.tolerance * static_cast<double>(mean_));
  }

  std::vector<DistcaItem> run() {
    find_candidates();
    for (const std::int32_t recipient : recipients()) fill(recipient);
    items_.insert(items_.end(), moved_.begin(), moved_.end());
    return std::move(items_);
  }

 private:
  // Row pairs of an item of a donor, and what moving them costs per query-key pair.
  struct Offer {
    std::size_t item = 0;
    std::int64_t row_pairs = 0;
    double cost = std::numeric_limits<double>::infinity();
  };

  std::vector<std::int32_t> recipients() const {
    std::vector<std::int32_t> workers;
    for (std::size_t w = 0; w < load_.size(); ++w) {
      if (load_[w] < mean_) workers.push_back(static_cast<std::int32_t>(w));
    }
    std::stable_sort(workers.begin(), workers.end(), [this](std::int32_t a, std::int32_t b) {
      return load_[at(a)] < load_[at(b)];
    });
    return workers;
  }

  // Items of donors, the longest documents first.
  void find_candidates() {
    candidates_.reserve(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (load_[at(items_[i].worker)] > mean_) candidates_.push_back(i);
    }
    std::stable_sort(candidates_.begin(), candidates_.end(), [this](std::size_t a, std::size_t b) {
      return items_[a].tokens > items_[b].tokens;
    });
  }

  void fill(std::int32_t recipient) {
    while (mean_ - load_[at(recipient)] > slack_) {
      const Offer offer = best_offer(mean_ - load_[at(recipient)]);
      if (offer.row_pairs == 0) return;
      move(offer, recipient);
    }
  }

  // No offer of a document of l tokens costs less than its Q bytes per pair, which rise as l falls.
  Offer best_offer(std::int64_t need) const {
    Offer best;
    for (const std::size_t candidate : candidates_) {
      const DistcaItem& item = items_[candidate];
      const double q_cost =
          2.0 * static_cast<double>(options_.q_row_bytes) / static_cast<double>(item.tokens + 1);
      if (q_cost >= best.cost) break;
      const std::int64_t surplus = load_[at(item.worker)] - mean_;
      const std::int64_t row_pairs = std::min(
          {item.positions.size() / 2, need / (item.tokens + 1), surplus / (item.tokens + 1)});
      if (row_pairs <= 0) continue;
      const double pairs = static_cast<double>(row_pairs) * static_cast<double>(item.tokens + 1);
      const double kv = 2.0 * static_cast<double>(options_.kv_row_bytes * item.tokens) / pairs;
      if (q_cost + kv < best.cost) best = {candidate, row_pairs, q_cost + kv};
    }
    return best;
  }

  void move(const Offer& offer, std::int32_t recipient) {
    DistcaItem& item = items_[offer.item];
    DistcaItem moved = item;
    moved.worker = recipient;
    moved.positions.begin = item.positions.end - 2 * offer.row_pairs;
    item.positions.end = moved.positions.begin;
    const std::int64_t pairs = moved.pairs();
    load_[at(item.worker)] -= pairs;
    load_[at(recipient)] += pairs;
    moved_.push_back(moved);
  }

  DistcaOptions options_;
  std::vector<DistcaItem> items_;
  std::vector<DistcaItem> moved_;
  std::vector<std::size_t> candidates_;
  std::vector<std::int64_t> load_;  // query-key pairs, by worker
  std::int64_t mean_ = 0;
  std::int64_t slack_ = 0;
};

}  // namespace

// Even positions are rows from the beginning on, odd ones from the end back.
TokenRange DistcaItem::head() const {
  if (positions.begin == 0 && positions.end == tokens) return {0, tokens};
  return {(positions.begin + 1) / 2, (positions.end + 1) / 2};
}

TokenRange DistcaItem::tail() const {
  if (positions.begin == 0 && positions.end == tokens) return {tokens, tokens};
  return {tokens - positions.end / 2, tokens - positions.begin / 2};
}

std::int64_t DistcaItem::pairs() const { return query_key_pairs(head()) + query_key_pairs(tail()); }

std::vector<DistcaItem> distca_plan(std::span<const PackedSequence> sequences,
                                    const DistcaOptions& options) {
  const auto workers = static_cast<std::int32_t>(sequences.size()) * options.cp;
  return Greedy(items_at_home(sequences, options.cp), workers, options).run();
}

}  // namespace libra
