#include <algorithm>
#include <utility>
#include <vector>

#include "libra/corpus/sequence_packer.h"

namespace libra {
namespace {

class FirstFit final : public SequencePacker {
 public:
  explicit FirstFit(const PackingOptions& options)
      : tokens_(options.tokens), limit_(static_cast<std::size_t>(options.open_sequences)) {}

  void add(const PendingSample& sample, std::deque<Packed>& ready) override {
    const auto fits = [&](std::int64_t room) { return room >= sample.tokens; };
    auto found = std::find_if(room_.begin(), room_.end(), fits);
    if (found == room_.end()) {
      if (sample.tokens == tokens_) {  // fills a sequence at once, so none has to make way
        append(ready.emplace_back(empty_sequence(tokens_)), sample);
        return;
      }
      if (room_.size() == limit_) emit(fullest(), ready);
      room_.push_back(tokens_);
      open_.push_back(empty_sequence(tokens_));
      found = room_.end() - 1;
    }
    const auto bin = static_cast<std::size_t>(found - room_.begin());
    append(open_[bin], sample);
    room_[bin] -= sample.tokens;
    if (room_[bin] == 0) emit(bin, ready);
  }

  void finish(std::deque<Packed>& ready) override {
    for (Packed& packed : open_) ready.push_back(std::move(packed));
    open_.clear();
    room_.clear();
  }

 private:
  std::size_t fullest() const {
    return static_cast<std::size_t>(std::min_element(room_.begin(), room_.end()) - room_.begin());
  }

  void emit(std::size_t bin, std::deque<Packed>& ready) {
    const auto offset = static_cast<std::ptrdiff_t>(bin);
    ready.push_back(std::move(open_[bin]));
    open_.erase(open_.begin() + offset);
    room_.erase(room_.begin() + offset);
  }

  std::int64_t tokens_;
  std::size_t limit_;
  std::vector<std::int64_t> room_;  // by age, the oldest first, as is open_; apart for the search
  std::vector<Packed> open_;
};

}  // namespace

std::unique_ptr<SequencePacker> make_first_fit(const PackingOptions& options) {
  return std::make_unique<FirstFit>(options);
}

}  // namespace libra
