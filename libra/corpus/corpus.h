// A corpus: how many tokens each document has. Nothing else of a data set matters to planning.
//
//   const Corpus corpus = read_corpus("lengths.npy");
//   const Corpus model = read_corpus("synthetic:paper-256k");
//
// What it is not: it holds no tokens, and it does not pack (packing.h) or order (window.h) them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace libra {

struct Corpus {
  std::string name;                   ///< the file's name without extension, or synthetic:NAME
  std::vector<std::int64_t> lengths;  ///< tokens per document, in file order; zeros are allowed
};

/// The longest document that readers accept. Their totals are below 2^63.
inline constexpr std::int64_t kMaxDocumentTokens = std::int64_t{1} << 40;

/// What counts as one document in a Megatron .idx file: its documents, or each of the sequences
/// that they consist of.
enum class IdxUnit : std::uint8_t { kDocuments, kSequences };

/// "documents", "sequences". Throws ConfigError that lists them.
IdxUnit parse_idx_unit(std::string_view name);

struct ReadOptions {
  IdxUnit idx_unit = IdxUnit::kDocuments;        ///< .idx only
  std::int64_t synthetic_documents = 1'000'000;  ///< synthetic only
  std::uint64_t synthetic_seed = 0;              ///< synthetic only
};

/// Reads what `spec` names:
///
///   synthetic:NAME       drawn from a distribution (synthetic.h)
///   a NPY file           by its first bytes, or by the extension .npy (npy_reader.h)
///   a Megatron index     by its first bytes, or .idx; PATH means PATH.idx if only that exists
///                        (idx_reader.h)
///   .jsonl, .json        one JSON object a line (jsonl_reader.h)
///   anything else        one integer a line (text_reader.h)
///
/// Throws InputError for a file that is missing, empty, damaged or without any document, and for
/// lengths that are negative or above kMaxDocumentTokens; ConfigError for an unknown synthetic
/// name.
Corpus read_corpus(const std::string& spec, const ReadOptions& options = {});

}  // namespace libra
