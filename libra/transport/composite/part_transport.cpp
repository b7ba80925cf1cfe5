#include "libra/transport/composite/part_transport.h"

#include <fmt/format.h>

#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"

namespace libra {
namespace {

constexpr std::int32_t kNoMember = -1;

class PartTransport final : public Transport {
 public:
  PartTransport(std::unique_ptr<Transport> part, const std::vector<std::int32_t>& members,
                std::vector<std::int32_t> numbers)
      : part_(std::move(part)),
        worker_(members[at(part_->worker())]),
        numbers_(std::move(numbers)) {}

  std::string name() const override { return part_->name(); }
  bool posts_ahead() const override { return part_->posts_ahead(); }
  std::int32_t worker() const override { return worker_; }
  std::int32_t workers() const override { return static_cast<std::int32_t>(numbers_.size()); }
  void reserve_arena(std::int64_t bytes) override { part_->reserve_arena(bytes); }
  std::byte* arena() override { return part_->arena(); }
  std::int64_t arena_bytes() const override { return part_->arena_bytes(); }

  Handle post(const Exchange& exchange, Stream& stream) override {
    Exchange inside = exchange;
    renumber(inside.sends);
    renumber(inside.receives);
    return part_->post(inside, stream);
  }

  void wait(Handle handle, Stream& stream) override { part_->wait(handle, stream); }
  void poll() override { part_->poll(); }
  void abort(const std::string& reason) override { part_->abort(reason); }
  std::vector<ExchangeRecord> take_records() override { return part_->take_records(); }

 private:
  void renumber(std::vector<Transfer>& transfers) const {
    for (Transfer& transfer : transfers) {
      const bool known = transfer.peer >= 0 && transfer.peer < workers();
      const std::int32_t number = known ? numbers_[at(transfer.peer)] : kNoMember;
      if (number == kNoMember) {
        throw ConfigError(fmt::format("{} does not reach worker {}", name(), transfer.peer));
      }
      transfer.peer = number;
    }
  }

  std::unique_ptr<Transport> part_;
  std::int32_t worker_;
  std::vector<std::int32_t> numbers_;  // in the part, by number in the pool
};

}  // namespace

std::unique_ptr<Transport> make_part(std::unique_ptr<Transport> part,
                                     std::vector<std::int32_t> members, std::int32_t workers) {
  std::vector<std::int32_t> numbers(at(workers), kNoMember);
  if (std::ssize(members) != part->workers()) {
    throw ConfigError(
        fmt::format("{} members of a part of {} workers", members.size(), part->workers()));
  }
  for (std::size_t number = 0; number < members.size(); ++number) {
    const std::int32_t member = members[number];
    if (member < 0 || member >= workers || numbers[at(member)] != kNoMember) {
      throw ConfigError(
          fmt::format("worker {} of {} is named as a member: each once, from 0", member, workers));
    }
    numbers[at(member)] = static_cast<std::int32_t>(number);
  }
  return std::make_unique<PartTransport>(std::move(part), members, std::move(numbers));
}

}  // namespace libra
