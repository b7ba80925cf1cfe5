#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "libra/corpus/sequence_packer.h"

namespace libra {
namespace {

class BestFitDecreasing final : public SequencePacker {
 public:
  explicit BestFitDecreasing(const PackingOptions& options)
      : tokens_(options.tokens), group_(static_cast<std::size_t>(options.group_documents)) {}

  void add(const PendingSample& pending, std::deque<Packed>& ready) override {
    waiting_.push_back({pending, waiting_.size()});
    if (waiting_.size() == group_) finish(ready);
  }

  void finish(std::deque<Packed>& ready) override {
    std::vector<Opened> packed = pack_group();
    std::sort(packed.begin(), packed.end(),
              [](const Opened& a, const Opened& b) { return a.arrival < b.arrival; });
    for (Opened& opened : packed) ready.push_back(std::move(opened.packed));
    waiting_.clear();
  }

 private:
  struct Waiting {
    PendingSample pending;
    std::size_t arrival = 0;
  };
  struct Opened {
    Packed packed;
    std::size_t arrival = 0;  // of its first, and so longest, sample
  };

  std::vector<Opened> pack_group() {
    std::sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
      if (a.pending.tokens != b.pending.tokens) return a.pending.tokens > b.pending.tokens;
      return a.arrival < b.arrival;
    });
    std::vector<Opened> opened;
    std::set<std::pair<std::int64_t, std::size_t>> by_room;  // (room, index into opened)
    for (const Waiting& next : waiting_) {
      auto best = by_room.lower_bound({next.pending.tokens, 0});
      if (best == by_room.end()) {
        best = by_room.insert({tokens_, opened.size()}).first;
        opened.push_back({empty_sequence(tokens_), next.arrival});
      }
      append(opened[best->second].packed, next.pending);
      auto node = by_room.extract(best);
      node.value().first -= next.pending.tokens;
      by_room.insert(std::move(node));
    }
    return opened;
  }

  std::int64_t tokens_;
  std::size_t group_;  // 0: never full
  std::vector<Waiting> waiting_;
};

}  // namespace

std::unique_ptr<SequencePacker> make_best_fit_decreasing(const PackingOptions& options) {
  return std::make_unique<BestFitDecreasing>(options);
}

}  // namespace libra
