#include "libra/attention/cudnn/batches.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "libra/attention/cudnn/pieces.h"

namespace libra::cudnn {
namespace {

constexpr std::int64_t kTileRows = 128;
constexpr std::int64_t kFirstEntries = 8;
constexpr std::int64_t kFirstRows = 1024, kRowsRatio = 32;
constexpr std::int64_t kSmallestTotal = 1024, kTotalRatio = 16;

// Keys to queries in a bucket's totals: as many, or what long prefixes need.
constexpr std::array<std::int64_t, 2> kKeyWeights = {1, 8};

// The smallest first * ratio^n that is at least `value`.
std::int64_t round_up(std::int64_t value, std::int64_t first, std::int64_t ratio) {
  std::int64_t result = first;
  while (result < value) result *= ratio;
  return result;
}

std::int64_t entries_ratio(const BatchRules& rules) { return rules.by_rows ? 2 : 4; }

// The total of queries that fills max_bytes, in whole tiles.
std::int64_t largest_total(std::int64_t key_weight, const BatchRules& rules) {
  const std::int64_t row = rules.query_row_bytes + key_weight * rules.key_row_bytes;
  return std::max(rules.max_bytes / row / kTileRows, std::int64_t{1}) * kTileRows;
}

std::int64_t smaller_total(std::int64_t total) {
  return total / kTotalRatio / kTileRows * kTileRows;
}

// Totals go down from the largest by kTotalRatio, so that the largest bucket uses all memory. What
// does not fit at all gets what it needs.
void set_totals(const BatchShape& shape, const BatchRules& rules, BatchShape& bucket) {
  if (rules.query_row_bytes + rules.key_row_bytes == 0) return;
  const std::int64_t weight = kKeyWeights[shape.total_keys > 2 * shape.total_queries ? 1 : 0];
  const std::int64_t needed =
      std::max(shape.total_queries, (shape.total_keys + weight - 1) / weight);
  std::int64_t total = largest_total(weight, rules);
  while (smaller_total(total) >= std::max(needed, kSmallestTotal)) total = smaller_total(total);
  if (total < needed) total = round_up(needed, kTileRows, 2);
  bucket.total_queries = total;
  bucket.total_keys = weight * total;
}

BatchShape tight_bucket(const BatchShape& shape) {
  return {round_up(shape.entries, 1, 2), round_up(shape.max_queries, kTileRows, 2),
          round_up(shape.max_keys, kTileRows, 2), round_up(shape.total_queries, kTileRows, 2),
          round_up(shape.total_keys, kTileRows, 2)};
}

BatchShape shape_of(const Entry& piece) {
  return {1, piece.queries, piece.keys, piece.queries, piece.keys};
}

BatchShape joined_shape(const BatchShape& a, const BatchShape& b) {
  return {a.entries + b.entries, std::max(a.max_queries, b.max_queries),
          std::max(a.max_keys, b.max_keys), a.total_queries + b.total_queries,
          a.total_keys + b.total_keys};
}

// From the first to the last row of a batch's pieces.
struct Extent {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  Extent joined(std::int64_t row, std::int64_t rows) const {
    return {std::min(begin, row), std::max(end, row + rows)};
  }
};

// What a batch's pieces add up to.
struct Contents {
  BatchShape sum;
  Extent queries, keys;

  Contents joined(const Entry& piece) const {
    return {joined_shape(sum, shape_of(piece)), queries.joined(piece.q_row, piece.queries),
            keys.joined(piece.kv_row, piece.keys)};
  }
};

// The distinct first heads of a batch's pieces.
class HeadSet {
 public:
  bool admits(std::int32_t first, std::int32_t count) const {
    return std::all_of(firsts_.begin(), firsts_.end(), [&](std::int32_t other) {
      return other == first || std::abs(other - first) >= count;
    });
  }

  void add(std::int32_t first) {
    if (std::find(firsts_.begin(), firsts_.end(), first) == firsts_.end()) {
      firsts_.push_back(first);
    }
  }

 private:
  std::vector<std::int32_t> firsts_;
};

class BatchMaker {
 public:
  explicit BatchMaker(const BatchRules& rules) : rules_(rules) {}

  std::vector<Batch> make(std::vector<Entry> pieces) {
    split_large(pieces);
    std::stable_sort(pieces.begin(), pieces.end(), [this](const Entry& a, const Entry& b) {
      if (a.mask != b.mask) return a.mask < b.mask;
      return rules_.by_rows ? a.q_row < b.q_row : num_pairs(a) > num_pairs(b);
    });
    for (const Entry& piece : pieces) add(piece);
    if (rules_.by_rows) {
      for (Batch& batch : batches_) longest_first(batch.pieces);
    }
    return std::move(batches_);
  }

 private:
  static void longest_first(std::vector<Entry>& pieces) {
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const Entry& a, const Entry& b) { return num_pairs(a) > num_pairs(b); });
  }

