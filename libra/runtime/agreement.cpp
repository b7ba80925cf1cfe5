#include "libra/runtime/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>

#include "libra/base/error.h"
#include "libra/base/index.h"

namespace libra {
namespace {

StridedView bytes_of(std::uint64_t& value) {
  return {reinterpret_cast<std::byte*>(&value), 1, sizeof(value), sizeof(value)};
}

}  // namespace

Agreement::Agreement(std::uint64_t fingerprint, WorkerContext& context, Stream& stream)
    : context_(context), stream_(stream), fingerprints_(at(context.transport.workers()), 0) {
  const std::int32_t self = context.transport.worker();
  fingerprints_[at(self)] = fingerprint;
  Exchange exchange{{context.next_step++, Phase::kAgree, 0, 0}, {}, {}};
  for (std::int32_t peer = 0; peer < context.transport.workers(); ++peer) {
    if (peer == self) continue;
    exchange.sends.push_back({peer, bytes_of(fingerprints_[at(self)]), -1});
    exchange.receives.push_back({peer, bytes_of(fingerprints_[at(peer)]), -1});
  }
  handle_ = context.transport.post(exchange, stream);
}

Agreement::~Agreement() {
  if (checked_) return;
  try {
    await();
  } catch (const std::exception&) {  // nobody asked
  }
}

void Agreement::await() {
  checked_ = true;
  context_.transport.wait(handle_, stream_);
  stream_.synchronize();
}

void Agreement::check() {
  await();
  const std::uint64_t own = fingerprints_[at(context_.transport.worker())];
  std::vector<std::size_t> different;
  for (std::size_t worker = 0; worker < fingerprints_.size(); ++worker) {
    if (fingerprints_[worker] != own) different.push_back(worker);
  }
  if (different.empty()) return;
  throw PlanError(fmt::format(
      "worker {} and worker{} {} hold different plans: lengths, options and version must be the "
      "same on every rank of a pool",
      context_.transport.worker(), different.size() > 1 ? "s" : "", fmt::join(different, ", ")));
}

}  // namespace libra
