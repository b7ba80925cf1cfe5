// What a plan is derived from, without the fingerprint that keeps damaged bytes out: the options in
// their written order, sequences, destinations. Costs are those of the blocks if they are asked
// for, so that plans come about.
#include "libra/plan/plan_fields.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "fuzz/plan_use.h"

namespace libra::fuzz {
namespace {

constexpr std::int64_t kSmall = 40;

// Mostly small, sometimes anything.
template <typename Int>
Int number(FuzzedDataProvider& bytes) {
  if (bytes.ConsumeIntegral<std::uint8_t>() != 0) {
    return static_cast<Int>(bytes.ConsumeIntegralInRange<std::int64_t>(0, kSmall));
  }
  return bytes.ConsumeIntegral<Int>();
}

PlanOptions options_of(FuzzedDataProvider& bytes) {
  PlanOptions options;
  visit_options(options, [&bytes](const char*, auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, bool>) {
      field = bytes.ConsumeBool();
    } else if constexpr (std::is_enum_v<Field>) {
      field = static_cast<Field>(bytes.ConsumeIntegralInRange<std::uint8_t>(0, 1));
    } else {
      field = number<Field>(bytes);
    }
  });
  options.home = static_cast<HomeKind>(bytes.ConsumeIntegralInRange<std::uint8_t>(0, 3));
  options.search_us %= 100;
  return options;
}

std::vector<PackedSequence> sequences_of(FuzzedDataProvider& bytes) {
  std::vector<PackedSequence> sequences(bytes.ConsumeIntegralInRange<std::size_t>(0, 5));
  for (PackedSequence& sequence : sequences) {
    sequence.tokens = number<std::int64_t>(bytes);
    sequence.sample_tokens.resize(bytes.ConsumeIntegralInRange<std::size_t>(0, 5));
    for (std::int64_t& tokens : sequence.sample_tokens) tokens = number<std::int64_t>(bytes);
  }
  return sequences;
}

void add_runs(FuzzedDataProvider& bytes, PlanOptions& options) {
  options.explicit_runs.resize(bytes.ConsumeIntegralInRange<std::size_t>(0, 5));
  for (auto& parts : options.explicit_runs) {
    parts.resize(bytes.ConsumeIntegralInRange<std::size_t>(0, 5));
    for (auto& runs : parts) {
      runs.resize(bytes.ConsumeIntegralInRange<std::size_t>(0, 5));
      for (TokenRange& run : runs) run = {number<std::int64_t>(bytes), number<std::int64_t>(bytes)};
    }
  }
}

void rebuild(FuzzedDataProvider& bytes) {
  PlanOptions options = options_of(bytes);
  if (options.home == HomeKind::kExplicit) add_runs(bytes, options);
  std::vector<PackedSequence> sequences = sequences_of(bytes);
  std::vector<std::int64_t> costs(bytes.ConsumeIntegralInRange<std::size_t>(0, 64));
  for (std::int64_t& cost : costs) cost = number<std::int64_t>(bytes);
  std::vector<std::int32_t> destination(bytes.ConsumeIntegralInRange<std::size_t>(0, 128));
  for (std::int32_t& worker : destination) worker = number<std::int32_t>(bytes);
  use_plan(rebuild_plan(options, std::move(sequences), costs, std::move(destination)));
}

// make_plan has no such bounds of its own, so only what is small is planned.
void make(FuzzedDataProvider& bytes) {
  PlanOptions options = options_of(bytes);
  if (options.cp > kSmall) return;
  if (options.home == HomeKind::kExplicit) add_runs(bytes, options);
  std::vector<PackedSequence> sequences = sequences_of(bytes);
  for (const PackedSequence& sequence : sequences) {
    if (sequence.tokens > 10 * kSmall) return;
  }
  use_plan(make_plan(options, std::move(sequences)));
}

}  // namespace
}  // namespace libra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider bytes(data, size);
  const bool makes = bytes.ConsumeBool();
  libra::fuzz::accepted([&] { makes ? libra::fuzz::make(bytes) : libra::fuzz::rebuild(bytes); });
  return 0;
}
