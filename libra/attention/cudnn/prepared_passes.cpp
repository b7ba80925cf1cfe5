#include "libra/attention/cudnn/prepared_passes.h"

#include <utility>

#include "libra/attention/cudnn/kernels.h"

namespace libra::cudnn {
namespace {

// A plan of some hundred samples takes half a megabyte.
constexpr std::int64_t kRoomBytes = 32 << 20;

}  // namespace

PreparedPasses::PreparedPasses(std::int32_t device) : memory_(device, kRoomBytes) {}

const KeptPass* PreparedPasses::find(const PassKey& key) const {
  const auto found = passes_.find(key);
  return found == passes_.end() ? nullptr : &found->second;
}

const KeptPass& PreparedPasses::keep(const PassKey& key, PreparedPass pass, cudaStream_t stream) {
  const std::vector<std::byte> tables = std::exchange(pass.tables, {});
  if (used_ + std::ssize(tables) > memory_.bytes()) {
    passes_.clear();
    used_ = 0;
  }
  std::byte* const begin = memory_.reserve(std::ssize(tables), stream) + used_;
  upload(tables.data(), begin, std::ssize(tables), stream);
  used_ += std::ssize(tables);
  ++preparations_;
  return passes_.insert_or_assign(key, KeptPass{std::move(pass), begin}).first->second;
}

}  // namespace libra::cudnn
