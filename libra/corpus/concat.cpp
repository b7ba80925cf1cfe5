#include <algorithm>
#include <utility>

#include "libra/corpus/sequence_packer.h"

namespace libra {
namespace {

class Concat final : public SequencePacker {
 public:
  explicit Concat(const PackingOptions& options) : tokens_(options.tokens) { restart(); }

  // A full sequence is kept until more tokens come, so that documents of length 0 behind it do not
  // open a sequence of nothing but padding.
  void add(const PendingSample& sample, std::deque<Packed>& ready) override {
    PendingSample piece = sample;
    std::int64_t left = sample.tokens;
    do {
      if (room_ == 0 && left > 0) emit(ready);
      piece.tokens = std::min(left, room_);
      append(current_, piece);
      room_ -= piece.tokens;
      left -= piece.tokens;
      piece.origin.first_token += piece.tokens;
    } while (left > 0);
  }

  void finish(std::deque<Packed>& ready) override {
    if (!current_.origins.empty()) emit(ready);
  }

 private:
  void emit(std::deque<Packed>& ready) {
    ready.push_back(std::move(current_));
    restart();
  }

  void restart() {
    current_ = empty_sequence(tokens_);
    room_ = tokens_;
  }

  std::int64_t tokens_;
  std::int64_t room_ = 0;
  Packed current_;
};

}  // namespace

std::unique_ptr<SequencePacker> make_concat(const PackingOptions& options) {
  return std::make_unique<Concat>(options);
}

}  // namespace libra
