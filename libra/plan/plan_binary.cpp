#include "libra/plan/plan_binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <type_traits>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/plan_fields.h"
#include "libra/plan/validate.h"

namespace libra {
namespace {

constexpr std::string_view kMagic = "LIBRPLAN";
constexpr std::int64_t kFormatVersion = 3;

// Every number is a little-endian 64-bit integer: plans are kilobytes, and one width keeps the
// format obvious.
class Writer {
 public:
  void number(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (int byte = 0; byte < 8; ++byte)
      bytes_.push_back(static_cast<std::byte>(bits >> (8 * byte) & 0xFFU));
  }

  template <typename Int>
  void numbers(const std::vector<Int>& values) {
    number(static_cast<std::int64_t>(values.size()));
    for (const Int value : values) number(static_cast<std::int64_t>(value));
  }

  void text(std::string_view text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::int64_t number() {
    if (bytes_.size() - position_ < 8) {
      throw PlanError(
          fmt::format("the plan is cut short at byte {} of {}", position_, bytes_.size()));
    }
    std::uint64_t bits = 0;
    for (std::size_t byte = 0; byte < 8; ++byte) {
      bits |= static_cast<std::uint64_t>(bytes_[position_ + byte]) << (8 * byte);
    }
    position_ += 8;
    return static_cast<std::int64_t>(bits);
  }

  // A count of items that take at least `item_bytes` each: checked against what is left before
  // anything is allocated.
  std::size_t count(std::size_t item_bytes) {
    const std::int64_t value = number();
    if (value < 0 || at(value) > (bytes_.size() - position_) / item_bytes) {
      throw PlanError(fmt::format("the plan says {} items at byte {}, where {} bytes are left",
                                  value, position_ - 8, bytes_.size() - position_));
    }
    return at(value);
  }

  template <typename Int>
  Int narrow() {
    const std::int64_t value = number();
    if constexpr (std::is_enum_v<Int>) {
      return static_cast<Int>(narrow_to<std::underlying_type_t<Int>>(value));
    } else {
      return narrow_to<Int>(value);
    }
  }

  template <typename Int>
  std::vector<Int> numbers() {
    std::vector<Int> values(count(8));
    for (Int& value : values) value = narrow<Int>();
    return values;
  }

  bool starts_with(std::string_view text) {
    if (bytes_.size() < text.size()) return false;
    const auto same = [](std::byte b, char c) { return b == static_cast<std::byte>(c); };
    if (!std::equal(text.begin(), text.end(), bytes_.begin(),
                    [&](char c, std::byte b) { return same(b, c); })) {
      return false;
    }
    position_ = text.size();
    return true;
  }

  bool at_end() const { return position_ == bytes_.size(); }
  std::size_t position() const { return position_; }

 private:
  template <typename Int>
  Int narrow_to(std::int64_t value) const {
    const auto narrowed = static_cast<Int>(value);
    if (static_cast<std::int64_t>(narrowed) != value) {
      throw PlanError(fmt::format("the number {} at byte {} of the plan is out of range", value,
                                  position_ - 8));
    }
    return narrowed;
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

void write_explicit_runs(Writer& writer, const PlanOptions& options) {
  writer.number(static_cast<std::int64_t>(options.explicit_runs.size()));
  for (const auto& parts : options.explicit_runs) {
    writer.number(static_cast<std::int64_t>(parts.size()));
    for (const auto& runs : parts) {
      writer.number(static_cast<std::int64_t>(runs.size()));
      for (const TokenRange run : runs) {
        writer.number(run.begin);
        writer.number(run.end);
      }
    }
  }
}

void read_explicit_runs(Reader& reader, PlanOptions& options) {
  options.explicit_runs.resize(reader.count(8));
  for (auto& parts : options.explicit_runs) {
    parts.resize(reader.count(8));
    for (auto& runs : parts) {
      runs.resize(reader.count(16));
      for (TokenRange& run : runs) {
        run.begin = reader.number();
        run.end = reader.number();
      }
    }
  }
}

// Values that no enumerator has would be undefined behaviour nowhere, but have no name: refuse them
// here.
void check_enums(const PlanOptions& options) {
  const bool known = options.storage <= DType::kFp16 && options.home <= HomeKind::kExplicit &&
                     options.placer <= PlacerKind::kBalanced && options.fetch <= Fetch::kPrefix &&
                     options.backward <= BackwardMode::kRefetch;
  if (!known) throw PlanError("the plan holds an option value that this version does not know");
}

}  // namespace

std::vector<std::byte> encode_plan(const PoolPlan& plan) {
  Writer writer;
  writer.text(kMagic);
  writer.number(kFormatVersion);
  visit_options(plan.options, [&writer](const char*, auto value) {
    writer.number(static_cast<std::int64_t>(value));
  });
  write_explicit_runs(writer, plan.options);
  writer.number(static_cast<std::int64_t>(plan.sequences.size()));
  for (const PackedSequence& sequence : plan.sequences) {
    writer.number(sequence.tokens);
    writer.numbers(sequence.sample_tokens);
  }
  std::vector<std::int64_t> costs;
  for (const Block& block : plan.tiling.blocks) costs.push_back(block.cost);
  writer.numbers(costs);
  writer.numbers(plan.placement.destination);
  writer.number(static_cast<std::int64_t>(plan_fingerprint(plan)));
  return writer.take();
}

PoolPlan decode_plan(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  if (!reader.starts_with(kMagic))
    throw PlanError("these bytes are not a plan: they do not begin with LIBRPLAN");
  const std::int64_t version = reader.number();
  if (version != kFormatVersion) {
    throw PlanError(fmt::format("the plan has format version {}, this program reads version {}",
                                version, kFormatVersion));
  }
  PlanOptions options;
  visit_options(options, [&reader](const char*, auto& field) {
    field = reader.narrow<std::decay_t<decltype(field)>>();
  });
  check_enums(options);
  read_explicit_runs(reader, options);
  std::vector<PackedSequence> sequences(reader.count(16));
  for (PackedSequence& sequence : sequences) {
    sequence.tokens = reader.number();
    sequence.sample_tokens = reader.numbers<std::int64_t>();
  }
  const auto costs = reader.numbers<std::int64_t>();
  auto destination = reader.numbers<std::int32_t>();
  const auto fingerprint = static_cast<std::uint64_t>(reader.number());
  if (!reader.at_end())
    throw PlanError(fmt::format("the plan ends at byte {} of {}", reader.position(), bytes.size()));
  PoolPlan plan = rebuild_plan(options, std::move(sequences), costs, std::move(destination));
  if (plan_fingerprint(plan) != fingerprint)
    throw PlanError("the plan's fingerprint does not match: it is damaged, or of another version");
  require_valid(plan);
  return plan;
}

}  // namespace libra
