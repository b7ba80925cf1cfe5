#include "libra/corpus/corpus.h"

#include <filesystem>
#include <string_view>

#include "libra/corpus/idx_reader.h"
#include "libra/corpus/jsonl_reader.h"
#include "libra/corpus/npy_reader.h"
#include "libra/corpus/source_file.h"
#include "libra/corpus/synthetic.h"
#include "libra/corpus/text_reader.h"

namespace libra {
namespace {

constexpr std::string_view kSyntheticPrefix = "synthetic:";

// Megatron names a data set by the path without .idx and .bin.
std::string resolve(const std::string& path) {
  std::error_code ignored;  // whoever opens it says what is wrong with it
  if (!std::filesystem::exists(path, ignored) &&
      std::filesystem::is_regular_file(path + ".idx", ignored)) {
    return path + ".idx";
  }
  return path;
}

std::string first_bytes(const std::string& path) {
  constexpr std::int64_t kEnough = 9;
  SourceFile file(path);
  return file.read(0, file.size_bytes() < kEnough ? file.size_bytes() : kEnough, "magic");
}

std::vector<std::int64_t> read_lengths(const std::string& path, const ReadOptions& options) {
  const std::string magic = first_bytes(path);
  const std::string extension = std::filesystem::path(path).extension().string();
  if (magic.starts_with(kNpyMagic) || extension == ".npy") return read_npy(path);
  if (magic.starts_with(kIdxMagic) || extension == ".idx") return read_idx(path, options.idx_unit);
  if (extension == ".jsonl" || extension == ".json") return read_jsonl(path);
  return read_text(path);
}

}  // namespace

Corpus read_corpus(const std::string& spec, const ReadOptions& options) {
  if (spec.starts_with(kSyntheticPrefix)) {
    const SyntheticModel model = synthetic_model(spec.substr(kSyntheticPrefix.size()));
    return {spec, draw_lengths(model, options.synthetic_documents, options.synthetic_seed)};
  }
  const std::string path = resolve(spec);
  return {std::filesystem::path(path).stem().string(), read_lengths(path, options)};
}

}  // namespace libra
