// How fast attention runs, by the shape of an entry: measured rates at the nodes of a grid over
// (queries, keys, heads), and between them the rate whose logarithm is multilinear in the
// logarithms of the three. Outside the grid, the rate at its nearest edge.
//
//   RateTable table({.queries = {512, 4096}, .keys = {4096}, .heads = {8}, .gflops = {5000,
//   6000}}); table.log2_rate(4096, 100000, 8);  // log2(6000) * 2^24
//
// Whole numbers only, so that every rank computes the same. Immutable: any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace libra {

struct RateGrid {
  std::vector<std::int64_t> queries;  ///< rising, in [1, 2^24]; as are keys and heads
  std::vector<std::int64_t> keys;
  std::vector<std::int64_t> heads;
  std::vector<std::int64_t> gflops;  ///< 1e9 FLOP/s, [head][query][key], in [1, 10^9]

  friend bool operator==(const RateGrid&, const RateGrid&) = default;
};

/// Throws ConfigError that names the field, as in "queries must rise: 4096 after 8192".
void validate(const RateGrid& grid);

class RateTable {
 public:
  /// Throws what validate(grid) throws.
  explicit RateTable(RateGrid grid);

  /// Log2 of the rate in 1e9 FLOP/s, in units of 2^-24. Requires all three positive.
  std::int64_t log2_rate(std::int64_t queries, std::int64_t keys, std::int64_t heads) const;

  const RateGrid& grid() const { return grid_; }

 private:
  // One dimension: the interval that holds a value, and how far into it the value lies.
  class Axis {
   public:
    struct Position {
      std::size_t index;    // of the interval's lower node
      std::int64_t weight;  // of its upper node, in units of 2^-16
    };
    explicit Axis(const std::vector<std::int64_t>& nodes);
    Position locate(std::int64_t value) const;
    std::size_t size() const { return nodes_.size(); }
    std::size_t step() const { return nodes_.size() > 1 ? 1 : 0; }  // to an interval's upper node

   private:
    std::vector<std::int64_t> nodes_;
    std::vector<std::int64_t> logs_;
    std::vector<std::int64_t> reciprocals_;  // 2^40 / width of the interval
  };

  RateGrid grid_;
  Axis queries_;
  Axis keys_;
  Axis heads_;
  std::vector<std::int64_t> logs_;  // of grid_.gflops
};

}  // namespace libra
