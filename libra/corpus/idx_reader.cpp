#include "libra/corpus/idx_reader.h"

#include <fmt/format.h>

#include "libra/base/error.h"
#include "libra/corpus/length_collector.h"
#include "libra/corpus/source_file.h"

namespace libra {
namespace {

constexpr std::int64_t kHeaderBytes = 34;
constexpr std::int64_t kMaxDtypeCode = 8;
constexpr std::int64_t kLengthBytes = 4;
constexpr std::int64_t kIndexBytes = 8;

struct IdxHeader {
  std::int64_t sequences = 0;
  std::int64_t indices = 0;  ///< documents + 1

  std::int64_t indices_offset() const {
    return kHeaderBytes + sequences * (kLengthBytes + kIndexBytes);
  }
};

void check_magic(SourceFile& file) {
  const auto magic_bytes = static_cast<std::int64_t>(kIdxMagic.size());
  if (file.read(0, magic_bytes, "the magic MMIDIDX") != kIdxMagic) {
    throw InputError(file.path(), "is no Megatron index: it does not begin with MMIDIDX");
  }
}

// Counts are compared with the size before anything is multiplied or allocated.
void check_counts(const SourceFile& file, std::uint64_t sequences, std::uint64_t indices) {
  const auto available = static_cast<std::uint64_t>(file.size_bytes() - kHeaderBytes);
  const std::uint64_t per_sequence = kLengthBytes + kIndexBytes;
  const bool fits = sequences <= available / per_sequence &&
                    indices <= (available - sequences * per_sequence) / kIndexBytes;
  if (!fits) {
    throw InputError(file.path(),
                     fmt::format("is truncated or damaged: {} sequences and {} document indices "
                                 "need more than its {} bytes",
                                 sequences, indices, file.size_bytes()));
  }
  const std::uint64_t rest = available - sequences * per_sequence - indices * kIndexBytes;
  if (rest != 0 && rest != sequences) {
    throw InputError(file.path(), fmt::format("has {} bytes after its last array: 0, or one per "
                                              "sequence ({}), would be right",
                                              rest, sequences));
  }
  if (indices == 0) throw InputError(file.path(), "has no document indices: at least [0] is there");
}

IdxHeader read_header(SourceFile& file) {
  check_magic(file);
  const std::string bytes = file.read(0, kHeaderBytes, "the header");
  const char* after_magic = bytes.data() + kIdxMagic.size();
  const auto version = load_little<std::uint64_t>(after_magic);
  const auto dtype = load_little<std::uint8_t>(after_magic + 8);
  if (version != 1) {
    throw InputError(file.path(), fmt::format("is index version {}: 1 can be read", version));
  }
  if (dtype < 1 || dtype > kMaxDtypeCode) {
    throw InputError(file.path(), fmt::format("has dtype code {}: 1 to 8 are known", dtype));
  }
  const auto sequences = load_little<std::uint64_t>(after_magic + 9);
  const auto indices = load_little<std::uint64_t>(after_magic + 17);
  check_counts(file, sequences, indices);
  return {static_cast<std::int64_t>(sequences), static_cast<std::int64_t>(indices)};
}

std::vector<std::int64_t> sequence_lengths(SourceFile& file, const IdxHeader& header) {
  LengthCollector found(file.path(), "sequence");
  found.reserve(header.sequences);
  std::int64_t sequence = 0;
  file.for_each_run(kHeaderBytes, header.sequences, kLengthBytes,
                    [&](const char* data, std::int64_t elements) {
                      for (std::int64_t i = 0; i < elements; ++i, ++sequence) {
                        found.add(load_little<std::int32_t>(data + i * kLengthBytes), sequence);
                      }
                    });
  return std::move(found).take();
}

// Calls use(document, begin, end) with each document's sequences, after checking the index.
template <typename Use>
void for_each_document(SourceFile& file, const IdxHeader& header, Use use) {
  std::int64_t at = -1;
  std::int64_t begin = 0;
  file.for_each_run(header.indices_offset(), header.indices, kIndexBytes,
                    [&](const char* data, std::int64_t elements) {
                      for (std::int64_t i = 0; i < elements; ++i, ++at) {
                        const auto end = load_little<std::int64_t>(data + i * kIndexBytes);
                        if (end < begin || end > header.sequences || (at < 0 && end != 0)) {
                          throw InputError(
                              file.path(),
                              fmt::format("document index {} is {}: indices begin with 0, never "
                                          "decrease and end with the number of sequences, {}",
                                          at + 1, end, header.sequences));
                        }
                        if (at >= 0) use(at, begin, end);
                        begin = end;
                      }
                    });
  if (begin != header.sequences) {
    throw InputError(file.path(), fmt::format("the last document index is {}: it must be the "
                                              "number of sequences, {}",
                                              begin, header.sequences));
  }
}

}  // namespace

std::vector<std::int64_t> read_idx(const std::string& path, IdxUnit unit) {
  SourceFile file(path);
  const IdxHeader header = read_header(file);
  std::vector<std::int64_t> sequences = sequence_lengths(file, header);
  LengthCollector documents(path, "document");
  documents.reserve(unit == IdxUnit::kDocuments ? header.indices - 1 : 0);
  for_each_document(file, header, [&](std::int64_t document, std::int64_t begin, std::int64_t end) {
    if (unit != IdxUnit::kDocuments) return;
    std::int64_t tokens = 0;
    for (std::int64_t s = begin; s < end; ++s) tokens += sequences[static_cast<std::size_t>(s)];
    documents.add(tokens, document);
  });
  return unit == IdxUnit::kSequences ? sequences : std::move(documents).take();
}

}  // namespace libra