  BatchShape shape_for(const Contents& contents) const {
    BatchShape shape = contents.sum;
    if (!rules_.by_rows) return shape;
    shape.total_queries = std::max(shape.total_queries, contents.queries.size());
    shape.total_keys = std::max(shape.total_keys, contents.keys.size());
    return shape;
  }

  bool fits(const BatchShape& shape) const {
    return scratch_bytes(bucket(shape, rules_), rules_) <= rules_.max_bytes;
  }

  // Replaces large pieces where they stand.
  void split_large(std::vector<Entry>& pieces) const {
    for (std::size_t i = 0; i < pieces.size();) {
      if (fits_uncut(pieces[i], rules_)) {
        ++i;
        continue;
      }
      const std::vector<Entry> parts = halves(pieces[i]);
      pieces[i] = parts.front();
      pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1, parts.begin() + 1,
                    parts.end());
    }
  }

  // Room for entries that are not there costs 2% of the time of short ones: what is nearly full
  // does not grow for one more.
  bool is_full(const BatchShape& grown) const {
    if (grown.entries > kMaxEntries || !fits(grown)) return true;
    const bool grows = bucket(grown, rules_).entries > batches_.back().bucket.entries;
    const std::int64_t now = shape_for(contents_).total_queries;
    return rules_.by_rows && grows && 4 * now >= 3 * largest_total(1, rules_);
  }

  bool joins(const Entry& piece, const BatchShape& grown) const {
    return !batches_.empty() && batches_.back().mask == piece.mask && !is_full(grown) &&
           q_heads_.admits(piece.q_head, rules_.q_heads) &&
           kv_heads_.admits(piece.kv_head, rules_.kv_heads);
  }

  void add(const Entry& piece) {
    Contents grown = contents_.joined(piece);
    if (!joins(piece, shape_for(grown))) {
      batches_.push_back({piece.mask, {}, {}});
      q_heads_ = {};
      kv_heads_ = {};
      grown = Contents().joined(piece);
    }
    contents_ = grown;
    q_heads_.add(piece.q_head);
    kv_heads_.add(piece.kv_head);
    batches_.back().pieces.push_back(piece);
    batches_.back().bucket = bucket(shape_for(contents_), rules_);
  }

  const BatchRules& rules_;
  std::vector<Batch> batches_;
  Contents contents_;  // of the last batch, like the heads
  HeadSet q_heads_, kv_heads_;
};

// The bucket with all totals that its entries and its longest piece allow.
void add_totals(BatchShape bucket, const BatchRules& rules, std::vector<BatchShape>& out) {
  if (rules.query_row_bytes + rules.key_row_bytes == 0) {
    out.push_back(bucket);
    return;
  }
  const std::int64_t least =
      std::max(bucket.entries == kFirstEntries ? 1 : bucket.entries / entries_ratio(rules),
               bucket.max_keys == kFirstRows ? 1 : bucket.max_keys / kRowsRatio);
  for (const std::int64_t weight : kKeyWeights) {
    for (std::int64_t total = largest_total(weight, rules); weight * total > least;
         total = smaller_total(total)) {
      bucket.total_queries = total;
      bucket.total_keys = weight * total;
      out.push_back(bucket);
      if (smaller_total(total) < kSmallestTotal) break;
    }
  }
}

}  // namespace

BatchShape bucket(const BatchShape& shape, const BatchRules& rules) {
  if (rules.pair_bytes > 0) return tight_bucket(shape);
  const std::int64_t rows =
      round_up(std::max(shape.max_queries, shape.max_keys), kFirstRows, kRowsRatio);
  BatchShape result{round_up(shape.entries, kFirstEntries, entries_ratio(rules)), rows, rows, 0, 0};
  set_totals(shape, rules, result);
  return result;
}

std::int64_t scratch_bytes(const BatchShape& bucket, const BatchRules& rules) {
  return bucket.total_queries * rules.query_row_bytes + bucket.total_keys * rules.key_row_bytes +
         bucket.entries * bucket.max_queries * bucket.max_keys * rules.pair_bytes;
}

bool fits_uncut(const Entry& piece, const BatchRules& rules) {
  return std::max(piece.queries, piece.keys) <= kTileRows ||
         scratch_bytes(bucket(shape_of(piece), rules), rules) <= rules.max_bytes;
}

std::vector<BatchShape> all_buckets(std::int64_t max_rows, const BatchRules& rules) {
  std::vector<BatchShape> result;
  const std::int64_t last = round_up(max_rows, kFirstRows, kRowsRatio);
  for (std::int64_t entries = kFirstEntries; entries <= kMaxEntries;
       entries *= entries_ratio(rules)) {
    for (std::int64_t rows = kFirstRows; rows <= last; rows *= kRowsRatio) {
      add_totals({entries, rows, rows, 0, 0}, rules, result);
    }
  }
  return result;
}

std::vector<Batch> make_batches(std::vector<Entry> pieces, const BatchRules& rules) {
  return BatchMaker(rules).make(std::move(pieces));
}

}  // namespace libra::cudnn
